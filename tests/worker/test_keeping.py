"""A worker keeps room for the first task that it could run, and has too little free for.

The generator plays endless streams of less urgent work, of any size, against one task that needs much of something;
what it needs must come free as soon as all has ended that ran when it came.
"""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName, encode_order
from spoold.rules.workers.slots import Kept, machine_has, machine_needs
from spoold.store import heartbeats
from tests.support.cluster import Cluster, Node
from tests.support.loans import FakeLoans

SEEDS = 64
# A task runs for at most so many steps; a leader and a worker need a few to see what ended.
LASTS, SEEN = 5, 4
SETTINGS = """
[limits.port]
max = 3
per = "worker"
[limits.calls]
rate = { count = 3, per_s = 6 }
per = "worker"
"""
CROWDED = {"handlers": {"own": {"command": ["true"], "max_concurrent": 1}}}
# What needs much, and what takes a little of the same.
BIG: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "cpus": ({"requires": {"cpus": 4}}, [{"requires": {"cpus": 1}}, {"requires": {"cpus": 0.5}}]),
    "memory": ({"requires": {"mem_mb": 4096}}, [{"requires": {"mem_mb": 1024}}]),
    "devices": ({"requires": {"gpus": 2}}, [{"requires": {"gpus": 1}}]),
    "units": ({"uses": {"port": 3}}, [{"uses": {"port": 1}}]),
    "starts": ({"uses": {"calls": 3}}, [{"uses": {"calls": 1}}]),
    "a handler and cpus": ({"type": "own", "requires": {"cpus": 4}}, [{"type": "own"}, {"requires": {"cpus": 1}}]),
    "cpus and units": (
        {"uses": {"port": 2}, "requires": {"cpus": 2}},
        [{"uses": {"port": 1}, "requires": {"cpus": 1}}, {"requires": {"cpus": 1}}],
    ),
}


def runnable(task: dict[str, Any]) -> dict[str, Any]:
    """A task as it is dropped: of a handler, or a raw command."""
    return task if "type" in task else {"command": ["work"], **task}


def drop(made: Cluster, task: dict[str, Any]) -> None:
    """Submit a task."""
    made.submit(f"{task['id']}.json", json.dumps({"max_retries": 0, **task}))


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_stream_of_less_urgent_work_keeps_no_task_from_its_room(seed: int) -> None:
    chance = random.Random(f"keeping {seed}")
    kind = sorted(BIG)[seed % len(BIG)]
    big, rivals = BIG[kind]
    others = [rival for _, some in BIG.values() for rival in some]
    made = Cluster(settings=SETTINGS)
    made.master("m1")
    slots = chance.randint(2, 6)
    node = made.worker("w1", slots, config=CROWDED, cpus=4, mem_mb=4096, gpus=2)
    rank = chance.choice(["low", "normal"])
    ends: dict[str, int] = {}
    came, waits = chance.randint(8, 16), 0
    for turn in range(came + 40):
        for number in range(chance.randint(1, 3 * slots)):
            small = chance.choice(rivals if chance.random() < 0.8 else others)
            drop(made, {"id": f"s{turn}-{number}", "priority": rank, **runnable(small)})
        if turn == came:
            drop(made, {"id": "big", "priority": "high", **runnable(big)})
        made.advance(1.0)
        assert node.runner is not None
        for key in sorted(node.runner.live):
            ends.setdefault(key, turn + chance.randint(0, LASTS))
        if "big.1" in node.runner.live:
            return
        for key in [key for key in sorted(node.runner.live) if ends[key] <= turn]:
            node.runner.finish(key)
        waits += turn >= came
        rest = 7 if "calls" in big.get("uses", {}) else 0
        assert waits <= LASTS + SEEN + rest, f"{kind}, {slots} slots: big waits for {waits} steps, {made.running()}"
    raise AssertionError(f"{kind}: it never ran")


def test_tasks_that_are_claimed_ahead_of_free_slots_keep_none_from_a_slot_of_its_own() -> None:
    made = Cluster(settings=SETTINGS)
    made.master("m1")
    node = made.worker("w1", 2)
    runner = node.runner
    assert runner is not None

    def a_moment(turn: int) -> None:
        for number in range(8):
            drop(made, {"id": f"s{turn}-{number}", "command": ["work"]})
        made.pass_time(0.01)
        made.step_all()
        for key in sorted(runner.live):
            runner.finish(key)

    for turn in range(40):
        a_moment(turn)
    assert len(node.worker.running) > 2, "they are so short that some wait in a slot"
    drop(made, {"id": "urgent", "command": ["work"], "priority": "high", "uses": {"port": 1}})
    for turn in range(40, 60):
        a_moment(turn)
        if any(job.key == "urgent.1" for job in runner.started):
            return
    raise AssertionError(f"it waits behind tasks that came later: {runs(node)}")


def cluster(*tasks: dict[str, Any], **worker: Any) -> tuple[Cluster, Node]:
    """A leader and a worker of two cpus that runs a task on one of them, and tasks that are ready."""
    made = Cluster(settings=SETTINGS)
    made.master("m1")
    drop(made, {"id": "first", "command": ["work"], "requires": {"cpus": 1}})
    node = made.worker("w1", 4, **{"cpus": 2, **worker})
    made.advance(2.0)
    for task in tasks:
        drop(made, {"command": ["work"], **task})
    made.advance(2.0)
    return made, node


def runs(node: Node) -> list[str]:
    """The ids of what runs on a worker."""
    return sorted(attempt.name.id for attempt in node.worker.running)


ONE, TWO = {"requires": {"cpus": 1}}, {"requires": {"cpus": 2}}


def test_56_small_tasks_do_not_keep_an_urgent_one_from_two_cpus() -> None:
    made, node = cluster(*({"id": f"s{number}", **ONE} for number in range(56)))
    assert len(runs(node)) == 2
    drop(made, {"id": "urgent", "command": ["work"], "priority": 4999, **TWO})
    made.advance(1.0)
    for running in runs(node):
        made.finish(running)
        made.advance(1.0)
    assert runs(node) == ["urgent"]


def test_what_needs_nothing_of_it_goes_on() -> None:
    _, node = cluster({"id": "urgent", "priority": "high", **TWO}, {"id": "small", **ONE}, {"id": "free"})
    assert runs(node) == ["first", "free"]


def test_what_is_left_over_when_all_has_ended_that_ran_before_may_be_taken() -> None:
    _, node = cluster(
        {"id": "urgent", "priority": "high", "requires": {"cpus": 3}},
        {"id": "s1", **ONE},
        {"id": "s2", **ONE},
        cpus=4,
    )
    assert runs(node) == ["first", "urgent"]
    made, node = cluster(
        {"id": "urgent", "priority": "high", "requires": {"cpus": 3}},
        {"id": "s1", **ONE},
        {"id": "s2", **ONE},
        cpus=3.5,
    )
    assert runs(node) == ["first"], "half a cpu is left over beside it"
    drop(made, {"id": "half", "command": ["work"], "requires": {"cpus": 0.5}})
    made.advance(2.0)
    assert runs(node) == ["first", "half"]


def test_what_the_worker_can_never_have_keeps_nobody() -> None:
    _, node = cluster(
        {"id": "huge", "priority": "high", "uses": {"port": 4}},
        {"id": "alien", "priority": "high", "requires": {"cpus": 3}},
        {"id": "small", **ONE},
    )
    assert runs(node) == ["first", "small"]


def test_tasks_of_one_rank_that_came_together_go_as_they_fit() -> None:
    made, node = cluster({"id": "big", **TWO}, {"id": "small", **ONE})
    assert runs(node) == ["first", "small"]
    made.advance(61.0)
    drop(made, {"id": "later", "command": ["work"], **ONE})
    made.finish("first")
    made.advance(2.0)
    assert runs(node) == ["small"]
    made.finish("small")
    made.advance(2.0)
    assert runs(node) == ["big"]


def test_the_heartbeat_and_explain_say_for_which_task_room_is_kept() -> None:
    made, node = cluster({"id": "urgent", "priority": "high", **TWO}, {"id": "small", **ONE}, cpus=2)
    made.advance(6.0)
    beat = heartbeats.read_all(made.fs)["w1"]
    assert isinstance(beat, Heartbeat)
    assert beat.keeps is not None
    assert (beat.keeps.task, beat.keeps.spare) == ("urgent", {"cpus": 0.0})
    store, host = node.worker.store, node.host
    big = explain(store, host, store.clock, "urgent", sleep=lambda _: None)
    assert "no worker has" in big.verdict
    assert "w1 keeps room for it" in big.verdict
    small = explain(store, host, store.clock, "small", sleep=lambda _: None)
    assert "every worker that has room for it keeps that for a task before it: w1 for urgent" in small.verdict
    made.finish("first")
    made.advance(6.0)
    told = heartbeats.read_all(made.fs)["w1"].keeps
    assert told is not None
    assert told.task == "small", "now it waits for the urgent one's end"


def test_a_machine_counts_cpus_memory_and_devices() -> None:
    lane = Lane("t", "command", cpus=1.5, mem_mb=512)
    assert machine_needs(lane) == {"cpus": 1.5, "mem_mb": 512.0}
    assert machine_has(Capabilities(cpus=2, mem_mb=1024, gpus=1)) == {"cpus": 2.0, "mem_mb": 1024.0, "gpus": 1.0}


def test_claims_take_of_what_is_left() -> None:
    name = TaskName(4990, encode_order(10**15, 1), "big", 1, 0, 0)
    later = TaskName(5000, encode_order(10**15 + 1, 1), "small", 1, 0, 0)
    kept = Kept(name, {"cpus": 2.0}, frozenset({"before"}))
    kept.count({"cpus": 4.0, "gpus": 1.0}, [("before", {"cpus": 4.0}), ("since", {"cpus": 1.0, "mem_mb": 5.0})])
    assert kept.spare == {"cpus": 1.0}
    assert kept.lets(later, {"cpus": 1.0, "mem_mb": 1e6})
    kept.take({"cpus": 1.0})
    assert not kept.lets(later, {"cpus": 0.1})
    assert kept.lets(later, {})
    assert kept.lets(replace(later, rank=4989), {"cpus": 9.0}), "it comes first"


@pytest.mark.parametrize("much", [{"mem_mb": 900}, {"gpus": 2}, {"cpus": 2, "mem_mb": 900}])
def test_nothing_is_kept_beside_a_parent_that_waits_for_its_child(much: dict[str, int]) -> None:
    """It lends its cpus and not its memory, so what it holds comes free only after the child has run."""
    made, loans = Cluster(settings=SETTINGS), FakeLoans()
    made.master("m1")
    drop(made, {"id": "parent", "command": ["work"], "requires": {"cpus": 1, "mem_mb": 500, "gpus": 1}})
    node = made.worker("w1", 2, cpus=2, mem_mb=1000, gpus=2, loans=loans)
    made.advance(2.0)
    loans.lend("parent.1")
    drop(made, {"id": "big", "command": ["work"], "priority": "critical", "requires": much})
    made.advance(2.0)
    drop(made, {"id": "child", "command": ["work"], "requires": {"cpus": 1, "mem_mb": 300, "gpus": 1}})
    made.advance(2.0)
    assert runs(node) == ["child", "parent"]
    made.finish("child")
    made.advance(2.0)
    made.finish("parent")
    made.advance(2.0)
    assert runs(node) == ["big"]
