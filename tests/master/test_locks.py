"""No two tasks that conflict are ready or claimed at once, whatever the leader does not know just now."""

from __future__ import annotations

import errno
import itertools
import json
from functools import partial

import pytest

from spoold.master.listing.task_metadata import AGAIN_S
from spoold.protocol import codec
from spoold.protocol.names import parse_task
from spoold.rules.gates.lock_gate import demand_of
from tests.support.cluster import Cluster, Node
from tests.support.faults import Hang

INTERVAL_S = 5.0
# Every so manieth call of a node is the one at which it crashes.
STRIDE = 5


def submit(made: Cluster, task_id: str, write: str = "", read: str = "", **more: object) -> None:
    """A task that locks this."""
    locks = {"write": [write] if write else [], "read": [read] if read else []}
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], "locks": locks, **more}))


def running(made: Cluster) -> set[str]:
    """The tasks that run."""
    return {attempt.rpartition(".")[0] for attempts in made.running().values() for attempt in attempts}


def active(made: Cluster) -> set[str]:
    """The tasks that are ready or claimed; no two of them conflict."""
    paths = [path for path in made.fs.files() if path.startswith(("ready/", "claimed/"))]
    found = {}
    for path in paths:
        name = parse_task(path.rpartition("/")[2])
        if name is not None:
            found[name.id] = demand_of(codec.load_task(made.fs.read(path), path))
    for one, other in itertools.combinations(found.values(), 2):
        assert one is None or other is None or one.clash(other) is None, sorted(found)
    return set(found)


def test_tasks_that_conflict_run_one_after_the_other_and_the_others_flow_past() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1", 4)
    submit(made, "w", "src/")
    made.settle()
    for task_id, write, read in (("r1", "", "src/a"), ("r2", "", "src/b"), ("free", "lib/", "")):
        submit(made, task_id, write, read)
    made.submit("plain.json", '{"id": "plain", "command": ["work"]}')
    made.settle()
    assert running(made) == {"w", "free", "plain"} == active(made)
    made.finish("w")
    made.settle()
    assert running(made) == {"r1", "r2", "free", "plain"}
    for task_id in ("r1", "r2", "free", "plain"):
        made.finish(task_id)
    made.settle()
    assert all(made.state(task_id) == "completed" for task_id in ("w", "r1", "r2", "free", "plain"))


def test_an_attempt_that_ended_holds_nothing_while_its_task_rests() -> None:
    made = Cluster("[retry]\nbackoff_s = 20\njitter = 0\n")
    made.master("m1")
    made.worker("w1", 4)
    submit(made, "a", "x")
    submit(made, "b", "x")
    made.settle()
    made.finish("a", exit_code=1)
    made.settle()
    assert running(made) == {"b"}
    made.advance(30)
    assert running(made) == {"b"}, "now a waits for b"
    made.finish("b")
    made.settle()
    assert running(made) == {"a"}


def test_a_pause_of_the_writers_type_lets_readers_pass_it() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1", 4)
    submit(made, "r1", read="x")
    made.settle()
    submit(made, "w", "x", type="writer")
    made.settle()
    submit(made, "r2", read="x")
    made.settle()
    assert running(made) == {"r1"}
    made.fs.write("control/pause.writer.k1.json", b"", durable=False)
    made.advance(2)
    assert running(made) == {"r1", "r2"}


def led_anew() -> tuple[Cluster, Node]:
    """A worker runs `a`; `b`, which conflicts with it, waits, and a second leader begins at its next step."""
    made = Cluster()
    made.master("m1")
    made.worker("w1", 4)
    made.step("m1")
    submit(made, "a", "src/")
    made.settle()
    assert running(made) == {"a"}
    made.step("m1")
    made.stop("m1")
    submit(made, "b", "src/b")
    made.submit("plain.json", '{"id": "plain", "command": ["work"]}')
    return made, made.master("m2")


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_claim_that_a_new_leader_may_not_read_just_now_may_hold_every_lock(code: int) -> None:
    made, leader = led_anew()
    leader.fs.fail("read", "claimed/", code, times=3)
    submit(made, "far", "lib/")
    made.settle()
    assert running(made) == {"a", "plain"}, "what locks nothing does not wait"
    made.advance(4 * AGAIN_S)
    assert running(made) == {"a", "plain", "far"}
    made.finish("a")
    made.settle()
    assert running(made) == {"b", "plain", "far"}


def test_a_claim_that_stays_unreadable_is_named() -> None:
    made, leader = led_anew()
    leader.fs.fail("read", "claimed/", errno.EACCES, times=10**6)
    made.advance(3 * INTERVAL_S)
    assert running(made) == {"a", "plain"}
    newest = max(path for path in made.fs.files() if path.startswith("status/"))
    assert "may hold any lock" in made.fs.read(newest).decode()


def test_a_claim_that_gets_another_name_while_a_new_leader_reads_it_holds_its_locks() -> None:
    made, leader = led_anew()
    names = ["a1f0c0d", "a1f0c0r1d", "a1f0c0r2d", "a1f0c0r3d"]
    for number, (before, after) in enumerate(itertools.pairwise(names), 1):
        leader.fs.hangs.append(Hang("read", "claimed/", partial(resume, made, before, after), number))
    made.step("m2")
    made.step("w1")
    assert "b" not in running(made)
    made.advance(AGAIN_S)
    assert "b" not in running(made)


def resume(made: Cluster, before: str, after: str) -> None:
    """The worker renames its claim, as one does that was cut off and goes on."""
    (claim,) = [path for path in made.fs.files() if path.startswith("claimed/") and f".a.{before}." in path]
    made.fs.rename(claim, claim.replace(f".{before}.", f".{after}."))


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_whatever_call_of_a_new_leader_is_refused_the_locks_hold(code: int) -> None:
    number, struck = 0, True
    while struck:
        made, leader = led_anew()
        began = leader.fs.calls
        leader.fs.fail("", "", code, after=number)
        for _ in range(2):
            made.step("m2")
            made.step("w1")
            assert "b" not in active(made), f"call {number} was refused"
        struck = leader.fs.calls - began > number
        number += 1
    assert number > 40


def test_a_task_whose_way_into_ready_had_no_answer_holds_its_locks() -> None:
    made = Cluster()
    leader, worker = made.master("m1"), made.worker("w1", 4)
    made.step("m1")
    submit(made, "a", "x")
    submit(made, "b", "x")
    # The move is made, its answer is lost, and the task is claimed before the leader looks.
    leader.fs.fail("rename", "waiting/", errno.EIO, how="done")
    leader.fs.hang("list", "waiting/type=command,run=command", worker.actor.step)
    for _ in range(3):
        made.step("m1")
        made.step("w1")
        assert len(running(made)) <= 1
        active(made)
    assert running(made) == {"a"}


def test_a_task_that_came_into_ready_behind_the_leaders_back_goes_back() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1", 1)
    submit(made, "a", "x")
    submit(made, "b", "x")
    made.settle()
    assert running(made) == {"a"}
    (waits,) = [path for path in made.fs.files() if path.startswith("waiting/")]
    made.fs.rename(waits, waits.replace("waiting/", "ready/"))
    made.step("m1")
    made.step("m1")
    assert made.state("b") == "waiting"
    made.finish("a")
    made.settle()
    assert running(made) == {"b"}


def test_of_two_ready_ones_the_later_goes_back() -> None:
    made = Cluster()
    leader = made.master("m1")
    for task_id in ("a", "b"):
        submit(made, task_id, "x")
        made.settle()
    assert active(made) == {"a"}
    (waits,) = [path for path in made.fs.files() if path.startswith("waiting/")]
    made.fs.rename(waits, waits.replace("waiting/", "ready/"))
    leader.fs.fail("rename", "ready/", errno.EACCES)
    for _ in range(3):
        made.step("m1")
    assert active(made) == {"a"}


@pytest.mark.parametrize("who", ["m1", "w1"])
def test_wherever_a_node_crashes_the_locks_hold_and_all_tasks_end(who: str) -> None:
    number, crashed = 0, True
    while crashed:
        made = Cluster()
        nodes = {"m1": made.master("m1"), "w1": made.worker("w1", 4)}
        for task_id, write in (("a", "src/"), ("b", "src/b"), ("c", "**"), ("d", "lib")):
            submit(made, task_id, write)
        nodes[who].fs.crash_after = number
        for round_ in range(40):
            made.advance(1)
            active(made)
            if who in made.gone and len(made.nodes) == 1:
                made.master("m2") if who == "m1" else made.worker("w2", 4)
            for task_id in running(made) if round_ % 2 else ():
                made.finish(task_id)
        assert {made.state(task_id) for task_id in "abcd"} == {"completed"}, f"crashed at call {number}"
        crashed = who in made.gone
        number += STRIDE
    assert number > 60
