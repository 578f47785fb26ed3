"""Tasks that wait lend the units of their limits, and get them back before they go on."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.protocol.snapshot import Snapshot
from spoold.rules.answers.task_facts import Explanation
from spoold.store import heartbeats, snapshots
from spoold.store.journal import Reader
from spoold.store.store import open_store
from tests.support.cluster import Cluster, Node
from tests.support.loans import FakeLoans
from tests.worker.test_worker import ids

LIMITS = "[limits.x]\nmax = 1\n[limits.own]\nper = 'worker'\nmax = 1\n"
TYPED = "[types.command]\nmax_concurrent = 1\n"
CLASSES = "[classes.c]\nslots = 1\n[classes.default]\nslots = 7\n"
USES: dict[str, Any] = {"uses": ["x"]}


def made(settings: str = LIMITS, slots: int = 8, begun: int = 1, **fields: object) -> tuple[Cluster, Node, FakeLoans]:
    """A leader, a worker that runs t0, and t1, which needs the same. begun: how many of them run at once."""
    cluster, loans = Cluster(settings), FakeLoans()
    cluster.master("m1")
    node = cluster.worker("w1", slots, loans=loans)
    cluster.settle()
    for number in range(2):
        submit(cluster, f"t{number}", **fields)
    assert ids(node) == ["t0", "t1"][:begun]
    return cluster, node, loans


def submit(cluster: Cluster, task_id: str, **fields: object) -> None:
    cluster.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))
    cluster.settle()


def lend(cluster: Cluster, loans: FakeLoans, attempt: str) -> None:
    loans.lend(attempt)
    cluster.settle()


def requests(cluster: Cluster) -> list[str]:
    return [".".join(name.split(".")[:2]) for name in cluster.fs.list("control")]


def picture(cluster: Cluster) -> Snapshot:
    cluster.advance(6)
    cluster.settle()
    found = snapshots.latest(cluster.fs)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("settings", "fields"), [(LIMITS, USES), (TYPED, {}), (CLASSES, {"class": "c"}), (LIMITS, {"uses": ["own"]})]
)
def test_another_task_has_the_units_until_the_first_wants_them_back(settings: str, fields: dict[str, Any]) -> None:
    cluster, node, loans = made(settings, **fields)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    assert ids(node) == ["t0", "t1"]
    submit(cluster, "t2", **fields)
    loans.ask("t0.1")
    cluster.settle()
    assert (ids(node), loans.settled) == (["t0", "t1"], []), "a slot is free, and the units are not"
    submit(cluster, "plain", type="other", **{"class": "default"})
    node.runner.finish("t1.1")
    cluster.settle()
    assert (ids(node), loans.settled) == (["plain", "t0"], ["t0.1"])
    assert requests(cluster) == []
    node.runner.finish("t0.1")
    cluster.settle()
    assert "t2" in ids(node)


def test_while_it_waits_for_units_its_worker_goes_on_claiming() -> None:
    cluster, node, loans = made(**USES)
    lend(cluster, loans, "t0.1")
    loans.ask("t0.1")
    cluster.settle()
    submit(cluster, "other")
    assert ids(node) == ["other", "t0", "t1"]
    assert loans.settled == []


def test_a_task_that_uses_nothing_goes_on_at_once_and_nothing_is_written() -> None:
    cluster, node, loans = made(LIMITS + TYPED.replace("command", "other"), begun=2, type="plain")
    before = len(cluster.fs.list("control"))
    assert node.runner is not None
    loans.lend("t0.1")
    cluster.settle()
    assert len(cluster.fs.list("control")) == before
    loans.ask("t0.1")
    cluster.step("w1")
    assert loans.settled == ["t0.1"]


def test_an_offer_that_no_leader_has_taken_is_withdrawn() -> None:
    cluster, _, loans = made(**USES)
    cluster.crash("m1")
    loans.lend("t0.1")
    cluster.step("w1")
    cluster.step("w1")
    assert requests(cluster) == ["lend.t0"]
    loans.ask("t0.1")
    cluster.step("w1")
    assert (requests(cluster), loans.settled) == ([], ["t0.1"])


def test_without_a_leader_it_waits_and_the_next_one_knows_who_has_the_units() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    loans.ask("t0.1")
    cluster.crash("m1")
    node.runner.finish("t1.1")
    for _ in range(5):
        cluster.step("w1")
    assert (requests(cluster), loans.settled) == (["regain.t0"], [])
    cluster.master("m2")
    cluster.advance(20)
    cluster.settle()
    assert (requests(cluster), loans.settled) == ([], ["t0.1"])


def test_the_next_leader_counts_a_task_that_has_its_units_back() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    node.runner.finish("t1.1")
    loans.ask("t0.1")
    cluster.settle()
    assert loans.settled == ["t0.1"]
    cluster.crash("m1")
    cluster.master("m2")
    cluster.advance(20)
    submit(cluster, "t2", **USES)
    assert ids(node) == ["t0"]


def test_a_ready_task_goes_back_for_one_that_wants_its_units() -> None:
    cluster, node, loans = made(slots=8, **USES)
    assert node.runner is not None
    node.runner.finish("t0.1")
    cluster.settle()
    loans.lend("t1.1")
    submit(cluster, "one", requires={"cpus": 1})
    submit(cluster, "far", requires={"cpus": 8}, **USES)
    assert cluster.state("far") == "ready"
    loans.ask("t1.1")
    cluster.settle()
    assert (cluster.state("far"), loans.settled) == ("waiting", ["t1.1"])


def test_units_come_back_in_the_order_of_the_tasks_and_nothing_new_takes_them() -> None:
    cluster, node, loans = made(LIMITS.replace("max = 1\n[", "max = 2\n[", 1), begun=2, **USES)
    assert node.runner is not None
    for task in ("t0", "t1"):
        submit(cluster, f"{task}-c", **USES)
        lend(cluster, loans, f"{task}.1")
    assert ids(node) == ["t0", "t0-c", "t1", "t1-c"]
    submit(cluster, "late", **USES)
    loans.ask("t1.1")
    loans.ask("t0.1")
    cluster.settle()
    node.runner.finish("t1-c.1")
    cluster.settle()
    assert (loans.settled, cluster.state("late")) == (["t0.1"], "waiting")
    node.runner.finish("t0-c.1")
    cluster.settle()
    assert (loans.settled, cluster.state("late")) == (["t0.1", "t1.1"], "waiting")


def test_one_whose_waiting_process_was_killed_counts_again_at_once() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    loans.gone("t0.1")
    cluster.settle()
    assert requests(cluster) == []
    node.runner.finish("t1.1")
    submit(cluster, "t2", **USES)
    assert ids(node) == ["t0"]


def test_a_loan_ends_with_its_attempt_and_a_leader_removes_what_a_dead_worker_left() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    loans.ask("t0.1")
    cluster.settle()
    node.runner.finish("t0.1")
    cluster.settle()
    assert requests(cluster) == []
    lend(cluster, loans, "t1.1")
    assert requests(cluster) == ["lent.t1"]
    cluster.crash("w1")
    cluster.advance(40)
    cluster.settle()
    assert requests(cluster) == []


def test_a_loan_that_the_server_brings_back_does_not_count_and_goes() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    (name,) = cluster.fs.list("control")
    node.runner.finish("t1.1")
    loans.ask("t0.1")
    cluster.settle()
    cluster.fs.write(f"control/{name}", b"{}", durable=False)
    cluster.nodes["w1"].frozen = True
    submit(cluster, "t2", **USES)
    assert cluster.state("t2") == "waiting"
    cluster.nodes["w1"].frozen = False
    cluster.settle()
    assert requests(cluster) == []


def test_a_loan_that_cannot_be_removed_is_given_back_once() -> None:
    cluster, node, loans = made(**USES)
    assert node.runner is not None
    lend(cluster, loans, "t0.1")
    node.runner.finish("t1.1")
    loans.ask("t0.1")
    cluster.step("w1")
    cluster.step("w1")
    cluster.nodes["m1"].fs.fail("unlink", "control/regain", errno.EIO)
    cluster.step("m1")
    submit(cluster, "t2", **USES)
    cluster.settle()
    assert loans.settled == ["t0.1"]
    assert cluster.state("t2") == "waiting"


def test_people_see_what_is_lent_and_who_wants_it_back() -> None:
    cluster, node, loans = made(**USES)
    lend(cluster, loans, "t0.1")
    assert picture(cluster).gates["limit"]["x"] == {"max": 1, "used": 1, "doubtful": 0, "lent": 1}
    loans.ask("t0.1")
    submit(cluster, "t2", **USES)
    said = picture(cluster)
    assert said.gates["limit"]["x"] == {"max": 1, "used": 1, "doubtful": 0, "lent": 1, "back": 1, "due": 1}
    assert {run.id: run.back for run in heartbeats.read_all(cluster.fs)["w1"].running} == {"t0": True, "t1": False}
    words = [reason.reason for reason in _explain(cluster, "t2").reasons]
    assert any("want them back first: 1" in text for text in words)
    words = [reason.reason for reason in _explain(cluster, "t0").reasons]
    assert any("wants to go on" in text and "1 of limit x" in text for text in words)
    assert [e.event for e in Reader(cluster.fs).read() if e.event.startswith("UNITS")] == ["UNITS_LENT"]
    assert node.runner is not None
    node.runner.finish("t1.1")
    cluster.settle()
    events = [e.event for e in Reader(cluster.fs).read() if e.event.startswith("UNITS")]
    assert events == ["UNITS_LENT", "UNITS_BACK"]


def test_what_a_task_wants_back_and_finds_left_keeps_nobody_waiting() -> None:
    """It was told that its class uses 2 slots, has 7 of its own, and that 2 of 8 are in use."""
    cluster, _, loans = made(LIMITS + CLASSES, **USES)
    lend(cluster, loans, "t0.1")
    loans.ask("t0.1")
    cluster.settle()
    submit(cluster, "later", dependencies=["ghost"])
    row = picture(cluster).gates["class"]["default"]
    assert (row["back"], row["due"]) == (1, 0), "it lacks the limit, and no slot"
    assert [reason.gate for reason in _explain(cluster, "later").reasons] == ["dependencies"]


def _explain(cluster: Cluster, task: str) -> Explanation:
    node = cluster.nodes["m1"]
    return explain(
        open_store(cluster.fs, node.clock, "cli", "/spool"), node.host, node.clock, task, sleep=cluster.clock.advance
    )
