"""Goal: what a worker says of itself is shown as it said it, and each worker is counted once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import TaskName
from spoold.rules.cluster.node_status import NOTES_MAX, count_workers, left_warnings, node_of

CLAIM = TaskName(5000, "0123456789-1", "t")


def heartbeat(**fields: Any) -> Heartbeat:
    """A worker's beat."""
    told = {"node": "w-1", "role": "worker", "beat": 3, "at": "", "host": {"hostname": "laptop"}, "pid": 1}
    return Heartbeat.model_validate({**told, "process_start": 1, "version": "0", "status": "working", **fields})


def test_a_worker_is_shown_as_it_says_with_what_it_holds() -> None:
    can = {"cpus": 2, "mem_mb": 100, "labels": ["docker"], "handlers": ["review"]}
    run = {"id": "t", "attempt": 1, "type": "review", "since": ""}
    beat = heartbeat(capabilities=can, running=[run], slots=4, load=0.5, mem_available_mb=50)
    node = node_of(beat, [CLAIM, replace(CLAIM, id="new")])
    assert (node.worker, node.host, node.state, node.slots, node.running) == ("w-1", "laptop", "working", 4, 2)
    assert (node.cpus, node.mem_mb, node.mem_available_mb, node.load) == (2, 100, 50, 0.5)
    assert (node.labels, node.types) == (("docker",), ("review",))
    assert (node.tasks[0]["type"], node.tasks[1]) == ("review", {"id": "new", "attempt": 1})


def test_memory_that_is_unknown_is_none_of_none() -> None:
    node = node_of(heartbeat(capabilities={"cpus": 2, "mem_mb": 100}), [])
    assert (node.mem_mb, node.mem_available_mb) == (0, 0)


def test_a_worker_that_holds_nothing_is_idle_whatever_its_last_beat_said() -> None:
    assert node_of(heartbeat(), []).state == "idle"
    assert node_of(heartbeat(status="draining"), [CLAIM]).state == "draining"


def test_types_that_were_chosen_go_before_those_it_has_handlers_for() -> None:
    can = {"cpus": 2, "mem_mb": 100, "types": ["a"], "handlers": ["a", "b"]}
    assert node_of(heartbeat(capabilities=can), []).types == ("a",)


def test_a_silent_worker_is_dead_whatever_it_holds() -> None:
    node = node_of(heartbeat(), [CLAIM], dead=True)
    assert (node.state, node.running) == ("dead", 1)
    assert (node.cpus, node.mem_mb, node.labels, node.types) == (0, 0, (), ())


def test_what_a_worker_would_serve_and_does_not_is_among_its_notes() -> None:
    can = {
        "cpus": 2,
        "mem_mb": 100,
        "lacks": {"b": "it lacks the program codex"},
        "shuns": {"a": "why", "py=m.n": "not here"},
    }
    beat = heartbeat(capabilities=can, notes=["n"])
    assert node_of(beat, []).notes == (
        "n",
        "takes no tasks of type a: why",
        "takes no tasks of type b: it lacks the program codex",
        "takes no tasks of module m.n: not here",
    )


def test_every_worker_is_counted_once() -> None:
    counts = count_workers(["idle", "working", "working", "draining", "halted", "dead"])
    assert (counts.alive, counts.idle, counts.working, counts.draining, counts.dead) == (5, 1, 2, 2, 1)
    assert counts.alive == counts.idle + counts.working + counts.draining


def test_a_sleeper_is_neither_alive_nor_dead_and_says_since_when() -> None:
    beat = heartbeat(status="asleep", at="2026-02-02T09:00:00Z", notes=["n"])
    asleep, dead, awake = node_of(beat, []), node_of(beat, [], dead=True), node_of(heartbeat(at="then"), [])
    assert (asleep.state, asleep.since, asleep.notes) == ("asleep", "2026-02-02T09:00:00Z", ("n",))
    assert (dead.state, dead.since) == ("dead", "")
    assert awake.since == ""
    counts = count_workers(["asleep", "idle", "dead"])
    assert (counts.alive, counts.asleep, counts.dead) == (1, 1, 1)


def test_what_is_left_on_a_machine_is_among_its_notes_and_warned_of_once() -> None:
    here, there = heartbeat(left=["work of a"], notes=["n"]), heartbeat(node="w-2", left=["work of a", "work of b"])
    assert node_of(here, []).notes == ("work of a", "n")
    assert left_warnings([here, there, heartbeat(node="w-3")]) == ["w-1, w-2: work of a", "w-2: work of b"]
    many = left_warnings([heartbeat(left=[f"{n} {'x' * 2000}" for n in range(2 * NOTES_MAX)])])
    assert (len(many), max(map(len, many))) == (NOTES_MAX + 1, 1005)
