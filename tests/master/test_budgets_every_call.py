"""Whatever call of a leader is its last, exactly ten of a tenth start on a budget of one, and the sums are right."""

import json
import os

import pytest

from tests.master.test_budgets import ONE, TENTH, Pool

# Every so many calls of the leader are struck here; it makes some hundred in the story.
STRIDE = 1 if os.environ.get("SPOOLD_EVERY_CALL") == "1" else 29
TASKS = [f"t{number:02}" for number in range(12)]


def play(number: int, *, late: bool) -> bool:
    """A story in which the leader's call of this number is its last one; False when the leader outlived the story."""
    pool = Pool(ONE + "[retention]\ncompleted_s = 2\n")
    pool.leader.fs.crash_after, pool.leader.fs.last_words = number, late
    for task_id in TASKS:
        pool.cluster.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **TENTH}))
    pool.cluster.settle()
    for _ in range(3):
        pool.end(*pool.running()[:3])
        pool.cluster.advance(3)
        pool.leader.fs.deliver()
    struck = "m1" in pool.cluster.gone
    if not struck:
        return False
    pool.leader = pool.cluster.master("m2")
    pool.cluster.advance(20)
    while pool.running():
        pool.end(*pool.running())
        pool.cluster.advance(2)
    assert pool.period()["spent"]["cost_usd"] == 1
    assert pool.period()["attempts"] == 10
    assert sum(pool.cluster.state(task_id) == "waiting" for task_id in TASKS) == 2
    return True


@pytest.mark.parametrize("late", [False, True])
def test_the_leader_dies_at_any_call(*, late: bool) -> None:
    number = struck = 3 * late
    while play(number, late=late):
        struck += 1
        number += STRIDE
    assert struck > 150 / STRIDE
