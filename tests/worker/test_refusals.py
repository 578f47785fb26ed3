"""A task that asks a worker for more than its owner allows fails there and then, and tries nobody else."""

import json
from typing import Any

import pytest

from spoold.protocol.names import parse_ended
from tests.support.cluster import Cluster

CONFIG = {
    "allow_command": False,
    "handlers": {"build": {"command": ["make", "{input.target}"], "allow_cwd": ["/srv"]}},
    "python": {"allow": ["mine"]},
}
BUILD = {"type": "build", "input": {"target": "all"}}


def pool(task: dict[str, Any]) -> Cluster:
    """A leader, two workers with the same configuration, and a task that may be tried often."""
    made = Cluster()
    made.master("m1")
    for name in ("w1", "w2"):
        made.worker(name, config=CONFIG)
    made.submit("t.json", json.dumps({"id": "t", "max_retries": 9, **task}))
    made.settle()
    return made


def result_of(made: Cluster) -> dict[str, Any]:
    """The only result of the task, after everything has come to rest."""
    (name,) = made.fs.list("results")
    assert made.state("t") == "failed"
    ended = parse_ended(name)
    assert ended is not None
    found: dict[str, Any] = json.loads(made.fs.read(f"results/{name}"))
    assert (ended.attempt, found["attempt"], found["worker_id"]) == (1, 1, ended.decider)
    told = [
        json.loads(line)
        for file in made.fs.files()
        if file.startswith("events/w")
        for line in made.fs.read(file).splitlines()
    ]
    assert [event["writer"] for event in told if event["event"] == "CLAIMED"] == [ended.decider]
    return found


@pytest.mark.parametrize(
    "asks",
    [
        {**BUILD, "env": {"MAKEFLAGS": "--eval=$(shell touch x)"}},
        {**BUILD, "cwd": "/srv/../attacker"},
        {**BUILD, "stdin": "~!touch x\n"},
        {"python": "mine:run", "stdin": "~!touch x\n"},
        {**BUILD, "input": {"target": "--eval=$(shell touch x)"}},
        {**BUILD, "input": {"target": "X:=$(shell touch x)"}},
        {"python": "mine:run", "env": {"PYTHONPATH": "/attacker"}},
        {"python": "mine:run", "cwd": "/attacker"},
    ],
)
def test_before_anything_began(asks: dict[str, Any]) -> None:
    made = pool(asks)
    error = result_of(made)["error"]
    assert (error["code"], error.get("cause")) == ("SPAWN_FAILED", None)
    assert made.running() == {"w1": [], "w2": []}
    assert all(node.runner is None or node.runner.started == [] for node in made.nodes.values())


def test_when_only_its_start_showed_it() -> None:
    made = pool({**BUILD, "cwd": "/srv/link"})
    made.finish("t", kind="refused", exit_code=None, message="cwd /srv/link, which is /etc, is not")
    made.settle()
    assert result_of(made)["error"]["message"] == "cwd /srv/link, which is /etc, is not"


def test_a_task_that_asks_for_no_more_runs() -> None:
    made = pool({**BUILD, "cwd": "/srv/repo"})
    made.finish("t")
    made.settle()
    assert made.state("t") == "completed"
