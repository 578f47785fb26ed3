"""What a task costs in calls, station by station, does not depend on how many others there are.

Method: one real leader and one real worker over files in memory, stepped in turn; every call through the port is
counted, and every name that a listing returns. Nothing is timed, so a slow machine cannot fail it and a fast one
cannot hide a listing that grows. The limits are what it costs today: they may only fall.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import pytest

from spoold.protocol.settings import Settings
from spoold.rules.workers.slots import DEPTH, LATELY
from tests.support.cluster import Cluster, Node
from tests.support.counting import CountingFileSystem

DEPTHS, SHALLOWER = (100, 3000, 30_000), (100, 6000)
SLOTS, MEASURED = 4, 100
# From then on the worker claims ahead, and holds the same number of tasks.
WARM = LATELY + 2 * SLOTS
TICK_S = 0.01
READY = Settings().ready.window
WINDOW = READY + SLOTS
# So many have left waiting/ by the end of a measurement.
BEFORE = WARM + MEASURED + SLOTS * (1 + DEPTH) + READY
# What goes on by the clock, heartbeats and snapshots, falls now into one count and now into another.
SLACK = 0.1
STATIONS: Mapping[str, Mapping[tuple[str, str], float]] = {
    "admission": {("write", "admitting"): 1, ("rename", "admitting"): 1},
    "release": {("rename", "waiting"): 1},
    "claim": {("rename", "ready"): 1, ("read", "claimed"): 1},
    "completion": {("write", "results"): 1, ("rename", "claimed"): 1},
}
MOVING = {station for calls in STATIONS.values() for station in calls}
# Everything else is done once for each step, whatever the number of tasks in it: so many calls at most.
LEADER_STEP, WORKER_STEP = 13, 9
# What a new leader asks whatever there is; besides, it fills the window.
ONCE = 60


class Pool:
    """A leader, a worker, and what each of them was asked since `clear`."""

    def __init__(self, slots: int = SLOTS, settings: str = "") -> None:
        self.cluster = Cluster(settings)
        self.leader = self.cluster.master("m1")
        self.leader_asked = counted(self.leader)
        self.worker = self.cluster.worker("w1", slots)
        self.worker_asked = counted(self.worker)
        self.steps = 0
        self.turn(self.leader)
        self.turn(self.leader)

    def turn(self, *nodes: Node) -> None:
        """One step of each, without the witness, who reads the whole tree."""
        for node in nodes:
            node.actor.step()
        self.cluster.pass_time(TICK_S)
        self.steps += 1

    def clear(self) -> None:
        """Count from nothing again."""
        self.leader_asked.clear()
        self.worker_asked.clear()
        self.steps = 0

    def admit(self, tasks: Iterable[Mapping[str, object]]) -> int:
        """Drop them as one batch, and let the leader alone work until all are tasks; how many they are."""
        lines = [json.dumps({"command": ["work"], **task}) for task in tasks]
        self.cluster.submit("0000000007.batch-all.whole.jsonl", "\n".join([*lines, ""]))
        self.turn(self.leader)
        desk = self.leader.master.desk
        assert desk is not None
        while self.cluster.fs.list("pending") or desk.door.batches:
            self.turn(self.leader)
        return len(lines)

    def complete(self, count: int) -> None:
        """Leader and worker in turn, until so many more tasks have ended."""
        goal = len(self.cluster.fs.list("completed")) + count
        runner = self.worker.runner
        assert runner is not None
        while len(self.cluster.fs.list("completed")) < goal:
            assert self.cluster.clock.monotonic() < 36_000
            self.turn(self.leader, self.worker)
            for key in list(runner.live):
                runner.finish(key)


def counted(node: Node) -> CountingFileSystem:
    """Put a counter under the node's mount."""
    node.fs.inner = counter = CountingFileSystem(node.fs.inner)
    return counter


def plain(count: int) -> Iterable[Mapping[str, object]]:
    return ({"id": f"t{number}"} for number in range(count))


def per_task(asked: CountingFileSystem, tasks: int) -> dict[str, float]:
    """Calls by verb, and listed names, for each task. What has ended is listed whole, once a step: see below."""
    names = sum(count for directory, count in asked.entries.items() if directory != "completed")
    return {**{verb: count / tasks for verb, count in asked.verbs().items()}, "names": names / tasks}


def moves_only(asked: CountingFileSystem, tasks: int, station: str) -> None:
    """This station's calls are those that it needs, and no more."""
    for call, times in STATIONS[station].items():
        assert asked.calls[call] / tasks <= times + SLACK, (station, call)


def besides(calls: Counter[tuple[str, str]]) -> int:
    """All the other calls."""
    return sum(count for call, count in calls.items() if call not in MOVING)


def never_dearer(costs: list[dict[str, float]]) -> None:
    """What a task costs with more behind it is what it costs with few."""
    for cost in costs[1:]:
        for what, count in cost.items():
            assert count <= costs[0].get(what, 0) * 1.05 + SLACK, (what, [c.get(what, 0) for c in costs])


def test_admission() -> None:
    costs = []
    for depth in DEPTHS:
        pool = Pool()
        pool.clear()
        tasks = pool.admit(plain(depth))
        moves_only(pool.leader_asked, tasks, "admission")
        assert pool.leader_asked.calls["rename", "waiting"] <= WINDOW, "ready/ is filled on the way, and no further"
        costs.append(per_task(pool.leader_asked, tasks))
    never_dearer(costs)


def test_release_claim_and_completion() -> None:
    leader, worker = [], []
    for depth in DEPTHS:
        pool = Pool()
        pool.admit(plain(depth + BEFORE))
        pool.complete(WARM)
        pool.clear()
        pool.complete(MEASURED)
        moves_only(pool.leader_asked, MEASURED, "release")
        moves_only(pool.worker_asked, MEASURED, "claim")
        moves_only(pool.worker_asked, MEASURED, "completion")
        assert besides(pool.leader_asked.calls) / pool.steps <= LEADER_STEP
        assert besides(pool.worker_asked.calls) / pool.steps <= WORKER_STEP
        leader.append(per_task(pool.leader_asked, MEASURED))
        worker.append(per_task(pool.worker_asked, MEASURED))
    never_dearer(leader)
    never_dearer(worker)


def test_what_has_ended_is_listed_at_most_once_in_a_step_and_opened_never() -> None:
    pool = Pool(slots=16)
    pool.admit(plain(1300))
    pool.complete(1000)
    pool.clear()
    pool.complete(MEASURED)
    assert pool.leader_asked.calls["list", "completed"] <= pool.steps
    assert pool.leader_asked.entries["completed"] <= pool.steps * (1000 + MEASURED)
    assert pool.leader_asked.calls["read", "completed"] == pool.leader_asked.calls["read", "results"] == 0
    assert pool.worker_asked.entries["completed"] == 0


def test_a_leader_that_waits_asks_the_same_with_more_behind_it() -> None:
    costs = []
    for depth in SHALLOWER:
        pool = Pool()
        pool.admit(plain(depth + READY))
        pool.turn(pool.leader)
        pool.clear()
        for _ in range(20):
            pool.turn(pool.leader)
        assert besides(pool.leader_asked.calls) / pool.steps <= LEADER_STEP
        assert pool.leader_asked.calls["list", "waiting"] == 0
        costs.append(per_task(pool.leader_asked, pool.steps))
    never_dearer(costs)


@pytest.mark.parametrize(("conditional", "reads"), [(False, 0), (True, 1)])
def test_a_new_leader_lists_each_name_once_and_opens_only_what_has_conditions(conditional: bool, reads: int) -> None:
    later = {"not_before": "2199-01-01T00:00:00Z"} if conditional else {}
    for depth in SHALLOWER:
        pool = Pool()
        tasks = pool.admit({**task, **later} for task in plain(depth))
        pool.leader.actor.close()
        second = pool.cluster.master("m2")
        asked = counted(second)
        while not second.master.leading:
            pool.turn(second)
        assert asked.entries["waiting"] <= tasks + 2, "its names, that of their lane, and that again: is it idle?"
        # What stands ready is listed before waiting/ and after it, and a third time when it plans.
        assert asked.entries["ready"] <= 3 * (WINDOW + 1)
        assert asked.verbs()["read"] <= reads * tasks + 5
        assert asked.verbs().total() - asked.verbs()["read"] <= ONCE + WINDOW


def test_a_chain_costs_the_same_for_each_link_however_long_it_is() -> None:
    costs = []
    for length in (60, 600):
        pool = Pool()
        pool.admit({"id": f"t{n}", **({"after": [f"t{n - 1}"]} if n else {})} for n in range(length))
        pool.complete(5)
        pool.clear()
        pool.complete(50)
        moves_only(pool.leader_asked, 50, "release")
        assert pool.steps <= 2 * 50 + 5
        costs.append(per_task(pool.leader_asked, 50))
    never_dearer(costs)


def test_many_children_are_released_for_one_look_at_each() -> None:
    costs = []
    for children in (800, 6000):
        pool = Pool(slots=8)  # and eight times as many that it claims ahead, soon
        pool.admit([{"id": "root"}, *({"id": f"c{n}", "after": ["root"]} for n in range(children))])
        pool.complete(1)
        pool.complete(128)
        pool.clear()
        pool.complete(128)
        moves_only(pool.leader_asked, 128, "release")
        assert pool.leader_asked.verbs()["read"] <= 128 + 2
        costs.append(per_task(pool.leader_asked, 128))
    never_dearer(costs)


def test_the_counter_sees_a_listing_that_grows() -> None:
    """The same comparison, with a leader that lists waiting/ at every step: it must not pass."""
    costs = []
    for depth in (100, 3000):
        pool = Pool()
        pool.admit(plain(depth + READY))
        pool.clear()
        (lane,) = pool.cluster.fs.list("waiting")
        for _ in range(5):
            pool.turn(pool.leader)
            pool.leader.fs.list(f"waiting/{lane}")
        costs.append(per_task(pool.leader_asked, pool.steps))
    with pytest.raises(AssertionError, match="names"):
        never_dearer(costs)
