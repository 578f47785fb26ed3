"""Three submitters share the slots of a pool: each has its part while it has work, also over changes of leader."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field

import pytest

from spoold.client.read.explanation import explain
from spoold.store.store import open_store
from spoold.system.host import FakeHost
from tests.support.cluster import Cluster

LENGTH_S = 10.0
SLOTS = 8
ONE = """
[limits.one]
max = 8
"""


@dataclass
class Pool:
    """Workers whose tasks all take as long, and the starts in order. taken: the attempts that were seen."""

    made: Cluster
    begun: dict[str, float] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    at: float = 0.0

    def batch(self, name: str, count: int, *, lock: str = "", kind: str = "a") -> None:
        task = {"type": kind, "command": ["work"], "batch": name, "uses": {"one": 1}}
        if lock:
            task["locks"] = {"read": [lock]}
        lines = "".join(f"{json.dumps({**task, 'id': f'{name}-{n}'})}\n" for n in range(count))
        self.made.submit(f"{name}.whole.jsonl", lines)

    def run(self, seconds: float) -> None:
        until = self.at + seconds
        while self.at < until:
            self.made.step_all()
            self.made.pass_time(1.0)
            self.at += 1.0
            for node in self.made.nodes.values():
                for attempt in sorted(node.runner.live) if node.runner else []:
                    task_id = attempt.rpartition(".")[0]
                    if self.at - self.begun.setdefault(task_id, self.at) >= LENGTH_S:
                        assert node.runner is not None
                        node.runner.finish(attempt)
                        self.ended[task_id] = self.at

    def starts(self, since: float, until: float) -> Counter[str]:
        return Counter(k.partition("-")[0] for k, at in self.begun.items() if since <= at < until)


def three(lock: str = "", types: tuple[str, str, str] = ("a", "a", "a")) -> Pool:
    made = Cluster(ONE)
    made.master("m1")
    made.worker("w1", SLOTS // 2)
    made.worker("w2", SLOTS // 2)
    pool = Pool(made)
    pool.batch("many", 300, kind=types[0], lock=lock)
    pool.run(25)
    pool.batch("some", 100, kind=types[1], lock=lock)
    pool.batch("few", 5, kind=types[2], lock=lock)
    return pool


@pytest.mark.parametrize(("lock", "types"), [("shared", ("a", "a", "a")), ("", ("a", "b", "c"))])
def test_each_of_three_submitters_has_its_part(lock: str, types: tuple[str, str, str]) -> None:
    pool = three(lock, types)
    came = pool.at
    pool.run(5 * LENGTH_S + 2)
    few = [pool.ended[f"few-{n}"] for n in range(5)]
    assert max(few) - came <= 5 * LENGTH_S, few
    later = pool.at
    pool.run(6 * LENGTH_S)
    starts = pool.starts(later, pool.at)
    assert abs(starts["many"] - starts["some"]) <= 4, starts
    assert sum(starts.values()) >= 5 * SLOTS, "a slot is idle for no more than the steps between two tasks"


def test_turns_outlive_leaders() -> None:
    pool = three()
    came, leader, few = pool.at, "m1", list[float | None]()
    for number in range(2, 22):
        pool.made.crash(leader)
        leader = f"m{number}"
        pool.made.master(leader)
        pool.run(20)
        if number == 4:
            few = [pool.ended.get(f"few-{n}") for n in range(5)]
    assert all(few), few
    starts = pool.starts(came + 60, pool.at)
    assert abs(starts["many"] - starts["some"]) <= 20 + 4, starts
    assert sum(starts.values()) > 100


def test_explain_says_whose_turn_it_is() -> None:
    pool = three()
    pool.run(8)
    fs, clock = pool.made.fs, pool.made.clock
    store = open_store(fs, clock, "desk", "/spool")
    waits = next(task_id for n in range(90, 0, -1) if pool.made.state(task_id := f"some-{n}") == "waiting")
    answer = explain(store, FakeHost("desk"), clock, waits)
    (turn,) = [reason for reason in answer.reasons if reason.gate == "turn"]
    assert "shares take turns" in turn.reason
    assert "batch some" in turn.reason


def test_who_takes_turns_may_change_while_nodes_run() -> None:
    made = Cluster("[fair]\nby = 'none'\n[ready]\nwindow = 1\n")
    leader = made.master("m1")
    pool = Pool(made)
    pool.batch("many", 5)
    pool.batch("few", 3)
    pool.run(5)
    made.worker("w1", 1)
    for number, (by, shares) in enumerate(
        (("batch", {"batch many", "batch few"}), ("owner", {"", "?"}), ("none", {""})), 1
    ):
        made.fs.write(
            f"settings/{number}.cli-a.json", b'{"settings": {"fair": {"by": "%s"}}}' % by.encode(), durable=True
        )
        pool.run(8)
        desk = leader.master._desk
        assert desk is not None
        assert {entry.share for _, entry in desk.backlog.items()} <= shares, by


def test_what_stands_in_ready_goes_back_where_others_come() -> None:
    made = Cluster("[limits.one]\nmax = 1000\n")
    made.master("m1")
    made.worker("w1", SLOTS)
    pool = Pool(made)
    pool.batch("many", 100)
    pool.run(5)
    lane = "type=a,run=command,use=one"
    assert len(made.fs.list(f"ready/{lane}")) == 100 - SLOTS
    pool.batch("few", 5)
    pool.run(5)
    assert len(made.fs.list(f"ready/{lane}")) <= 2 * SLOTS
    pool.run(2.5 * LENGTH_S)
    assert pool.starts(5, pool.at)["few"] >= 2
