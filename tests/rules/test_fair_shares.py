"""Shares take turns within one priority: over lanes, limits and locks, and at no cost per task."""

from __future__ import annotations

import random
import time
from collections import Counter
from typing import Any

import pytest

from spoold.protocol.names import TaskName, encode_order, key, rank_of
from spoold.protocol.settings import FairSettings
from spoold.rules.cluster.pool_clock import Now
from spoold.rules.gates import lock_gate
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions, Parent, TypeFacts
from spoold.rules.gates.lock_holders import Demand
from spoold.rules.gates.resources import LIMIT, Capacity, Stock
from spoold.rules.scheduling import queues
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.fair_shares import (
    PATIENCE_S,
    SHARES,
    SHOWN,
    UNREAD,
    Turns,
    crowding,
    runs,
    share_of,
    told,
    turns_seen,
    whose_turn,
)
from spoold.rules.scheduling.promotion import LaneView, promotions
from spoold.rules.scheduling.waiting_task import Entry

START = 1_770_000_000.0
ONE = f"{LIMIT}one"


class Pool:
    """A backlog whose time goes on with each start."""

    def __init__(self, settings: FairSettings | None = None) -> None:
        self.backlog = Backlog(lambda task_id: Parent.UNKNOWN)
        self.settings, self.at, self.count = settings or FairSettings(), START, 0
        self.held: dict[str, Demand | None] = {}
        self.begin()

    @property
    def now(self) -> Now:
        return Now(self.at - START + 100.0, self.at)

    def begin(self, seconds: float = 0.0) -> None:
        self.at += seconds
        self.backlog.turns.begin(self.at, self.settings)
        self.backlog.locks.hold(self.held)
        self.backlog.gathered = {lock_gate.NAME: self.backlog.locks.book}
        self.backlog.tick(self.now)

    def add(self, share: str, count: int = 1, *, lane: str = "type=a", priority: int = 0, lock: str = "") -> None:
        for _ in range(count):
            self.count += 1
            order = encode_order(int(START * 1e6) - 10**9 + self.count, 1)
            name = TaskName(rank_of(priority), order, f"t-{self.count}", conditional=bool(lock))
            demand = ((lock_gate.NAME, Demand(write=(lock,))),) if lock else ()
            conditions = Conditions(more=demand) if lock else NO_CONDITIONS
            self.backlog.add(Entry(name.encode(), lane, conditions, share=share), self.now)

    def start(self, count: int = 1) -> list[str]:
        """The shares of the next tasks that start, one after the other, a second apart."""
        found: list[str] = []
        for _ in range(count):
            self.begin(1.0)
            lanes = {lane: LaneView(lane.partition("=")[2], ()) for lane in self.backlog.lanes()}
            stock = Stock({ONE: Capacity(1, "limit one", "[limits.one] max")})
            facts = {lane: TypeFacts(uses={ONE: 1}, stock=stock) for lane in lanes}
            for entry in promotions(self.backlog, lanes, facts, 1000, self.now):
                self.backlog.remove(key(entry.name.id))
                found.append(entry.share)
                if entry.conditions is not NO_CONDITIONS:
                    self.held = {}  # it has ended when the next step begins
        return found


@pytest.mark.parametrize("lanes", [("type=a",) * 3, ("type=a", "type=b", "type=c")])
@pytest.mark.parametrize("lock", ["", "shared"])
def test_each_share_has_its_turn_however_many_tasks_it_has(lanes: tuple[str, ...], lock: str) -> None:
    pool = Pool()
    for share, count, lane in zip("abc", (300, 100, 5), lanes, strict=True):
        pool.add(share, count, lane=lane, lock=lock)
    found = pool.start(15)
    assert Counter(found) == {"a": 5, "b": 5, "c": 5}, found
    assert Counter(pool.start(20)) == {"a": 10, "b": 10}, "each has half then"


def test_a_share_with_tasks_in_many_lanes_has_one_turn_for_all_of_them() -> None:
    pool = Pool()
    for number in range(20):
        pool.add("many", 5, lane=f"type=t{number}")
    pool.add("one", 10, lane="type=z")
    assert Counter(pool.start(20)) == {"many": 10, "one": 10}


def test_priority_goes_before_turns() -> None:
    pool = Pool()
    pool.add("a", 3)
    pool.add("b", 3, priority=10)
    assert pool.start(6) == ["b", "b", "b", "a", "a", "a"]


def test_a_weight_gives_more_starts_in_a_turn() -> None:
    pool = Pool(FairSettings(weights={"a": 3}))
    pool.add("batch a", 20)
    pool.add("batch b", 20)
    assert Counter(pool.start(16)) == {"batch a": 12, "batch b": 4}


def test_nobody_is_passed_by_an_endless_stream_of_new_shares() -> None:
    pool = Pool()
    pool.add("old", 3)
    found: list[str] = []
    for number in range(12):
        pool.add(f"new{number}")
        pool.add(f"newer{number}")
        found += pool.start()
    assert found.count("old") >= 1
    assert found.index("old") == 0


def test_a_share_that_starts_elsewhere_all_the_time_has_its_turn_after_its_patience() -> None:
    """In its own lane `busy` starts in every step; in the other one, where one task starts at a time, others wait."""
    pool = Pool()
    pool.add("busy", 1, lane="type=slow")
    for _ in range(int(PATIENCE_S) + 60):
        pool.add("b", lane="type=slow")
        pool.add("c", lane="type=slow")
        pool.backlog.turns.start("busy")
        if "busy" in pool.start():
            break
    assert "busy" not in pool.backlog.turns.waiting
    assert pool.at - START > 30, "it was served elsewhere meanwhile"


@pytest.mark.parametrize("seed", range(20))
def test_where_one_share_waits_all_is_as_without_shares(seed: int) -> None:
    chance = random.Random(seed)
    fair, plain = Pool(), Pool(FairSettings(by="none"))
    for number in range(200):
        lane, priority = f"type={chance.choice('abc')}", chance.choice([0, 0, 0, 10])
        lock = chance.choice(["", "", "x", "y", "*"])
        for pool, share in ((fair, "a"), (plain, "")):
            pool.add(share, lane=lane, priority=priority, lock=lock)
        if number % 3 == 0:
            before = [sorted(pool.backlog._entries) for pool in (fair, plain)]
            for pool in (fair, plain):
                pool.start()
            gone = [
                {k.rpartition("-")[2] for k in old} - {k.rpartition("-")[2] for k in pool.backlog._entries}
                for old, pool in zip(before, (fair, plain), strict=True)
            ]
            assert gone[0] == gone[1]


def test_turns_outlive_a_change_of_leader() -> None:
    pool = Pool()
    pool.add("a", 30)
    pool.add("b", 30)
    assert pool.start(3) == ["a", "b", "a"]
    after = Pool()
    after.at = pool.at
    after.backlog.turns.restore(turns_seen({"fair": pool.backlog.turns.picture()}))
    after.add("a", 30)
    after.add("b", 30)
    assert after.start(3) == ["b", "a", "b"]


@pytest.mark.parametrize("lock", ["", "shared"])
def test_a_task_whose_share_becomes_known_waits_for_the_turn_of_that(lock: str) -> None:
    pool = Pool()
    pool.add(UNREAD, 4, lock=lock)
    pool.add("b", 4, lock=lock)
    unread = [k for k, entry in pool.backlog.items() if entry.share == UNREAD]
    for task_key in unread:
        pool.backlog.join(task_key, "a" if task_key != unread[-1] else "c")
    assert pool.backlog.turns.waiting == {"a": 3, "b": 4, "c": 1}
    assert Counter(pool.start(3)) == {"a": 1, "b": 1, "c": 1}
    assert Counter(pool.start(5)) == {"a": 2, "b": 3}


def test_nothing_that_is_remembered_or_published_grows_without_bound() -> None:
    turns = Turns()
    turns.begin(START, FairSettings())
    for number in range(SHARES + 100):
        turns.came(f"batch {number}")
        turns.start(f"batch {number}")
    picture = turns.picture()
    assert len(picture["shares"]) == SHOWN
    assert (picture["waiting"], len(turns_seen({"fair": picture})) <= SHOWN) == (SHARES + 100, True)
    assert len(turns._last) == SHARES


def test_a_clock_that_is_set_back_takes_no_turn_from_anybody() -> None:
    turns = Turns()
    turns.begin(START + 10**6, FairSettings())
    turns.start("a")
    turns.begin(START, FairSettings())
    turns.start("b")
    assert turns_seen({"fair": turns.picture()})["a"] <= START * 1e6


def test_runs_are_files_whose_orders_follow_each_other() -> None:
    orders = [encode_order(micros, epoch) for micros, epoch in ((5, 1), (6, 1), (7, 1), (9, 1), (10, 2), (11, 2))]
    files = [TaskName(5000, order, f"t{n}").encode() for n, order in enumerate(orders)]
    assert [len(run) for run in runs(reversed(files))] == [3, 1, 2]


def test_of_a_crowded_lane_the_latest_of_the_largest_share_go_back() -> None:
    ready = [(f"a{n}", "a") for n in range(6)] + [(f"b{n}", "b") for n in range(2)]
    assert crowding(ready, 4) == ["a5", "a4", "a3", "a2"]
    assert crowding(ready, 3)[-1] in ("a1", "b1")


def test_the_share_of_a_task_is_its_batch_or_its_user_or_none() -> None:
    said: dict[str, Any] = {"batch": "Nightly", "owner": 7}
    assert [share_of(FairSettings(by=by), **said) for by in ("batch", "owner", "none")] == [
        "batch nightly",
        "user 7",
        "",
    ]
    assert (share_of(FairSettings(), None, 7), share_of(FairSettings(by="owner"), "b", None)) == ("", "")


def test_whose_turn_it_is_is_said_in_words() -> None:
    pool = Pool()
    pool.add("batch a", 30)
    pool.add("batch b", 30)
    pool.add("batch c", 30)
    pool.start(4)
    gates = {"fair": pool.backlog.turns.picture()}
    said = [whose_turn(gates, f"batch {batch}", pool.at + 3) for batch in ("a", "b", "c")]
    turn = "3 shares take turns: it is the turn of batch b (its last start was 5 s ago)"
    assert said[0] == f"{turn}, then of 1 other, then of its own, batch a"
    assert said[1] == "3 shares take turns, and it is the turn of its own, batch b: its last start was 5 s ago"
    assert said[2] == f"{turn}, then of its own, batch c"
    assert whose_turn({}, "batch a", START) == ""
    assert (told(UNREAD), told("")) == ("the tasks whose share the leader has not read yet", "the tasks of no batch")


def test_a_start_costs_the_same_however_many_tasks_and_shares_wait() -> None:
    took = {}
    for tasks, shares in ((2_000, 20), (100_000, 1_000)):
        pool = Pool()
        for number in range(tasks):
            pool.add(f"batch {number % shares}")
        pool.start(50)
        begun = time.perf_counter()
        pool.start(300)
        took[tasks] = time.perf_counter() - begun
    assert took[100_000] < 5 * took[2_000], took


def test_a_queue_knows_its_length_and_whom_it_has_in_front() -> None:
    files = [TaskName(5000, encode_order(number * 1_000_000, 1), f"t{number}").encode() for number in range(1, 4)]
    ranked, line = queues._Ranked(Turns()), queues._InLine(Turns(), lambda file: (files.index(file), file))
    for order in (ranked, line):
        for file in files:
            order.push("batch a", file)
        assert (len(order), order.front) == (3, files[0])
        order.take()
        assert (len(order), order.front) == (2, files[1])
