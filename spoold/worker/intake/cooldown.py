"""Tasks that this worker could not run, or was asked to try later, and leaves to others for a while.

Another machine may have a program that this one lacks, or other things that a task lacks here just now: its worker
should have the first choice. The quickest of all to claim is the worker whose tasks fail at once. So a worker keeps
away from a whole type whose handler could not run, or a module that could not be imported, each time for longer,
until one succeeds. A callable that no worker has is a task's mistake: it keeps no worker from its module.

Law: this only keeps one worker from claiming, for a while. It charges no task and ends none, and one success frees a
whole type or module.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.names import key
from spoold.protocol.result import Code, Status
from spoold.rules.attempts.elsewhere import MOST_S, pause_s
from spoold.rules.attempts.outcome import Charge
from spoold.rules.scheduling.matching import MODULE, left_as
from spoold.system.clock import Clock
from spoold.worker.attempts.attempt import Attempt

# How long (s) a task rests that may succeed here next time.
COOLDOWN_S = 5.0
# How long (s) it is remembered that no worker had a callable; if one has it now, the module is left to it again.
NOWHERE_S = 60.0
# For how many tasks the worker counts failures to run them here, and how many of them are reported.
REMEMBERED, REPORTED = 1000, 20
# Tasks name modules as they like, so only the latest SHUNNED are left to others; SAID: characters of a reason.
SHUNNED, SAID = 50, 300


@dataclass(slots=True)
class _Pause:
    """failed: how often in a row, -1 for a type that has succeeded since; until: monotonic, s."""

    failed: int = 0
    until: float = 0.0
    why: str = ""


class Cooldown:
    """What one worker leaves to others now: tasks by their keys, types, and modules (see `matching.left_as`)."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._tasks: dict[str, _Pause] = {}
        self._types: dict[str, _Pause] = {}
        self._nowhere: dict[str, float] = {}  # callables, until when

    def learn(self, attempt: Attempt) -> None:
        """Draw the conclusion from an attempt that is over."""
        outcome, now = attempt.judged, self._clock.monotonic()
        kind, called = left_as(attempt.lane), attempt.task.python
        if outcome is None:
            return
        if outcome.elsewhere:
            mine = self._avoid(attempt, now)
            if outcome.charge is not Charge.NOTHING:
                # With no other worker to leave it to, keeping away would not help.
                if called is not None:
                    self._give_up(called, now)
            elif kind and outcome.alike and not self._is_nowhere(called, now):
                all_of_it = self._shun(kind, outcome.message.partition("; left to ")[0], now)
                # Else this task would come first each time, on each of two workers that both cannot run it.
                mine.until = max(mine.until, all_of_it.until + pause_s(all_of_it.failed))
        elif outcome.quota:
            return  # the limit holds it back for as long as is needed
        elif outcome.code is Code.TRY_LATER or outcome.rests:
            self._tasks[key(attempt.name.id)] = _Pause(0, now + COOLDOWN_S, outcome.message)
        elif outcome.status is Status.SUCCESS and kind:
            self._types[kind] = _Pause(-1)

    def keys(self) -> set[str]:
        """Return the tasks that are to be left to others now."""
        if not self._tasks:
            return set()
        now = self._clock.monotonic()
        self._tasks = {task: pause for task, pause in self._tasks.items() if pause.until + MOST_S > now}
        return {task for task, pause in self._tasks.items() if pause.until > now}

    def avoids(self) -> dict[str, str]:
        """Return the latest of them, with the reason of each."""
        now = self._clock.monotonic()
        found = {task: pause.why for task, pause in self._tasks.items() if pause.until > now}
        return dict(list(found.items())[-REPORTED:])

    def shuns(self) -> dict[str, str]:
        """Return the types and modules that are to be left to others now, with the reason of each."""
        now = self._clock.monotonic()
        return {kind: pause.why for kind, pause in self._types.items() if pause.until > now}

    def _give_up(self, called: str, now: float) -> None:
        """Remember a callable that every worker has looked for in vain."""
        self._nowhere = {each: until for each, until in self._nowhere.items() if until > now and each != called}
        self._nowhere[called] = now + NOWHERE_S
        if len(self._nowhere) > REMEMBERED:
            del self._nowhere[next(iter(self._nowhere))]

    def _is_nowhere(self, called: str | None, now: float) -> bool:
        return called is not None and self._nowhere.get(called, now) > now

    def _avoid(self, attempt: Attempt, now: float) -> _Pause:
        pause = self._tasks.pop(key(attempt.name.id), None) or _Pause()
        pause.failed += 1
        pause.until, pause.why = now + pause_s(pause.failed), attempt.judged.message[:SAID] if attempt.judged else ""
        self._tasks[key(attempt.name.id)] = pause
        if len(self._tasks) > REMEMBERED:
            del self._tasks[next(iter(self._tasks))]
        return pause

    def _shun(self, kind: str, why: str, now: float) -> _Pause:
        pause = self._types.pop(kind, None) or _Pause()
        self._types[kind] = pause
        if len(self._types) > SHUNNED and (oldest := next(filter(_is_module, self._types), None)) is not None:
            del self._types[oldest]
        if now >= pause.until:  # else it was here already when the pause began
            pause.failed += 1
            pause.until, pause.why = now + pause_s(pause.failed), f"it could not run the last one: {why[:SAID]}"
        return pause


def _is_module(kind: str) -> bool:
    return kind.startswith(MODULE)
