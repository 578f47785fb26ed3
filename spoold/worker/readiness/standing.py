"""May this worker take tasks, and may it keep those it has? By requests of people, the battery, the lid.

Law: it decides and remembers, and touches no task; the worker asks at every step. Times are seconds on the monotonic
clock, which stands still while the machine sleeps, so that a grace is time in which a task could work.
"""

from __future__ import annotations

from spoold.protocol.request import Request, Verb
from spoold.rules.attempts import outcome as outcomes
from spoold.rules.attempts.outcome import Outcome
from spoold.rules.cluster import power
from spoold.rules.cluster.drain import is_meant
from spoold.rules.cluster.power import Course
from spoold.rules.gates.closing import halted_by
from spoold.store.store import Store
from spoold.system.host import Host
from spoold.system.power import Inhibitor
from spoold.worker.config import WorkerConfig

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
        self._battery = power.PowerVerdict()
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
        verdict = power.judge(laptop.run_on_battery, laptop.min_battery_percent, plugged=plugged, percent=percent)
        self._battery = verdict
        if verdict.course is not Course.HAND_BACK:
            self._hand_back_at = None
        elif self._hand_back_at is None:
            # A plug that is pulled and put back within the grace costs no task.
            self._hand_back_at = now + self._config.drain_grace_s
