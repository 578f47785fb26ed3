"""A limit holds also while the leader does not know what became of a move, or what it is that a worker holds."""

from __future__ import annotations

import errno
import json
from functools import partial
from itertools import pairwise

import pytest

from spoold.master.listing.task_metadata import AGAIN_S
from spoold.store import snapshots
from tests.support.cluster import Cluster, Node
from tests.support.faults import Hang

SETTINGS = "[types.mail]\nmax_concurrent = 1\n"
INTERVAL_S = 5.0


def test_a_task_whose_way_into_ready_had_no_answer_counts_for_the_limit() -> None:
    made = Cluster(SETTINGS)
    leader, worker = made.master("m1"), made.worker("w1", 4)
    made.step("m1")
    made.fs.mkdir("ready/type=mail,run=command")
    for name in ("a", "b"):
        submit(made, name)
    # Into the door first, and then out of it; by the time the leader looks, the task has been claimed.
    leader.fs.fail("rename", "admitting/", errno.EIO, how="done", after=1)
    leader.fs.hang("list", "admitting/1.m1", worker.actor.step)
    made.step("m1")
    made.step("w1")
    assert len(worker.worker.running) == 1
    made.step("m1")
    made.step("w1")
    assert len(worker.worker.running) == 1


@pytest.mark.parametrize("code", [errno.EACCES, errno.EPERM])
def test_a_claim_that_a_new_leader_may_not_read_just_now_counts_for_the_limit(code: int) -> None:
    made, leader = led_anew()
    leader.fs.fail("read", "claimed/", code)
    worker_says_nothing(leader)
    made.step("m2")
    made.step("w1")
    assert running(made) == {"a", "other"}
    assert made.state("other") == "claimed", "what has no limit does not wait"
    made.finish("a")
    made.advance(AGAIN_S)
    made.settle()
    assert made.state("b") == "claimed"


def test_a_claim_that_stays_unreadable_counts_and_people_hear_of_it() -> None:
    made, leader = led_anew()
    leader.fs.fail("read", "claimed/", errno.EACCES, times=10**6)
    worker_says_nothing(leader)
    made.advance(2 * INTERVAL_S)
    assert "b" not in running(made)
    assert any("max_concurrent" in warning and "a.a1f0c0.json cannot be read" in warning for warning in told(made))
    leader.fs.faults.clear()
    made.advance(AGAIN_S + INTERVAL_S)
    assert not any("cannot be read" in warning for warning in told(made))
    made.finish("a")
    made.settle()
    assert made.state("b") == "claimed"


def test_of_a_claim_that_cannot_be_read_its_workers_heartbeat_tells_the_type() -> None:
    made, leader = led_anew(limits="[types.mail]\nmax_concurrent = 2\n[types.post]\nmax_concurrent = 1\n")
    leader.fs.fail("read", "claimed/", errno.EACCES, times=10**6)
    submit(made, "letter", "post")
    made.advance(INTERVAL_S)
    assert {"a", "b", "letter"} <= running(made), "a is a mail, and takes no place from the post"
    assert not any("cannot be read" in warning for warning in told(made))


def test_a_damaged_claim_counts_for_every_limit_until_it_has_ended() -> None:
    made, leader = led_anew()
    (claim,) = [path for path in made.fs.files() if path.startswith("claimed/") and ".a.a1" in path]
    whole = made.fs.files()[claim]
    made.fs.write(claim, b"{", durable=True)
    worker_says_nothing(leader)
    made.step("m2")
    made.step("w1")
    assert "b" not in running(made)
    made.fs.write(claim, whole, durable=True)
    made.finish("a")
    made.advance(AGAIN_S)
    made.settle()
    assert made.state("b") == "claimed"


def test_a_claim_that_gets_another_name_while_a_new_leader_reads_it_counts_for_the_limit() -> None:
    made, leader = led_anew()
    worker_says_nothing(leader)
    # A new leader lists three times before it plans: each time the claim moves before its file is read.
    names = ["a1f0c0", "a1f0c0r1", "a1f0c0r2", "a1f0c0r3"]
    for number, (before, after) in enumerate(pairwise(names), 1):
        leader.fs.hangs.append(Hang("read", "claimed/", partial(resume, made, "a", before, after), number))
    made.step("m2")
    made.step("w1")
    assert "b" not in running(made)
    made.advance(AGAIN_S)
    assert "b" not in running(made)


@pytest.mark.parametrize("remote", [False, True])
def test_a_claim_that_gets_another_name_while_it_is_listed_counts_for_the_limit(
    remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Cluster(SETTINGS, remote=remote)
    leader, _ = made.master("m1"), made.worker("w1", 4)
    made.step("m1")
    submit(made, "a")
    made.settle()
    submit(made, "b")
    made.settle()
    assert running(made) == {"a"}
    # A directory that is read in two pieces: the new name is in none of them, and the old one is gone.
    names = leader.fs.list
    missed: list[str] = []

    def torn(path: str) -> list[str]:
        found = names(path)
        if path != "claimed/w1" or len(missed) == 2:
            return found
        missed.extend(name for name in found if ".a.a1" in name)
        return [name for name in found if name not in missed]

    monkeypatch.setattr(leader.fs, "list", torn)
    for _ in range(12):
        made.pass_time(0.5)
        made.step("m1")
        made.step("w1")
    assert len(missed) == 2
    assert running(made) == {"a"}
    made.finish("a")
    made.advance(2 * INTERVAL_S)
    assert running(made) == {"b"}


def test_a_start_during_a_slow_look_counts_from_its_end() -> None:
    made = Cluster("[limits.api]\nrate = {count = 1, per_s = 2}\n")
    leader, worker = made.master("m1"), made.worker("w1", 4)
    made.settle()
    for name in ("a", "b"):
        made.submit(f"{name}.json", json.dumps({"id": name, "command": ["work"], "uses": ["api"]}))
    made.step("m1")
    assert (made.state("a"), made.state("b")) == ("ready", "waiting")

    def late() -> None:
        """The answer takes longer than the window, and only at its end the task is claimed."""
        made.pass_time(3)
        worker.actor.step()

    leader.fs.hang("list", "ready/", late)
    while made.state("a") == "ready":
        made.step("m1")
    for _ in range(5):
        made.step("m1")
    assert made.state("b") == "waiting", "a began a moment ago"
    made.advance(3)
    assert made.state("b") == "claimed"


def test_a_record_that_is_written_during_a_slow_takeover_counts_from_its_end() -> None:
    made = Cluster("[limits.api]\nrate = {count = 1, per_s = 2}\n")
    made.master("m1")
    worker = made.worker("w1", 4)
    made.settle()
    for name in ("a", "b"):
        made.submit(f"{name}.json", json.dumps({"id": name, "command": ["work"], "uses": ["api"]}))
    made.step("m1")
    made.crash("m1")

    def late() -> None:
        """The answer takes longer than the window, and only at its end the task is claimed and ends."""
        made.pass_time(3)
        worker.actor.step()
        made.finish("a")
        worker.actor.step()

    made.master("m2").fs.hang("list", "ready", late)
    while made.state("a") == "ready":
        made.pass_time(0.5)
        made.step("m2")
    assert (made.state("a"), made.fs.list("claimed/w1")) == ("completed", [])
    for _ in range(5):
        made.step("m2")
    assert made.state("b") == "waiting", "a began a moment ago"
    made.advance(3)
    made.settle()
    assert made.state("b") == "claimed"


@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO, errno.ENOENT])
def test_whatever_call_of_a_new_leader_is_refused_the_limit_holds(code: int) -> None:
    number, struck = 0, True
    while struck:
        made, leader = led_anew()
        worker_says_nothing(leader)
        began = leader.fs.calls
        leader.fs.fail("", "", code, after=number)
        for _ in range(2):
            made.step("m2")
            made.step("w1")
            assert "b" not in running(made), f"call {number} was refused"
        struck = leader.fs.calls - began > number
        number += 1
    assert number > 40


def led_anew(limits: str = SETTINGS) -> tuple[Cluster, Node]:
    """A worker runs `a`, of a type with a limit; `b` of that type waits, and a second leader begins at its next step.

    `other`, of a type without a limit, stands ready.
    """
    made = Cluster(limits)
    made.master("m1")
    made.worker("w1", 4)
    made.step("m1")
    submit(made, "a")
    made.settle()
    assert running(made) == {"a"}
    made.pass_time(INTERVAL_S)
    made.step("w1")  # its heartbeat shows what it runs
    made.step("m1")
    made.stop("m1")
    submit(made, "b")
    submit(made, "other", "parcel")
    return made, made.master("m2")


def submit(made: Cluster, task_id: str, kind: str = "mail") -> None:
    """A task that some worker can run."""
    made.submit(f"{task_id}.json", f'{{"id": "{task_id}", "type": "{kind}", "command": ["work"]}}')


def resume(made: Cluster, task_id: str, before: str, after: str) -> None:
    """The worker renames a claim, as one does that was cut off and goes on."""
    (claim,) = [path for path in made.fs.files() if path.startswith("claimed/") and f".{task_id}.{before}." in path]
    made.fs.rename(claim, claim.replace(f".{before}.", f".{after}."))


def running(made: Cluster) -> set[str]:
    """The tasks that run."""
    return {attempt.rpartition(".")[0] for attempts in made.running().values() for attempt in attempts}


def worker_says_nothing(leader: Node) -> None:
    """No heartbeat can be read there."""
    leader.fs.fail("read", "heartbeats/w1", errno.EACCES, times=10**6)


def told(made: Cluster) -> tuple[str, ...]:
    """The warnings of the newest snapshot."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1].warnings
