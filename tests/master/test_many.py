"""Requests for many tasks in control/: each stands for one request for each of its tasks."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from spoold.protocol.names import rank_of
from spoold.protocol.request import Request, Verb
from spoold.protocol.request_body import TASKS_MAX
from spoold.store import control, snapshots
from spoold.store.journal import Reader
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.cluster import Cluster

HIGH = rank_of(10)


def cluster(*ids: str, slots: int = 1) -> Cluster:
    made = Cluster()
    made.master("m1")
    made.worker("w1", slots)
    made.settle()
    for task_id in ids:
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], "max_retries": 0}))
        made.settle()
    return made


def ask(made: Cluster, verb: str, tasks: Sequence[str], unique: str = "1", **more: object) -> None:
    body = json.dumps({"tasks": list(tasks), **more}).encode()
    made.fs.write(f"control/{verb}.+many.{unique}.json", body, durable=False)


def noted(made: Cluster, event: str) -> list[tuple[str | None, dict[str, object]]]:
    return [(one.task, one.detail) for one in Reader(made.fs).read() if one.event == event]


def test_each_of_its_tasks_is_cancelled_and_no_other() -> None:
    made = cluster("runs", "a", "b", "c")
    ask(made, "cancel", ["B", "a"], by="ann", reason="wrong input")
    made.settle()
    assert [made.state(task) for task in ("runs", "a", "b", "c")] == ["claimed", "failed", "failed", "ready"]
    assert made.fs.list("control") == []
    for task in ("a", "b"):
        result = made.find(task).result
        assert result is not None
        assert (result["status"], result["error"]["message"]) == ("cancelled", "asked for by ann: wrong input")
    said = {"request": "cancel", "by": "ann", "reason": "wrong input"}
    assert noted(made, "ASKED") == [
        (None, {**said, "target": "+many", "tasks": 2}),
        ("a", {**said, "target": "a"}),
        ("B", {**said, "target": "B"}),
    ]


def test_a_worker_gets_a_request_of_its_own_for_a_task_that_runs() -> None:
    made = cluster("runs", "a")
    ask(made, "cancel", ["a", "runs"], "k3-1", by="ann")
    made.step("m1")
    assert made.fs.list("control") == ["cancel.runs.k3-1.json"]
    made.settle()
    result = made.find("runs").result
    assert result is not None
    assert result["error"]["message"] == "cancelled while it ran, as asked for by ann"
    assert made.fs.list("control") == []
    assert [task for task, _ in noted(made, "ASKED")] == [None, "a", "runs"]


def test_failed_tasks_are_retried_once_and_a_parent_before_its_child() -> None:
    made = cluster("p")
    made.submit("c.json", json.dumps({"id": "c", "command": ["work"], "dependencies": ["p"]}))
    made.settle()
    made.finish("p", exit_code=1)
    made.settle()
    assert (made.state("p"), made.state("c")) == ("failed", "failed")
    ask(made, "retry", ["c", "p"])
    made.advance(12)
    assert (made.state("p"), made.state("c")) == ("claimed", "waiting")
    assert (made.find("p").name.attempt, made.find("c").name.attempt) == (2, 2)
    assert made.fs.list("control") == []


def test_the_last_priority_counts_whatever_the_order_of_the_requests() -> None:
    made = cluster("runs", "a", "b")
    ask(made, "priority", ["a", "b", "runs"], f"{HIGH:04d}-2")
    made.fs.write(f"control/priority.b.{rank_of(-10):04d}-3.json", b"", durable=False)
    made.fs.write(f"control/priority.a.{rank_of(-10):04d}-1.json", b"", durable=False)
    made.settle()
    ranks = {task: int(made.find(task).path.rpartition("/")[2][:4]) for task in ("a", "b")}
    assert ranks == {"a": HIGH, "b": rank_of(-10)}
    assert made.fs.list("control") == [f"priority.runs.{HIGH:04d}-2.json"]


def test_an_unknown_task_holds_it_up_for_ten_seconds_alone() -> None:
    made = cluster("runs", "a")
    ask(made, "cancel", ["a", "nobody"])
    made.settle()
    assert (made.state("a"), made.fs.list("control")) == ("failed", ["cancel.+many.1.json"])
    made.advance(15)
    assert made.fs.list("control") == []
    assert [task for task, _ in noted(made, "IGNORED")] == ["nobody"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "is empty"),
        (b'{"tasks": []}', "is missing, so it is for no task"),
        (b'{"tasks": ["a b"]}', "'a b', which is no id"),
        (json.dumps({"tasks": ["a"] * (TASKS_MAX + 1)}).encode(), "10,000 are the most"),
    ],
)
def test_one_that_names_no_tasks_is_removed_and_told(body: bytes, why: str) -> None:
    made = cluster("runs", "a")
    made.fs.write("control/cancel.+many.1.json", body, durable=False)
    made.advance(5)
    assert (made.state("a"), made.fs.list("control")) == ("ready", [])
    assert [why in str(detail["why"]) for _, detail in noted(made, "IGNORED")] == [True]
    latest = snapshots.latest(made.fs)
    assert latest is not None
    assert any(why in warning and "was removed" in warning for warning in latest[1].warnings)


def test_the_next_leader_goes_on_where_the_last_one_stopped() -> None:
    made = cluster("runs", *(f"t{number}" for number in range(6)))
    ask(made, "cancel", [f"t{number}" for number in range(6)])
    made.nodes["m1"].fs.crash_at("rename", "failed/", 3)
    made.step("m1")
    assert [made.state(f"t{number}") for number in range(6)] == ["failed"] * 2 + ["ready"] * 4
    made.master("m2")
    made.advance(40)
    assert [made.state(f"t{number}") for number in range(6)] == ["failed"] * 6
    assert made.fs.list("control") == []


def test_only_what_a_leader_can_ask_of_each_task_may_be_for_many() -> None:
    for verb in Verb:
        many = Request(verb, "+many", "1")
        if verb in (Verb.CANCEL, Verb.RETRY, Verb.PRIORITY):
            assert many.encode() == f"{verb}.+many.1.json"
        else:
            with pytest.raises(ValueError, match="cannot be the target"):
                many.encode()


def test_explain_knows_who_is_among_many() -> None:
    fs = MemoryFileSystem()
    fs.mkdir("control")
    fs.write("control/cancel.+many.1.json", b'{"tasks": ["a", "B"]}', durable=False)
    fs.write("control/cancel.+many.2.json", b"torn", durable=False)
    fs.write("control/retry.c.1.json", b"", durable=False)
    listed = control.list_requests(fs)
    asked = [task for task in "abc" if control.asks(fs, listed, Verb.CANCEL, task)]
    assert (asked, control.asks(fs, listed, Verb.RETRY, "C")) == (["a", "b"], True)
