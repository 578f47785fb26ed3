"""A task that runs after many is prepared over several steps; meanwhile it is an attempt like any other."""

from __future__ import annotations

import json

from spoold.protocol.names import EndedName
from spoold.store.store import stamp
from tests.support.charged import Charged
from tests.support.cluster import Cluster

PARENTS = 300


class Pool:
    """A leader and a worker with two slots, to whom each call to the share costs time, and a task that needs many."""

    def __init__(self, **more: object) -> None:
        self.made = Cluster()
        self.made.master("m1")
        self.node = self.made.worker("w1", 2)
        names = [f"p{number}" for number in range(PARENTS)]
        for name in names:
            ended = EndedName(name, 1, "w8").encode()
            self.made.fs.write(f"completed/{ended}", b'{"id": "%s", "type": "x"}' % name.encode(), durable=False)
            result = {"task_id": name, "attempt": 1, "worker_id": "w8", "status": "success", "output": 1}
            self.made.fs.write(f"results/{ended}", json.dumps(result).encode(), durable=False)
        task = {"id": "join", "command": ["work"], "after": names, **more}
        self.made.submit("join.json", json.dumps(task))
        for _ in range(3):
            self.made.step("m1")
        assert self.made.state("join") == "ready"
        self.charged = Charged(self.node)
        self.step()
        assert self.prepares

    @property
    def prepares(self) -> bool:
        """Whether it has a claim, and is not started."""
        return any(attempt.preparing is not None for attempt in self.node.worker.running)

    @property
    def started(self) -> list[str]:
        """The jobs that were started."""
        assert self.node.runner is not None
        return [job.key for job in self.node.runner.started]

    def step(self, times: int = 1) -> None:
        """Steps of the worker, then one of the leader."""
        for _ in range(times):
            self.charged.step()
        self.made.step("m1")

    def code(self) -> str:
        """The code of its error."""
        (path,) = [path for path in self.made.fs.files("results") if "/join." in path]
        return str(json.loads(self.made.fs.read(path))["error"]["code"])


def test_it_starts_with_all_that_it_needs_and_beats_meanwhile() -> None:
    """N5."""
    pool = Pool()
    for _ in range(30):
        pool.step()
    assert pool.started == ["join.1"]
    assert pool.node.scratch is not None
    brought = [name for key, name in pool.node.scratch.files if key == "join.1" and name.startswith("deps/")]
    assert len(brought) == PARENTS
    assert max(pool.charged.gaps) < 5
    assert max(cost.called_s for cost in pool.charged.costs) < 2


def test_it_has_a_slot_meanwhile() -> None:
    pool = Pool()
    for number in range(3):
        pool.made.submit(f"t{number}.json", json.dumps({"id": f"t{number}", "command": ["work"]}))
    pool.made.step("m1")
    pool.step(2)
    assert pool.prepares
    assert len(pool.started) == 1, "one slot is left beside it"


def test_it_can_be_cancelled_meanwhile() -> None:
    pool = Pool()
    pool.made.fs.write("control/cancel.join.u1.json", b'{"by": "me"}', durable=False)
    pool.step(3)
    assert (pool.made.state("join"), pool.code(), pool.started) == ("failed", "CANCELLED", [])


def test_its_deadline_may_pass_meanwhile() -> None:
    pool = Pool(deadline=stamp(Cluster().clock.wall() + 3))
    pool.step(8)
    assert (pool.made.state("join"), pool.code(), pool.started) == ("failed", "DEADLINE", [])


def test_it_goes_back_when_its_worker_drains() -> None:
    pool = Pool()
    pool.node.worker.drain(0.0)
    for _ in range(3):
        pool.charged.step()
    assert pool.made.state("join") == "returned"
    assert pool.started == []


def test_it_is_dropped_when_its_claim_was_taken_away() -> None:
    pool = Pool()
    (claim,) = pool.made.fs.files("claimed/w1")
    pool.made.fs.rename(
        claim, "returned/" + claim.rpartition("/")[2].replace(".a1", ".a2").replace(".json", ".m1.json")
    )
    pool.step(3)
    assert not pool.prepares
    assert pool.started == []


def test_it_never_starts_under_another_lease_than_that_of_its_claim() -> None:
    """After a lease that was over, its claim gets a name that it never had before anything of it begins."""
    pool = Pool()
    (before,) = pool.made.fs.files("claimed/w1")
    pool.node.clock.suspend(60.0)
    for _ in range(3):
        pool.charged.step()
        assert pool.started == []
    (after,) = pool.made.fs.files("claimed/w1")
    assert after != before
    for _ in range(30):
        pool.step()
    assert pool.started == ["join.1"]
