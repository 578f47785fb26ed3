"""Reports of a used-up quota, windows of a rate, closed limits, and the names that settings and tasks use."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.request import Request, Verb
from spoold.protocol.settings import LimitSettings
from spoold.protocol.task import Task
from spoold.protocol.toml_file import load_settings
from spoold.rules.attempts.attempt_outcome import of_exit
from spoold.rules.attempts.reported_figures import LEAST_S, UNSAID_S, Quota, at_fault, closes, quota_in
from spoold.rules.entry.references import UnknownName, check_names, check_settings_names
from spoold.rules.gates import limit_gates
from spoold.rules.gates.facts import Held, TypeFacts
from spoold.rules.gates.gate import PASS, Wait
from spoold.rules.gates.limit_gates import Window
from spoold.rules.gates.resources import Capacity, Stock
from spoold.rules.gates.standing_requests import Closed, closed_by


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (None, None),
        ([], None),
        ({"answer": 42}, None),
        ({"quota": None}, None),
        ({"quota": {"limit": "LLM "}}, Quota("llm")),
        ({"quota": {"limit": "llm", "retry_after_s": 5}}, Quota("llm", after_s=5.0)),
        ({"quota": {"limit": "llm", "retry_after_s": -5}}, Quota("llm", after_s=0.0)),
        ({"quota": {"limit": "llm", "until": "1970-01-01T00:01:00Z"}}, Quota("llm", until=60.0)),
        ({"quota": {"limit": "llm", "until": "1970-01-01T01:01:00+01:00"}}, Quota("llm", until=60.0)),
    ],
)
def test_a_report_names_its_limit_and_a_time(said: object, found: Quota | None) -> None:
    assert quota_in(said) == found


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ("llm", "names no limit"),
        ({}, "names no limit"),
        ({"limit": 7}, "names no limit"),
        ({"limit": "a b"}, "cannot be a limit"),
        ({"limit": "llm", "until": "tomorrow"}, "is not a time"),
        ({"limit": "llm", "until": 7}, "is not a time"),
        ({"limit": "llm", "until": "2026-01-01T00:00:00"}, "has no zone"),
        ({"limit": "llm", "retry_after_s": "5"}, "is not a number"),
        ({"limit": "llm", "retry_after_s": True}, "is not a number"),
        ({"limit": "llm", "retry_after_s": math.inf}, "is not a number"),
        ({"limit": "llm", "retry_after_s": math.nan}, "is not a number"),
    ],
)
def test_a_wrong_report_says_what_is_wrong(said: object, fault: str) -> None:
    found = quota_in({"quota": said})
    assert isinstance(found, str)
    assert fault in found


def test_a_report_closes_for_no_longer_than_it_may_and_never_into_the_past() -> None:
    limit = LimitSettings(quota_max_s=100)
    assert Quota("a").moment(1000.0, limit) == 1000.0 + UNSAID_S
    assert Quota("a", after_s=1e300).moment(1000.0, limit) == 1100.0
    assert Quota("a", after_s=float(10**18)).moment(1000.0, limit) == 1100.0
    assert Quota("a", until=5.0).moment(1000.0, limit) == 1000.0 + LEAST_S
    assert Quota("a", until=1050.0).moment(1000.0, limit) == 1050.0


def test_an_attempt_that_closed_a_limit_needs_no_rest_and_a_wrong_report_changes_only_the_words() -> None:
    later = of_exit(75, frozenset(), frozenset(), 5.0)
    closed = closes(later, Quota("llm"), "14:05")
    assert (closed.rests, closed.retry_after_s, closed.quota) == (False, None, True)
    assert "quota of llm used up, until 14:05" in closed.message
    wrong = at_fault(later, "no")
    assert (wrong.rests, wrong.retry_after_s, wrong.quota, wrong.message) == (
        True,
        5.0,
        False,
        f"{later.message}; no",
    )


def test_a_window_counts_units_until_each_has_left_it() -> None:
    window = Window(3, 10.0)
    assert (window.length_s, window.used(0.0), window.opens(0.0)) == (11.0, 0, None)
    assert Window(3, 60.0).length_s == 61.0
    window.add(0.0, 1)
    window.add(4.0, 2)
    assert (window.used(10.9), window.opens(10.9)) == (3, 11.0)
    assert (window.used(11.0), window.opens(11.0)) == (2, 15.0)
    assert window.used(15.0) == 0
    window.add(20.0, 2)
    window.add(21.0, 4)
    assert window.used(22.0) == 3, "more than there may be is as many as there may be"
    assert window.opens(22.0) == 32.0, "the first that leaves makes no room"
    window.change(10, 1.0)
    assert (window.used(22.0), window.length_s) == (4, 1.1)
    window.change(1, 1.0)
    assert window.opens(30.0) == 30.0, "a moment that is past is now"


def request(verb: Verb, unique: str, target: str = "llm") -> Request:
    return Request(verb, target, unique)


def test_of_several_closings_the_longest_counts() -> None:
    close, used, later = request(Verb.CLOSE, "a"), request(Verb.QUOTA, "b"), request(Verb.QUOTA, "c")
    assert closed_by([close]) == {"llm": Closed(None, quota=False)}
    assert closed_by([close, used], {used: 50.0}, 10.0) == {"llm": Closed(None, quota=False)}
    assert closed_by([close, used], {close: 20.0, used: 50.0}, 10.0) == {"llm": Closed(50.0, quota=True)}
    assert closed_by([close, used], {close: 60.0, used: 50.0}, 10.0) == {"llm": Closed(60.0, quota=False)}
    assert closed_by([close, used], {close: 60.0}, 10.0) == {"llm": Closed(None, quota=True)}
    assert closed_by([used, later], {used: 50.0, later: 70.0}, 10.0) == {"llm": Closed(70.0, quota=True)}
    assert closed_by([used], {used: 50.0}, 50.0) == {}


def facts(closed: dict[str, Closed], stock: Stock | None = None, **opens: float) -> TypeFacts:
    uses = {"type:a": 1, "quota:llm": 1, "quota:git": 1, "rate:llm": 2}
    return TypeFacts(uses=uses, closed=closed, stock=stock or Stock(), opens={"rate:llm": 5.0, **opens})


def words(said: TypeFacts, asked: dict[tuple[str, str], str] | None = None) -> tuple[str, str, float | None]:
    verdict = limit_gates.judge_quota("a", said)
    assert isinstance(verdict, Wait)
    held = Held("t", "a", said, asked=asked or {})
    assert limit_gates.QUOTA_GATE.change is not None
    assert limit_gates.QUOTA_GATE.detail is not None
    return (
        f"{verdict.reason}; {limit_gates.QUOTA_GATE.detail(held, verdict)}",
        limit_gates.QUOTA_GATE.change(held, verdict, ()),
        verdict.until,
    )


def test_the_gate_of_quotas_says_which_until_when_and_who() -> None:
    assert limit_gates.judge_quota("a", facts({})) == PASS
    assert limit_gates.judge_quota("a", facts({"other": Closed(None, quota=True)})) == PASS
    both = {"llm": Closed(50.0, quota=True), "git": Closed(60.0, quota=False)}
    asked = {(Verb.CLOSE.value, "git"): "asked for by ada", (Verb.QUOTA.value, "llm"): "task t"}
    assert words(facts(both), asked) == (
        "limit git is closed; asked for by ada",
        "time; or `spool limits open git`",
        60.0,
    )
    assert words(facts({"llm": Closed(50.0, quota=True)}), asked)[0] == "quota of llm; task t"
    assert words(facts({"llm": Closed(None, quota=False)}))[1] == "`spool limits open llm`"


def test_the_gate_of_quotas_lets_few_go_while_one_is_tried() -> None:
    capacity = {"quota:llm": Capacity(1, "limit llm", "-", most=0)}
    assert limit_gates.judge_quota("a", facts({}, Stock(capacity))) == PASS
    tried = facts({}, Stock(capacity, {"quota:llm": 1}), **{"quota:llm": 9.0})
    assert limit_gates.QUOTA_GATE.judges("a", tried, ready=True) == PASS, (
        "the task that is ready is the one that tries"
    )
    assert words(tried) == (
        "the quota of llm was used up, and few tasks at a time try it again; ",
        "the end of the task that tries it",
        9.0,
    )


def test_a_lane_that_is_passed_over_in_a_trial_waits_in_ready_too() -> None:
    said = replace(facts({}), passed_over="quota:git")
    for judge in (limit_gates.judge_quota, limit_gates.judge_quota_ready):
        wait = judge("a", said)
        assert isinstance(wait, Wait)
        assert wait.reason.startswith("the quota of git was used up")
        assert judge("a", replace(said, passed_over="breaker:a")) is PASS


def test_the_gate_of_rates_says_how_many_have_started_and_when_there_is_room() -> None:
    capacity = {"rate:llm": Capacity(3, "limit llm", "[limits.llm] rate.count", most=0)}
    said = facts({}, Stock(capacity, {"rate:llm": 1}, {"rate:llm": 1}))
    verdict = limit_gates.judge_rate("a", said)
    assert isinstance(verdict, Wait)
    assert verdict.reason == "limit llm is at its rate: 2 of [limits.llm] rate.count = 3 have started or may now"
    assert verdict.until == 5.0
    assert limit_gates.RATE_GATE.change is not None
    assert (
        limit_gates.RATE_GATE.change(Held("t", "a", said), verdict, ())
        == "time; or raise it: `spool config set limits.llm.rate.count …`"
    )
    assert limit_gates.RATE_GATE.change(Held("t", "a", facts({})), verdict, ()) == "time"
    assert limit_gates.judge_rate("a", facts({}, Stock(capacity, {"rate:llm": 1}))) == PASS


def test_a_task_keeps_all_that_it_lacks_and_nothing_of_which_there_is_never_enough() -> None:
    capacity = {n: Capacity(2, n, n) for n in ("limit:a", "limit:b", "rate:a", "type:t")}
    stock = Stock(capacity, {"limit:a": 2, "limit:b": 1, "rate:a": 1})
    assert stock.lacking({"type:t": 1, "limit:a": 1, "limit:b": 2, "rate:a": 2}) == {"limit:a", "limit:b", "rate:a"}
    assert stock.lacking({"limit:a": 3, "limit:c": 1, "quota:a": 1}) == set()
    assert stock.short_of({"limit:b": 1}) is None
    assert Stock(capacity, wanted=frozenset({"limit:b"})).short_of({"limit:b": 1}) == "limit:b"


SETTINGS = """
[limits.llm]
max = 3
[limits.api]
rate = {count = 2, per_s = 1}
[limits.shut]
max = 0
"""


def task(uses: object) -> Task:
    return codec.load_task(codec.dump({"id": "t", "command": ["work"], "uses": uses}), "t.json")


@pytest.mark.parametrize(
    ("uses", "words"),
    [
        ({"lm": 1}, "there is no limit 'lm'. did you mean 'llm'?"),
        ({"llm": 4}, "4 of 'llm' are more than there are: its max is 3."),
        ({"api": 3}, "3 of 'api' are more than may ever begin at once: its rate.count is 2."),
    ],
)
def test_a_use_that_can_never_be_is_an_error_of_the_task_and_of_the_settings(
    uses: dict[str, int], words: str
) -> None:
    settings = load_settings(SETTINGS.encode(), "spool.toml")
    with pytest.raises(UnknownName) as error:
        check_names(task(uses), settings, "t.json")
    assert words in f"{error.value.problem} {error.value.mend}"
    assert (error.value.file, error.value.field) == ("t.json", "uses")
    (name, units), *_ = uses.items()
    typed = load_settings(f"{SETTINGS}[types.t]\nuses = {{{name} = {units}}}\n".encode(), "spool.toml")
    with pytest.raises(BadFile) as other:
        check_settings_names(typed, "spool.toml")
    assert other.value.field == "types.t.uses"


def test_what_can_be_passes() -> None:
    settings = load_settings(f"{SETTINGS}[types.t]\nuses = ['llm']\n".encode(), "spool.toml")
    check_settings_names(settings, "spool.toml")
    check_names(task({"llm": 3, "api": 2, "shut": 5}), settings, "t.json")
    check_names(task(["llm", "api"]), settings, "t.json")
