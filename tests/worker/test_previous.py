"""An attempt after the first finds the record of the one before it; a bounded handler takes no more than it may."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tests.master.test_holds import cluster, drop
from tests.support.cluster import Cluster

CODER = {"handlers": {"coder": {"command": ["x"], "max_concurrent": 2}}}


def variables(made: Cluster, run: str, on: str = "w1") -> Mapping[str, str]:
    runner = made.nodes[on].runner
    assert runner is not None
    return next(job.own for job in runner.started if job.key == run)


def previous(made: Cluster, run: str, on: str = "w1") -> dict[str, Any]:
    scratch = made.nodes[on].scratch
    assert scratch is not None
    assert variables(made, run, on)["SPOOL_PREVIOUS_FILE"].endswith("/previous.json")
    found: dict[str, Any] = json.loads(scratch.read(run, "previous.json", 0, 9000))
    return found


def test_the_next_attempt_finds_how_the_last_one_ended() -> None:
    made = cluster()
    drop(made, "t", retry={"backoff_s": 1, "jitter": 0})
    made.settle()
    assert "SPOOL_PREVIOUS_FILE" not in variables(made, "t.1")
    made.finish("t", exit_code=3, output="half of it")
    made.advance(3)
    found = previous(made, "t.2")
    assert (found["attempt"], found["exit_code"], found["output"]) == (1, 3, "half of it")
    assert found["error"]["code"] == "EXIT_NONZERO"
    made.finish("t", exit_code=4)
    made.advance(5)
    assert previous(made, "t.3")["exit_code"] == 4


def test_an_attempt_that_was_handed_back_with_nothing_says_less_than_the_one_before() -> None:
    made = cluster()
    drop(made, "t", retry={"backoff_s": 1, "jitter": 0})
    made.settle()
    made.finish("t", exit_code=3)
    made.advance(3)
    made.stop("w1")
    made.worker("w2")
    made.settle()
    assert previous(made, "t.3", "w2")["attempt"] == 1


def test_a_handler_runs_as_many_tasks_as_it_may_and_the_worker_goes_on_with_others() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1", slots=6, config=CODER)
    for number in range(4):
        made.submit(f"c{number}.json", json.dumps({"id": f"c{number}", "type": "coder"}))
    drop(made, "other")
    made.settle()
    assert made.running()["w1"] == ["c0.1", "c1.1", "other.1"]
    assert made.state("c2") == "ready"
    made.finish("c0")
    made.settle()
    assert made.running()["w1"] == ["c1.1", "c2.1", "other.1"]
    made.finish("c1")
    made.finish("c2")
    made.settle()
    assert made.running()["w1"] == ["c3.1", "other.1"]
