"""runner/slot: the worker's end of one slot: a supervisor process, the wire to it, and its jobs.

Law: no call blocks on the supervisor. This room may start it and write to its wire; the runner decides when.

Touches: files, processes, the clock, the network.
"""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from spoold.rules.workers.prefetch import preference
from spoold.runner.child import loader
from spoold.runner.freezer import Room
from spoold.runner.job import Call, Ending, Job, Kind
from spoold.runner.wire import Wire

log = logging.getLogger("spoold")

# A supervisor's program comes through its wire and not as arguments: a `pkill -f spoold` that kills the worker must
# not also kill the supervisors, which then end the worker's tasks.
_BOOT_BYTES = 8192
_READ_BOOT = f"import os; exec(os.read(0, {_BOOT_BYTES}))"
# Appended, not inserted: the supervisor needs the standard library and us, never another package beside us.
_BOOT = (
    "import sys; sys.path.append({root!r}); from spoold.runner.boot import main; main({worker}, {where!r}, {calls!r})"
)
_ROOT = str(Path(__file__).resolve().parents[2])
# A supervisor with a job sends a message every 2 s, except for about 10 s in which it may be killing. SILENCE_S: its
# allowed silence, counted only while this process itself looks: each look counts for at most LOOK_S.
SILENCE_S, LOOK_S = 20.0, 2.5


class Slot:
    """One supervisor, its wire, and its jobs: the first runs, those after it wait for its end."""

    def __init__(self, python: str, calls: str, environ: Mapping[str, str], where: str) -> None:
        """Start the supervisor. python, calls: its interpreter, and that of Python functions; environ: the worker's
        variables for it and its processes; where: the worker's control group, '' for none. Errors: OSError."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            boot = _BOOT.format(root=_ROOT, worker=os.getpid(), where=where, calls=calls)
            ours.sendall(boot.encode().ljust(_BOOT_BYTES))
            self.process = subprocess.Popen(
                # Without packages it starts in half the time, and the base interpreter is all that it needs.
                [os.path.realpath(python), "-I", "-S", "-c", _READ_BOOT],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**environ, **loader()},
                start_new_session=True,
            )
            descriptor = ours.detach()
        self.room = Room(where, os.getpid(), self.process.pid)
        self.wire = Wire(descriptor, descriptor)
        self.jobs: list[Job] = []
        self.began = 0.0
        self.began_wall = 0.0
        self.rss = 0
        self.frozen_at: float | None = None  # since when (s since 1970) its first job is frozen
        self.thawed = False  # whether its first job was let go on since it froze
        self.lease_due: float | None = None
        self.flavour: object = None
        self.silent_s, self._looked_at = 0.0, time.monotonic()
        self.lent = False  # whether its first job waits, and counts for no slot
        self.writing = False  # whether the runner waits for room in the wire
        self._env: Mapping[str, str] | None = None
        self._relieved = False

    def give(self, job: Job, lease: float | None) -> None:
        """Give it a job, which begins once all before it are over; only the first is sent at once."""
        message: dict[str, Any] = {"do": "run", "job": job.to_wire(), "lease": lease}
        if self._env is not job.env and self._env != job.env:
            message["env"] = dict(job.env)
        self.wire.put(message)
        self._env = job.env
        self.jobs.append(job)
        self.flavour, self._relieved = flavour(job), False
        if len(self.jobs) == 1:
            self.wire.flush()
            self._first_begins()
            self.heard()

    @property
    def age(self) -> float:
        """How long (s) the present first job has been the first; 0 without one."""
        return time.monotonic() - self.began if self.jobs else 0.0

    def preference(self, wanted: object) -> tuple[bool, bool, bool, int, bool]:
        """Return its place among slots for a job of this flavour; the lowest takes the job."""
        return preference(len(self.jobs), self.age, self.flavour != wanted, self.lent)

    def heard(self) -> None:
        """Reset the silence: a message has just come, or none is due."""
        self.silent_s, self._looked_at = 0.0, time.monotonic()

    def look(self) -> float:
        """Return how long (s) it has been silent with a job. The caller has read all its messages before."""
        now = time.monotonic()
        if self.jobs:
            self.silent_s += min(now - self._looked_at, LOOK_S)
        self._looked_at = now
        return self.silent_s

    def relieve(self) -> bool:
        """Ask back, once for each first job, the jobs that wait behind it; return whether it asked."""
        if len(self.jobs) < 2 or self._relieved:
            return False
        self._relieved = True
        self.wire.send({"do": "relieve", "why": "the task before it takes long"})
        return True

    def lend(self, keys: Collection[str]) -> bool:
        """Record whether its first job is one of these, whose slots are lent. On a change tell the supervisor, ask
        back the jobs behind it, and return True."""
        lent = bool(self.jobs) and self.jobs[0].key in keys
        if lent == self.lent:
            return False
        self.lent = lent
        self.wire.send({"do": "lend", "key": self.jobs[0].key, "lent": lent})
        self.relieve()
        return True

    def freeze(self, at: float, signals: str) -> None:
        """Record that its first job is frozen since then (s since 1970). signals: why not by its control group."""
        self.frozen_at, self.thawed = at, False
        if signals:
            log.debug("%s is frozen by signals: %s", self.jobs[0].key, signals)

    def take(self, key: str) -> None:
        """Remove a job that is over."""
        if self.jobs[0].key == key:
            del self.jobs[0]
            self._first_begins()
        else:
            self.jobs = [job for job in self.jobs if job.key != key]

    def _first_begins(self) -> None:
        self.rss, self.began, self.began_wall, self._relieved = 0, time.monotonic(), time.time(), False
        self.frozen_at, self.thawed, self.lent = None, False, False

    def extend(self, until: float) -> None:
        """Send the lease, or keep only the latest while the wire is full."""
        self.lease_due = until
        self.flush()

    def flush(self) -> None:
        self.wire.flush()
        if self.lease_due is not None and not self.wire.unsent:
            self.wire.send({"do": "extend", "until": self.lease_due})
            self.lease_due = None

    def give_up(self, kind: Kind, message: str) -> list[Ending]:
        """Return endings for all jobs that it still has, since its supervisor reports no more."""
        now, duration, jobs = time.time(), time.monotonic() - self.began, self.jobs
        self.jobs = []
        return [
            Ending(job.key, kind, None, None, message, self.began_wall, now, duration, max_rss_bytes=self.rss)
            for job in jobs
        ]


def still(slots: Iterable[Slot], *, over: bool) -> dict[str, float]:
    """Return the first jobs that do not move, and how long (s) each may stay frozen. over: whether the lease is."""
    first = [(slot.frozen_at, job) for slot in slots for job in slot.jobs[:1]]
    return {job.key: job.freeze_s for at, job in first if at is not None or (over and job.lost_share == "freeze")}


def allowed(slots: Iterable[Slot], count: int) -> int:
    """Return how many supervisors there may be: `count`, and one more for each job whose slot is lent."""
    return count + sum(slot.lent for slot in slots)


def spare(slots: Collection[Slot], count: int) -> list[Slot]:
    """Return the idle supervisors that are too many, as they were started while slots were lent."""
    too_many = len(slots) - allowed(slots, count) if len(slots) > count else 0
    return [slot for slot in slots if not slot.jobs][:too_many] if too_many > 0 else []


def flavour(job: Job) -> object:
    """Return a job's flavour: jobs of one flavour profit from the same warm Python process."""
    return job.run.path if isinstance(job.run, Call) else None
