"""Failures in a row, the gate that they close, and how both are saved and shown."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from spoold.protocol.errors import BadFile
from spoold.protocol.result import Code, Status
from spoold.protocol.settings import BreakerSettings
from spoold.protocol.toml_file import load_settings
from spoold.rules.gates import breaker_gate
from spoold.rules.gates.breaker_gate import CLOSED, FAILED, Book, Row, Seen, book_seen, breakers_of, picture_of, went
from spoold.rules.gates.facts import Held, Known, TypeFacts
from spoold.rules.gates.gate import PASS, Wait
from spoold.rules.gates.resources import Capacity, Resources, Stock

NOW = 1_770_000_000.0
RULE = BreakerSettings(failures=3, open_s=60)


def row_after(*wells: bool, row: Row = CLOSED) -> Row:
    """The row after attempts that began before the breaker opened, one each second."""
    for second, well in enumerate(wells):
        row = row.after(well, f"a.{second}", RULE, NOW + second, tried=False)
    return row


def test_so_many_failures_in_a_row_open_it_and_a_success_sets_them_to_zero() -> None:
    assert row_after(False, False) == Row(2, None, "a.1")
    assert row_after(False, False, True) is CLOSED
    assert row_after(False, False, True, False, False) == Row(2, None, "a.4")
    assert row_after(False, False, False) == Row(3, NOW + 2 + 60, "a.2")


def test_what_began_before_it_opened_changes_nothing() -> None:
    opened = row_after(False, False, False)
    assert row_after(True, False, row=opened) is opened


def test_the_one_that_tries_closes_it_or_opens_it_anew() -> None:
    opened = row_after(False, False, False)
    assert opened.after(True, "b.1", RULE, NOW + 99, tried=True) is CLOSED
    assert opened.after(False, "b.1", RULE, NOW + 99, tried=True) == Row(4, NOW + 99 + 60, "b.1")


def test_a_rule_that_allows_more_failures_than_there_were_closes_it() -> None:
    opened = row_after(False, False, False)
    assert opened.under(BreakerSettings(failures=4), NOW + 5) is CLOSED
    assert opened.under(RULE, NOW + 5) is opened
    assert opened.under(None, NOW + 5) is CLOSED
    assert Row(1, None, "a.1").under(RULE, NOW) == Row(1, None, "a.1")


def test_none_is_open_for_longer_than_the_setting_says_though_the_date_goes_back() -> None:
    opened = row_after(False, False, False)
    assert opened.under(RULE, NOW - 7200).until == NOW - 7200 + 60
    assert opened.under(BreakerSettings(failures=3, open_s=5), NOW + 2).until == NOW + 2 + 5
    assert opened.under(RULE, NOW + 7200) is opened


@pytest.mark.parametrize("code", sorted(Code))
def test_an_attempt_that_was_cancelled_lost_or_put_off_says_nothing(code: Code) -> None:
    ran = {"EXIT_NONZERO", "TIMEOUT", "SIGNALED", "OOM_KILLED", "STALLED", "OUTPUT_INVALID"}
    assert went(Status.FAILURE, code) == (False if code in ran else None)
    assert {str(code) for code in FAILED} == ran


def test_a_success_says_that_it_goes_well_and_a_word_of_a_later_release_nothing() -> None:
    assert went(Status.SUCCESS, None) is True
    assert went("moonstruck", "ECLIPSE") is None
    assert went(Status.FAILURE, None) is None


def test_a_book_keeps_rows_with_failures_alone_and_comes_back_as_it_was_saved() -> None:
    book = Book()
    book.put("a", Row(2, None, "a.1"))
    book.put("b", Row(5, NOW, "b.1"))
    book.put("c", Row(1))
    book.put("c", CLOSED)
    assert book.tripped() == {"b": NOW}
    assert Book.load(book.save()) == book.rows == {"a": Row(2, None, "a.1"), "b": Row(5, NOW, "b.1")}


@pytest.mark.parametrize(
    "state",
    [
        [],
        {"a": 5},
        {"a": [5, None]},
        {"a": ["5", None, ""]},
        {"a": [True, None, ""]},
        {"a": [0, None, ""]},
        {"a": [5, "soon", ""]},
        {"a": [5, True, ""]},
        {"a": [5, math.nan, ""]},
    ],
)
def test_a_state_that_is_none_is_refused(state: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        Book.load(state)


def test_a_snapshot_shows_the_book_and_what_cannot_be_read_is_left_out() -> None:
    book = Book({"a": Row(2, None, "a.1"), "b": Row(5, NOW, "b.1"), "c": Row(6, NOW, "c.1")}, {"b": "", "c": "t9"})
    shown = picture_of(book)
    assert shown["a"] == {"failures": 2, "last": "a.1", "until": None}
    assert shown["b"] == {"failures": 5, "last": "b.1", "until": "2026-02-02T02:40:00.000Z", "trying": ""}
    assert book_seen({"breaker": shown}) == book
    faulty = {"a": 5, "b": {"failures": 1}, "c": {"until": None, "failures": "x"}, "d": {"until": 5, "failures": 1}}
    assert book_seen({"breaker": faulty}) == book_seen({"breaker": 7}) == book_seen({}) == Book()


SETTINGS = load_settings(b"[types.t]\nbreaker = {failures = 3}\n[types.u]\ntimeout = 5\n", "spool.toml")


def facts(row: Row, *, tried: int = 0, trying: str = "", now: float = NOW, reading: bool = False) -> TypeFacts:
    """The facts of type t. tried: how many tasks of it are ready or try."""
    book = Book({"t": row} if row.failures else {}, {"t": trying} if trying else {}, reading)
    seen = breaker_gate.GATE.gather
    assert seen is not None
    more = {"breaker": seen(Known(now, SETTINGS, (), more={"breaker": book}))}
    stock = Stock({"breaker:t": Capacity(1, "type t", "-", most=0)}, {"breaker:t": tried})
    return TypeFacts(uses=Resources(SETTINGS).uses("type=t"), stock=stock, more=more)


def test_types_without_one_have_no_breaker() -> None:
    assert breakers_of(SETTINGS) == {"t": BreakerSettings(failures=3, open_s=60)}
    assert breaker_gate.judge("u", facts(Row(9, NOW + 9))) is PASS
    assert breaker_gate.judge("t", TypeFacts()) is PASS
    none = load_settings(b"", "spool.toml")
    assert breaker_gate.GATE.gather is not None
    assert breaker_gate.GATE.gather(Known(NOW, none, ())) is None
    assert "breaker:t" not in Resources(none).uses("type=t")
    assert (Resources(none).limited, Resources(SETTINGS).limited) == (False, True)
    assert Resources(SETTINGS).running("type=t") == {"type:t": 1}, "what runs is no start any more"


def test_a_closed_one_lets_all_pass() -> None:
    assert breaker_gate.judge("t", facts(CLOSED)) is PASS
    assert breaker_gate.judge("t", facts(Row(2, None, "a.1"), tried=1)) is PASS


def test_an_open_one_says_how_many_failed_until_when_and_how_the_last_one_did() -> None:
    wait = breaker_gate.judge("t", facts(Row(3, NOW + 9, "task a, attempt 1, exit code 1")))
    assert isinstance(wait, Wait)
    assert wait.until == NOW + 9
    said = "3 failures in a row of type t (last: task a, attempt 1, exit code 1), so nothing of it starts"
    assert wait.reason == said
    assert breaker_gate.judge("t", facts(Row(1, NOW + 9))) == Wait(
        "breaker", "1 failure in a row of type t, so nothing of it starts", NOW + 9
    )


def test_when_its_time_has_come_one_passes_and_the_others_wait_for_it() -> None:
    row = Row(3, NOW, "task a, attempt 1, exit code 1")
    assert breaker_gate.judge("t", facts(row)) is PASS
    wait = breaker_gate.judge("t", facts(row, tried=1, trying="b"))
    assert isinstance(wait, Wait)
    assert (wait.until, wait.reason.partition("; ")[2]) == (None, "task b is trying, and the others wait for it")
    wait = breaker_gate.judge("t", facts(row, tried=1))
    assert isinstance(wait, Wait)
    assert "; one task is trying" in wait.reason


def test_a_lane_that_is_passed_over_waits_in_ready_too() -> None:
    row = Row(3, NOW, "task a, attempt 1, exit code 1")
    said = replace(facts(row, trying="b"), passed_over="breaker:t")
    for judge in (breaker_gate.judge, breaker_gate.judge_ready):
        wait = judge("t", said)
        assert isinstance(wait, Wait)
        assert wait.reason.endswith("task b is trying, and the others wait for it")
    assert breaker_gate.judge_ready("t", replace(said, passed_over="quota:git")) is PASS
    assert breaker_gate.judge_ready("u", said) is PASS
    assert breaker_gate.judge_ready("t", replace(said, more={})) is PASS


def test_a_leader_that_still_reads_opens_nothing() -> None:
    wait = breaker_gate.judge("t", facts(CLOSED, reading=True))
    assert isinstance(wait, Wait)
    assert "still reads" in wait.reason
    assert breaker_gate.judge("u", facts(CLOSED, reading=True)) is PASS


def test_its_words_name_the_setting() -> None:
    change = breaker_gate.GATE.change
    assert change is not None
    held = Held("a", "t", facts(Row(3, NOW + 9)))
    more = "or, once it is fixed, `spool config set types.t.breaker.failures 4`"
    assert change(held, Wait("breaker", "-", NOW), ()) == f"time: then one task tries; {more}"
    assert change(held, Wait("breaker", "-"), ()) == f"the end of the task that tries; {more}"
    for known in (facts(CLOSED, reading=True), TypeFacts()):
        assert change(Held("a", "t", known), Wait("breaker", "-"), ()) == "it goes on within moments"


def test_a_seen_one_without_a_book_has_counted_nothing() -> None:
    known = replace(TypeFacts(), more={"breaker": Seen({"t": RULE}, NOW)})
    assert breaker_gate.judge("t", known) is PASS


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[types.t]\nbreaker = {failures = 0}\n", "types.t.breaker.failures"),
        (b"[types.t]\nbreaker = {open_s = 0}\n", "types.t.breaker.open_s"),
        (b"[types.t]\nbreaker = {opens = 1}\n", "types.t.breaker.opens"),
        (b"[types.t]\nbreaker = 5\n", "types.t.breaker"),
    ],
)
def test_a_mistake_in_the_setting_names_the_field(text: bytes, words: str) -> None:
    with pytest.raises(BadFile) as caught:
        load_settings(text, "spool.toml")
    assert words in str(caught.value)
