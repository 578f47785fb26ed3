"""Masters that die under load: a standby leads within the lease, and nothing is lost or done twice."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable

from tests.e2e.pool import DEAD_AFTER_S, SETTINGS, Pool, wait_for

TASKS = 2000


def test_two_thousand_tasks_outlive_their_leaders(make_pool: Callable[..., Pool]) -> None:
    handlers = '[handlers.note]\npython = "notes:note"\n\n[python]\nallow = ["notes"]\npath = ["{}"]\n'
    pool = make_pool(SETTINGS + "\n[durability]\nfsync = false\n")  # who dies here is a process, not the disk
    runs = pool.path("runs")
    pool.path("notes.py").write_text(
        "import os\n\n\ndef note(name):\n"
        f"    fd = os.open({str(runs)!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)\n"
        "    os.write(fd, f'{name}\\n'.encode())\n    os.close(fd)\n"
    )
    pool.path("worker.toml").write_text(handlers.format(pool.desk))
    masters = {name: pool.master(name) for name in ("one", "two")}
    for name in ("a", "b"):
        pool.worker(name, "--config", str(pool.path("worker.toml")), slots=4)
    pool.ready("a", "b")
    wait_for(lambda: pool.nodes("m-one") and pool.nodes("m-two"), "both masters beat")

    ids = [f"n{number}" for number in range(TASKS)]
    tasks = [{"id": one, "type": "note", "input": one} for one in ids]
    half = TASKS // 2
    pool.drop("half.jsonl", "".join(json.dumps(task) + "\n" for task in tasks[:half]))
    for task in tasks[half : half + half // 2]:
        pool.drop(f"{task['id']}.json", task)

    wait_for(lambda: len(pool.listing("completed")) > TASKS // 20, "the first tasks have completed")
    first = pool.leader()
    assert first is not None
    masters[_name(first)].kill()
    killed_at = time.monotonic()
    assert len(pool.listing("completed")) < TASKS // 2, "the leader died under load"
    for task in tasks[half + half // 2 :]:
        pool.drop(f"{task['id']}.json", task)
    second = wait_for(lambda: _other(pool, first), "a standby leads")
    assert time.monotonic() - killed_at < DEAD_AFTER_S + 3, "within the lease time, and what a busy machine adds"
    assert _name(second) != _name(first)

    # The first comes back as a standby, and then must lead: both ways of taking over have been gone.
    masters[_name(first)] = pool.master(_name(first))
    wait_for(lambda: len(pool.listing("completed")) > TASKS // 3 or None, "work goes on under the new leader")
    wait_for(lambda: len(pool.nodes(f"m-{_name(first)}")) > 0, "the first master is back")
    masters[_name(second)].kill()

    wait_for(lambda: len(pool.listing("completed")) + len(pool.listing("failed")) >= TASKS, "all ended", 90)
    ended = Counter(name.rsplit(".", 3)[0] for name in pool.listing("completed"))
    assert pool.listing("failed") == []
    assert ended == Counter(ids), "nothing lost, nothing doubled"
    assert Counter(runs.read_text().split()) == Counter(ids), "no worker died, so nothing ran twice"
    for state in ("pending", "admitting", "waiting", "ready", "claimed", "returned", "rejected"):
        assert pool.files(state) == []
    wait_for(lambda: pool.leader() is not None, "somebody leads")
    pool.fsck()


def _name(node: str) -> str:
    return node.removeprefix("m-").rpartition("-")[0]


def _other(pool: Pool, leader: str) -> str | None:
    now = pool.leader()
    return now if now != leader else None


def test_a_leader_that_resigns_is_followed_at_once(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool("[heartbeat]\ninterval_s = 1\nmisses = 60\n")
    masters = {name: pool.master(name) for name in ("one", "two")}
    wait_for(lambda: pool.nodes("m-one") and pool.nodes("m-two") and pool.leader(), "one leads, one stands by")
    first = pool.leader()
    assert first is not None
    masters[_name(first)].signal(15)
    assert masters[_name(first)].ends() == 0
    # A lease lasts a minute here: only a resignation can be followed sooner.
    wait_for(lambda: _other(pool, first), "the standby leads", 20)
