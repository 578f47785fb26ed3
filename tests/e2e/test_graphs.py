"""Tasks that wait for tasks: in order, side by side, and not at all below one that failed."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from tests.e2e.pool import Pool, wait_for


def _moment(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()


def _overlap(results: Iterable[dict[str, Any]]) -> int:
    """How many of the attempts ran at the same time, at most."""
    edges = [(_moment(r["started_at"]), 1) for r in results] + [(_moment(r["completed_at"]), -1) for r in results]
    most = now = 0
    for _, step in sorted(edges):
        now += step
        most = max(most, now)
    return most


def test_a_chain_runs_in_order_whatever_order_it_arrives_in(shared: Pool) -> None:
    trace = shared.path("chain")
    for one, needs in (("d", ["chain-c"]), ("b", ["chain-a"]), ("c", ["chain-b"]), ("a", [])):
        shared.submit(f"chain-{one}", ["sh", "-c", f"echo {one} >> '{trace}'"], dependencies=needs)
    results = [shared.finish(f"chain-{one}") for one in "abcd"]
    assert trace.read_text().split() == ["a", "b", "c", "d"]
    for earlier, later in itertools.pairwise(results):
        assert _moment(earlier["completed_at"]) <= _moment(later["started_at"])


def test_four_slots_run_a_fan_of_four_in_a_quarter_of_the_time(pool: Pool) -> None:
    pool.master()
    pool.worker("quad", slots=4)
    pool.submit("fan-out", ["true"])
    fan = [pool.submit(f"fan-{n}", ["sleep", "1.2"], after="fan-out") for n in range(4)]
    pool.submit("fan-in", ["true"], after=fan)
    last = pool.finish("fan-in")
    first, middle = pool.finish("fan-out"), [pool.finish(one) for one in fan]
    serial = sum(result["duration_s"] for result in middle)
    begin = min(_moment(result["started_at"]) for result in middle)
    end = max(_moment(result["completed_at"]) for result in middle)
    assert serial >= 4 * 1.2
    assert _overlap(middle) == 4
    assert end - begin < serial / 2
    assert _moment(first["completed_at"]) <= begin
    assert end <= _moment(last["started_at"])


def test_a_failed_task_fails_all_below_it_and_nothing_else(shared: Pool) -> None:
    shared.submit("root", ["true"])
    shared.submit("bad", ["sh", "-c", "exit 65"], after="root")
    shared.submit("beside", ["true"], after="root")
    below = [shared.submit("below", ["true"], after=["bad", "beside"])]
    below.append(shared.submit("far-below", ["true"], after="below"))
    shared.submit("anyway", ["true"], after_any=["bad", "root"])
    shared.submit("beside-below", ["true"], after="beside")
    assert shared.finish("bad")["error"]["code"] == "EXIT_NONZERO"
    for one in below:
        result = shared.finish(one)
        assert (result["status"], result["error"]["code"]) == ("failure", "DEPENDENCY_FAILED")
        assert result["started_at"] is None
    assert "bad" in shared.finish("below")["error"]["message"]
    for one in ("root", "beside", "beside-below", "anyway"):
        assert shared.finish(one)["status"] == "success"


def test_a_retried_root_cause_lets_the_rest_be_retried(shared: Pool) -> None:
    mended = shared.path("mended")
    shared.submit("cause", ["test", "-e", str(mended)], retry={"max": 0})
    shared.submit("effect", ["true"], after="cause")
    assert shared.finish("effect")["error"]["code"] == "DEPENDENCY_FAILED"
    mended.touch()
    shared.cli("retry", "cause")
    wait_for(lambda: shared.ended("cause") == "completed", "the cause completes")
    shared.cli("retry", "effect")
    wait_for(lambda: shared.ended("effect") == "completed", "the effect completes")


def test_a_task_sees_what_it_waited_for(shared: Pool) -> None:
    shared.drop("question.json", {"id": "question", "type": "answer", "input": {"number": 42}})
    shared.submit("asker", ["sh", "-c", "cat $SPOOL_DEPS_DIR/*"], after="question")
    assert '"answer"' in str(shared.finish("asker")["output"])
    assert shared.finish("question")["output"] == {"answer": 42}
