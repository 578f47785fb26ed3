"""A limit holds also while nobody has told the leader what became of a move."""

from __future__ import annotations

import errno

from tests.support.cluster import Cluster


def test_a_task_whose_way_into_ready_had_no_answer_counts_for_the_limit() -> None:
    made = Cluster("[types.mail]\nmax_concurrent = 1\n")
    leader, worker = made.master("m1"), made.worker("w1", 4)
    made.step("m1")
    made.fs.mkdir("ready/type=mail,run=command")
    for name in ("a", "b"):
        made.submit(f"{name}.json", f'{{"id": "{name}", "type": "mail", "command": ["work"]}}')
    # Into the door first, and then out of it; by the time the leader looks, the task has been claimed.
    leader.fs.fail("rename", "admitting/", errno.EIO, how="done", after=1)
    leader.fs.hang("list", "admitting/1.m1", worker.actor.step)
    made.step("m1")
    made.step("w1")
    assert len(worker.worker.running) == 1
    made.step("m1")
    made.step("w1")
    assert len(worker.worker.running) == 1
