"""The oracle of the storm passes what is true, and finds each lie."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tools.storming.check import Run
from tools.storming.oracle import LAG_S, MOMENTS, MOMENTS_S, Said, Shown, Truth, judge_said, judge_shown
from tools.storming.weather import Submitted

# Three tasks: the first ran from 110 to 120 and completed, the second from 140 to 150, the third from 200 on.
FIELDS: dict[str, dict[str, Any]] = {
    "t0": {"locks": {"write": ["src/"]}, "uses": {"few": 2}},
    "t1": {"after": ["t0"], "locks": {"read": ["src/a"]}, "uses": {"few": 1}, "class": "urgent"},
    "t2": {"after_any": ["t1"], "budgets": ["purse"], "batch": "b0", "approval": {"ask": "Go on?"}},
}
RUNS = [
    Run("t0", 1, 110.0, 120.0, ended=True),
    Run("t1", 1, 140.0, 150.0, ended=True),
    Run("t2", 1, 200.0, 210.0, True),
]
ENDS = {
    "t0": {"state": "completed", "completed_at": "1970-01-01T00:02:00Z"},
    "t1": {"state": "completed", "completed_at": "1970-01-01T00:02:30Z"},
    "t2": {"state": "failed", "completed_at": "1970-01-01T00:03:30Z"},
}
TRUTH = Truth(
    {task: Submitted(task, fields, 10.0, (0,), 0.0) for task, fields in FIELDS.items()},
    dict.fromkeys(FIELDS, 100.0),
    RUNS,
    ENDS,
    {"t2": 190.0},
)
HELD = (
    "it waits for the lock read src/a, and src/** is held by task t0 on w1; 2 tasks in line, none of them before it"
)
FIRST = "task t0, which is before it, waits for 2 of limit few: 3 of [limits.few] max = 3 are in use"
FULL = "limit few runs at its limit: 3 of [limits.few] max = 3; none of it runs yet: t0 stands ready"


def said(task: str, asked: float, state: str, *reasons: tuple[str, str], verdict: str = "", attempt: int = 1) -> Said:
    return Said(task, asked, asked + 0.1, state, attempt, verdict, reasons)


TRUE = [
    said("t1", 112.0, "waiting", ("dependencies", "it waits for t0 to complete"), ("locks", HELD), ("limit", FIRST)),
    said("t1", 109.0, "waiting", ("limit", FULL), ("class", "class urgent uses 1 slot and has 1 of its own")),
    said("t1", 135.0, "ready", verdict=f"{MOMENTS}: m1 moves it to ready/ within moments"),
    said("t1", 145.0, "claimed"),
    said("t2", 180.0, "waiting", ("approval", "it waits for an answer to 'Go on?'"), ("budget", "1 of budget purse")),
    said("t2", 300.0, "failed"),
]
LIES = [
    (said("t1", 120.0 + LAG_S + 1, "waiting", ("dependencies", "it waits for t0 to complete")), "t0 had ended"),
    (said("t2", 112.0, "waiting", ("after_any", "it waits for t0 to end")), "does not wait for t0"),
    (said("t1", 120.0 + LAG_S + 1, "waiting", ("locks", HELD)), "t0 had ended"),
    (said("t1", 112.0, "waiting", ("locks", HELD.replace("task t0", "task t2"))), "t2 locks {}"),
    (said("t1", 112.0, "waiting", ("locks", HELD.replace("lock read src/a", "lock write src/a"))), "it locks"),
    (said("t1", 112.0, "waiting", ("limit", FIRST.replace("for 2", "for 1"))), "t0 uses"),
    (said("t1", 109.0, "waiting", ("limit", FULL.replace("3 of", "4 of"))), "more than there is"),
    (said("t1", 119.0, "waiting", ("limit", FULL)), "t0 ran since 110.00"),
    (said("t2", 112.0, "waiting", ("limit", FULL)), "it does not use few"),
    (said("t2", 112.0, "waiting", ("class", "class urgent uses 1 slot and has 1 of its own")), "its class is"),
    (said("t1", 112.0, "waiting", ("budget", "1 of 1 USD of budget purse are spent")), "its budgets is"),
    (said("t2", 190.0 + LAG_S + 1, "waiting", ("approval", "it waits for an answer to 'Go on?'")), "answered at 190"),
    (said("t1", 140.0 - MOMENTS_S - 1, "waiting", verdict=f"{MOMENTS}: m1 moves it"), "it began 15.9 s later"),
    (said("t1", 145.0, "waiting"), "it ran from 140.00 to 150.00"),
    (said("t0", 140.0, "claimed"), "it had ended at 120.00"),
    (said("t0", 140.0, "failed"), "it ended as completed"),
    (said("t0", 112.0, "completed"), "it ended only at 120.00"),
]


@pytest.mark.parametrize("answer", TRUE)
def test_what_was_so_is_no_breach(answer: Said) -> None:
    assert judge_said(answer, TRUTH) == []


@pytest.mark.parametrize(("answer", "why"), LIES)
def test_what_was_not_so_is_found(answer: Said, why: str) -> None:
    assert why in "; ".join(judge_said(answer, TRUTH))


def test_pictures_are_judged() -> None:
    right = Shown(160.0, 160.1, counts={"completed": 2, "waiting": 1}, asks=("t2",))
    assert judge_shown(right, TRUTH) == []
    for wrong in (
        replace(right, counts={"completed": 3}),
        replace(right, counts={"completed": 2, "failed": 2}),
        replace(right, counts={"completed": 2}),
        replace(right, counts={"completed": 2, "waiting": 2}),
        replace(right, asks=("t1",)),
        replace(right, asked=190.0 + LAG_S + 1, told=199.0),
    ):
        assert judge_shown(wrong, TRUTH), wrong
