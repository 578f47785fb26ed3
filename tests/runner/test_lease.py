"""What cannot be frozen is killed: a lease that is over must not leave anything moving."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from typing import Any, cast

from spoold.runner import process_tree
from spoold.runner.freezer import Guard, Room
from spoold.runner.running_job import Run
from spoold.runner.supervisor import Lease
from tests.runner.processes import eventually


def run_of(job: dict[str, Any]) -> Run:
    defaults = {"key": "a.1", "output_path": "/nowhere", "output_cap_bytes": 0, "tail_bytes": 0, "timeout_s": None}
    run = Run({**defaults, "memory_bytes": None, "lost_share": "freeze", "freeze_s": 600.0, **job})
    run.child = object()  # type: ignore[assignment]
    return run


class NoGuard:
    """Nobody dies here whose processes somebody else would have to end."""

    def __init__(self, end: Callable[[], None]) -> None:
        self.pid = 0

    def dismiss(self) -> None: ...


def lease_of(find: Callable[[Run], list[process_tree.Seen]], send: Callable[[dict[str, Any]], None]) -> Lease:
    """The lease of a slot that has no control group."""
    return Lease(find, send, Room("", 0, 0), cast(type[Guard], NoGuard))


def test_what_does_not_stand_still_in_time_is_killed() -> None:
    # A process that is not ours to stop: the signal goes nowhere, and it goes on.
    stranger = process_tree.Seen(2**22 + 1, [b"R"] + [b"1"] * 40)
    sent: list[dict[str, Any]] = []
    lease, run = lease_of(lambda run: [stranger], sent.append), run_of({})
    lease.until = 0.0
    assert lease.over
    lease.strike(run)
    assert [message["key"] for message in sent] == ["a.1"]
    until = time.monotonic() + 10
    while run.kill_at is None:
        assert time.monotonic() < until
        lease.mind(run, time.monotonic())
    assert run.kind == "fenced"
    assert "could not be frozen" in run.message


def test_what_is_continued_by_others_is_stopped_again() -> None:
    process = subprocess.Popen(["sleep", "60"])

    def find(run: Run) -> list[process_tree.Seen]:
        seen = process_tree.look(process.pid)
        return [seen] if seen is not None else []

    def state() -> bytes:
        return find(run)[0].state

    try:
        lease, run = lease_of(find, lambda message: None), run_of({})
        lease.until = 0.0
        lease.strike(run)
        eventually(lambda: state() == b"T")
        process.send_signal(18)
        eventually(lambda: state() == b"S")
        assert lease.mind(run, run.next_look)
        eventually(lambda: state() == b"T")
        lease.thaw(run, lease.until)
        assert state() == b"T", "that lease is over"
        lease.thaw(run, float("inf"))
        eventually(lambda: state() == b"S")
        assert run.frozen_at is None
    finally:
        process.kill()
        process.wait()
