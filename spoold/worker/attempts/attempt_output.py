"""The output of an attempt: its value, its result file or its printed text, and logs/ on the share while it runs.

Law: what an attempt wrote never changes how it ended, and is kept. A result file that is no JSON becomes output as
text. The record says what was wrong with the file, and with each field that does not count as it stands there. It
names what cannot be read in the place of that file or of the progress report. No link is followed to either.

A log is not worth a task, so `Logs` raises no OSError and stops no commit; but output that is missing from a log for
good is reported for a while, and an obstacle only as long as it is there. However much a task prints, a step brings a
bounded part of it; an attempt that is over is committed after all of it. A log never gets more than its worker keeps,
whatever a task put in the place of its output. Of lost supervisors a worker warns for a while, since a task may lose
its own on purpose.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile
from spoold.protocol.result import TEXT
from spoold.rules.attempts.reported_figures import COUNTS, NONE, PROGRESS, Figures, faults_in, figures_in, filled
from spoold.runner.job import Ending
from spoold.store.initialise import restore
from spoold.store.path_conflicts import obstacle, why_unwritten
from spoold.store.step_timing import Polling, Slice
from spoold.store.store import Store
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt, is_cut
from spoold.worker.attempts.reporting import PROGRESS as PROGRESS_FILE
from spoold.worker.attempts.reporting import look, problem_of

log = logging.getLogger("spoold")

LOG_CHUNK = 1 << 20
# How often (s) new output is brought to the logs: where that costs round trips, and where it costs a look.
LOGS_S, LOCAL_LOGS_S = 0.5, 0.1
# How often (s) the obstacle to the logs is looked for again, as long as it is reported.
AGAIN_S = 20.0


class Logs:
    """The logs of one worker's attempts."""

    def __init__(self, store: Store, scratch: Scratch, most: int) -> None:
        """most: bytes of one attempt's output that its worker keeps."""
        self._store = store
        self._most = most
        self._scratch = scratch
        self._polling = Polling(store)
        # Why the last piece of an attempt's output is not in its log. Of attempts that are over: when the last one
        # ended without it, why, and how many before it lacked theirs for the same reason.
        self._lacking: dict[str, str] = {}
        self._lost = (-math.inf, "", 0)
        self._barred = False  # whether that is because the logs have no directory

    def bring_all(self, attempts: Iterable[Attempt]) -> None:
        """Bring new output of running attempts to the share, if it is time. Never raises OSError."""
        if self._polling.take("logs", LOGS_S, LOCAL_LOGS_S):
            time = Slice(self._store.clock)
            for attempt in attempts:
                if not attempt.over:
                    self.bring(attempt, time)
        if self._barred and self._polling.take("barred", AGAIN_S, AGAIN_S) and self._obstacle() != self._lost[1]:
            self._barred, self._lost = False, (-math.inf, "", 0)

    def bring(self, attempt: Attempt, time: Slice) -> bool:
        """Bring a piece of new output of an attempt to the share, and more while there is time. False when there is
        more to bring now. Never raises OSError: a log is not worth a task.
        """
        whole = True
        with self._store.faults.handling("log", attempt.key, attempt.name.id, attempt.name.attempt) as handling:
            whole = self._bring(attempt, time)
        if handling.fault is not None:  # the same piece would fail again
            attempt.log_complete, self._lacking[attempt.key] = True, handling.fault.cause
        return whole

    def _bring(self, attempt: Attempt, time: Slice) -> bool:
        ending = attempt.ending
        if ending is not None and not ending.output_bytes and ending.kind != "lost":
            return True  # it printed nothing; for a lost attempt the bytes were not counted
        while not attempt.log_complete and self._fetch(attempt):
            if self._append(attempt, attempt.unlogged):
                attempt.logged += len(attempt.unlogged)
                attempt.unlogged = b""
            elif not self._remade(attempt):
                return True
            if time.over:
                return False
        kept = attempt.logged or (ending is not None and ending.output_trouble)
        if ending is not None and ending.output_dropped and kept and not attempt.log_complete:
            why = ending.output_trouble or "log_max_mb of the worker"
            gap = f"\n[{amount(ending.output_dropped, 'byte')} left out here: {why}]\n".encode()
            self._append(attempt, gap + ending.tail.encode())
            attempt.log_complete = True  # the log is complete: nothing comes after its tail
        return True

    def _fetch(self, attempt: Attempt) -> bool:
        """Mask its next output, unless some of it is not in the log yet; False if there is none."""
        while not attempt.unlogged:
            # A task may have put a file of any size in the place of its output.
            limit = min(LOG_CHUNK, self._most - attempt.fetched)
            chunk = self._scratch.read(attempt.key, "output", attempt.fetched, limit) if limit > 0 else b""
            if not chunk:
                break
            attempt.fetched += len(chunk)
            attempt.unlogged = attempt.redacting.feed(chunk)
        if not attempt.unlogged and attempt.ending is not None:
            attempt.unlogged = attempt.redacting.end(cut=is_cut(attempt.ending))
        return bool(attempt.unlogged)

    def remark(self, attempt: Attempt, text: str) -> None:
        """Write a line of its own into the log of a running attempt. Never raises OSError."""
        self.bring(attempt, Slice(self._store.clock))
        self._append(attempt, f"\n{text}\n".encode())

    def close(self, attempt: Attempt) -> None:
        """After its commit, report output that its log lacks as lost, since its result does not say so."""
        why = self._lacking.pop(attempt.key, None)
        if why is None:
            return
        now = self._store.clock.monotonic()
        count = self._lost[2] + 1 if self.notes and self._lost[1] == why else 1
        self._lost, self._barred = (now, why, count), why == self._obstacle()
        if count == 1:
            log.warning("output of %s is missing from its log: %s", attempt.key, why)

    def forget(self, attempt: Attempt) -> None:
        """Forget a fenced attempt: its log is not needed."""
        self._lacking.pop(attempt.key, None)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people."""
        at, why, count = self._lost
        if self._store.clock.monotonic() - at >= LOSS_REMEMBERED_S:
            return ()
        return (f"output of {amount(count, 'task')} is missing from the logs: {why}",)

    def _obstacle(self) -> str | None:
        return obstacle(self._store.fs, layout.LOGS)

    def _append(self, attempt: Attempt, data: bytes) -> bool:
        try:
            self._store.fs.append(attempt.log, data)
        except OSError as error:
            why = self._lacking[attempt.key] = why_unwritten(self._store.fs, attempt.log, error)
            attempt.notes = [f"the log of {attempt.key} cannot be written: {why}"]
            return False
        if self._lacking.pop(attempt.key, None) is not None:
            attempt.notes = []
        return True

    def _remade(self, attempt: Attempt) -> bool:
        """Restore logs/ if it was removed; True if so: then all its output is brought anew."""
        made: list[str] = []
        with contextlib.suppress(OSError):
            made = restore(self._store.fs, (layout.LOGS,))
        if made:
            attempt.logged, attempt.fetched, attempt.unlogged = 0, 0, b""
            attempt.redacting.restart()
        return bool(made)


# The output of an attempt: the value that its call returned, its result file, or else its printed text.


RESULT_MAX = 4 << 20
_FILE, _NAME = "SPOOL_RESULT_FILE", "result.json"
_SMALLER = "write large results into a file of their own, and its path into this one."


@dataclass(frozen=True, slots=True)
class Output:
    """The output and the figures beside it. format: TEXT where the result file is no JSON; problem: what is wrong
    with the file or its fields, and the fix. None where nothing is.
    """

    value: Any
    figures: Figures = NONE
    format: str | None = None
    problem: str | None = None


def output_of(attempt: Attempt, scratch: Scratch) -> Output:
    """Return the output of an attempt that is over.

    A figure that its result lacks is that of its last progress report: an attempt that was stopped has mostly written
    no result, and yet it has spent something.
    """
    output = _output_of(attempt, scratch)
    if attempt.ending is None:
        return output
    lacks = {name for name in COUNTS if getattr(output.figures, name) is None}
    report = look(attempt, scratch)
    faults = faults_in(report.counts, PROGRESS_FILE, tuple(n for n in PROGRESS if n in lacks or n not in COUNTS))
    unread = problem_of(attempt, report) if lacks else report.problem
    problem = _told(attempt, faults if unread is None else [unread])
    return replace(
        output,
        figures=filled(output.figures, attempt.reported) if lacks else output.figures,
        problem=" ".join(filter(None, (output.problem, problem))) or None,
    )


def _told(attempt: Attempt, faults: list[BadFile]) -> str | None:
    return attempt.redacting.value(" ".join(map(str, faults))) if faults else None


def _output_of(attempt: Attempt, scratch: Scratch) -> Output:
    """Return what it returned, wrote or printed.

    For a task with several calls it is a list: one value for each call that is known to have returned.
    """
    ending = attempt.ending
    if ending is None:
        return Output(None)
    if attempt.task.calls is not None:
        return Output(ending.value or [])
    if ending.value is not None:
        return Output(ending.value)
    data = scratch.read(attempt.key, _NAME, 0, RESULT_MAX + 1)
    if not data.strip():
        why = scratch.why_unread(attempt.key, _NAME)
        faults = [] if why is None else [BadFile(_FILE, "", why, "write the result into a regular file there.")]
        return Output(None if ending.returned else ending.stdout, problem=_told(attempt, faults))
    try:
        if len(data) > RESULT_MAX:
            raise BadFile(_FILE, "", f"has more than {RESULT_MAX:,} bytes; its beginning is kept.", _SMALLER)
        value = attempt.redacting.value(codec.load(data, _FILE))
    except BadFile as error:
        text = data[:RESULT_MAX].decode(errors="replace")
        masked = attempt.redacting.value
        return Output(masked(text), format=TEXT, problem=masked(str(error)))
    return Output(value, figures_in(value), problem=_told(attempt, faults_in(value, _FILE)))


# Attempts whose supervisor was lost: a worker warns of them for a while, since a task may do that on purpose.


LOSS_REMEMBERED_S = 600.0
# More than this many would only push other notes out of sight.
LOSSES_SHOWN = 3


class Losses:
    """The attempts that were lost lately, the latest last."""

    def __init__(self) -> None:
        self._lost: list[tuple[float, str]] = []

    def look(self, now: float, ended: Iterable[Ending]) -> None:
        """Add the lost attempts among these endings, and forget old ones."""
        self._lost = [(at, note) for at, note in self._lost if now - at < LOSS_REMEMBERED_S]
        self._lost += [(now, f"attempt {end.key} was lost: {end.message}") for end in ended if end.kind == "lost"]

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people."""
        return tuple(note for _, note in self._lost[-LOSSES_SHOWN:])
