"""What strangers write into the files that nodes read: no value in any field ends a node.

Method: every field of each kind of file gets every strange value in turn, while a leader and a worker take steps. An
error of the environment would be theirs to bear; anything else ends a process, and the next one in its place.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.cluster import Cluster

STRANGE: tuple[Any, ...] = (
    None,
    True,
    -1,
    0,
    1 << 62,
    1 << 63,
    (1 << 64) - 1,
    -(1 << 63),
    1e308,
    -1e308,
    1e-308,
    "NaN",
    "inf",
    "-inf",
    "",
    "x",
    "\0",
    "../../x",
    "a" * 3000,
    "0001-01-01T00:00:00",
    "9999-12-31T23:59:59.999999",
    [],
    {},
    [1],
    {"a": 1},
    [[]],
)
RUNNING = {
    "id": "t0",
    "attempt": 1,
    "type": "command",
    "since": "2026-02-02T09:00:00.000Z",
    "mem_mb": 1,
    "frozen_s": 0,
}
TOTAL = {"attempts": 1, "duration_s": 1, "cpu_s": 1, "tokens_used": 1, "cost_usd": 1}
BEAT = {
    "role": "worker",
    "at": "2026-02-02T09:00:00.000Z",
    "pid": 1,
    "process_start": 1,
    "version": "1",
    "status": "idle",
    "host": {"hostname": "h", "machine_id": "m", "boot_id": "b", "pid_namespace": "p"},
    "slots": 1,
    "load": 1,
    "running": [RUNNING],
    "mem_available_mb": 1,
    "disk_free_mb": 1,
    "interval_s": 5,
    "notes": ["x"],
    "spent": TOTAL,
    "capabilities": {
        "cpus": 1,
        "mem_mb": 1,
        "gpus": 1,
        "labels": ["x"],
        "types": ["x"],
        "handlers": ["x"],
        "pools": ["x"],
        "allow_command": True,
        "python": ["x"],
        "lacks": {"x": "y"},
        "shuns": {"x": "y"},
    },
    "clock_ahead_s": 0,
    "avoids": {"t0": "x"},
    "endings": {"X": 1},
    "mount": {"fstype": "nfs", "options": ["x"]},
}
RESULT = {
    "task_id": "t0",
    "attempt": 1,
    "worker_id": "x1",
    "status": "failure",
    "duration_s": 1,
    "output": 1,
    "total": TOTAL,
    "error": {"code": "OOM_KILLED", "message": "x", "cause": "x"},
    "tokens_used": 1,
    "cost_usd": 1,
    "cpu_s": 1,
    "started_at": "x",
    "completed_at": "x",
    "exit_code": 1,
    "frozen_s": 1,
    "max_rss_mb": 1,
    "estimated": True,
}
REASON = {"drop": "a", "id": "a", "at": "a", "file": "a", "problem": "a", "size": 1, "unfinished": True, "ids": ["a"]}
REQUEST = {"by": "a", "at": "a", "reason": "a"}
SNAPSHOT = {
    "generated_at": "a",
    "tasks": {"pending": 1},
    "nodes": [{"node": "x1"}],
    "rates": {"eta_s": 1},
    "types": {},
}
TASK = {"id": "t0", "command": ["work"], "retry": {"max": 9, "memory_factor": 2}, "requires": {"mem": 1}}


def strange(whole: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The file with each of its fields, and of those within them, replaced by each strange value in turn."""
    for name, value in whole.items():
        inner = value[0] if isinstance(value, list) else value
        for other in STRANGE:
            yield f"{name} = {other!r}", {**whole, name: other}
        for place, said in strange(inner) if isinstance(inner, dict) else ():
            yield f"{name}.{place}", {**whole, name: [said] if isinstance(value, list) else said}


def beat(made: Cluster, number: int, said: bytes) -> None:
    made.fs.write(f"heartbeats/x1.{number}.json", said, durable=False)
    if number:
        made.fs.unlink(f"heartbeats/x1.{number - 1}.json")


def result(made: Cluster, number: int, said: bytes) -> None:
    """Of attempts that came before the one that runs, and now and then is the next."""
    made.fs.write("results/t0.1.x1.json", said, durable=False)
    runner = made.nodes["w1"].runner
    assert runner is not None
    if number % 4 == 0 and runner.live:
        runner.finish(next(iter(runner.live)), kind="exited", exit_code=75)


def reason(made: Cluster, number: int, said: bytes) -> None:
    """A new leader reads them."""
    made.fs.write(f"rejected/{number}.json", b"{", durable=False)
    made.fs.write(f"rejected/{number}.json.reason.json", said, durable=False)
    if number % 50 == 0:
        made.stop(next(name for name in made.nodes if name.startswith("m")))
        made.master(f"m{number + 2}")


def request(made: Cluster, number: int, said: bytes) -> None:
    verb = ("retry", "drain", "pause", "undrain", "resume")[number % 5]
    made.fs.write(f"control/{verb}.x1.u{number}.json", said, durable=False)


def snapshot(made: Cluster, number: int, said: bytes) -> None:
    made.fs.write(f"status/0-{number}.json", said, durable=False)


@pytest.mark.parametrize(
    ("write", "whole"),
    [(beat, BEAT), (result, RESULT), (reason, REASON), (request, REQUEST), (snapshot, SNAPSHOT)],
)
def test_no_value_in_any_field_ends_a_node(
    write: Callable[[Cluster, int, bytes], None], whole: dict[str, Any]
) -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.submit("t0.json", json.dumps(TASK))
    made.settle()
    for number, (place, said) in enumerate(strange(whole)):
        write(made, number, json.dumps(said).encode())
        for node in list(made.nodes.values()):
            try:
                with contextlib.suppress(OSError):
                    node.actor.step()
            except Exception as error:
                raise AssertionError(place) from error
        made.pass_time(1.0)
