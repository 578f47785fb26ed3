"""Goal: what a worker says of itself is shown as it said it, and each worker is counted once."""

from __future__ import annotations

from typing import Any

from spoold.protocol.heartbeat import Heartbeat
from spoold.rules.nodes import count_workers, node_of


def heartbeat(**fields: Any) -> Heartbeat:
    """A worker's beat."""
    told = {"node": "w-1", "role": "worker", "beat": 3, "at": "", "host": {"hostname": "laptop"}, "pid": 1}
    return Heartbeat.model_validate({**told, "process_start": 1, "version": "0", "status": "working", **fields})


def test_a_worker_is_shown_as_it_says() -> None:
    can = {"cpus": 2, "mem_mb": 100, "labels": ["docker"], "handlers": ["review"]}
    run = {"id": "t", "attempt": 1, "type": "review", "since": ""}
    node = node_of(heartbeat(capabilities=can, running=[run], slots=4, load=0.5, mem_available_mb=50))
    assert (node.worker, node.host, node.state, node.slots, node.running) == ("w-1", "laptop", "working", 4, 1)
    assert (node.cpus, node.mem_mb, node.mem_available_mb, node.load) == (2, 100, 50, 0.5)
    assert (node.labels, node.types, node.tasks[0]["id"]) == (("docker",), ("review",), "t")


def test_types_that_were_chosen_go_before_those_it_has_handlers_for() -> None:
    can = {"cpus": 2, "mem_mb": 100, "types": ["a"], "handlers": ["a", "b"]}
    assert node_of(heartbeat(capabilities=can)).types == ("a",)


def test_a_silent_worker_is_dead_whatever_it_said_last() -> None:
    node = node_of(heartbeat(), dead=True)
    assert (node.state, node.cpus, node.mem_mb, node.labels, node.types) == ("dead", 0, 0, (), ())


def test_every_worker_is_counted_once() -> None:
    counts = count_workers(["idle", "working", "working", "draining", "halted", "dead"])
    assert (counts.alive, counts.idle, counts.working, counts.draining, counts.dead) == (5, 1, 2, 2, 1)
    assert counts.alive == counts.idle + counts.working + counts.draining
