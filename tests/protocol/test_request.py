"""A request is all in its name: verb, target, and what makes it unlike others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.errors import BadName
from spoold.protocol.lock_patterns import PATTERNS_MAX
from spoold.protocol.request import (
    EVERYTHING,
    Request,
    Verb,
    kind_target,
    loan_mark,
    loan_unique,
    parse_request,
)
from spoold.protocol.request_body import RequestBody
from spoold.rules.gates.standing_requests import halted_by, paused_by
from tests.protocol import strategies as some


@given(request=some.requests)
def test_a_request_reads_back_from_its_name(request: Request) -> None:
    name = request.encode()
    assert parse_request(name) == request
    assert len(name) < 255


@given(text=some.texts)
def test_what_parses_encodes_to_the_very_same_text(text: str) -> None:
    request = parse_request(text)
    assert request is None or request.encode() == text


@pytest.mark.parametrize(
    "name",
    [
        "stop.a.1.json",
        "cancel.a.json",
        "cancel..1.json",
        "cancel.+all+.1.json",
        "cancel.con.1.json",
        "cancel.a.X.json",
        "cancel.a.1.json.swp",
        "cancel.a.1.json\n",
        "",
        "halt.w1.1.json",
        "gc.w1.1.json",
        "cancel.+all.1.json",
        "retry.+all.1.json",
        "reap.+all.1.json",
    ],
)
def test_foreign_names_are_passed_over(name: str) -> None:
    assert parse_request(name) is None


@pytest.mark.parametrize("target", ["", "a b", "+ALL", "../x", "nul"])
def test_a_target_that_cannot_stand_in_a_name_is_refused(target: str) -> None:
    with pytest.raises(BadName, match="target"):
        Request(Verb.CANCEL, target, "1").encode()


@pytest.mark.parametrize("unique", ["", "A", "a.b", "x" * 41])
def test_a_suffix_that_would_not_read_back_is_refused(unique: str) -> None:
    with pytest.raises(BadName):
        Request(Verb.CANCEL, "a", unique).encode()


@given(st.sampled_from([verb for verb in Verb if verb not in (Verb.HALT, Verb.GC)]), some.ids, some.uniques)
def test_a_target_may_hold_dots(verb: Verb, target: str, unique: str) -> None:
    assert parse_request(f"{verb}.x.{target}.{unique}.json") == Request(verb, f"x.{target}", unique) or (
        len(target) > 118
    )


def test_everything_is_no_id() -> None:
    """So that no task, type or worker can be called so."""
    assert parse_request(f"halt.{EVERYTHING}.1.json") == Request(Verb.HALT, EVERYTHING, "1")


def test_a_type_is_aimed_at_as_tasks_have_it() -> None:
    assert kind_target(None) == EVERYTHING
    assert kind_target(" Review ") == "review"
    for other, why in (("+all", "name none, to mean all"), ("", "use 1 to 48"), ("con", "another type")):
        with pytest.raises(BadName, match=why):
            kind_target(other)


def test_who_asked_and_why_is_told_as_far_as_it_is_known() -> None:
    assert RequestBody(by="ann", reason="wrong input").told == "asked for by ann: wrong input"
    assert RequestBody().told == "asked for by an unknown user"


def test_what_is_paused_and_halted_is_what_is_asked_for() -> None:
    asked = [Request(Verb.PAUSE, "mail", "1"), Request(Verb.PAUSE, EVERYTHING, "2"), Request(Verb.DRAIN, "w", "3")]
    assert paused_by(asked) == {"mail": None, EVERYTHING: None}
    assert not halted_by(asked)
    assert halted_by([*asked, Request(Verb.HALT, EVERYTHING, "4")])


def test_a_pause_is_over_at_its_moment_and_of_several_the_longest_counts() -> None:
    first, second, third = (Request(Verb.PAUSE, "mail", unique) for unique in "123")
    assert paused_by([first], {first: 10.0}, 9.9) == {"mail": 10.0}
    assert paused_by([first], {first: 10.0}, 10.0) == {}
    assert paused_by([first, second], {first: 10.0, second: 20.0}, 5.0) == {"mail": 20.0}
    assert paused_by([second, first], {first: 10.0, second: 20.0}, 15.0) == {"mail": 20.0}
    assert paused_by([first, third, second], {first: 10.0, second: 20.0}, 5.0) == {"mail": None}
    assert paused_by([third, first], {first: 10.0}, 5.0) == {"mail": None}


@pytest.mark.parametrize("until", ["0001-01-01T00:00:00+23:00", "9999-12-31T23:59:59-23:00", "2026-01-31T18:00:00Z"])
def test_a_body_says_when_its_pause_ends(until: str) -> None:
    assert RequestBody.model_validate({"until": until}).ends == until
    assert RequestBody.model_validate({}).ends == ""


def test_a_reservation_names_no_more_patterns_than_a_task_may_lock() -> None:
    body = RequestBody(write=("a/",) * PATTERNS_MAX)
    assert body.write[0] == "a/**"
    with pytest.raises(ValueError, match="101 patterns"):
        RequestBody(write=("a",) * PATTERNS_MAX, read=("b",))


@pytest.mark.parametrize(
    ("order", "redo", "wrong"),
    [
        ("", [["u", 1]], "redo without an order would be done in each round"),
        ("o", [["u/v", 1]], "redo names 'u/v', which is no id"),
        ("o", [["u", 0]], "greater than or equal to 1"),
    ],
)
def test_a_redo_is_about_one_round_and_names_tasks_and_attempts(
    order: str, redo: list[list[object]], wrong: str
) -> None:
    with pytest.raises(ValueError, match=wrong):
        RequestBody.model_validate({"order": order, "redo": redo})
    assert RequestBody.model_validate({"order": "o", "redo": [["u", 2]]}).redo == (("u", 2),)


def test_a_loan_names_its_worker_and_never_all_tasks() -> None:
    request = Request(Verb.LENT, "build", loan_unique("laptop1-7f3a", 12))
    assert parse_request(request.encode()) == request
    assert request.unique == f"{loan_mark('laptop1-7f3a')}-12"
    assert loan_mark("laptop1-7f3a") != loan_mark("laptop1-7f3b")
    assert parse_request(f"regain.+all.{request.unique}.json") is None
