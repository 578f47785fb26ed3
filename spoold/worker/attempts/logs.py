"""Output of attempts → logs/ on the share, while they run and when they have ended.

Law: a log is not worth a task, so nothing here raises OSError or stops a commit; but output that is missing from a
log for good is reported for a while, and an obstacle only as long as it is there. However much a task prints, a step
brings a bounded part of it; an attempt that is over is committed after all of it. A log never gets more than its
worker keeps, whatever a task put in the place of its output. Touches logs/ and nothing else.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Iterable

from spoold.protocol import layout
from spoold.protocol.amount import amount
from spoold.store.initialise import restore
from spoold.store.obstacles import obstacle, why_unwritten
from spoold.store.own_time import Slice
from spoold.store.polling import Polling
from spoold.store.store import Store
from spoold.system.scratch import Scratch
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.losses import REMEMBERED_S
from spoold.worker.attempts.redacting import is_cut

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
        if self._store.clock.monotonic() - at >= REMEMBERED_S:
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
