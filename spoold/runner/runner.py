"""runner/runner: the worker's end of its slots: it starts jobs, reads their endings, and keeps their lease.

Law: no call blocks on a supervisor, and a supervisor that vanished takes its whole tree with it. Everything is
used from one thread except `wake`. This room may start supervisors, signal them and, after a loss, the processes
that they left; everything else happens on the other side of the wire.

Touches: processes, the clock.
"""

from __future__ import annotations

import os
import selectors
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress

from spoold.rules.workers.prefetch import has_room
from spoold.runner import tree
from spoold.runner.freezer import home
from spoold.runner.job import Ending, Job, Kind, NoSlot
from spoold.runner.slot import SILENCE_S, Slot, allowed, flavour, spare, still
from spoold.runner.sweep import sweep
from spoold.system.bell import Bell, readable

NOTHING: Mapping[str, str] = {}
_CLOSE_PATIENCE_S = 5.0
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_DYING_LOOK_S = 0.01


def become_subreaper() -> bool:
    """Let this process adopt the processes of a vanished supervisor, so that it can kill them. For the daemon only:
    in a program that embeds a worker it would change the program's own children. False if impossible."""
    return tree.become_subreaper()


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


# runner/mourning: kills the processes that a dead supervisor left.


_MARKS = {"SPOOL_ROOT", "SPOOL_WORKER_ID", "SPOOL_TASK_ID", "SPOOL_ATTEMPT"}
_PATIENCE_S = 2.0


def end_orphans(slot: Slot, known: Iterable[int]) -> list[int]:
    """Kill them; return the pids that survived. known: supervisors that live, or that are handled later."""
    left: list[int] = []
    if tree.is_subreaper():
        others = list(known)

        def find() -> list[tree.Seen]:
            return tree.orphans(others)

        left = tree.end(find, lambda: _reap(find()), patience_s=_PATIENCE_S)
    else:
        # Its orphans went to init; those that kept their environment can still be recognised by it.
        for job in slot.jobs:
            if (env := {**job.env, **job.own}).keys() >= _MARKS:
                sweep({name: env[name] for name in _MARKS})
    slot.room.clear()
    return left


def _reap(found: list[tree.Seen]) -> bool:
    """Collect dead orphans by pid, since other code waits for other children."""
    for seen in found:
        if not seen.alive and seen.parent == os.getpid():
            with suppress(ChildProcessError):
                os.waitpid(seen.pid, os.WNOHANG)
    return False
