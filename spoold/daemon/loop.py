"""Step, wait, step: drives one actor, a master or a worker, on its own thread, with an opened spool and hints.

Law: an error of the environment is logged once, and the step is tried again after PATIENCE_S. So is each trouble of a
part of a step that goes on without it. What is said to be over is what was said to be in trouble. An actor that was
declared dead begins again under a new name. A fault in the handling of an input never gets here
(`store.contained_faults`). Any other fault ends its step alone. Only FAULTY_STEPS of them in a row end the process:
then what it remembers may be wrong, and the service manager starts a new one, which remembers nothing. The pulse sees
each call that an opened store makes through its file-system port, so that a call that hangs has a name. ASLEEP begins
with the word that `spool-sleep.service` waits for.

Touches: threads, the clock.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Protocol

from spoold.daemon.progress_watch import Pulse, pulsing
from spoold.daemon.signals import Nap
from spoold.protocol import layout
from spoold.protocol.amount import length, some
from spoold.protocol.errors import ShutOut, Unavailable
from spoold.protocol.settings import PollSettings
from spoold.rules.share.permissions import node_remark
from spoold.store.doctor_reports import mount_facts
from spoold.store.store import Store, largest, open_store
from spoold.system.clock import SystemClock
from spoold.system.errnos import is_lost
from spoold.system.permissions import owners_of
from spoold.system.posix import PosixFileSystem

log = logging.getLogger("spoold")

ACTIVE_FOR_S = 10.0
PATIENCE_S = 1.0
FAULTY_STEPS = 3


@dataclass(slots=True)
class StepResult:
    """The result of one step, for the loop."""

    busy: bool
    next_due: float | None
    done: bool = False


class Actor(Protocol):
    """A master or a worker, driven by the loop."""

    def step(self) -> StepResult:
        """Do one round. Errors: OSError, ShutOut."""
        ...

    def wait(self, timeout_s: float) -> None:
        """Block until something may have happened, or the time is over."""
        ...

    def wake(self) -> None:
        """End a wait, from any thread."""
        ...

    def leave(self, hurry: bool) -> None:
        """Finish running tasks, or hand them back at once if in a hurry; `step` then returns done."""
        ...

    def rest(self, resting: bool) -> None:
        """Take, in every round, whether the machine is about to sleep: then it must run and hold nothing."""
        ...

    @property
    def resting(self) -> bool:
        """Whether this actor is ready for the machine's sleep."""
        ...

    def close(self) -> None:
        """Release everything that this actor holds. Never raises OSError."""
        ...

    @property
    def idle(self) -> bool:
        """Whether it could leave at once, as far as it knows without a call to the share."""
        ...

    @property
    def trouble(self) -> str | None:
        """What cannot be done though the steps go through, such as on a full share; None for none."""
        ...

    def describe(self) -> str:
        """Return one line for people: the node and its work."""
        ...


@dataclass(slots=True)
class Loop:
    """Drives one actor until it is done. `make` makes it, and a new one after it was declared dead.

    fuse: whether the spool lies on a FUSE mount.
    """

    make: Callable[[], Actor]
    poll: PollSettings
    pulse: Pulse
    hinted: Callable[[], bool]
    nap: Nap
    fuse: bool = False
    actor: Actor | None = None
    error: BaseException | None = None
    trouble: str | None = None
    over: bool = False
    _leaving: threading.Event = field(default_factory=threading.Event)
    _hurry: bool = False
    _faulty: int = 0
    _active_at: float = 0.0
    _troubles: list[str] = field(default_factory=list)  # since the last step that went through, each once
    _failing_at: float = 0.0
    _remark: str | None = None
    _lost_at: float | None = None

    def leave(self, *, hurry: bool = False) -> None:
        """Ask the actor to finish its tasks, or to hand them back at once; from any thread."""
        self._hurry = self._hurry or hurry
        self._leaving.set()
        if self.actor is not None:
            self.actor.wake()

    def hear(self, number: int) -> None:
        """Take a signal about sleep; from any thread."""
        self.nap.hear(number)
        if self.actor is not None:
            self.actor.wake()

    @property
    def lost_s(self) -> float | None:
        """For how long (s) each step was ended by an error after which a share does not come back; None for none."""
        at = self._lost_at
        return None if at is None else self.pulse.ran_s - at

    @property
    def resting(self) -> bool:
        """Whether the machine may sleep."""
        return self.actor is None or self.actor.resting

    def run(self) -> None:
        """Run until the actor is done or fails. Never raises: `error` holds the cause of the end."""
        try:
            while not self._round():
                pass
        except BaseException as error:  # noqa: BLE001  the main thread has to report any error
            self.error = error
        try:
            if self.actor is not None:
                self.actor.close()
        except BaseException as error:  # noqa: BLE001  a service manager restarts only a process that ends with an error
            self.error = self.error or error
        self.over = True

    def _round(self) -> bool:
        """Do one step and one wait; True when the actor is done."""
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
        except Exception:
            self._faulty += 1
            if self._faulty >= FAULTY_STEPS or self.actor is None:
                raise
            log.exception("a step ended in a fault of spoold, and is tried again; please report this as a bug")
            self._leaving.wait(PATIENCE_S)
            return False
        self._faulty = 0
        if beat.done:
            return True  # it may be done without a request to leave
        self._go_on(self.actor)
        self.actor.wait(self._pause_s(beat))
        return False

    def _go_on(self, actor: Actor) -> None:
        """A step has gone through: log what is over, and a part of it that is in trouble, once."""
        self.pulse.rest()
        if actor.resting:
            return  # it has looked at nothing
        self.pulse.went()
        self._lost_at = None
        if self._troubles:
            log.info(
                "this is over, after %s: %s", length(time.monotonic() - self._failing_at), some(self._troubles, 3)
            )
            self._troubles.clear()
        self.trouble, remark = None, actor.trouble
        if self._remark is not None and remark != self._remark:
            log.info("this is over: %s", self._remark)
        if remark is not None and remark != self._remark:
            log.warning("%s", remark)
        self._remark = remark

    def _be_patient(self, error: Exception) -> bool:
        """Log an error of the environment once, then wait. True: asked to leave, and no task would be lost."""
        self.pulse.rest()
        cause = error if isinstance(error, OSError) else error.__cause__
        by_share = cause is not None and cause is self.pulse.error
        self.pulse.failed(by_share=by_share)
        if not (by_share and isinstance(cause, OSError) and is_lost(cause, fuse=self.fuse)):
            self._lost_at = None
        elif self._lost_at is None:
            self._lost_at = self.pulse.ran_s
        self.trouble = _essence(error)
        if self.trouble not in self._troubles:
            if not self._troubles:
                self._failing_at = time.monotonic()
            self._troubles.append(self.trouble)
            log.warning("this step cannot be finished, and is tried again: %s", error)
        if self._leaving.is_set() and (self.actor is None or self.actor.idle):
            return True
        if self._leaving.wait(PATIENCE_S):
            time.sleep(PATIENCE_S)  # leaving, but the share does not answer: not in a busy loop
        return False

    def _pause_s(self, beat: StepResult) -> float:
        """Return how long (s) to wait: until the next work is due, at most one poll interval."""
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
    """Return an error without its file name, to log it once: temporary names differ from try to try."""
    if isinstance(error, OSError) and isinstance(error.filename, str):
        return f"{error.strerror}: {error.filename.rpartition('/')[0] or error.filename}"
    return str(error)


# Code for masters and workers in the loop: an opened spool, hints, and the status during sleep.


# systemd/system/spool-sleep.service waits for a status that begins with this word.
ASLEEP = "asleep: the machine may sleep"


def open_spool(root: str, writer: str, pulse: Pulse) -> Store:
    """Open the spool at `root` for one writer. Errors: Unavailable, BadFile, OSError."""
    fs = PosixFileSystem(root, layout.PRIVATE)
    store = open_store(pulsing(fs, pulse), SystemClock(), writer, root)
    fs.whole = largest(store.basics)
    store.mount = partial(mount_facts, root)
    if not fs.forgets:  # an SMB mount shows modes that it invents
        _warn_of_owners(root)
    return store


@cache
def _warn_of_owners(root: str) -> None:
    """Warn, once in a process, if owner and umask would keep other nodes from this node's files."""
    f = owners_of(root, layout.TREE)
    said = node_remark(
        f.uid, f.owner, f.group, f.root_mode, f.umask, f.unshared, member=f.member, primary=f.primary, where=root
    )
    if said is not None:
        log.warning("%s", said)


def hinted(current: Callable[[], object | None]) -> Callable[[], bool]:
    """Return a function that says whether the present actor's hints work, so that polls may be rare."""

    def works() -> bool:
        actor = current()
        hints = getattr(actor, "hints", None)
        return hints is not None and hints.reason is None

    return works
