"""Rates and retention count what is on the share, so that they come to the same under any leaders."""

from __future__ import annotations

import json
import random

import pytest

from spoold.protocol.names import parse_ended
from spoold.protocol.snapshot import Snapshot
from spoold.store import snapshots
from tests.support.cluster import Cluster

RATE = "[limits.api]\nrate = {count = 3, per_s = 60}\n[retry]\nbackoff_s = 0.1\n"


def cluster(settings: str) -> Cluster:
    made = Cluster(settings)
    made.master("m0")
    made.worker("w0", 8)
    made.settle()
    return made


def change_leader(made: Cluster, number: int) -> None:
    """The leader is gone at once, and another one takes over."""
    made.crash(f"m{number - 1}")
    made.master(f"m{number}")
    made.advance(20.0)


def submit(made: Cluster, task_id: str, **fields: object) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))
    made.settle()


def complete(made: Cluster, task_id: str, **fields: object) -> None:
    submit(made, task_id, **fields)
    made.finish(task_id)
    made.settle()


def ended(made: Cluster) -> set[str]:
    names = map(parse_ended, (*made.fs.list("completed"), *made.fs.list("failed")))
    return {name.id for name in names if name is not None}


def test_the_starts_of_a_dead_worker_count_for_the_next_leader() -> None:
    """P2: the worker had not beaten since its claims, so the leader's records of them named no limit."""
    made = cluster(RATE)
    made.nodes["m0"].frozen = True  # it sees none of the claims before the worker is dead
    for number in range(6):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", "command": ["work"], "uses": ["api"]}))
    made.nodes["m0"].frozen = False
    made.step("m0")
    made.step("w0")
    assert sum(map(len, made.running().values())) == 3
    made.crash("w0")
    made.advance(18.0)
    made.worker("w1", 8)
    change_leader(made, 1)
    assert [json.loads(made.fs.read(f"results/{name}"))["uses"] for name in made.fs.list("results")] == [
        {"api": 1}
    ] * 3
    assert not made.running()["w1"], "three have started within the last 60 s"
    made.advance(60.0)
    assert len(made.running()["w1"]) == 3


def test_a_lost_attempt_that_used_nothing_holds_no_rate() -> None:
    made = cluster(RATE)
    submit(made, "plain")
    made.crash("w0")
    made.advance(20.0)
    made.worker("w1", 8)
    change_leader(made, 1)
    submit(made, "t", uses=["api"])
    assert made.state("t") == "claimed"


def test_a_new_leader_archives_the_oldest_first() -> None:
    """P3: `keep` had it archive by the order of a listing."""
    made = cluster("[retention]\nkeep = 10\n")
    for name in ("d", "c", "b", "a"):
        complete(made, name)
        made.advance(2.0)
    made.configure("[retention]\nkeep = 2\n")
    change_leader(made, 1)
    assert ended(made) == {"a", "b"}


@pytest.mark.parametrize("how", ["keep", "gc"])
def test_what_a_rate_still_counts_is_not_archived(how: str) -> None:
    """P3: a start whose record was archived was forgotten by the next leader."""
    made = cluster(RATE + ("[retention]\nkeep = 0\n" if how == "keep" else ""))
    for name in ("a", "b", "c"):
        complete(made, name, uses=["api"])
    complete(made, "plain")
    if how == "gc":
        made.fs.write("control/gc.+all.1.json", b"{}", durable=False)
    made.advance(5.0)
    assert ended(made) == {"a", "b", "c"}
    assert not [name for name in made.fs.list("control") if name.startswith("gc.")], "what there was to do is done"
    change_leader(made, 1)
    submit(made, "d", uses=["api"])
    assert made.state("d") == "waiting"
    made.advance(60.0)
    assert made.state("d") == "claimed"
    made.advance(5.0)
    assert ended(made) == ({"a", "b", "c"} if how == "gc" else set())


def test_the_age_of_an_ended_task_goes_on_over_changes_of_the_leader() -> None:
    """P19: with leaders that live shorter than `completed_s` nothing was ever archived."""
    made = cluster("[retention]\ncompleted_s = 100\n")
    complete(made, "t")
    for number in range(1, 4):
        change_leader(made, number)
        made.advance(10.0)
        assert made.state("t") == "completed"
        assert ended(made) == {"t"}
    change_leader(made, 4)
    made.advance(5.0)
    assert not ended(made)


@pytest.mark.parametrize("seed", range(3))
def test_the_same_stays_whoever_led(seed: int) -> None:
    """One leader throughout, and leaders that change at random moments, leave the same tasks where people look."""
    completed_s = random.Random(seed).randrange(60, 300)
    settings, left = f"[retention]\ncompleted_s = {completed_s}\nkeep = {4 + seed % 3}\n", []
    for changes in (0.0, 0.4):
        chance, made, leaders, since = random.Random(seed), cluster(settings), 1, dict[str, float]()
        for number in range(8):
            complete(made, name := f"{chance.choice('abc')}{number}")
            since[name] = made.clock.monotonic()
            made.advance(20.0 * chance.random())
            if chance.random() < changes:
                made.crash(f"m{leaders - 1}")
                made.master(f"m{leaders}")
                leaders += 1
            made.advance(20.0)
        made.advance(3.0)
        due = {name for name, at in since.items() if abs(made.clock.monotonic() - at - completed_s) < 3.0}
        left.append(ended(made) - due)
    assert left[0] == left[1]


def picture(made: Cluster) -> Snapshot:
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1]


def test_pace_and_failures_of_the_last_minutes_go_on_over_changes_of_the_leader() -> None:
    """N17, P14: a new leader began with nothing."""
    made = cluster("")
    for number in range(6):
        complete(made, f"t{number}", input={"n": number})
    for number in range(2):
        submit(made, f"bad{number}", max_retries=0)
        made.finish(f"bad{number}", exit_code=1)
        made.settle()
    made.submit("x.json", '{"comand": ["x"]}')
    made.advance(20.0)
    before = picture(made)
    assert before.recent.failed_attempts == {"EXIT_NONZERO": 2}
    assert before.rates.completed_per_min > 0
    made.crash("m0")
    submit(made, "meanwhile")
    made.master("m1")
    made.advance(20.0)
    after = picture(made)
    assert after.master.leader == "m1"
    assert (after.recent.failed_attempts, after.recent.rejections) == (
        before.recent.failed_attempts,
        before.recent.rejections,
    )
    assert after.rates.completed_per_min > 0
    assert sum(one.completed for one in after.history.minutes) == 6
    assert sum(one.failed for one in after.history.minutes) == 2
    assert sum(one.rejected for one in after.history.minutes) == 1
    assert after.history.since == before.history.since


def test_what_ends_while_nobody_leads_counts_when_the_next_leader_comes() -> None:
    made = cluster("")
    for number in range(3):
        submit(made, f"t{number}", max_retries=0)
    made.advance(6.0)
    made.crash("m0")
    made.finish("t0")
    made.finish("t1", exit_code=1)
    made.advance(5.0)
    made.master("m1")
    made.advance(20.0)
    minutes = picture(made).history.minutes
    assert [sum(getattr(one, name) for one in minutes) for name in ("completed", "failed")] == [1, 1]
    assert picture(made).recent.failed_attempts == {"EXIT_NONZERO": 1}
