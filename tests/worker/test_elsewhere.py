"""A worker that cannot run a task costs the task nothing, and is not the quickest of all to claim the next one."""

from __future__ import annotations

import errno
import json
from itertools import pairwise
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.long_listing import describe
from spoold.store import snapshots
from spoold.store.store import open_store
from spoold.store.task_location import locate
from spoold.worker.intake.readiness import HandlersKnown
from tests.support.cluster import Cluster, Node
from tests.worker.test_worker import beat, ids

HANDLERS = {"review": {"command": ["codex"]}}
LACKING: dict[str, Any] = {"kind": "spawn_failed", "exit_code": 127, "message": "cannot execute codex: ENOENT"}
RAW = {"command": ["codex"]}
REVIEW = {"type": "review"}
CALL = {"python": "Mymod.jobs:run"}


def pool(*workers: str, tasks: int, task: dict[str, Any]) -> Cluster:
    """A leader, workers with a handler for reviews, and tasks t0, t1… of which all stand ready."""
    made = Cluster("[retry]\njitter = 0\n")
    made.master("m1")
    made.step("m1")
    for name in workers:
        made.worker(name, config={"handlers": HANDLERS, "python": {"allow": ["Mymod.", "other"]}})
    for number in range(tasks):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", **task}))
    made.step("m1")
    return made


def fail_all(made: Cluster, name: str) -> None:
    """What runs on this worker finds no program."""
    node = made.nodes[name]
    assert node.runner is not None
    for key in list(node.runner.live):
        node.runner.finish(key, **LACKING)


def worker(made: Cluster, name: str) -> Node:
    return made.nodes[name]


def charges(made: Cluster, task: str) -> tuple[int, int]:
    name: Any = made.find(task).name
    return name.failures, name.crashes


def explained(made: Cluster, task: str) -> str:
    node = made.nodes["m1"]
    store = open_store(node.fs, node.clock, "reader", "/spool")
    return explain(store, node.host, node.clock, task).verdict


@pytest.mark.parametrize("task", [RAW, REVIEW, CALL])
def test_a_worker_without_the_program_fails_no_task_of_one_that_has_it(task: dict[str, Any]) -> None:
    made = pool("w1", "w2", tasks=6, task=task)
    begun: dict[str, float] = {}
    for _ in range(600):
        fail_all(made, "w1")
        runner = worker(made, "w2").runner
        assert runner is not None
        for key in list(runner.live):
            if made.clock.monotonic() - begun.setdefault(key, made.clock.monotonic()) >= 25:
                runner.finish(key)
        made.advance(1)
    assert [made.state(f"t{number}") for number in range(6)] == ["completed"] * 6
    attempts = [int(file.split(".")[1]) for file in made.fs.list("results") if file.endswith(".w1.json")]
    assert 1 <= len(attempts) <= (30 if task == RAW else 12)


def test_what_no_worker_can_run_fails_once_every_one_has_tried() -> None:
    made = pool("w1", "w2", tasks=1, task={**RAW, "max_retries": 1})
    for _ in range(60):
        fail_all(made, "w1")
        fail_all(made, "w2")
        made.advance(1)
    token = made.find("t0")
    assert (token.state, token.result and token.result["error"]["cause"]) == ("failed", "SPAWN_FAILED")
    told = {}
    for file in made.fs.list("results"):
        told[int(file.split(".")[1])] = json.loads(made.fs.read(f"results/{file}"))["error"]["message"]
    assert len(told) == 3
    assert "left to w" in told[1]
    assert "left to" not in told[2] + told[3]


@pytest.mark.parametrize("task", [RAW, REVIEW, CALL])
def test_however_many_tasks_there_are_each_is_tried_by_another_worker_next(task: dict[str, Any]) -> None:
    made = pool("w1", "w2", tasks=4, task={**task, "max_retries": 0})
    for _ in range(90):
        fail_all(made, "w1")
        fail_all(made, "w2")
        made.advance(1)
    assert [made.state(f"t{number}") for number in range(4)] == ["failed"] * 4


def test_one_that_handed_it_back_has_not_tried() -> None:
    made = pool("w2", tasks=1, task=RAW)
    made.step("w2")
    made.nodes["w2"].worker.drain(0.0)
    made.step("w2")
    made.step("w2")
    assert made.gone["w2"] == "left"
    made.worker("w1")
    made.fs.mkdir("claimed/w2")  # as if it were there again
    made.step("m1")
    made.step("w1")
    fail_all(made, "w1")
    made.step("w1")
    made.step("m1")
    assert charges(made, "t0") == (0, 0)


def test_alone_a_worker_charges_at_once_and_keeps_away_from_the_task_only() -> None:
    made = pool("w1", tasks=2, task=REVIEW)
    made.step("w1")
    fail_all(made, "w1")
    made.advance(2)
    assert sorted(charges(made, task) for task in ("t0", "t1")) == [(0, 0), (1, 0)]
    assert len(ids(worker(made, "w1"))) == 1
    can = beat(made).capabilities
    assert can is not None
    assert can.shuns == {}


def test_a_worker_whose_handler_cannot_run_keeps_away_from_the_type_for_longer_each_time() -> None:
    made = pool("w2", "w1", tasks=9, task=REVIEW)
    made.step("w2")  # which is busy from here on
    seen = []
    for second in range(80):
        if ids(worker(made, "w1")):
            seen.append(second)
            fail_all(made, "w1")
        made.advance(1)
    assert len(seen) == 4, "at the beginning, and after 5, 10 and 20 s"
    assert [after - before >= pause for (before, after), pause in zip(pairwise(seen), (5, 10, 20), strict=True)] == [
        True
    ] * 3
    can = beat(made).capabilities
    assert can is not None
    assert "it could not run the last one: cannot execute codex" in can.shuns["review"]


def test_a_worker_that_cannot_import_a_module_keeps_away_from_that_module_only() -> None:
    made = pool("w2", "w1", tasks=9, task=CALL)
    made.step("w2")  # which is busy from here on
    seen = []
    for second in range(50):
        if ids(worker(made, "w1")):
            seen.append(second)
            fail_all(made, "w1")
        made.advance(1)
    assert len(seen) == 4, "at the beginning, and after 5, 10 and 20 s"
    can = beat(made).capabilities
    assert can is not None
    assert list(can.shuns) == ["py=mymod.jobs"]
    made.submit("o.json", json.dumps({"id": "o", "python": "other:run"}))
    made.advance(3)
    assert ids(worker(made, "w1")) == ["o"]


def test_a_callable_that_is_nowhere_holds_up_no_other_of_its_module() -> None:
    made = pool("w1", "w2", tasks=40, task={"python": "Mymod.jobs:typo", "max_retries": 0})
    for number in range(5):
        made.submit(f"s{number}.json", json.dumps({"id": f"s{number}", **CALL}))
    ended = 0
    for second in range(120):
        for name in ("w1", "w2"):
            runner = worker(made, name).runner
            assert runner is not None
            for key in list(runner.live):
                runner.finish(key, **(LACKING if key.startswith("t") else {}))
        made.advance(1)
        ended = sum(made.state(f"t{number}") == "failed" for number in range(40))
        if ended == 40 and all(made.state(f"s{number}") == "completed" for number in range(5)):
            assert second < 90
            return
    pytest.fail(f"only {ended} of 40 have ended")


def test_a_module_that_is_listed_in_another_case_only_costs_the_one_that_is_nothing() -> None:
    made = pool("w1", "w2", tasks=2, task={"python": "mymod.jobs:run"})
    made.advance(1)
    made.submit("good.json", json.dumps({"id": "good", **CALL}))
    made.nodes["w2"].frozen = True
    made.advance(2)
    assert ids(worker(made, "w1")) == ["good"]


def test_after_a_success_one_failure_is_the_tasks_and_two_are_the_types() -> None:
    made = pool("w1", "w2", tasks=5, task=REVIEW)
    made.nodes["w2"].frozen = True
    made.step("w1")
    made.finish("t0", on="w1")
    made.step("w1")
    for still in (1, 0):
        fail_all(made, "w1")
        made.step("w1")
        made.step("w1")
        assert len(ids(worker(made, "w1"))) == still


def test_one_that_is_about_to_leave_or_has_died_is_not_waited_for() -> None:
    made = pool("w1", "w2", tasks=1, task=RAW)
    made.crash("w2")
    made.step("w1")
    fail_all(made, "w1")
    made.step("w1")
    made.step("m1")
    assert charges(made, "t0") == (0, 0), "nobody knows yet that it died"
    made.advance(30)
    assert made.fs.list("claimed") == ["w1"]
    fail_all(made, "w1")
    made.advance(2)
    assert charges(made, "t0") == (1, 0)


def test_a_listing_that_fails_puts_the_verdict_off() -> None:
    made = pool("w1", "w2", tasks=1, task=RAW)
    made.nodes["w2"].frozen = True
    made.step("w1")
    fail_all(made, "w1")
    worker(made, "w1").fs.fail("list", "heartbeats", errno.EIO, times=1)
    made.step("w1")
    (attempt,) = worker(made, "w1").worker.running
    assert "cannot be decided yet" in attempt.notes[0]
    made.step("w1")
    made.step("m1")
    assert charges(made, "t0") == (0, 0)


def test_a_verdict_stands_once_its_result_is_written() -> None:
    made = pool("w1", "w2", tasks=1, task=RAW)
    made.nodes["w2"].frozen = True
    made.step("w1")
    fail_all(made, "w1")
    worker(made, "w1").fs.fail("rename", "claimed/w1", errno.EIO, times=1)
    made.step("w1")
    made.crash("w2")
    made.fs.rmdir("claimed/w2")
    made.step("w1")
    made.step("m1")
    assert charges(made, "t0") == (0, 0)


def test_what_a_worker_leaves_to_others_is_seen_and_explained() -> None:
    made = pool("w1", tasks=1, task={**RAW, "retry": {"backoff_s": 0.1}})
    made.step("w1")
    fail_all(made, "w1")
    made.advance(4)
    assert made.state("t0") == "ready"
    assert beat(made).avoids == {"t0": "cannot execute codex: ENOENT"}
    assert "leaves it to others for now: w1: cannot execute codex: ENOENT" in explained(made, "t0")
    made.advance(2)
    assert ids(worker(made, "w1")) == ["t0"]


def test_a_handler_whose_program_is_not_there_is_not_offered() -> None:
    lacks: dict[str, str] = {"review": "it lacks the program codex"}
    made = pool("w1", tasks=1, task=REVIEW)
    node = worker(made, "w1")
    node.worker._offering._found = HandlersKnown(lacks)
    made.advance(20)
    assert (made.state("t0"), ids(node)) == ("waiting", [])
    can = beat(made).capabilities
    assert can is not None
    assert (can.handlers, can.lacks) == ((), lacks)
    assert explained(made, "t0") == "no worker alive can run it: w1: it lacks the program codex"
    told = snapshots.latest(made.fs)
    assert told is not None
    assert any("can run type=review (1 worker awake); w1: it lacks the program codex;" in w for w in told[1].warnings)
    node.worker._offering._found = HandlersKnown()
    made.advance(20)
    assert ids(node) == ["t0"]


def not_here(made: Cluster, name: str, what: str, *, of: str = "") -> None:
    """Each task that runs on this worker, or that one, says that it cannot run here."""
    node = made.nodes[name]
    assert node.runner is not None
    assert node.scratch is not None
    for key in list(node.runner.live):
        if key.startswith(of):
            said = {"not_here": what, "retry_after_s": 60, "reasons": ["/srv is full"]}
            node.scratch.write(key, "result.json", json.dumps(said).encode())
            node.runner.finish(key, exit_code=75)


def test_a_task_that_says_it_cannot_run_here_is_left_to_another_worker_at_once() -> None:
    made = pool("w1", tasks=1, task=REVIEW)
    made.step("w1")
    made.worker("w2", config={"handlers": HANDLERS})
    made.step("w2")
    made.step("m1")
    not_here(made, "w1", "task")
    for _ in range(4):
        made.advance(1)
    assert (charges(made, "t0"), ids(worker(made, "w2"))) == ((0, 0), ["t0"])
    can = beat(made).capabilities
    assert can is not None
    assert can.shuns == {}, "its other tasks may run here"
    (first,) = [json.loads(made.fs.read(f"results/{name}")) for name in made.fs.list("results")]
    said = "exit code 75: this worker cannot run it: /srv is full; left to w2"
    assert (first["error"]["code"], first["error"]["message"]) == ("TRY_LATER", said)


@pytest.mark.parametrize("what", ["task", "type"])
def test_where_no_worker_can_it_rests_for_longer_each_time_and_is_charged_nothing(what: str) -> None:
    made = pool("w1", "w2", tasks=1, task={**REVIEW, "max_retries": 0})
    for _ in range(600):
        not_here(made, "w1", what)
        not_here(made, "w2", what)
        made.advance(1)
    token = made.find("t0")
    assert token.state in ("waiting", "ready", "claimed"), "nothing of it is charged"
    assert charges(made, "t0") == (0, 0)
    assert len(made.fs.list("results")) <= 14


def test_a_worker_that_can_run_none_of_a_type_takes_no_more_of_them_and_others_flow_past() -> None:
    made = pool("w1", tasks=6, task=REVIEW)
    made.submit("other.json", json.dumps({"id": "other", **RAW}))
    ran = set[str]()
    for _ in range(60):
        not_here(made, "w1", "type", of="t")
        made.advance(1)
        ran |= set(ids(worker(made, "w1")))
    tried = [name for name in made.fs.list("results") if name.startswith("t")]
    assert len(tried) <= 8, "not each of them once every few seconds"
    assert "other" in ran
    can = beat(made).capabilities
    assert can is not None
    assert "/srv is full" in can.shuns["review"]


def test_a_list_says_why_a_task_waits_that_no_worker_can_run() -> None:
    made = pool("w1", tasks=1, task={"type": "paint"})
    made.advance(10)
    node = made.nodes["m1"]
    store = open_store(node.fs, node.clock, "reader", "/spool")
    (row,) = describe(store, [locate(store, "t0")], "here")
    assert (row.state, row.reason) == ("waiting", "no worker that the leader knows to be awake can run it")
