"""May this worker take tasks, and may it keep those it has? Does it want more, and what does it offer just now?

Law: it decides and remembers, and touches no task; the worker asks at every step. Times are seconds on the monotonic
clock, which stands still while the machine sleeps, so that a grace is time in which a task could work. Pressure only
stops new claims: where nothing is offered, nothing is asked and no reason is kept, and an unknown figure is no
reason. An offer never holds more than the configuration: a type that is lacking is not among its handlers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from spoold.protocol.heartbeat import UNCHECKED, Capabilities
from spoold.protocol.request import Request, Verb
from spoold.rules.attempts import attempt_outcome as outcomes
from spoold.rules.attempts.attempt_outcome import Outcome
from spoold.rules.gates.standing_requests import halted_by
from spoold.rules.workers import readiness
from spoold.rules.workers.readiness import Course, is_meant
from spoold.store.step_timing import Polling
from spoold.store.store import Store
from spoold.system.hardware import Inhibitor
from spoold.system.host import Host
from spoold.worker.handlers.worker_config import WorkerConfig

# A battery changes in minutes; reading it takes a dozen files.
BATTERY_EVERY_S = 5.0
# Between two short tasks the machine need not be let go.
LINGER_S = 10.0


class Standing:
    """One worker's standing. inhibitor: keeps its machine awake; None for a machine that may sleep as it likes."""

    def __init__(self, store: Store, host: Host, config: WorkerConfig, inhibitor: Inhibitor | None = None) -> None:
        self._clock = store.clock
        self._host = host
        self._config = config
        self._inhibitor = inhibitor
        self._node = store.writer
        self._halted = False
        self._leave_at: float | None = None  # for good
        self._drained_at: float | None = None  # as long as people ask for it
        self._sleep_at: float | None = None
        self._battery = readiness.PowerVerdict()
        self._battery_at: float | None = None
        self._hand_back_at: float | None = None
        self._idle_since = store.clock.monotonic()

    def drain(self, grace_s: float) -> None:
        """Leave for good, after the grace. A later call may shorten it, never prolong it."""
        until = self._clock.monotonic() + grace_s
        self._leave_at = until if self._leave_at is None else min(self._leave_at, until)

    def fall_asleep(self) -> None:
        """The machine is about to sleep: nothing may run after the grace, until `wake_up`."""
        if self._sleep_at is None:
            self._sleep_at = self._clock.monotonic() + self._config.laptop.sleep_grace_s

    def wake_up(self) -> None:
        """The machine is awake again, or will not sleep after all."""
        self._sleep_at = None

    def obey(self, requests: list[Request], now: float) -> None:
        """Take in the requests of people, and the power source of the machine."""
        self._halted = halted_by(requests)
        if not any(request.verb is Verb.DRAIN and is_meant(request.target, self._node) for request in requests):
            self._drained_at = None
        elif self._drained_at is None:
            self._drained_at = now + self._config.drain_grace_s
        if self._battery_at is None or now - self._battery_at >= BATTERY_EVERY_S:
            self._battery_at = now
            self._look_at_battery(now)

    def mind(self, now: float, working: bool) -> None:
        """At the end of a step: stay awake while tasks run, leave if idle for too long."""
        if working:
            self._idle_since = now
        idle_s, limit_s = now - self._idle_since, self._config.idle_timeout_s
        if not working and limit_s is not None and idle_s >= limit_s:
            self.drain(0.0)
        if self._inhibitor is not None:
            if working:
                self._inhibitor.hold()
            elif idle_s >= LINGER_S or self._sleep_at is not None or self.leaving:
                self._inhibitor.release()

    def close(self) -> None:
        """Let the machine sleep: nothing runs here any more."""
        if self._inhibitor is not None:
            self._inhibitor.release()

    @property
    def leaving(self) -> bool:
        """Whether it leaves as soon as nothing runs."""
        return self._leave_at is not None or self._drained_at is not None

    @property
    def takes(self) -> bool:
        """Whether new tasks may be started."""
        return not (self.leaving or self._halted or self._sleep_at is not None) and self._battery.course is Course.RUN

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for people. A sleeper's last beat stands for hours, so it has none."""
        if self._sleep_at is not None:
            return ()
        trouble = self._inhibitor.trouble if self._inhibitor is not None else None
        return tuple(note for note in (self._battery.why, trouble) if note)

    def word(self, working: bool) -> str:
        """Return the status that others must know at once, '' for none; the claims show who works and who idles."""
        if self.leaving:
            return "draining"
        if self._sleep_at is not None:
            return "draining" if working else "asleep"
        return "halted" if self._halted else ""

    def recall(self, now: float) -> Outcome | None:
        """Return why running tasks are to be handed back now; None as long as they may go on."""
        if self._halted:
            return outcomes.handed_back("the spool was halted")
        if any(at is not None and now >= at for at in (self._leave_at, self._drained_at)):
            return outcomes.handed_back("its worker was drained")
        if self._sleep_at is not None and now >= self._sleep_at:
            return outcomes.handed_back("its worker's machine is going to sleep")
        if self._hand_back_at is not None and now >= self._hand_back_at:
            return outcomes.handed_back(f"its worker's machine is {self._battery.why}")
        return None

    def _look_at_battery(self, now: float) -> None:
        laptop, battery = self._config.laptop, self._host.battery()
        plugged, percent = (battery.plugged, battery.percent) if battery is not None else (None, None)
        verdict = readiness.judge_power(
            laptop.run_on_battery, laptop.min_battery_percent, plugged=plugged, percent=percent
        )
        self._battery = verdict
        if verdict.course is not Course.HAND_BACK:
            self._hand_back_at = None
        elif self._hand_back_at is None:
            # A plug that is pulled and put back within the grace costs no task.
            self._hand_back_at = now + self._config.drain_grace_s


# Does this worker want more work just now? Not while the share is full, or the machine has enough to do.


# How often (s) the share is asked for its room, where that costs a round trip.
PRESSURE_EVERY_S = 2.0


class Pressure:
    """Why a worker with free slots takes no task; full: the share is. Reads its free room and the machine's load."""

    def __init__(self, store: Store, host: Host, config: WorkerConfig, cpus: float) -> None:
        self._store = store
        self._host = host
        self._config = config
        self._cpus = cpus
        self._polling = Polling(store)
        self.why: str | None = None
        self.full = False

    @property
    def notes(self) -> tuple[str, ...]:
        """The reason, as a note for people."""
        return (self.why,) if self.why else ()

    def lost(self, offered: bool) -> bool:
        """Whether nothing new is taken now; `why` then has the reason. offered: whether there is anything to take.

        Errors: OSError.
        """
        if not offered:
            self.why, self.full = None, False
        elif self._polling.take("room", PRESSURE_EVERY_S):
            self.why = self._reason()
        return self.why is not None

    def _reason(self) -> str | None:
        room = self._store.room()
        self.full = room.full
        if room.full:
            return f"{room.value}: nothing new is started"
        if self._config.max_load is None and not self._config.min_free_mb:
            return None
        load = self._host.load("/")
        busy, free_mb, most = load.load1, load.mem_available_mb, self._config.max_load
        if most is not None and busy is not None and busy / self._cpus > most:
            return f"the load of {busy:.1f} on {self._cpus:g} cpus is above max_load: nothing new is started"
        if free_mb is not None and free_mb < self._config.min_free_mb:
            return f"only {free_mb} MiB are available, less than min_free_mb: nothing new is started"
        return None


# A worker's offer just now: its configuration, less the types that its machine lacks or it keeps away from.


log = logging.getLogger("spoold")


class HandlersFound(Protocol):
    """What of a worker's handlers is on its machine."""

    def lacks(self) -> Mapping[str, str]:
        """Return the types whose handler cannot begin here, each with the reason."""
        ...

    def versions(self) -> Mapping[str, str]:
        """Return what is known of the version of a handler's program, by type."""
        ...


@dataclass(frozen=True)
class HandlersKnown:
    """What is known once and for all."""

    lacking: Mapping[str, str] = field(default_factory=dict)

    def lacks(self) -> Mapping[str, str]:
        """Return the types that were named."""
        return self.lacking

    def versions(self) -> Mapping[str, str]:
        """Return none: nobody looked."""
        return {}


NOTHING_LACKS = HandlersKnown()


class Offering:
    """found: what is on this machine; in a worker's process `worker.handlers.availability` looks."""

    def __init__(self, can: Capabilities, found: HandlersFound = NOTHING_LACKS) -> None:
        self._all, self._found = can, found
        self.now = can
        self.look({})

    def look(self, shuns: Mapping[str, str]) -> bool:
        """Update `now`; True if it changed. An older reader finds no handler for a type that is lacking."""
        lacks = dict(self._found.lacks())
        about = self._about()
        if lacks == self.now.lacks and dict(shuns) == self.now.shuns and about == self.now.about:
            return False
        for kind in sorted(lacks.keys() - self.now.lacks.keys()):
            if lacks[kind] == UNCHECKED:
                log.info("no task of type %s is taken yet: %s", kind, UNCHECKED)
                continue
            log.warning("no task of type %s is taken here: %s; this is looked at again every 30 s", kind, lacks[kind])
        for kind in sorted(self.now.lacks.keys() - lacks.keys()):
            again = "" if self.now.lacks[kind] == UNCHECKED else " again"
            log.info("tasks of type %s are taken%s", kind, again)
        handlers = tuple(kind for kind in self._all.handlers if kind not in lacks)
        self.now = self._all.model_copy(
            update={"handlers": handlers, "lacks": lacks, "shuns": dict(shuns), "about": about}
        )
        return True

    def _about(self) -> dict[str, dict[str, str]]:
        """Return what people are told of each handler, with its version where one is known."""
        about = dict(self._all.about)
        for kind, version in self._found.versions().items():
            about[kind] = {**about.get(kind, {}), "version": version}
        return about
