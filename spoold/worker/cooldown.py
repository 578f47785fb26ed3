"""Tasks that this worker could not run, or was asked to try later, and leaves to others for a while.

A program that is not on this machine may be on another, and what a task lacks here just now it may find there: the
other's worker should have the first choice. The quickest of all to claim is the worker whose tasks fail at once; so
from a type whose handler could not run it keeps away as a whole, each time for longer, until one succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.names import key
from spoold.protocol.result import Code, Status
from spoold.rules.elsewhere import MOST_S, pause_s
from spoold.rules.outcome import Charge
from spoold.system.clock import Clock
from spoold.worker.attempt import Attempt

# So long (s) for what may go otherwise here next time.
COOLDOWN_S = 5.0
# Of so many tasks it is known how often they could not be run here, and so many of them are reported.
REMEMBERED, REPORTED = 1000, 20


@dataclass(slots=True)
class _Pause:
    """failed: how often in a row, -1 for a type that has succeeded since; until: monotonic, s."""

    failed: int = 0
    until: float = 0.0
    why: str = ""


class Cooldown:
    """What one worker leaves to others now: tasks by their keys, and types."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, _Pause] = {}
        self._types: dict[str, _Pause] = {}

    def learn(self, attempt: Attempt) -> None:
        """Draw the conclusion from an attempt that is over."""
        outcome, now = attempt.judged, self._clock.monotonic()
        kind = attempt.task.kind if attempt.task.run == "handler" else None
        if outcome is None:
            return
        if outcome.elsewhere:
            self._avoid(attempt, now)
            if kind is not None and outcome.charge is Charge.NOTHING:
                # With nobody to leave it to, keeping away would help nobody.
                self._shun(kind, outcome.message.partition("; left to ")[0], now)
        elif outcome.code is Code.TRY_LATER or outcome.rests:
            self._tasks[key(attempt.name.id)] = _Pause(0, now + COOLDOWN_S, outcome.message)
        elif outcome.status is Status.SUCCESS and kind is not None:
            self._types[kind] = _Pause(-1)

    def keys(self) -> set[str]:
        """The tasks that are to be left to others now."""
        if not self._tasks:
            return set()
        now = self._clock.monotonic()
        self._tasks = {task: pause for task, pause in self._tasks.items() if pause.until + MOST_S > now}
        return {task for task, pause in self._tasks.items() if pause.until > now}

    def avoids(self) -> dict[str, str]:
        """The latest of them, with the reason of each."""
        now = self._clock.monotonic()
        found = {task: pause.why for task, pause in self._tasks.items() if pause.until > now}
        return dict(list(found.items())[-REPORTED:])

    def shuns(self) -> dict[str, str]:
        """The types that are to be left to others now, with the reason of each."""
        now = self._clock.monotonic()
        return {kind: pause.why for kind, pause in self._types.items() if pause.until > now}

    def _avoid(self, attempt: Attempt, now: float) -> None:
        pause = self._tasks.pop(key(attempt.name.id), None) or _Pause()
        pause.failed += 1
        pause.until, pause.why = now + pause_s(pause.failed), attempt.judged.message if attempt.judged else ""
        self._tasks[key(attempt.name.id)] = pause
        if len(self._tasks) > REMEMBERED:
            del self._tasks[next(iter(self._tasks))]

    def _shun(self, kind: str, why: str, now: float) -> None:
        pause = self._types.setdefault(kind, _Pause())
        if now < pause.until:
            return  # what was here already when the pause began
        pause.failed += 1
        pause.until, pause.why = now + pause_s(pause.failed), f"it could not run the last one: {why}"
