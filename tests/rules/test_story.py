"""The story of a task: its events in words, in an order that no clock confuses, and what only its results know."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.protocol.amount import precise
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import MOVES
from spoold.protocol.result import Code, Error, Result, Status
from spoold.rules.answers import task_history
from spoold.rules.answers.task_history import tell


def event(word: str, second: float, writer: str = "m1", attempt: int | None = 1, **detail: Any) -> Event:
    return Event(
        at=f"2026-01-01T00:00:{second:06.3f}Z",
        writer=writer,
        seq=int(second * 1000),
        event=word,
        task="A",
        attempt=attempt,
        detail=detail or None,
    )


def words(*events: Event, attempts: tuple[Result, ...] = ()) -> list[str]:
    return [chapter.text for chapter in tell("a", events, attempts)]


def result(attempt: int, **more: Any) -> Result:
    return Result(task_id="a", attempt=attempt, worker_id="w1", completed_at="2026-01-01T00:00:30.000Z", **more)


def test_a_whole_life_is_told_in_its_order_whatever_the_clocks_say() -> None:
    """The worker's clock is 20 s behind that of the leader."""
    lost: dict[str, Any] = {
        "duration_s": 4.25,
        "exit_code": 3,
        "code": "EXIT_NONZERO",
        "message": "exited with code 3",
    }
    told = words(
        event("CLAIMED", 11, "w1"),
        event("STARTED", 12, "w1", type="t"),
        event("RETURNED", 16, "w1", **lost),
        event("CLAIMED", 19, "w1", 2),
        event("COMPLETED", 29, "w1", 2, duration_s=75),
        event("ADMITTED", 30, drop="a.json"),
        event("READY", 30.5),
        event("WAITING", 37, attempt=2, lane="type=t"),
        event("READY", 38, attempt=2),
        event("ARCHIVED", 59, attempt=2),
    )
    assert told == [
        "admitted from a.json",
        "ready for a worker",
        "claimed by w1",
        "started on w1",
        "attempt 1 ended without success after 4.2 s: exited with code 3 (EXIT_NONZERO)",
        "waits to be tried again",
        "ready for a worker",
        "claimed by w1",
        "completed after 1 m 15 s",
        "archived",
    ]


def test_events_of_other_tasks_and_of_none_are_not_its_own() -> None:
    other = event("CLAIMED", 1).model_copy(update={"task": "ab"})
    leading = event("LEADING", 1).model_copy(update={"task": None})
    assert words(other, leading, event("READY", 2)) == ["ready for a worker"]


def test_what_each_new_leader_notes_again_is_told_once_and_stays_where_it_was_first() -> None:
    asked: dict[str, Any] = {"request": "cancel", "by": "ada", "reason": "wrong input"}
    told = words(
        event("ADMITTED", 1),
        event("ASKED", 2, attempt=None, **asked),
        event("STARTED", 3),
        event("ASKED", 9, "m2", attempt=None, **asked),
        event("APPROVED", 4, attempt=None, by="bob"),
        event("APPROVED", 8, "m2", attempt=None, by="bob"),
    )
    assert told == ["admitted", "cancel was asked for by ada: wrong input", "started on m1", "approved by bob"]


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (event("FENCED", 1, "w1", 2), "taken away from w1: what attempt 2 did there does not count"),
        (event("RETURNED", 1, code="WORKER_DIED", worker="w9"), (
            "attempt 1 ended without success: worker w9 died or was cut off (WORKER_DIED)"
        )),
        (event("FAILED", 1, code="DEADLINE"), "failed: DEADLINE"),
        (event("SKIPPED", 1), "skipped"),
        (event("ASKED", 1), "something was asked for"),
        (event("SOME_NEW_WORD", 1, a=1, b="{x}"), "some new word: a 1, b {x}"),
        (event("NEW", 1).model_copy(update={"detail": ["odd"]}), "new"),
        (event("ANSWERED", 1, by="ada", answer="{writer}"), "answered by ada: {writer}"),
    ],
)  # fmt: skip
def test_a_single_event_in_words(one: Event, text: str) -> None:
    assert words(one) == [text]


def test_an_end_that_no_journal_has_is_told_from_its_result() -> None:
    failed = result(
        1, status=Status.FAILURE, duration_s=3, error=Error(code=Code.EXIT_NONZERO, message="exit code 3")
    )
    cancelled = result(2, status=Status.CANCELLED, error=Error(code=Code.CANCELLED, message=""))
    completed = result(3, status=Status.SUCCESS, duration_s=100)
    events = [event("COMPLETED", 40, "w1", 3), event("READY", 20, attempt=2)]
    told = tell("a", events, (failed, cancelled, completed))
    assert [(chapter.attempt, chapter.text, chapter.source) for chapter in told] == [
        (1, "attempt 1 ended without success after 3.0 s: exit code 3 (EXIT_NONZERO)", "result"),
        (2, "ready for a worker", "journal"),
        (2, "attempt 2 ended without success after 0.0 s: CANCELLED", "result"),
        (3, "completed", "journal"),
    ]
    assert words(attempts=(completed,)) == ["completed after 1 m 40 s"]


def test_every_move_that_is_journalled_has_words_of_its_own() -> None:
    for word in {move.event for move in MOVES} - {"SUBMITTED", "RECEIVED", "REPAIRED", "REJUDGED"}:
        assert word in task_history.WORDS or word in task_history.ENDS


@pytest.mark.parametrize(("seconds", "text"), [(0.04, "0.0 s"), (9.94, "9.9 s"), (10.0, "10 s"), (-3.0, "-3 s")])
def test_a_short_time_has_tenths(seconds: float, text: str) -> None:
    assert precise(seconds) == text
