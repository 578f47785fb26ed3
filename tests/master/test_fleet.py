"""The lanes that no worker awake can serve, as the leader's gate is told of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spoold.master.state.pool_health import Fleet
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from tests.support.cluster import Cluster

LANE = "type=command,run=command,need=gpu"


def beat(node: str, labels: tuple[str, ...] | None = ()) -> Heartbeat:
    """A worker that is awake; None: it does not say what it can run."""
    can = None if labels is None else Capabilities(allow_command=True, labels=labels)
    return Heartbeat(node=node, beat=1, capabilities=can)


@pytest.mark.parametrize(
    ("workers", "unserved", "unservable"),
    [
        ([], False, True),
        ([beat("w1")], True, True),
        ([beat("w1"), beat("w2", ("gpu",))], False, False),
        ([beat("w1"), beat("w2", None)], False, False),
        ([beat("w2", None)], False, False),
    ],
)
def test_a_lane_is_unserved_if_workers_are_awake_and_none_can_serve_it(
    workers: list[Heartbeat], *, unserved: bool, unservable: bool
) -> None:
    """People are told that no worker can run its tasks also while none is awake; a mute one may run anything."""
    fleet = Fleet()
    assert not fleet.unservable(LANE), "nothing is known yet"
    fleet.see(workers)
    assert (fleet.unserved(LANE), fleet.unservable(LANE)) == (unserved, unservable)


def test_a_name_that_is_no_lane_is_not_judged() -> None:
    fleet = Fleet()
    fleet.see([beat("w1")])
    assert not fleet.unserved("no lane")
    fleet.see([])
    assert not fleet.unservable("no lane")


def test_it_says_whether_anything_has_changed_and_judges_anew() -> None:
    fleet = Fleet()
    assert fleet.see([beat("w1")])
    assert fleet.unserved(LANE)
    assert not fleet.see([beat("w1")])
    avoids = Capabilities(allow_command=True, shuns={"mail": "its last task failed"})
    assert not fleet.see([beat("w1").model_copy(update={"capabilities": avoids})])
    assert fleet.see([beat("w1"), beat("w2", ("gpu",))])
    assert not fleet.unserved(LANE)


def submit(cluster: Cluster, task_id: str, **fields: Any) -> None:
    cluster.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))
    cluster.settle()


SETTINGS = """
[limits.x]
max = 1
[classes.own]
slots = 1
[budgets.purse]
cost_usd = 1
[types.command]
max_concurrent = 1
"""
SHARED: dict[str, dict[str, Any]] = {
    "a limit": {"uses": ["x"]},
    "a class": {"class": "own"},
    "a budget": {"budgets": ["purse"], "budget": {"cost_usd": 1}},
    "a lock": {"locks": {"write": ["src/"]}},
    "its type": {},
}


@pytest.mark.parametrize("what", SHARED)
def test_what_nobody_can_run_keeps_nothing_from_the_others(what: str) -> None:
    cluster = Cluster(SETTINGS)
    cluster.master("m1")
    cluster.worker("w1", 4)
    cluster.settle()
    submit(cluster, "a", requires={"labels": ["gpu"]}, **SHARED[what])
    submit(cluster, "b", **SHARED[what])
    assert (cluster.state("a"), cluster.state("b")) == ("waiting", "claimed")


def test_the_journal_says_when_a_lane_closes_and_opens() -> None:
    cluster = Cluster()
    cluster.master("m1")
    cluster.worker("w1")
    cluster.settle()
    submit(cluster, "a", requires={"labels": ["gpu"]})
    cluster.advance(6)
    cluster.settle()
    cluster.worker("w2", config={"labels": ["gpu"]})
    cluster.settle()
    cluster.advance(6)
    cluster.settle()
    lines = [line for name in cluster.fs.list("events") for line in cluster.fs.read(f"events/{name}").splitlines()]
    found = [event for line in lines if "LANE_" in (event := json.loads(line))["event"]]
    assert [(event["event"], event["detail"]["lane"]) for event in found] == [
        ("LANE_CLOSED", LANE),
        ("LANE_OPENED", LANE),
    ]
    assert cluster.state("a") == "claimed"
