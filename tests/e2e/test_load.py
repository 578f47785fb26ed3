"""Twenty commands at once over three workers: what `spool status` says is true at every moment."""

from __future__ import annotations

from typing import Any

from tests.e2e.pool import Pool, wait_for

TASKS = 20
SLOTS = 7
STATES = {"pending", "waiting", "ready", "claimed", "completed", "failed", "skipped", "rejected"}


def _true(status: dict[str, Any]) -> dict[str, Any]:
    """The status, after what must hold in every one."""
    tasks, workers = status["tasks"], status["workers"]
    assert tasks.keys() == STATES
    assert sum(tasks.values()) == TASKS, tasks
    assert tasks["claimed"] <= 3 * SLOTS
    assert tasks["failed"] == tasks["rejected"] == 0
    assert (workers["alive"], workers["dead"]) == (3, 0)
    assert workers["idle"] + workers["working"] + workers["draining"] == 3
    assert all(node["running"] <= node["slots"] == SLOTS for node in status["nodes"])
    return status


def test_twenty_commands_at_once_with_a_true_status_throughout(pool: Pool) -> None:
    pool.master()
    for name in ("a", "b", "c"):
        pool.worker(name, slots=SLOTS)
    pool.ready("a", "b", "c")
    assert pool.json("status").keys() >= {
        "generated_at", "spool_id", "master", "tasks", "workers", "nodes", "rates", "warnings",
    }  # fmt: skip
    gates = pool.path("gates")
    gates.mkdir()
    pool.cli("pause")
    hold = "touch {0}/began.{1}; while [ ! -e {0}/go.{1} ]; do sleep 0.1; done"
    for number in range(TASKS):
        pool.submit(f"held-{number}", ["sh", "-c", hold.format(f"'{gates}'", number)])
    wait_for(lambda: sum(pool.json("status")["tasks"].values()) == TASKS, "all are counted")
    assert _true(pool.json("status"))["tasks"]["claimed"] == 0
    pool.cli("resume")

    def together() -> dict[str, Any] | None:
        status = _true(pool.json("status"))
        return status if status["tasks"]["claimed"] == TASKS else None

    status = wait_for(together, "all twenty run at once")
    wait_for(lambda: len(list(gates.glob("began.*"))) == TASKS, "the shells of all have begun")
    assert sum(node["running"] for node in status["nodes"]) == TASKS
    assert status["workers"]["working"] == 3
    leader = pool.leader()
    assert (status["master"]["leader"], status["master"]["standbys"]) == (leader, [])

    for number in range(TASKS):
        (gates / f"go.{number}").touch()
        if number % 5 == 4:
            seen = _true(pool.json("status"))["tasks"]["completed"]
            assert seen <= number + 1, "nothing is told to have completed that may not have"
    wait_for(lambda: _true(pool.json("status"))["tasks"]["completed"] == TASKS, "all have completed")
    wait_for(lambda: _true(pool.json("status"))["workers"]["idle"] == 3, "all workers idle")
    assert len(pool.listing("completed")) == TASKS
    assert all(result["attempt"] == 1 for n in range(TASKS) for result in pool.results(f"held-{n}"))
    pool.fsck()


def test_status_without_a_leader_is_counted_and_says_so(pool: Pool) -> None:
    pool.submit("unseen", ["true"])
    status = pool.json("status")
    assert status["master"]["leader"] is None
    assert status["tasks"]["pending"] == 1
    assert any("leader" in warning for warning in status["warnings"])
    assert "leader" in pool.cli("status")
