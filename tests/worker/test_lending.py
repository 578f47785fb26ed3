"""A worker whose tasks lend their slots while they wait."""

from __future__ import annotations

import errno

from tests.support.cluster import Cluster, Node
from tests.support.loans import FakeLoans
from tests.worker.test_worker import beat, ids, ready


def made(
    *tasks: dict[str, object], config: dict[str, object] | None = None, settings: str = ""
) -> tuple[Cluster, Node, FakeLoans]:
    """A worker with one slot, which runs t0."""
    cluster, loans = ready(*tasks, settings=settings), FakeLoans()
    node = cluster.worker("w1", config=config, loans=loans)
    cluster.step("w1")
    assert ids(node) == ["t0"]
    return cluster, node, loans


def test_another_task_has_the_slot_until_the_first_wants_it_back() -> None:
    cluster, node, loans = made({}, {}, {})
    assert node.runner is not None
    loans.lend("t0.1")
    cluster.step("w1")
    assert ids(node) == ["t0", "t1"]
    assert node.runner.lent == {"t0.1"}
    cluster.pass_time(4)
    cluster.step("w1")
    assert {run.id: run.lent for run in beat(cluster).running} == {"t0": True, "t1": False}
    loans.ask("t0.1")
    cluster.step("w1")
    assert (ids(node), loans.settled) == (["t0", "t1"], []), "the slot is not free"
    node.runner.finish("t1.1")
    step = node.worker.step()
    assert step.busy
    assert (ids(node), loans.settled) == (["t0"], ["t0.1"]), "it has its slot, and nothing new was claimed"
    assert node.runner.lent == set()
    cluster.step("w1")
    assert ids(node) == ["t0"]
    node.runner.finish("t0.1")
    cluster.settle()
    assert ids(node) == ["t2"]


def test_nothing_is_claimed_while_a_task_wants_its_slot_and_the_first_to_ask_is_the_first_to_go_on() -> None:
    cluster, node, loans = made({}, {}, {}, {})
    assert node.runner is not None
    for task in ("t0", "t1"):
        loans.lend(f"{task}.1")
        cluster.step("w1")
    assert ids(node) == ["t0", "t1", "t2"]
    loans.ask("t1.1")
    cluster.step("w1")
    loans.ask("t0.1")
    cluster.step("w1")
    node.runner.finish("t2.1")
    cluster.step("w1")
    assert (ids(node), loans.settled) == (["t0", "t1"], ["t1.1"])
    node.runner.finish("t1.1")
    cluster.step("w1")
    assert (ids(node), loans.settled) == (["t0"], ["t1.1", "t0.1"])


def test_a_worker_looks_often_while_a_slot_is_lent() -> None:
    cluster, node, loans = made({})
    quiet = node.worker.step().next_due
    loans.lend("t0.1")
    cluster.step("w1")
    due = node.worker.step().next_due
    assert due is not None
    assert quiet is not None
    assert due - node.clock.monotonic() <= 0.1 < quiet - node.clock.monotonic()


def test_a_task_whose_waiting_process_was_killed_has_its_slot_again() -> None:
    cluster, node, loans = made({}, {}, {})
    assert node.runner is not None
    loans.lend("t0.1")
    cluster.step("w1")
    loans.gone("t0.1")
    cluster.step("w1")
    assert node.runner.lent == set()
    node.runner.finish("t1.1")
    cluster.step("w1")
    assert ids(node) == ["t0"], "no slot is free for t2"


def test_who_asked_before_its_loan_was_seen_goes_on_at_once_and_so_does_one_whose_attempt_is_over() -> None:
    cluster, node, loans = made({})
    loans.ask("t0.1")
    loans.lend("elsewhere.1")
    cluster.step("w1")
    assert sorted(loans.settled) == ["elsewhere.1", "t0.1"]
    assert ids(node) == ["t0"]


def test_an_attempt_that_ends_while_it_lends_leaves_nothing() -> None:
    cluster, node, loans = made({}, {}, {})
    assert node.runner is not None
    loans.lend("t0.1")
    cluster.step("w1")
    node.runner.finish("t0.1")
    cluster.step("w1")
    assert (ids(node), loans.all, loans.settled) == (["t1"], [], ["t0.1"])


def test_cpus_are_lent_with_the_slot_and_memory_is_not() -> None:
    cluster, node, loans = made(
        {"requires": {"cpus": 8, "mem": 8000}}, {"requires": {"mem": 500}}, {"requires": {"cpus": 8}}
    )
    loans.lend("t0.1")
    cluster.step("w1")
    assert ids(node) == ["t0", "t2"]


def test_where_enough_tasks_of_a_depth_wait_only_deeper_ones_start() -> None:
    child = {"parent": "t0", "depth": 1}
    cluster, node, loans = made({"priority": 20}, {"priority": 9}, {"parent": "t0"}, child, config={"max_lent": 1})
    loans.lend("t0.1")
    cluster.step("w1")
    assert ids(node) == ["t0", "t2"], "a child, though t1 is more urgent"
    loans.lend("t2.1")
    cluster.step("w1")
    assert ids(node) == ["t0", "t2"], "neither a root nor a child may start"


def test_a_task_that_cannot_be_read_before_its_claim_may_be_claimed() -> None:
    cluster, node, loans = made({"priority": 20}, {"parent": "t0"}, config={"max_lent": 1})
    node.fs.fail("read", "ready/", errno.EIO)
    loans.lend("t0.1")
    cluster.step("w1")
    assert ids(node) == ["t0", "t1"]


def test_a_task_that_uses_a_limit_starts_in_a_slot_that_is_lent() -> None:
    cluster, node, loans = made({}, {"uses": ["x"]}, settings="[limits.x]\nmax = 1\n")
    loans.lend("t0.1")
    cluster.settle()
    assert {(attempt.name.id, attempt.name.attempt) for attempt in node.worker.running} == {("t0", 1), ("t1", 1)}
