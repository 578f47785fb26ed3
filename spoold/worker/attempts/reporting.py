"""The fields of a worker's heartbeat about the tasks that it runs, and the budgets that their reports are held to.

Law: a task that waits in a slot is not reported as running. The progress report is the task's own text: it is read up
to a bound, and stays a text where it is no JSON. Nothing is decided by it but whether the task has spent its own
budget, and whether it is served. An object in it counts, and no link is followed to it. What cannot be read, and what
is no object though it was to be one, is named; then the last object still counts. It was to be one if it begins with
a brace, or if the task has a budget of its own for what a report says. A running attempt that reports more than that
budget is stopped; its file is on the worker's own disk, and is looked at once a second at most.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import AMOUNT_MAX, Running
from spoold.protocol.result import Code
from spoold.rules.attempts import attempt_outcome
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.attempts.reported_figures import COUNTS, figures_in, is_served, overspent
from spoold.runner.job import RunnerPort
from spoold.store.contained_faults import Faults
from spoold.store.store import stamp
from spoold.system.host import Host
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt

# Bytes, and levels: a heartbeat holds the report some levels down.
PROGRESS_MAX, PROGRESS_DEPTH = 4096, 64
PROGRESS = "SPOOL_PROGRESS_FILE"
_NAME, _WHOLE = "progress.json", "write one JSON object into a regular file beside it, and rename that to it."
_BUDGETED = ("cost_usd", "tokens")


@dataclass(frozen=True, slots=True)
class Report:
    """A progress report. said: JSON, else its text, None for nothing; problem: why it does not count, None if it
    does, or if nothing in it was to count.
    """

    said: Any = None
    problem: BadFile | None = None

    @property
    def counts(self) -> dict[str, Any] | None:
        """The object that it is; None if it is none."""
        return self.said if isinstance(self.said, dict) else None


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
                found.append(_running(attempt, memory, look(attempt, scratch)))
            if handling.fault is not None:
                found.append(_running(attempt, memory, Report()))
    return tuple(found)


def _running(attempt: Attempt, memory_bytes: int, report: Report) -> Running:
    problem = problem_of(attempt, report)
    return Running(
        id=attempt.name.id,
        attempt=attempt.name.attempt,
        type=attempt.kind,
        instead_of=attempt.lane.instead_of,
        since=stamp(attempt.started_at),
        mem_mb=round(memory_bytes / (1 << 20), 1),
        progress=attempt.redacting.value(report.said),
        progress_problem=attempt.redacting.value(str(problem)) if problem is not None else "",
        lent=attempt.lent,
        back=attempt.back,
        served=is_served(report.said),
        # By the machine's date, which may have been set by decades meanwhile.
        frozen_s=min(round(attempt.frozen_s, 1), AMOUNT_MAX),
    )


def measured(
    attempts: Collection[Attempt], runner: RunnerPort, scratch: Scratch, host: Host, faults: Faults
) -> dict[str, Any]:
    """Return the fields of a beat that are measured anew each time: running tasks, and the state of the machine."""
    return {"running": running_tasks(attempts, runner, scratch, faults), **host.load("/").known()}


def look(attempt: Attempt, scratch: Scratch) -> Report:
    """Return the attempt's progress report as it is now, and remember it if it counts; of what it does not say of
    tokens and cost, or says wrongly, what was said last.
    """
    report = read_report(scratch, attempt.key, budgeted=any(name in attempt.task.reserves for name in _BUDGETED))
    if report.counts is not None:
        now, before = figures_in(report.counts), attempt.reported or {}
        kept = {name: before[name] for name in COUNTS if name in before and getattr(now, name) is None}
        attempt.reported = {**report.counts, **kept}
    return report


def problem_of(attempt: Attempt, report: Report) -> BadFile | None:
    """Return why a report does not count, and what counts in its place."""
    fault, last = report.problem, figures_in(attempt.reported)
    if fault is None:
        return None
    known = any(getattr(last, name) is not None for name in COUNTS)
    rest = "What it said last of tokens and cost still counts." if known else "Its tokens and cost are not known."
    return BadFile(fault.file, fault.field, f"{fault.problem} {rest}", fault.mend)


def read_report(scratch: Scratch, key: str, *, budgeted: bool) -> Report:
    """Return what the progress file holds. budgeted: whether it is to be an object in any case."""
    data = scratch.read(key, _NAME, 0, PROGRESS_MAX + 1)
    text = data[:PROGRESS_MAX].strip()
    if not text:
        why = scratch.why_unread(key, _NAME)
        return Report(problem=None if why is None else BadFile(PROGRESS, "", why, _WHOLE))
    said: Any = text.decode(errors="replace")
    try:
        said = codec.load(text, PROGRESS, depth=PROGRESS_DEPTH)
        fault = BadFile(PROGRESS, "", "is no JSON object.", _WHOLE)
    except BadFile as error:
        fault = error
        if len(data) > PROGRESS_MAX:
            fault = BadFile(PROGRESS, "", f"has more than {PROGRESS_MAX:,} bytes.", "write less into it.")
    meant = not isinstance(said, dict) and (budgeted or text.startswith(b"{"))
    return Report(said, fault if meant else None)


# A running attempt that reports more than its task's own `budget` is stopped.


LOOK_EVERY_S = 1.0


class OwnBudget:
    """The looks at what running attempts report."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._looked_at: dict[str, float] = {}

    def why_stop(self, attempt: Attempt, now: float) -> Outcome | None:
        """Why the attempt is stopped now, None if it goes on. now: monotonic, s."""
        if not attempt.task.reserves or attempt.over or attempt.stopping is not None:
            self._looked_at.pop(attempt.key, None)
            return None
        if now < self._looked_at.get(attempt.key, -LOOK_EVERY_S) + LOOK_EVERY_S:
            return None
        self._looked_at[attempt.key] = now
        look(attempt, self._scratch)
        said = overspent(attempt.task.reserves, attempt.reported)
        return None if said is None else attempt_outcome.failure(Code.BUDGET_EXCEEDED, said, final=True)
