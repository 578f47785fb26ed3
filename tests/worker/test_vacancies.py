"""What a worker claims beyond its slots, and what becomes of it."""

from __future__ import annotations

from spoold.protocol.request import Verb
from spoold.rules.workers.slots import DEPTH, FORGET_S, LATELY, PATIENCE_S
from spoold.store import control
from tests.support.cluster import Cluster, Node
from tests.worker.test_worker import beat, ids, ready


def after_short_tasks(more: int) -> tuple[Cluster, Node, str, list[str]]:
    """A worker with one slot whose tasks were short so far, and has this many left: which runs, which wait."""
    made = ready(*({} for _ in range(LATELY + more)))
    node = made.worker("w1")
    made.step("w1")
    assert node.runner is not None
    for _ in range(LATELY):
        (running,) = ids(node)  # one slot, one task
        node.runner.finish(f"{running}.1")
        made.step("w1")
    (first,) = (running.rpartition(".")[0] for running in node.runner.live)
    return made, node, first, [task for task in ids(node) if task != first]


def test_after_short_tasks_the_next_few_are_claimed_ahead() -> None:
    made, node, _, waiting = after_short_tasks(DEPTH + 3)
    assert len(waiting) == DEPTH
    made.step("w1")
    assert len(ids(node)) == 1 + DEPTH, "and no more than that"


def test_short_tasks_of_the_past_count_for_nothing() -> None:
    made, node, first, _ = after_short_tasks(1)
    assert node.runner is not None
    node.runner.finish(f"{first}.1")
    made.step("w1")
    made.pass_time(2 * FORGET_S)
    for number in range(5):
        made.submit(f"late-{number}.json", '{"command": ["work"]}')
    made.step("m1")
    made.step("w1")
    assert len(ids(node)) == 1


def test_a_beat_tells_of_what_has_a_slot() -> None:
    made, node, first, _ = after_short_tasks(3)
    node.worker.drain(60.0)  # which a worker tells at once
    made.step("w1")
    found = beat(made)
    assert (found.slots, [running.id for running in found.running]) == (1, [first])


def test_what_waits_behind_a_long_task_is_given_back_at_no_charge() -> None:
    made, node, first, waiting = after_short_tasks(3)
    assert len(waiting) == 2
    step = node.worker.step()
    assert step.next_due is not None
    assert step.next_due <= node.clock.monotonic() + PATIENCE_S
    made.pass_time(2 * PATIENCE_S)
    made.step("w1")
    made.step("w1")
    assert ids(node) == [first]
    made.step("m1")
    made.step("w1")
    assert ids(node) == [first], "not claimed again while that one runs"
    other = made.worker("w2")
    made.step("w2")
    (attempt,) = other.worker.running
    assert attempt.name.id in waiting
    assert (attempt.name.attempt, attempt.name.failures, attempt.name.crashes) == (2, 0, 0)


def test_cancelling_one_that_waits_ends_it() -> None:
    made, node, first, waiting = after_short_tasks(3)
    control.post(node.worker.store, Verb.CANCEL, waiting[0], "anna")
    made.step("w1")
    made.step("w1")
    assert ids(node) == sorted([first, waiting[1]])
    assert made.state(waiting[0]) == "failed"


def test_a_slow_share_makes_no_task_seem_long() -> None:
    made, node, first, waiting = after_short_tasks(2)
    node.fs.hang("list", "control", lambda: made.pass_time(2 * PATIENCE_S))
    made.step("w1")
    assert node.runner is not None
    node.runner.finish(f"{first}.1")
    made.step("w1")
    assert ids(node) == waiting
    assert list(node.runner.live) == [f"{waiting[0]}.1"]
