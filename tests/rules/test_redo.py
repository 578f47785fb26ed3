"""What a rejection sends back: which tasks, once, in order, and in whose words."""

from dataclasses import replace

import pytest

from spoold.protocol.approval import Approval
from spoold.protocol.request import Request, Verb
from spoold.rules.gates import approval_gate, standing_requests
from spoold.rules.gates.facts import Conditions, Facts, Parent
from spoold.rules.gates.gate import Wait
from spoold.rules.gates.standing_requests import Requested, Seen

AGAIN = (("Up", 2), ("mid", 1))


def back(unique: str = "1", order: str = "o-1", task: str = "t", **more: object) -> Requested:
    made = Requested(Request(Verb.REJECT, task, unique), order=order, redo=AGAIN, by="ada", at="now", reason="why")
    return replace(made, **more)  # type: ignore[arg-type]


def plain(unique: str, order: str = "") -> Requested:
    return Requested(Request(Verb.REJECT, "t", unique), order=order)


def test_a_task_that_is_sent_back_waits_and_does_not_fail() -> None:
    asks = Approval(ask="Deploy?")
    facts = Facts(0.0, lambda _: Parent.COMPLETED, order="o-1", requested=(back(),))
    verdict = approval_gate.judge(Conditions(more=(("approval", asks),)), facts)
    assert verdict == Wait("approval", "'Deploy?' was rejected by ada: why; Up is to run again")


def test_the_first_rejection_of_the_round_decides() -> None:
    assert standing_requests.standing((back("2"), plain("3"), back("1")), "o-1") == back("1")
    assert standing_requests.standing((back("2"), plain("1")), "o-1") is None
    assert standing_requests.standing((back("2"), plain("1", "o-0")), "o-1") == back("2")
    assert standing_requests.standing((back(order="o-0"),), "o-1") is None
    assert standing_requests.standing((back(about="q"),), "o-1") is None
    assert standing_requests.standing((replace(back(), request=Request(Verb.APPROVE, "t", "1")),), "o-1") is None
    assert standing_requests.standing((), "o-1") is None


@pytest.mark.parametrize(
    ("up", "mid", "why", "left"),
    [
        (Seen(2, ended=True), Seen(1, ended=True), "", ["Up", "mid"]),
        (Seen(3, ended=False), Seen(1, ended=True), "", ["mid"]),
        (Seen(3, ended=True), Seen(2, ended=False), "", []),
        (Seen(3, ended=True), None, "", []),
        (None, Seen(1, ended=True), "Up cannot run again: it is archived, or there is no such task", ["mid"]),
        (Seen(2, ended=True), None, "mid cannot run again: it is archived, or there is no such task", ["Up"]),
        (
            Seen(2, ended=False),
            Seen(1, ended=True),
            "Up cannot run again: its attempt 2 is not the one that has ended last",
            ["mid"],
        ),
        (
            Seen(2, ended=True),
            Seen(2, ended=True),
            "mid cannot run again: its attempt 1 is not the one that has ended last",
            ["Up"],
        ),
    ],
)
def test_what_is_left_to_do_follows_from_the_attempts(
    up: Seen | None, mid: Seen | None, why: str, left: list[str]
) -> None:
    seen = {"up": up, "mid": mid}
    assert (standing_requests.refusal(back(), seen), standing_requests.left(back(), seen)) == (why, left)


def test_a_redo_is_undone_as_long_as_its_first_task_has_no_later_attempt() -> None:
    assert standing_requests.is_undone(back(), Seen(2, ended=True))
    assert not standing_requests.is_undone(back(), Seen(3, ended=False))
    assert not standing_requests.is_undone(back(), None)


def test_each_round_has_one_redo_and_they_are_in_order() -> None:
    late, early, twice = back("1", "o-2"), back("2", "o-1"), back("3", "o-1")
    assert standing_requests.rounds((late, twice, plain("0"), early)) == [early, late]


def test_the_upstream_is_told_the_newest_round_and_all_before() -> None:
    first = {"task": "t", "round": 1, "redo": "Up", "reason": "why", "by": "ada", "at": "now"}
    one, two = back("1", "o-1"), back("2", "o-2", redo=(("Up", 3),), reason="still")
    assert standing_requests.records([one]) == [first]
    assert standing_requests.feedback((two, one), "up", 3) == {**first, "earlier": []}
    assert standing_requests.feedback((two, one), "up", 4) == {
        **first,
        "round": 2,
        "reason": "still",
        "earlier": [first],
    }
    assert standing_requests.feedback((one,), "up", 2) is None
    assert standing_requests.feedback((one,), "mid", 2) is None
    assert standing_requests.feedback((), "up", 2) is None
    other = back("9", "o-3", task="other", reason="theirs")
    told = standing_requests.feedback((other, one), "up", 3)
    assert told is not None
    assert (told["task"], told["reason"]) == ("other", "theirs")


def test_people_are_told_who_sent_a_task_back_last_and_why() -> None:
    one, two = back("1", "o-1"), back("2", "o-2", reason="", by="")
    assert standing_requests.sent_back((one, two), "t", "o-3", 1) == "sent back, round 2, by an unknown user"
    assert standing_requests.sent_back((one, two), "t", "o-2", 1) == "sent back, round 1, by ada: why"
    assert standing_requests.sent_back((one,), "t", "o-1", 1) == "", "this round is not over: its gate says so"
    assert standing_requests.sent_back((one,), "up", "o-9", 3) == "sent back from t, round 1, by ada: why"
    assert standing_requests.sent_back((two,), "up", "o-9", 3) == "sent back from t, round 1, by an unknown user"
    assert standing_requests.sent_back((one,), "up", "o-9", 2) == "", "that attempt had begun before"
    assert standing_requests.sent_back((one,), "mid", "o-9", 9) == ""


def test_the_way_has_each_task_after_those_that_it_needs_and_nothing_beside_it() -> None:
    needs = {"t": ("b", "x"), "b": ("up", "a"), "a": ("up",), "up": ("z",), "x": ("z",), "z": ()}
    assert standing_requests.way("up", "t", needs) == ["up", "a", "b"]
    assert standing_requests.way("b", "t", needs) == ["b"]
    assert standing_requests.way("t", "t", needs) == []
    assert standing_requests.way("nobody", "t", needs) == []
    assert standing_requests.way("x", "b", {"b": ("up",), "up": (), "x": ()}) == []
    assert standing_requests.way("a", "t", {"t": ("a",), "a": ("c",), "c": ("a",)}) == []
