"""A spool that claims by lock: real processes, killed in between, and a lock that somebody does not give back."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable

import pytest

from spoold.system.posix import FileLock
from tests.e2e.pool import PATIENCE_S, Pool, wait_for

TASKS = 120
WIDE = 8


@pytest.fixture
def locked(make_pool: Callable[..., Pool]) -> Pool:
    pool = make_pool(claim="lock")
    assert json.loads((pool.root / "spool.json").read_text())["claim"] == "lock"
    assert (pool.root / "spool.lock").read_bytes() == b""
    return pool


def _ended(pool: Pool) -> Counter[str]:
    return Counter(name.rsplit(".", 3)[0] for name in pool.listing("completed"))


def test_a_batch_and_a_dag_end_though_worker_and_leader_are_killed(locked: Pool) -> None:
    masters = {name: locked.master(name) for name in ("one", "two")}
    workers = {name: locked.worker(name, slots=4) for name in ("a", "b", "c")}
    locked.ready(*workers)
    wait_for(lambda: locked.nodes("m-one") and locked.nodes("m-two"), "both masters beat")
    batch = [f"n{number}" for number in range(TASKS)]
    locked.drop("batch.jsonl", "".join(json.dumps({"id": one, "command": ["sleep", "0.02"]}) + "\n" for one in batch))
    dag = [locked.submit("root", ["true"])]
    dag += [locked.submit(f"wide-{number}", ["true"], after="root") for number in range(WIDE)]
    dag += [locked.submit("last", ["true"], after=dag[1:])]

    wait_for(lambda: sum(_ended(locked).values()) > TASKS // 10, "the first tasks have completed")
    workers["a"].kill()
    leader = locked.leader()
    assert leader is not None
    masters[leader.removeprefix("m-").rpartition("-")[0]].kill()
    assert sum(_ended(locked).values()) < TASKS, "they died under load"
    wait_for(lambda: set(_ended(locked)) >= {*batch, *dag}, "all have completed", 2 * PATIENCE_S)
    assert locked.listing("failed") == []
    assert _ended(locked) == Counter([*batch, *dag]), "nothing lost, nothing doubled"
    wait_for(lambda: not locked.nodes("a") or None, "the dead worker is reaped")
    locked.fsck()


def test_whoever_does_not_give_the_lock_back_stops_all_moves_and_no_beat(locked: Pool) -> None:
    master = locked.master()
    locked.worker("a")
    locked.ready("a")
    wait_for(lambda: locked.nodes("m-desk"), "the master beats")
    nodes = [*locked.nodes("a"), *locked.nodes("m-desk")]
    with FileLock(str(locked.root / "spool.lock")).held(PATIENCE_S):
        locked.submit("later", ["true"])  # whoever drops a task needs no lock
        wait_for(lambda: "others have held the lock" in master.log.read_text() or None, "the master tells of it")
        assert locked.tokens("later") == ["pending/later.json"]
    assert locked.finish("later")["status"] == "success"
    assert [*locked.nodes("a"), *locked.nodes("m-desk")] == nodes, "nobody was taken for dead"
    locked.fsck()
