"""Whether the loop makes progress or is stuck inside the share, where its time goes, and which tasks are frozen.

It is for the thread that never touches the share.

Law: the main thread only reads, and takes no lock, so that it never waits for a thread that hangs. What is blamed on
the share was measured in its calls. The main thread wakes every SLICE_S while it waits. If it wakes late, and this
process has not used that time, the process was stopped or starved: that time counts for no call and no step, and is
measured to SLICE_S, rounded down. Tasks are frozen by the lease, at whose end supervisors freeze their jobs. A task
goes on when its worker has thawed it, and not before; one that is being killed has not gone on. Times are seconds.

Touches: threads, the clock.
"""

from __future__ import annotations

import logging
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, cast

from spoold.protocol.amount import amount, length
from spoold.rules.cluster.liveness import Blame, Cause, Spent, judge_silence
from spoold.system.clock import Clock, SystemClock
from spoold.system.filesystem import FileSystem

# A thread that wakes later than it asked for by less than this (s) was not kept from running.
LATE_S = 0.5
# How often (s) it wakes.
SLICE_S = 0.5
_KEPT = 50
_PACKAGE = "spoold."
# What only drives the work, and names no part of it.
_DRIVERS = ("spoold.daemon.", "spoold.master.master", "spoold.worker.worker")


@dataclass(frozen=True, slots=True)
class Pause:
    """A time in which this process did not run.

    stopped_s: without suspend; asleep_s: in suspend; used_s: processor time from the wake-up before it to the one
    after it. calling, stepping: whether most of it fell into calls to the share, and into a step.
    """

    stopped_s: float
    asleep_s: float
    used_s: float
    calling: bool
    stepping: bool


@dataclass(frozen=True, slots=True)
class _Moment:
    """Monotonic time, the time in suspend until then (between two bounds), and the processor time until then (s)."""

    at: float
    asleep_least_s: float
    asleep_most_s: float
    used_s: float


class Pulse:
    """Written by the loop's thread and those that it waits for; read by the main thread."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._stopped_s = 0.0
        self.at = self.ran_s
        self.calls: dict[int, tuple[str, object]] = {}
        self.error: OSError | None = None  # the last one of the share
        self._thread = 0
        self._lock = threading.Lock()  # between the threads that call, and never held during a call
        self._calls, self._steps = _Spans(), _Spans()  # while a call of any thread is under way; while a step is
        self._woke: _Moment | None = None
        self._failed: dict[bool, float] = {False: 0.0, True: 0.0}  # by whether the share did it
        self._failing: tuple[bool, float] | None = None

    @property
    def inside(self) -> str | None:
        """A call to the share that has not returned; None for none."""
        return next((f"{verb} {path}" for verb, path in list(self.calls.values())), None)

    def beat(self) -> None:
        """Record that the loop begins a round."""
        self._thread = threading.get_ident()
        self.at = self.ran_s
        self._steps.begin(self._clock.monotonic())

    def rest(self) -> None:
        """Record that the loop has ended its step, and only waits."""
        self._steps.end(self._clock.monotonic())

    def failed(self, *, by_share: bool) -> None:
        """Record that a step was ended by an error of the share, or of this machine."""
        if self._failing is None or self._failing[0] != by_share:
            self.went()
            self._failing = by_share, self.ran_s

    def went(self) -> None:
        """Record that a step was not ended by an error."""
        if self._failing is not None:
            (by_share, since), self._failing = self._failing, None
            self._failed[by_share] += max(0.0, self.ran_s - since)

    def tick(self, wait: Callable[[float], None], timeout_s: float) -> Pause | None:
        """Wait in the thread that keeps time; return at once after a pause, with it."""
        left_s, self._woke = timeout_s, self._woke or self._now()
        while True:
            asked_s, began = min(left_s, SLICE_S), self._clock.monotonic()
            wait(asked_s)
            pause = self._woken(self._woke, asked_s)
            left_s -= asked_s
            if pause is not None or left_s <= 0 or self._clock.monotonic() - began < asked_s:
                return pause

    def _now(self) -> _Moment:
        at, boottime = self._clock.monotonic(), self._clock.boottime()
        # The process may be delayed between the two: then no suspend is counted.
        return _Moment(at, boottime - self._clock.monotonic(), boottime - at, self._clock.used())

    def _woken(self, before: _Moment, asked_s: float) -> Pause | None:
        """Take in a wake-up, and return the pause since the one before."""
        self._woke = woke = self._now()
        now, slept_s = woke.at, max(0.0, woke.asleep_least_s - before.asleep_most_s)
        used_s = woke.used_s - before.used_s
        stopped_s = now - before.at - asked_s - used_s
        stopped_s = stopped_s if stopped_s >= LATE_S else 0.0
        if not stopped_s and slept_s < LATE_S:
            return None
        calling_s, stepping_s = (spans.take_out(now - stopped_s, now) for spans in (self._calls, self._steps))
        self._stopped_s += stopped_s
        most_s = stopped_s / 2
        return Pause(stopped_s, slept_s, used_s, calling_s > most_s, stepping_s > most_s)

    @property
    def ran_s(self) -> float:
        """Monotonic time without that in which this process was stopped. For patience with others."""
        return self._clock.monotonic() - self._stopped_s

    @property
    def age_s(self) -> float:
        """Seconds since the loop began its last round, without those in which this process was stopped."""
        return max(0.0, self.ran_s - self.at)

    def spent(self) -> Spent:
        """Where the time went, since the boot or the start."""
        now = self._clock.monotonic()
        failing = self._failing
        failed = dict(self._failed)
        if failing is not None:
            failed[failing[0]] += max(0.0, self.ran_s - failing[1])
        return Spent(
            awake_s=now,
            asleep_s=self._clock.boottime() - now,
            stopped_s=self._stopped_s,
            stepping_s=self._steps.sum(now),
            waited_s=self._calls.sum(now),
            refused_s=failed[True],
            hindered_s=failed[False],
        )

    @property
    def part(self) -> str:
        """The part of the work that the loop is in now, as a module; '' if it waits, or is in a driver alone."""
        frame = sys._current_frames().get(self._thread) if self._steps.present is not None else None  # noqa: SLF001
        while frame is not None:
            module = str(frame.f_globals.get("__name__", ""))
            if module.startswith(_PACKAGE) and not module.startswith(_DRIVERS):
                return f"{module.removeprefix(_PACKAGE)}.{frame.f_code.co_name}"
            frame = frame.f_back
        return ""

    def enter(self, verb: str, path: object) -> None:
        """Record that the calling thread begins a call to the share."""
        with self._lock:
            if not self.calls:
                self._calls.begin(self._clock.monotonic())
            self.calls[threading.get_ident()] = (verb, path)

    def leave(self) -> None:
        """Record that the call has returned."""
        with self._lock:
            del self.calls[threading.get_ident()]
            if not self.calls:
                self._calls.end(self._clock.monotonic())


class _Spans:
    """A sum of times (s, monotonic), without those in which the process did not run. One thread begins and ends them,
    another reads and takes out.
    """

    def __init__(self) -> None:
        self.present: float | None = None
        self._ended_s = self._out_s = 0.0
        self._long: deque[tuple[float, float]] = deque(
            maxlen=_KEPT
        )  # the last that were long enough to be looked for

    def begin(self, now: float) -> None:
        self.present = now

    def end(self, now: float) -> None:
        began = self.present
        if began is None:
            return
        if now - began >= LATE_S:
            self._long.append((began, now))
        self._ended_s += now - began
        self.present = None

    def take_out(self, since: float, until: float) -> float:
        """Leave out this time, in which nothing ran; return how much of it (s) fell into the spans."""
        present = self.present
        spans = dict(self._long.copy())
        if present is not None:
            spans[present] = until
        out_s = sum(max(0.0, min(until, ended) - max(since, began)) for began, ended in spans.items())
        self._out_s += out_s
        return out_s

    def sum(self, now: float) -> float:
        present = self.present
        return self._ended_s - self._out_s + (0.0 if present is None else now - present)


VERBS = tuple(name for name, member in vars(FileSystem).items() if callable(member) and not name.startswith("_"))


def pulsing(inner: FileSystem, pulse: Pulse) -> FileSystem:
    """Return the same file system, with its present calls noted in the pulse. All its errors name a path, also those
    of an open file, for which the system names none.
    """
    return cast(FileSystem, _Pulsing(inner, pulse))


class _Pulsing:
    def __init__(self, inner: FileSystem, pulse: Pulse) -> None:
        self._inner = inner
        for verb in VERBS:
            setattr(self, verb, _noting(verb, getattr(inner, verb), pulse))

    @property
    def remote(self) -> bool:
        return self._inner.remote

    @property
    def forgets(self) -> bool:
        return self._inner.forgets


def _noting(verb: str, call: Callable[..., Any], pulse: Pulse) -> Callable[..., Any]:
    def noted(*args: Any, **kwargs: Any) -> Any:
        pulse.enter(verb, args[0] if args else "")
        try:
            return call(*args, **kwargs)
        except OSError as error:
            pulse.error = error
            if error.filename is None and args:
                error.filename = args[0]
            raise
        finally:
            pulse.leave()

    return noted


# Reports frozen tasks, while the loop itself may hang in the share: a log line when they freeze, one when they go
# on, and the status between.


log = logging.getLogger("spoold")

FROZEN_LOOK_S = 1.0
# A figure is kept for each look; more than this many looks cover any lease.
_LOOKS = 300
_WHO = "this worker"
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Frozen(Protocol):
    """The questions that any thread may ask a runner."""

    def overdue_s(self) -> float | None:
        """Return for how long the lease has been over, negative before; None without one."""
        ...

    def still(self) -> Mapping[str, float]:
        """Return the jobs that do not move, and how long each may stay frozen."""
        ...

    def thawed(self) -> Collection[str]:
        """Return the jobs that were let go on since they froze."""
        ...

    def running(self) -> set[str]:
        """Return all jobs that are not over."""
        ...


class Freezing:
    """The frozen tasks of one worker."""

    def __init__(self, runner: Callable[[], Frozen | None], lease_s: float, pulse: Pulse) -> None:
        """runner: the present one. lease_s: how long a beat lets tasks run. pulse: where the worker's time goes."""
        self._runner = runner
        self._lease_s = lease_s
        self._pulse = pulse
        self._since: dict[str, float] = {}
        self._over: set[str] = set()  # frozen for as long as they may be
        self._looks: deque[tuple[float, Spent]] = deque(maxlen=_LOOKS)
        self._blame = Blame(Cause.UNKNOWN, "")

    @property
    def due_s(self) -> float:
        """The most time until the next look."""
        runner = self._runner()
        overdue_s = runner.overdue_s() if runner is not None else None
        if self._since:
            return FROZEN_LOOK_S
        if runner is None or overdue_s is None or overdue_s > 0 or not runner.running():
            return math.inf
        return max(0.1, -overdue_s + 0.05)

    def look(self, error: str | None = None) -> str:
        """Log changes; return the status text on tasks that are frozen now, '' for none. error: of the last step."""
        runner, now = self._runner(), time.monotonic()
        overdue_s = max(0.0, (runner.overdue_s() if runner is not None else None) or 0.0)
        still = runner.still() if runner is not None else {}
        self._looks.append((time.clock_gettime(_BOOTTIME), self._pulse.spent()))
        self._over &= still.keys()
        running = runner.running() if runner is not None else set()
        self._forget(still, running, runner.thawed() if runner is not None else (), now)
        new = still.keys() - self._since.keys() - self._over
        if new:
            spent = self._spent(overdue_s + self._lease_s)
            self._blame = judge_silence(spent, overdue_s + self._lease_s, _WHO, self._pulse.part, error or "")
            # The time for which a job may be frozen stands still in suspend.
            self._since |= dict.fromkeys(new, now - max(0.0, overdue_s - spent.asleep_s))
        most = length(max((still.get(key, 0.0) for key in self._since), default=0.0))
        if new:
            what = f"{_tasks(len(new), 'is', 'are')} frozen {self._until}, for at most {most}"
            log.warning("%s; %s", self._blame.text, what)
        if not self._since:
            return ""
        frozen_s = now - min(self._since.values())
        frozen = f"{_tasks(len(self._since), 'has', 'have')} been frozen for {length(frozen_s)}"
        return f"{frozen}, {self._until}, for at most {most}"

    @property
    def by_share(self) -> bool:
        """Whether the share is why they are frozen."""
        return self._blame.cause is Cause.SHARE

    @property
    def _until(self) -> str:
        return "until the share answers" if self.by_share else f"until {_WHO} has beaten again"

    def _spent(self, silent_s: float) -> Spent:
        """Return where the time since the last beat went: since the last look before it."""
        ended, spent = self._looks[-1]
        begun = next((old for at, old in reversed(self._looks) if at <= ended - silent_s), self._looks[0][1])
        return spent.since(begun)

    def _forget(self, still: Mapping[str, float], running: set[str], thawed: Collection[str], now: float) -> None:
        spent = {key for key, since in self._since.items() if key in still and now - since >= still[key]}
        on = {key for key in self._since if key in thawed and key in running}
        ended = self._since.keys() - running
        frozen_s = now - min((self._since[key] for key in spent | on | ended), default=now)
        for key in spent | on | ended:
            del self._since[key]
        self._over |= spent
        if spent:
            log.warning("%s killed: frozen for %s", _tasks(len(spent), "is", "are"), length(frozen_s))
        if on:
            log.info("%s on, after %s", _tasks(len(on), "goes", "go"), length(frozen_s))
        if ended - spent:
            log.info("%s ended, after %s frozen", _tasks(len(ended - spent), "has", "have"), length(frozen_s))


def _tasks(number: int, one: str, more: str) -> str:
    return f"{amount(number, 'task')} {one if number == 1 else more}"
