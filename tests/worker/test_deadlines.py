"""A deadline is judged by the time that machines share; who does not know it yet ends nothing by its own date."""

from __future__ import annotations

import errno
import json

import pytest

from spoold.store.pool_clock import CommonClock
from spoold.store.store import stamp
from tests.support.cluster import Cluster

HOUR = 3600.0


def unknowing(deadline_s: float) -> Cluster:
    """A worker an hour ahead, whose task has a deadline, and whom the server has not told its time."""
    made = Cluster()
    made.master("m1")
    node = made.worker("w1")
    node.clock.set_wall(node.clock.wall() + HOUR)
    node.worker.store.common = CommonClock(node.clock)
    node.fs.fail("stat", "tmp/w1", errno.EIO, times=1_000_000)
    moment = stamp(made.clock.wall() + deadline_s)
    made.submit("t0.json", json.dumps({"id": "t0", "command": ["work"], "deadline": moment}))
    made.settle()
    assert node.worker.store.common.ahead_s is None
    return made


def test_a_worker_that_the_server_has_not_told_its_time_ends_nothing_by_its_own_date() -> None:
    made = unknowing(600)
    assert made.state("t0") == "claimed"
    made.finish("t0", output="done")
    made.settle()
    assert made.state("t0") == "completed"


@pytest.mark.parametrize(("deadline_s", "state"), [(600, "claimed"), (30, "failed")])
def test_it_ends_what_is_late_once_it_knows_the_time(deadline_s: float, state: str) -> None:
    made = unknowing(deadline_s)
    made.advance(60)
    assert made.state("t0") == "claimed"
    made.nodes["w1"].fs.faults.clear()
    made.advance(30)
    assert made.state("t0") == state
    if state == "failed":
        assert json.loads(made.fs.read("results/t0.1.w1.json"))["error"]["code"] == "DEADLINE"
