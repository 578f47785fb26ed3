"""A running attempt that reports more than its own budget is stopped, and what it reported is what it cost."""

import json
from collections import Counter
from typing import Any

import pytest

from tests.support.cluster import Cluster, Node

QUICK = "[retry]\nmax = 5\nbackoff_s = 0.001\n"


def running(**fields: Any) -> tuple[Cluster, Node]:
    cluster = Cluster(QUICK)
    cluster.master("m1")
    worker = cluster.worker("w1")
    cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"], **fields}))
    cluster.settle()
    return cluster, worker


def report(worker: Node, said: Any, file: str = "progress.json") -> None:
    assert worker.scratch is not None
    worker.scratch.write("a.1", file, json.dumps(said).encode())


def record(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(cluster.fs.read("results/a.1.w1.json"))
    return found


@pytest.mark.parametrize(
    ("budget", "said", "words"),
    [
        ({"cost_usd": 0.5}, {"cost_usd": 0.51}, "it reported 0.51 USD, and its own budget is 0.5"),
        ({"tokens": 99}, {"tokens_used": 100, "cost_usd": 9}, "it reported 100 tokens, and its own budget is 99"),
    ],
)
def test_more_than_its_budget_stops_it_for_good(budget: dict[str, float], said: dict[str, float], words: str) -> None:
    cluster, worker = running(budget=budget)
    report(worker, said)
    cluster.advance(3)
    assert cluster.state("a") == "failed"
    assert record(cluster)["error"] == {"code": "BUDGET_EXCEEDED", "message": words, "cause": None, "origin": None}
    assert record(cluster)["status"] == "failure"
    assert {name: record(cluster)[name] for name in said} == said, "it is counted, though it wrote no result"


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"cost_usd": 0.5}, {"cost_usd": 0.5}),
        ({"cost_usd": 0.5}, {"tokens_used": 10**9}),
        ({"cost_usd": 0.5}, "half way"),
        ({"cost_usd": 0.5}, {"cost_usd": "much"}),
        ({"usd": 0.5}, {"cost_usd": 3}),
        ({}, {"cost_usd": 3}),
    ],
)
def test_less_no_figure_and_no_budget_stop_nothing(budget: dict[str, float], said: Any) -> None:
    cluster, worker = running(budget=budget)
    report(worker, said)
    cluster.advance(3)
    assert cluster.state("a") == "claimed"


def test_a_result_that_says_more_after_a_success_stays_a_success() -> None:
    cluster, worker = running(budget={"cost_usd": 0.5}, budgets=[])
    report(worker, {"cost_usd": 0.7}, "result.json")
    report(worker, {"cost_usd": 0.4, "tokens_used": 7})
    cluster.finish("a")
    cluster.settle()
    assert cluster.state("a") == "completed"
    assert (record(cluster)["cost_usd"], record(cluster)["tokens_used"]) == (0.7, 7)
    assert record(cluster)["budget"] == {"cost_usd": 0.5}


def test_what_a_task_without_a_budget_reported_is_counted_when_it_is_stopped() -> None:
    cluster, worker = running()
    report(worker, {"cost_usd": 0.4, "tokens_used": 7})
    cluster.finish("a", exit_code=None, kind="timeout")
    cluster.settle()
    assert (record(cluster)["status"], record(cluster)["cost_usd"], record(cluster)["tokens_used"]) == (
        "timeout",
        0.4,
        7,
    )


@pytest.mark.parametrize(("budget", "most"), [({"cost_usd": 1}, 2), ({}, 0)])
def test_the_file_is_read_once_a_second_and_not_at_all_without_a_budget(budget: dict[str, float], most: int) -> None:
    cluster, worker = running(budget=budget)
    assert worker.scratch is not None
    asked, read = Counter[str](), worker.scratch.read

    def counted(key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        asked[name] += 1
        return read(key, name, offset, limit)

    worker.scratch.read = counted  # type: ignore[method-assign]
    for _ in range(10):
        cluster.pass_time(0.1)
        cluster.step("w1")
    assert asked["progress.json"] <= most
