"""The fields of a worker's heartbeat about the tasks that it runs.

Law: a task that waits in a slot is not reported as running. The progress report is the task's own text: it is read up
to a bound, and stays a text where it is no JSON. Nothing is decided by it but whether the task has spent its own
budget, and whether it is served.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import AMOUNT_MAX, Running
from spoold.rules.attempts.quota import is_served
from spoold.runner.job import RunnerPort
from spoold.store.faults import Faults
from spoold.store.store import stamp
from spoold.system.host import Host
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt

# Bytes, and levels: a heartbeat holds the report some levels down.
PROGRESS_MAX, PROGRESS_DEPTH = 4096, 64


def running_tasks(
    attempts: Collection[Attempt], runner: RunnerPort, scratch: Scratch, faults: Faults
) -> tuple[Running, ...]:
    """Return every attempt that has a slot, with its memory (MiB) and its own progress report."""
    usage, waiting = runner.usage(), runner.waiting()
    found = []
    for attempt in attempts:
        if attempt.key not in waiting:
            memory = usage.get(attempt.key, 0)
            # What spoold cannot handle of a report is left out: no worker falls silent for it.
            with faults.handling("progress", attempt.key, attempt.name.id, attempt.name.attempt) as handling:
                found.append(_running(attempt, memory, progress_of(scratch, attempt.key)))
            if handling.fault is not None:
                found.append(_running(attempt, memory, None))
    return tuple(found)


def _running(attempt: Attempt, memory_bytes: int, said: Any) -> Running:
    return Running(
        id=attempt.name.id,
        attempt=attempt.name.attempt,
        type=attempt.task.kind,
        since=stamp(attempt.started_at),
        mem_mb=round(memory_bytes / (1 << 20), 1),
        progress=attempt.redacting.value(said),
        lent=attempt.lent,
        back=attempt.back,
        served=is_served(said),
        # By the machine's date, which may have been set by decades meanwhile.
        frozen_s=min(round(attempt.frozen_s, 1), AMOUNT_MAX),
    )


def measured(
    attempts: Collection[Attempt], runner: RunnerPort, scratch: Scratch, host: Host, faults: Faults
) -> dict[str, Any]:
    """Return the fields of a beat that are measured anew each time: running tasks, and the state of the machine."""
    return {"running": running_tasks(attempts, runner, scratch, faults), **host.load("/").known()}


def progress_of(scratch: Scratch, key: str) -> Any:
    """Return the content of the progress file: JSON if it is that, else its text; None without one."""
    data = scratch.read(key, "progress.json", 0, PROGRESS_MAX).strip()
    if not data:
        return None
    try:
        return codec.load(data, "SPOOL_PROGRESS_FILE", depth=PROGRESS_DEPTH)
    except BadFile:
        return data.decode(errors="replace")
