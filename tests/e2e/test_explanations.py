"""`spool explain` says what a task waits for, and what it says to do helps."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.pool import Pool, wait_for


def _explained(pool: Pool, task_id: str, state: str, gate: str) -> dict[str, Any]:
    """The reason of that gate, once the task is where it should be."""

    def look() -> dict[str, Any] | None:
        answer = pool.run("explain", task_id, "--json")
        if answer.returncode:
            return None
        found = json.loads(answer.stdout)
        fits = [reason for reason in found["reasons"] if reason["gate"] == gate]
        return {**fits[0], "verdict": found["verdict"]} if fits and found["state"] == state else None

    reason = wait_for(look, f"{task_id} is {state} and explained by {gate}")
    assert reason["change"]
    return reason


def test_an_unknown_dependency(shared: Pool) -> None:
    shared.submit("orphan", ["true"], after="nobody-knows")
    reason = _explained(shared, "orphan", "waiting", "dependencies")
    assert "nobody-knows" in reason["verdict"]
    assert "submit" in reason["change"]
    shared.submit("nobody-knows", ["true"])
    assert shared.finish("orphan")["status"] == "success"


def test_a_paused_type(shared: Pool) -> None:
    shared.cli("pause", "held-type")
    shared.submit("held", ["true"], type="held-type")
    reason = _explained(shared, "held", "waiting", "pause")
    assert "held-type" in reason["verdict"]
    assert "paused" in reason["verdict"]
    assert "spool resume held-type" in reason["change"]
    shared.submit("not-held", ["true"])
    assert shared.finish("not-held")["status"] == "success"
    assert shared.ended("held") is None
    shared.cli("resume", "held-type")
    assert shared.finish("held")["status"] == "success"


def test_no_worker_with_a_gpu(shared: Pool) -> None:
    shared.submit("wants-gpu", ["true"], requires={"gpu": 64})
    answer = wait_for(lambda: _waits(shared, "wants-gpu"), "it waits for a worker")
    told = str(answer["verdict"]) + str(answer["reasons"])
    assert "gpu" in told
    assert "64" in told
    shared.cli("cancel", "wants-gpu")
    assert shared.finish("wants-gpu")["status"] == "cancelled"


def test_no_worker_with_a_handler(shared: Pool) -> None:
    shared.drop("mistyped.json", {"id": "mistyped", "type": "code_reveiw"})
    answer = wait_for(lambda: _waits(shared, "mistyped"), "it waits for a worker")
    assert "code_reveiw" in str(answer["verdict"])
    assert "handler" in str(answer)
    shared.cli("cancel", "mistyped")


def _waits(pool: Pool, task_id: str) -> dict[str, Any] | None:
    done = pool.run("show", task_id, "--json")
    if done.returncode or '"waiting"' not in done.stdout:
        return None
    answer: dict[str, Any] = pool.json("explain", task_id)
    return answer


def test_a_limit_that_is_reached(shared: Pool) -> None:
    go = shared.path("limit.go")
    hold = ["sh", "-c", f"while [ ! -e '{go}' ]; do sleep 0.05; done"]
    shared.submit("narrow-1", hold, type="narrow")
    shared.claimed("narrow-1")
    shared.submit("narrow-2", ["true"], type="narrow")
    reason = _explained(shared, "narrow-2", "waiting", "limit")
    assert "narrow" in reason["verdict"]
    assert "max_concurrent" in reason["change"]
    go.touch()
    assert shared.finish("narrow-2")["status"] == "success"


def test_a_retry_delay(shared: Pool) -> None:
    shared.submit("resting", ["sh", "-c", "exit 3"], retry={"max": 1, "backoff_s": 600})
    reason = _explained(shared, "resting", "waiting", "retry_delay")
    assert "rest" in reason["verdict"]
    assert "exit" in reason["reason"]
    assert reason["until"]
    shared.cli("cancel", "resting")
    assert shared.finish("resting")["status"] == "cancelled"


def test_a_task_that_runs_or_has_ended_needs_no_reason(shared: Pool) -> None:
    go = shared.path("plain.go")
    shared.submit("plain", ["sh", "-c", f"while [ ! -e '{go}' ]; do sleep 0.05; done"])
    worker = shared.claimed("plain")
    assert worker in shared.cli("explain", "plain")
    go.touch()
    shared.finish("plain")
    assert "completed" in shared.cli("explain", "plain")
