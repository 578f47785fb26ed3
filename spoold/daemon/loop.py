"""Step, wait, step. One actor, a master or a worker, driven on a thread of its own.

An error of the environment is told once and tried again with patience; being taken for dead means to begin again
under a new name; anything else is our fault and ends the process, so that the service manager starts a fresh one.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from spoold.daemon.nap import Nap
from spoold.daemon.pulse import Pulse
from spoold.protocol.errors import ShutOut, Unavailable
from spoold.protocol.settings import PollSettings

log = logging.getLogger("spoold")

ACTIVE_FOR_S = 10.0
PATIENCE_S = 1.0


@dataclass(slots=True)
class StepResult:
    """What one step came to, as the loop needs to know it."""

    busy: bool
    next_due: float | None
    done: bool = False


class Actor(Protocol):
    """What the loop drives."""

    def step(self) -> StepResult:
        """One round. Errors: OSError, ShutOut."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Block until something may have happened, or the time is over."""
        ...

    def wake(self) -> None:
        """End a wait, from any thread."""
        ...

    def leave(self, hurry: bool) -> None:
        """Finish what runs, or hand it back at once if in a hurry; `step` then says done."""
        ...

    def rest(self, resting: bool) -> None:
        """Whether its machine is about to sleep: then nothing may run, or wait for it, any more. Told every round."""
        ...

    @property
    def resting(self) -> bool:
        """Whether the machine may sleep, as far as this actor is concerned."""
        ...

    def close(self) -> None:
        """Nothing is left of this actor. Never raises OSError."""
        ...

    @property
    def idle(self) -> bool:
        """Whether it could go at once, as far as it knows without asking the share."""
        ...

    @property
    def trouble(self) -> str | None:
        """What the share refuses again and again, though it answers; None for nothing."""
        ...

    def describe(self) -> str:
        """One line for people: who this is and what it does."""
        ...


@dataclass(slots=True)
class Loop:
    """Drives one actor until it is done. `make` makes it, also anew after it was taken for dead."""

    make: Callable[[], Actor]
    poll: PollSettings
    pulse: Pulse
    hinted: Callable[[], bool]
    nap: Nap
    actor: Actor | None = None
    error: BaseException | None = None
    trouble: str | None = None
    over: bool = False
    _leaving: threading.Event = field(default_factory=threading.Event)
    _hurry: bool = False
    _active_at: float = 0.0

    def leave(self, *, hurry: bool = False) -> None:
        """Ask the actor to finish, or to hand back at once what runs; from any thread."""
        self._hurry = self._hurry or hurry
        self._leaving.set()
        if self.actor is not None:
            self.actor.wake()

    def hear(self, number: int) -> None:
        """News of sleep, as a signal; from any thread."""
        self.nap.hear(number)
        if self.actor is not None:
            self.actor.wake()

    @property
    def resting(self) -> bool:
        """Whether the machine may sleep."""
        return self.actor is None or self.actor.resting

    def run(self) -> None:
        """Until the actor is done or fails. Never raises: `error` says what ended it."""
        try:
            while not self._round():
                pass
        except BaseException as error:  # noqa: BLE001  whatever it was, the main thread has to tell of it
            self.error = error
        try:
            if self.actor is not None:
                self.actor.close()
        except BaseException as error:  # noqa: BLE001  a service manager starts again only what ends with an error
            self.error = self.error or error
        self.over = True

    def _round(self) -> bool:
        """One step and one wait; True when there is nothing left to do."""
        self.pulse.beat()
        try:
            if self.actor is None:
                self.actor = self.make()
            if self._leaving.is_set():
                self.actor.leave(self._hurry)
            self.actor.rest(self.nap.due)
            beat = self.actor.step()
        except ShutOut as error:
            log.warning("%s; it begins again under a new name", error)
            if self.actor is not None:
                self.actor.close()
            self.actor = None
            return self._leaving.is_set()
        except (OSError, Unavailable) as error:
            return self._be_patient(error)
        if beat.done:
            return True  # it need not have asked for anything
        if self.trouble is not None and not self.actor.resting:
            log.info("this is over: %s", self.trouble)
            self.trouble = None
        self.actor.wait(self._pause_s(beat))
        return False

    def _be_patient(self, error: Exception) -> bool:
        """The environment's fault: say so once, try again. True: asked to leave, and nothing runs to be lost."""
        trouble = _essence(error)
        if trouble != self.trouble:
            log.warning("nothing can be done until this is over: %s", error)
        self.trouble = trouble
        if self._leaving.is_set() and (self.actor is None or self.actor.idle):
            return True
        if self._leaving.wait(PATIENCE_S):
            time.sleep(PATIENCE_S)  # leaving, but the share does not answer: not in a busy loop
        return False

    def _pause_s(self, beat: StepResult) -> float:
        """How long to wait: until the next thing is due, at most as long as a poll may take."""
        now = time.monotonic()
        if beat.busy:
            self._active_at = now
        active = now - self._active_at < ACTIVE_FOR_S
        if self.hinted():
            longest = self.poll.idle_s if active else self.poll.hinted_s
        else:
            longest = self.poll.busy_s if active else self.poll.idle_s
        due = longest if beat.next_due is None else beat.next_due - now
        return max(0.0, min(due, longest))


def _essence(error: Exception) -> str:
    """What is told once: names of temporary files differ from one try to the next, the trouble does not."""
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return f"{error.strerror}: {error.filename.rpartition('/')[0] or error.filename}"
    return str(error)
