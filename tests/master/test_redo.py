"""A rejection that sends work back: what runs again, once, and what the next round of the question is."""

import errno
import json
from collections.abc import Mapping
from typing import Any

import pytest

from spoold.store.journal import Reader
from tests.master.test_approvals import ASK, asks, result
from tests.master.test_holds import cluster, drop, events, request
from tests.support.cluster import Cluster


def order(made: Cluster, task_id: str = "t") -> str:
    return made.find(task_id).path.rpartition("/")[2].split(".")[1]


def graph() -> Cluster:
    """u → m → t, and u → other: all have ended but t, which waits for its approval."""
    made = cluster()
    drop(made, "u")
    drop(made, "m", after=["u"])
    drop(made, "other", after=["u"])
    drop(made, "t", after=["m"], approval=ASK)
    for task_id in ("u", "m", "other"):
        made.settle()
        made.finish(task_id)
    made.advance(2)
    assert made.state("t") == "waiting"
    assert len(asks(made)) == 1
    return made


def send_back(made: Cluster, unique: str = "1", **more: Any) -> None:
    said = {"by": "ada@desk", "at": "2026-02-02T09:00:00Z", "reason": "the tests are missing"}
    request(made, "reject", "t", unique, **({"order": order(made), "redo": [["u", 1], ["m", 1]]} | said | more))


def feedback(made: Cluster, run: str) -> Any:
    scratch = made.nodes["w1"].scratch
    assert scratch is not None
    return json.loads(scratch.read(run, "feedback.json", 0, 4000))


def variables(made: Cluster, run: str) -> Mapping[str, str]:
    runner = made.nodes["w1"].runner
    assert runner is not None
    return next(job.own for job in runner.started if job.key == run)


def attempts(made: Cluster, *tasks: str) -> list[int]:
    return sorted(int(name.split(".")[1]) for name in made.fs.list("results") if name.split(".")[0] in tasks)


def test_the_upstream_runs_again_with_the_feedback_then_all_between_and_the_task_asks_anew() -> None:
    made = graph()
    before = order(made)
    request(made, "approve", "t", "0", answer="no")
    send_back(made)
    made.settle()
    assert (made.state("u"), made.state("m"), made.state("t")) == ("claimed", "waiting", "waiting")
    assert order(made) > before
    assert asks(made) == []
    told = {
        "task": "t",
        "round": 1,
        "redo": "u",
        "reason": "the tests are missing",
        "by": "ada@desk",
        "at": "2026-02-02T09:00:00Z",
    }
    assert feedback(made, "u.2") == {**told, "earlier": []}
    assert variables(made, "u.2")["SPOOL_FEEDBACK_FILE"].endswith("/feedback.json")
    made.finish("u")
    made.settle()
    assert made.state("m") == "claimed"
    assert "SPOOL_FEEDBACK_FILE" not in variables(made, "m.2")
    made.finish("m")
    made.advance(2)
    assert (made.state("t"), made.state("other")) == ("waiting", "completed")
    (asked,) = asks(made)
    assert asked["order"] == order(made)
    request(made, "approve", "t", "9", order=before)
    made.settle()
    assert made.state("t") == "waiting", "an answer to the round before is none"
    request(made, "approve", "t", "5", by="ada@desk", order=order(made))
    made.settle()
    made.finish("t")
    made.advance(2)
    assert made.state("t") == "completed"
    assert attempts(made, "u", "m", "other", "t") == [1, 1, 1, 1, 2, 2]
    assert result(made, "t")["approval"]["rounds"] == [told]
    assert made.fs.list("control") == []
    noted = next(event for event in Reader(made.fs).read() if event.event == "REDO")
    assert (noted.task, noted.detail["tasks"], noted.detail["by"]) == ("t", ["u", "m"], "ada@desk")
    assert events(made, "REDONE") == [("REDONE", "u"), ("REDONE", "m"), ("REDONE", "t")]


def test_a_second_round_knows_the_first_and_a_further_attempt_of_the_upstream_has_the_feedback_too() -> None:
    made = graph()
    send_back(made)
    made.settle()
    for task_id in ("u", "m"):
        made.finish(task_id)
        made.settle()
    made.advance(2)
    send_back(made, "2", redo=[["u", 2], ["m", 2]], reason="and they fail")
    made.settle()
    assert (feedback(made, "u.3")["round"], feedback(made, "u.3")["reason"]) == (2, "and they fail")
    assert [one["reason"] for one in feedback(made, "u.3")["earlier"]] == ["the tests are missing"]
    made.finish("u", exit_code=1)
    made.advance(120)
    assert feedback(made, "u.4")["round"] == 2
    made.finish("u")
    made.settle()
    made.finish("m")
    made.advance(2)
    request(made, "reject", "t", "3", order=order(made), reason="enough")
    made.settle()
    assert made.state("t") == "failed"
    assert [one["round"] for one in result(made, "t")["approval"]["rounds"]] == [1, 2]


@pytest.mark.parametrize("unique", ["0", "2"])
def test_a_redo_that_comes_twice_is_done_once(unique: str) -> None:
    made = graph()
    before = order(made)
    send_back(made)
    made.settle()
    send_back(made, unique, order=before)
    made.settle()
    assert made.find("u").path.startswith("claimed/w1/")
    for task_id in ("u", "m"):
        made.finish(task_id)
        made.settle()
    made.advance(2)
    assert made.state("t") == "waiting"
    assert attempts(made, "u") == [1, 2]
    assert len([name for name in made.fs.list("control") if name.startswith("reject.")]) == 1
    assert ("IGNORED", "t") in events(made, "IGNORED")


@pytest.mark.parametrize(
    ("again", "why"),
    [
        ([["u", 2]], "u cannot run again: its attempt 2 is not the one that has ended last"),
        ([["nobody", 1]], "nobody cannot run again: it is archived, or there is no such task"),
        ([["t", 1]], "t cannot run again: its attempt 1 is not the one that has ended last"),
    ],
)
def test_what_cannot_run_again_leaves_the_question_as_it_is(again: list[list[object]], why: str) -> None:
    made = graph()
    question, before = asks(made), order(made)
    send_back(made, redo=again)
    made.settle()
    assert (asks(made), order(made)) == (question, before)
    assert [event.detail["why"] for event in Reader(made.fs).read() if event.event == "IGNORED"] == [why]
    request(made, "approve", "t", "3")
    made.settle()
    assert made.state("t") == "claimed"


def test_a_redo_of_a_round_that_is_over_by_a_retry_does_nothing() -> None:
    made = graph()
    before = order(made)
    request(made, "reject", "t", "0", reason="no")
    made.settle()
    request(made, "retry", "t")
    made.settle()
    assert made.state("t") == "waiting"
    send_back(made, order=before)
    made.settle()
    assert (made.state("u"), attempts(made, "u")) == ("completed", [1])
    assert not [name for name in made.fs.list("control") if name.startswith("reject.")]


def test_a_task_that_stands_ready_is_taken_back_and_one_that_runs_is_not() -> None:
    made = graph()
    made.crash("w1")
    request(made, "approve", "t", "5")
    made.settle()
    assert made.state("t") == "ready"
    send_back(made)
    made.advance(3)
    assert (made.state("u"), made.state("t")) == ("ready", "waiting")
    made.worker("w2", slots=4)
    for task_id in ("u", "m"):
        made.advance(2)
        made.finish(task_id)
    made.advance(2)
    assert made.state("t") == "waiting"
    request(made, "approve", "t", "6")
    made.settle()
    assert made.state("t") == "claimed"
    send_back(made, "7", redo=[["u", 2], ["m", 2]])
    made.settle()
    assert (made.state("t"), made.state("u")) == ("claimed", "completed")


def test_a_task_that_had_failed_runs_again_too() -> None:
    made = cluster()
    drop(made, "u", max_retries=0)
    drop(made, "t", after_any=["u"], approval=ASK)
    made.settle()
    made.finish("u", exit_code=1)
    made.advance(2)
    send_back(made, redo=[["u", 1]])
    made.settle()
    assert (made.state("u"), feedback(made, "u.2")["round"]) == ("claimed", 1)
    made.finish("u")
    made.advance(2)
    assert (made.state("u"), len(asks(made))) == ("completed", 1)


def test_an_upstream_that_nobody_can_read_leaves_the_task_where_it_waits() -> None:
    made = graph()
    before = order(made)
    made.nodes["m1"].fs.fail("read", made.find("u").path, errno.EACCES, times=3)
    send_back(made)
    made.step("m1")
    assert (made.state("u"), order(made)) == ("completed", before)
    made.advance(10)
    assert (made.state("u"), order(made) > before) == ("claimed", True)


def test_a_plain_rejection_that_came_first_fails_the_task() -> None:
    made = graph()
    request(made, "reject", "t", "0", reason="no")
    send_back(made)
    made.settle()
    assert (made.state("t"), made.state("u")) == ("failed", "completed")


@pytest.mark.parametrize("made_moves", [0, 1])
@pytest.mark.parametrize(("task_id", "moved"), [("u", 0), ("m", 1), ("t", 2)])
def test_the_next_leader_goes_on_where_a_leader_died(task_id: str, moved: int, made_moves: int) -> None:
    """made_moves: it dies just before this task's move, or just after it."""
    made = graph()
    old, mount = order(made), made.nodes["m1"].fs
    mount.hang("rename", made.find(task_id).path, lambda: setattr(mount, "crash_after", made_moves))
    send_back(made)
    made.advance(1)
    assert "m1" in made.gone
    assert sum(name.split(".")[0] in ("u", "m") for name in made.fs.list("completed")) == 2 - min(
        moved + made_moves, 2
    )
    assert (order(made) == old) == (moved + made_moves < 3)
    made.master("m2")
    made.advance(30)
    assert order(made) > old
    for done in ("u", "m"):
        made.finish(done)
        made.advance(2)
    assert made.state("t") == "waiting"
    assert len(asks(made)) == 1
    assert attempts(made, "u", "m") == [1, 1, 2, 2]
