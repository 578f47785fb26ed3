"""runner/job_runner: the worker's end of its slots: it starts jobs, reads their endings, and keeps their lease.

A slot is a supervisor process, the wire to it, and its jobs.

Law: no call blocks on a supervisor, and a supervisor that vanished takes its whole tree with it. Everything is used
from one thread except `wake`. This file may start supervisors, write to their wires, signal them and, after a loss,
the processes that they left; everything else happens on the other side of the wire.

Touches: files, processes, the clock, the network.
"""

from __future__ import annotations

import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from spoold.rules.workers.slots import has_room, preference
from spoold.runner import process_tree
from spoold.runner.child_process import loader
from spoold.runner.freezer import Room, home
from spoold.runner.job import Call, Ending, Job, Kind, NoSlot
from spoold.runner.wire import Wire
from spoold.system.wakeup import Bell, readable

# The worker's end of one slot: a supervisor process, the wire to it, and its jobs.


log = logging.getLogger("spoold")

# A supervisor's program comes through its wire and not as arguments: a `pkill -f spoold` that kills the worker must
# not also kill the supervisors, which then end the worker's tasks.
_BOOT_BYTES = 8192
_READ_BOOT = f"import os; exec(os.read(0, {_BOOT_BYTES}))"
# Appended, not inserted: the supervisor needs the standard library and us, never another package beside us.
_BOOT = (
    "import sys; sys.path.append({root!r}); from spoold.runner.supervisor_boot import main; "
    "main({worker}, {where!r}, {calls!r})"
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


NOTHING: Mapping[str, str] = {}
_CLOSE_PATIENCE_S = 5.0
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_DYING_LOOK_S = 0.01


def become_subreaper() -> bool:
    """Let this process adopt the processes of a vanished supervisor, so that it can kill them. For the daemon only:
    in a program that embeds a worker it would change the program's own children. False if impossible."""
    return process_tree.become_subreaper()


class Runner:
    """Runs up to `slots` jobs at once, each below its own supervisor, which is started when first needed. A few more
    jobs may wait in each slot for the one before them.
    """

    def __init__(
        self,
        slots: int,
        *,
        python: str = sys.executable,
        calls: str = sys.executable,
        silence_s: float = SILENCE_S,
        environ: Mapping[str, str] = NOTHING,
        where: str | None = None,
    ) -> None:
        """python: the interpreter of supervisors, without its packages; calls: that of Python functions, with
        its packages.
        environ: the worker's variables for supervisors and their processes.
        silence_s: how long a supervisor with a job may be silent before it is killed with all it runs.
        where: the control group below which slots get their own; None for this process's, '' for none."""
        self._slots = slots
        self._silence_s = silence_s
        self._python, self._calls = python, calls
        self._environ = environ
        self._where = home() if where is None else where
        self._live: list[Slot] = []
        self._dying: list[Slot] = []
        self._endings: list[Ending] = []
        self._keys: set[str] = set()  # of the jobs that were given to slots, and are not over
        self._lease: float | None = None
        self._selector = selectors.DefaultSelector()
        self._bell = Bell()
        self._selector.register(self._bell, selectors.EVENT_READ)

    def fileno(self) -> int:
        """Return a descriptor that is readable when `poll` has work, for another event loop."""
        return self._selector.fileno()

    def prestart(self, count: int) -> None:
        """Start supervisors ahead of their first job, so that up to `count` are there. Errors: OSError."""
        while len(self._live) < min(count, allowed(self._live, self._slots)):
            slot = Slot(self._python, self._calls, self._environ, self._where)
            self._live.append(slot)
            self._selector.register(slot.wire.source, selectors.EVENT_READ, slot)

    def start(self, job: Job) -> None:
        """Give a job to the slot with the least work; see RunnerPort. Errors: OSError if no supervisor can start."""
        if job.key in self._keys:
            raise ValueError(f"{job.key} is already running")
        if all(slot.jobs for slot in self._live):
            self.prestart(len(self._live) + 1)
        wanted = flavour(job)
        slot = min(self._live, key=lambda slot: slot.preference(wanted))
        if slot.lent or not has_room(len(slot.jobs)):
            raise NoSlot("no slot is free")
        if not slot.jobs and readable(0, slot.wire.source):
            # An idle supervisor is silent, so this one has died: take note before it gets a job.
            self._hear(0)
            self.start(job)
            return
        slot.give(job, self._lease)
        self._keys.add(job.key)
        if len(slot.jobs) == 1:
            self._listen(slot)

    def poll(self) -> list[Ending]:
        """Return the jobs that ended since the last call, without blocking."""
        self._hear(0)
        for slot in [slot for slot in self._live if slot.look() >= self._silence_s]:
            # Stopped, by a task for example: it would keep no time for its job, and hold its slot for ever.
            self._bury(slot, kill=True)
        endings, self._endings = self._endings, []
        return endings

    def wait(self, timeout_s: float, *others: int) -> None:
        """Block until there is an ending to poll, `wake` was called, or the time is over.

        others: descriptors that also end the wait once they are readable; negative ones are skipped.
        """
        until = time.monotonic() + timeout_s
        while not self._endings:
            left = until - time.monotonic()
            pause = max(0.0, min(left, _DYING_LOOK_S) if self._dying else left)
            rung = readable(pause, self.fileno(), *others) - {self.fileno()}
            if self._hear(0.0) or rung or left <= 0:
                return

    def wake(self) -> None:
        """End the present or the next `wait`, from another thread or a signal handler."""
        self._bell.ring()

    def stop(self, key: str, why: str, grace_s: float) -> None:
        """End a job: SIGTERM, after the grace SIGKILL. An unknown key is no error: the job has just ended."""
        for slot in self._live:
            if any(job.key == key for job in slot.jobs):
                slot.wire.send({"do": "stop", "key": key, "why": why, "grace": grace_s})
                self._listen(slot)

    def extend(self, until_boottime_s: float) -> None:
        """Let jobs run until this CLOCK_BOOTTIME. Before the first call there is no lease, and jobs run on."""
        self._lease = until_boottime_s
        for slot in self._live:
            if slot.jobs:
                slot.extend(until_boottime_s)
                self._listen(slot)

    def frozen(self) -> dict[str, float]:
        """Return the frozen jobs, with the start of the freeze (s since 1970)."""
        return {slot.jobs[0].key: slot.frozen_at for slot in self._live if slot.jobs and slot.frozen_at is not None}

    def overdue_s(self) -> float | None:
        """Return for how long (s) the lease has been over, negative before; None without one. From any thread."""
        return None if self._lease is None else time.clock_gettime(_BOOTTIME) - self._lease

    def still(self) -> dict[str, float]:
        """Return the jobs that do not move, and how long (s) each may stay frozen: those that supervisors reported as
        frozen, and those that they freeze at the end of the lease. From any thread, while another may hang."""
        return still(list(self._live), over=(self.overdue_s() or -1.0) > 0)

    def thawed(self) -> set[str]:
        """Return the jobs that were let go on since they last froze. From any thread."""
        return {slot.jobs[0].key for slot in list(self._live) if slot.jobs and slot.thawed}

    def thaw(self, key: str, until_boottime_s: float) -> None:
        """Let a frozen job go on until this CLOCK_BOOTTIME; see RunnerPort."""
        for slot in self._live:
            if slot.frozen_at is not None and slot.jobs[0].key == key:
                slot.frozen_at, slot.thawed = None, True
                slot.wire.send({"do": "thaw", "key": key, "until": until_boottime_s})
                self._listen(slot)

    def running(self) -> set[str]:
        """Return the keys of the jobs that were started and whose ending was not polled yet."""
        return self._keys | {ending.key for ending in self._endings}

    def waiting(self) -> set[str]:
        """Return the keys of the jobs that wait for the one before them."""
        return {job.key for slot in self._live for job in slot.jobs[1:]}

    def engaged(self, since_s: float) -> int:
        """Return how many slots have had the same job for at least so long (s)."""
        return sum(slot.age >= since_s for slot in self._live if not slot.lent)

    def relieve(self, after_s: float) -> None:
        """End jobs that wait for one that has run for at least so long (s), unless they begin now."""
        for slot in self._live:
            if slot.age >= after_s and slot.relieve():
                self._listen(slot)

    def lend(self, keys: Collection[str]) -> None:
        """Let exactly these running jobs count for no slot; see RunnerPort. Jobs that wait behind one go back."""
        for slot in self._live:
            if slot.lend(keys):
                self._listen(slot)
        self._retire()

    def _retire(self) -> None:
        """End idle supervisors that were started while slots were lent."""
        for slot in spare(self._live, self._slots):
            self._bury(slot, kill=False)

    def usage(self) -> dict[str, int]:
        """Return resident bytes of running jobs, as last reported (about every 2 s)."""
        return {slot.jobs[0].key: slot.rss for slot in self._live if slot.jobs}

    def close(self, grace_s: float) -> list[Ending]:
        """Stop all jobs with this grace, end the supervisors, wait until nothing is left; return the last endings."""
        for slot in self._live:
            for job in slot.jobs:
                self.stop(job.key, "the worker is leaving", grace_s)
        self._until(lambda: not any(slot.jobs for slot in self._live), grace_s + _CLOSE_PATIENCE_S)
        # With their wire closed, the supervisors kill their processes and end.
        for slot in list(self._live):
            self._bury(slot, kill=False)
        self._until(lambda: not self._dying, _CLOSE_PATIENCE_S)
        for slot in self._dying:
            slot.process.kill()
        self._until(lambda: not self._dying, _CLOSE_PATIENCE_S)
        self._selector.close()
        self._bell.close()
        endings, self._endings = self._endings, []
        return endings

    def _until(self, done: Callable[[], bool], patience_s: float) -> None:
        until = time.monotonic() + patience_s
        while not done() and time.monotonic() < until:
            self._hear(_DYING_LOOK_S if self._dying else until - time.monotonic())

    def _listen(self, slot: Slot) -> None:
        """Let the selector wait for room to write exactly while the wire has unsent data."""
        if slot.wire.unsent != slot.writing:
            slot.writing = slot.wire.unsent
            events = selectors.EVENT_READ | (selectors.EVENT_WRITE if slot.writing else 0)
            self._selector.modify(slot.wire.source, events, slot)

    def _hear(self, timeout_s: float) -> bool:
        """Handle messages of supervisors within the time; return whether `wake` was called."""
        woken = False
        for slot in self._live:
            if slot.wire.unsent and not slot.writing:  # all at once: each piece would wake the supervisor
                slot.wire.flush()
                self._listen(slot)
        for key, _ in self._selector.select(timeout_s):
            if key.data is None:
                self._bell.hush()
                woken = True
            else:
                self._attend(key.data)
        self._retire()
        for slot in [slot for slot in self._dying if slot.process.poll() is not None]:
            self._dying.remove(slot)
            self._mourn(slot)
        return woken

    def _attend(self, slot: Slot) -> None:
        slot.flush()
        self._listen(slot)
        try:
            messages = slot.wire.receive()
        except (ValueError, TypeError, EOFError):
            self._bury(slot, kill=True)  # no message of a supervisor: another process has its wire
            return
        if messages:
            slot.heard()
        for message in messages:
            if "rss" in message:
                slot.rss = message["rss"]
                continue
            if "frozen" in message:
                if slot.jobs and slot.jobs[0].key == message["key"]:
                    slot.freeze(message["frozen"], message["signals"])
                continue
            ending = Ending.from_wire(message["ending"])
            self._endings.append(ending)
            slot.take(ending.key)
            self._keys.discard(ending.key)
            if ending.survivors:
                # This supervisor begins no other job; left alone, it kills until they are gone.
                why = "stopped before it began: the task before it left processes that cannot be killed"
                self._give_up(slot, "stopped", why)
                self._bury(slot, kill=False)
                return
        if slot.wire.closed:
            self._bury(slot, kill=True)

    def _bury(self, slot: Slot, kill: bool) -> None:
        """Give up a supervisor; `_hear` waits for its death, since its orphans come to us only then."""
        self._selector.unregister(slot.wire.source)
        slot.wire.close()
        self._live.remove(slot)
        self._dying.append(slot)
        if kill:
            slot.process.kill()

    def _mourn(self, slot: Slot) -> None:
        """Kill the processes that a dead supervisor left, and report its jobs as lost."""
        left = end_orphans(slot, [other.process.pid for other in (*self._live, *self._dying)])
        message = f"its supervisor ended unexpectedly (status {slot.process.returncode})"
        if slot.silent_s >= self._silence_s:
            message = f"its supervisor fell silent for {slot.silent_s:.0f} s (stopped by a task?) and was killed"
        if left:
            message += f"; could not be killed: {', '.join(map(str, left))}"
        # It is unknown which of them had begun.
        self._give_up(slot, "lost", message)

    def _give_up(self, slot: Slot, kind: Kind, message: str) -> None:
        given_up = slot.give_up(kind, message)
        self._endings += given_up
        self._keys.difference_update(ending.key for ending in given_up)


# Kills the processes that a dead supervisor left.


_MARKS = {"SPOOL_ROOT", "SPOOL_WORKER_ID", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"}
_PATIENCE_S = 2.0


def end_orphans(slot: Slot, known: Iterable[int]) -> list[int]:
    """Kill them; return the pids that survived. known: supervisors that live, or that are handled later."""
    left: list[int] = []
    if process_tree.is_subreaper():
        others = list(known)

        def find() -> list[process_tree.Seen]:
            return process_tree.orphans(others)

        left = process_tree.end(find, lambda: _reap(find()), patience_s=_PATIENCE_S)
    else:
        # Its orphans went to init; those that kept their environment can still be recognised by it.
        for job in slot.jobs:
            if (env := {**job.env, **job.own}).keys() >= _MARKS:
                sweep({name: env[name] for name in _MARKS})
    slot.room.clear()
    return left


def _reap(found: list[process_tree.Seen]) -> bool:
    """Collect dead orphans by pid, since other code waits for other children."""
    for seen in found:
        if not seen.alive and seen.parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(seen.pid, os.WNOHANG)
    return False


# The last resort: kills the processes that a dead predecessor left on this host.
#
# Only processes that carry every given environment variable with exactly the given value, and their descendants, are
# touched; never this process or its ancestors. Supervisors and the service manager normally leave nothing to find.


# For all looks; between two looks, at most, and between two questions whether the killed are gone.
_SWEEP_PATIENCE_S, _LOOK_S, _PAUSE_S = 5.0, 0.2, 0.002


def sweep(marker: Mapping[str, str]) -> int:
    """Kill all processes that were started with this environment, and their descendants; return their number.

    Goes on until a look finds nothing, for at most 5 s. An empty marker would mean every process, so it is a
    ValueError. Skips processes that we may not see or kill.
    """
    if not marker:
        raise ValueError("a sweep needs something to recognise processes by")
    wanted = {os.fsencode(f"{name}={text}") for name, text in marker.items()}
    killed: set[tuple[int, int]] = set()
    until = time.monotonic() + _SWEEP_PATIENCE_S
    while found := _marked(wanted):
        for seen in filter(_lives, found):
            with suppress(OSError):
                os.kill(seen.pid, signal.SIGKILL)
                killed.add((seen.pid, seen.started))
        again = time.monotonic() + _LOOK_S
        while any(map(_lives, found)) and time.monotonic() < again:
            time.sleep(_PAUSE_S)
        if time.monotonic() > until:
            break
    return len(killed)


def _marked(wanted: set[bytes]) -> list[process_tree.Seen]:
    """Return the living processes that carry the marks, and their descendants."""
    kin = _kin()
    found: dict[int, process_tree.Seen] = {}
    for pid in _everybody() - kin:
        seen = process_tree.look(pid) if wanted <= _environment(pid) else None
        if seen is not None and seen.alive:
            found |= {one.pid: one for one in (seen, *process_tree.below(pid))}
    return [seen for pid, seen in found.items() if pid not in kin and seen.alive]


def _everybody() -> set[int]:
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:
        return set()


def _kin() -> set[int]:
    """Return this process and all above it."""
    kin, above = {os.getpid()}, os.getppid()
    while above > 0 and above not in kin:
        kin.add(above)
        seen = process_tree.look(above)
        above = seen.parent if seen is not None else 0
    return kin


def _environment(pid: int) -> set[bytes]:
    """Return the variables that a process was started with; none if they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return set(file.readall().split(b"\0"))
    except OSError:
        return set()


def _lives(seen: process_tree.Seen) -> bool:
    now = process_tree.look(seen.pid)
    return now is not None and now.alive and now.started == seen.started
