"""runner/supervisor: the small process that runs one slot's jobs, one at a time, and lets nothing outlive them.

Only `boot` imports it, which turns a process into one.

Law: it adopts every orphan below it (child subreaper) and runs one job at a time, so all processes below it belong to
that job, however they detached themselves. When its worker is gone, or it fails itself, it kills all of them and
ends. It never blocks on the worker, on a program's start or on a full pipe, because it keeps the time.
It may fork, kill, read /proc and write a job's local output file; it does not know the shared directory.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import math
import os
import select
import signal
import time
from contextlib import suppress

from spoold.runner import process_tree, running_job
from spoold.runner.child_process import Child, Refused, refused
from spoold.runner.freezer import Guard
from spoold.runner.running_job import Host, Launched, Launcher, Run
from spoold.runner.wire import Wire

TYPE_CHECKING = False


if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spoold.runner.freezer import Room


_SLOW_LOOK_S, _CLOSE_LOOK_S = 2.0, 0.5
_KILL_PATIENCE_S = 5.0


class Supervisor:
    """One slot: a wire to the worker, at most one run, and the helpers that outlive it."""

    def __init__(self, control: int, worker: int, room: Room, python: str) -> None:
        """python: the interpreter of calls; this process has another one, or the same without its packages."""
        self._control = Wire(control, control)
        self._run: Run | None = None
        self._waiting: list[dict[str, Any]] = []  # orders to run that came while another job ran
        self._beset = False  # a process cannot be killed, so no other job can run here
        self._lease = Lease(self._movers, self._control.send, room)
        self._env: dict[str, str] = {}
        self._told_env: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._staff = Staff(
            lambda spare: process_tree.end(self._below, self._reap, spare, _KILL_PATIENCE_S), room, python
        )
        self._size = process_tree.OwnSize()
        self._bell, ring = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(ring, False)
        # Interrupts poll() when a child ends; the handler itself has nothing to do.
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._worker = process_tree.watch_parent(worker)

    def serve(self) -> None:
        """Run jobs until the worker is gone; in any case no process is left below afterwards."""
        try:
            while not self._control.closed:
                self._turn()
        finally:
            process_tree.end(self._below, self._reap)

    def _turn(self) -> None:
        """Wait for the next event and handle it."""
        ready = self._wait()
        run = self._run
        if run is not None:
            # Before any message of the worker is read: a late extension does not revive a lapsed lease.
            self._check_lease(run)
        if self._worker is not None and self._worker in ready:
            self._control.closed = True
            return
        if self._bell in ready:
            os.read(self._bell, 4096)
            self._reap()
        if self._control.sink in ready:
            self._control.flush()
            for message in self._control.receive():
                self._obey(message)
        if (run := self._run) is None:
            return
        self._exchange(run, ready)
        self._check(run)
        if self._is_over(run):
            self._finish(run)
            self._go_on()

    def _wait(self) -> set[int]:
        """Block until a descriptor is ready or a look is due; without a job, for ever."""
        self._control.flush()  # an ending is sent once the next job has begun
        poll = select.poll()
        poll.register(self._bell, select.POLLIN)
        poll.register(self._control.source, select.POLLIN | (select.POLLOUT if self._control.unsent else 0))
        if self._worker is not None:
            poll.register(self._worker, select.POLLIN)
        run = self._run
        if run is None or run.child is None:
            return {descriptor for descriptor, _ in poll.poll()}
        for source in run.output.sources:
            poll.register(source, select.POLLIN)
        for wire in run.wires:
            poll.register(wire.source, select.POLLIN)
            if wire.unsent:
                poll.register(wire.sink, select.POLLOUT)
        pause = min(max(0.0, run.due - time.monotonic()), self._lease.pause_s(run))
        # Rounded up, so that it does not wake just before the time and spin.
        return {descriptor for descriptor, _ in poll.poll(int(pause * 1000) + 1)}

    def _obey(self, message: dict[str, Any]) -> None:
        """Carry out an order of the worker."""
        run = self._run
        match message["do"]:
            case "run" if not self._beset:
                self._lease.until = message["lease"]
                self._told_env = message.setdefault("env", self._told_env)
                self._waiting.append(message)
                self._go_on()
            case "extend":
                self._lease.until = message["until"]
            case "thaw" if run is not None and run.key == message["key"] and run.frozen_at is not None:
                self._lease.thaw(run, message["until"])
            case "lend" if run is not None and run.key == message["key"]:
                run.lent, run.sign_at = message["lent"], time.monotonic()
            case "stop" if run is not None and run.key == message["key"] and (run.status is None or run.kill_at):
                self._stop(run, "stopped", f"stopped: {message['why']}", message["grace"])
            case "stop":
                self._withdraw({message["key"]}, message["why"])
            case "relieve":
                self._withdraw({order["job"]["key"] for order in self._waiting}, message["why"])

    def _withdraw(self, keys: set[str], why: str, kind: str = "stopped") -> None:
        """End those of these jobs that have not begun."""
        for order in [order for order in self._waiting if order["job"]["key"] in keys]:
            self._waiting.remove(order)
            run = Run(order["job"])
            run.end(kind, f"stopped before it began: {why}", run.began)
            self._control.send({"ending": run.ending()})

    def _go_on(self) -> None:
        """Begin the next ordered job, if none is running."""
        while self._run is None and self._waiting:
            order = self._waiting.pop(0)
            if order["env"] is not self._env:
                self._env = order["env"]
                self._marks = {name: text for name, text in self._env.items() if name.startswith("SPOOL_")}
            self._begin(order["job"])

    def _begin(self, job: dict[str, Any]) -> None:
        """Start a job's main process, or report why it could not be started."""
        run = self._run = Run(job)
        self._check_lease(run)
        if run.kill_at is not None:
            self._finish(run)
            return
        run.prepare()
        try:
            self._staff.start(run, self._env, self._marks)
            assert run.child is not None
            run.output.listen(run.child.output, run.child.errors)
        except (Refused, OSError) as problem:
            run.refuse(problem if isinstance(problem, Refused) else refused("cannot start a process", problem))
            self._finish(run)

    def _exchange(self, run: Run, ready: set[int]) -> None:
        """Move output and, for a call, request and answer."""
        if run.child is None:
            return
        if not ready.isdisjoint(run.output.sources):
            run.output.pump()
        for wire in run.wires:
            if wire.unsent:
                wire.flush()
            if wire.source in ready:
                for answer in wire.receive():
                    run.hear(answer)

    def _check_lease(self, run: Run) -> None:
        if self._lease.over:
            # A job that has not begun under one lease does not begin under the next: its claim may be gone by then.
            self._withdraw({order["job"]["key"] for order in self._waiting}, "the worker's lease ran out", "fenced")
            self._lease.strike(run)

    def _check(self, run: Run) -> None:
        """Apply the timeout, and at intervals look at memory and signs of life."""
        now = time.monotonic()
        if run.frozen_at is not None:
            if self._lease.mind(run, now):
                self._tell(run, now)
            return
        if run.deadline is not None and now >= run.deadline:
            self._stop(run, "timeout", f"timed out after {run.job['timeout_s']:g} s", run.job["grace_s"])
            run.deadline = None
        if now >= run.next_look:
            self._look(run, now)

    def _look(self, run: Run, now: float) -> None:
        """Sum up the tree's memory and look for progress, more often when a limit depends on it."""
        stall = run.job["stall_s"]
        slowest = _SLOW_LOOK_S if run.weight.limit is None else _CLOSE_LOOK_S
        if stall is not None:
            slowest = min(slowest, max(stall / 4, 0.02))
        run.look_pause = min(run.look_pause * 2, slowest)
        run.next_look = now + run.look_pause
        self._staff.wake(run)
        found = self._part_of(run)
        if run.weight.look(sum(seen.rss for seen in found)) and run.may_be_weighed(now):
            self._staff.weigh(run, [seen.pid for seen in found])
        if stall is not None:
            sign = run.sign_of_life()
            if sign != run.sign or run.lent:
                run.sign, run.sign_at = sign, now
            elif now - run.sign_at >= stall:
                self._stop(run, "stalled", f"no output and no progress for {stall:g} s", run.job["grace_s"])
        self._tell(run, now)

    def _tell(self, run: Run, now: float) -> None:
        # Dropped when the worker does not read: a later report replaces it, and it must not fill our memory.
        if now - run.told_at >= _SLOW_LOOK_S and not self._control.unsent:
            run.told_at = now
            self._control.send({"key": run.key, "rss": run.weight.held})

    def _stop(self, run: Run, kind: str, message: str, grace: float) -> None:
        """Ask the whole tree to end, and set the time after which it is killed. A frozen job is killed at once."""
        grace = 0.0 if run.frozen_at is not None else grace
        if run.end(kind, message, time.monotonic() + grace) and grace > 0:
            found = [seen for seen in self._part_of(run) if seen.alive]
            process_tree.send(found, signal.SIGTERM)
            # A stopped process takes SIGTERM only when it continues.
            process_tree.send(found, signal.SIGCONT)
            # The processes may be the last of an earlier job, and this one's program may not have begun.
            self._staff.stop(run, [seen.pid for seen in found])

    def _is_over(self, run: Run) -> bool:
        """Return whether the job has ended, or its grace has."""
        if run.child is None or run.answer is not None:
            return True
        if run.kill_at is None:
            return run.status is not None
        if time.monotonic() >= run.kill_at:
            return True
        # During a stop, the processes that a dead main process leaves have the grace, too.
        return run.status is not None and not any(seen.alive for seen in self._part_of(run))

    def _finish(self, run: Run) -> None:
        """Kill all processes left, take the last output, and report the ending."""
        frozen = run.frozen_at is not None
        if frozen:
            run.go_on(time.monotonic())
        self._staff.last_word(run)
        if not self._staff.alone(run):
            run.survivors = process_tree.end(self._below, self._reap, self._staff.kept(run), _KILL_PATIENCE_S)
        if frozen:
            self._lease.melt(run)
        if run.child is not None:
            run.output.drain()
        run.close()
        self._run = None
        ending = run.ending()
        self._staff.finish(run)
        if run.survivors:
            self._beset = True
            self._waiting.clear()  # the worker gives them to other slots
        self._control.put({"ending": ending})

    def _movers(self, run: Run) -> list[process_tree.Seen]:
        """Return the processes of a job, and the one that may be about to begin it."""
        return self._part_of(run, frozenset({run.helper.pid} if run.helper is not None else ()))

    def _part_of(self, run: Run, more: frozenset[int] = frozenset()) -> list[process_tree.Seen]:
        """Return the processes of a job, and those in `more`."""
        spare = self._staff.apart(run) - more
        return [seen for seen in self._below() if seen.pid not in spare]

    def _below(self) -> list[process_tree.Seen]:
        return process_tree.below(os.getpid())

    def _reap(self) -> bool:
        """Collect dead children; True if no child is left at all, and so, for a subreaper, no descendant."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if self._lease.guarded_by(pid):
                continue
            run = self._run
            if run is not None:
                run.cpu_s += self._staff.more(run, pid, used.ru_utime + used.ru_stime)
            if run is not None and run.child is not None and run.child.pid == pid:
                run.status = status
                run.weight.peak = max(run.weight.peak, self._size.more(used.ru_maxrss << 10))
            self._staff.died(pid, run)


# Until when a slot's job may move, and its freezing after that.


LOOK_S = 0.5  # poll() does not count the time in suspend, which CLOCK_BOOTTIME does
# The most time for one try to stop a whole tree, and for all tries; then the pause between two looks.
_STILL_PATIENCE_S, _FREEZING_S, _STILL_LOOK_S = 0.5, 1.5, 2.0
# How long the kernel may take to freeze a control group. One process that waits in the kernel, such as for a hung
# share, delays the kernel's report, and then signals do it.
_ROOM_PATIENCE_S = 0.25
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Lease:
    """The lease of one slot; `until` in seconds of CLOCK_BOOTTIME, None for none."""

    def __init__(
        self,
        find: Callable[[Run], list[process_tree.Seen]],
        send: Callable[[dict[str, Any]], None],
        room: Room,
        guard: Callable[[Callable[[], None]], Guard] = Guard,
    ) -> None:
        """find: returns the processes of a job, with the one that may be about to begin it. room: their group."""
        self._find = find
        self._send = send
        self._room = room
        self._signals = ""  # why the frozen job was stopped by signals alone
        self._post = guard
        self._guard: Guard | None = None
        self._guards: set[int] = set()
        self.until: float | None = None

    @property
    def over(self) -> bool:
        """Whether the lease has run out."""
        return self.until is not None and time.clock_gettime(_BOOTTIME) >= self.until

    def pause_s(self, run: Run) -> float:
        """Return how long (s) the supervisor may wait before it looks at the lease again."""
        if self.until is None or run.frozen_at is not None or run.job["lost_share"] == "continue":
            return math.inf
        return min(LOOK_S, max(0.0, self.until - time.clock_gettime(_BOOTTIME)))

    def strike(self, run: Run) -> None:
        """Freeze or end the job: its lease is over, so another worker may get the task."""
        policy = run.job["lost_share"]
        if run.child is None or policy == "stop" or (policy == "freeze" and run.kill_at is not None):
            run.end("fenced", "the worker's lease ran out", time.monotonic())
        elif policy == "freeze" and run.frozen_at is None:
            run.frozen_at, wall = time.monotonic(), time.time()
            self._still(run)
            self._post_guard(run)
            self._send({"key": run.key, "frozen": wall, "signals": self._signals})

    def mind(self, run: Run, now: float) -> bool:
        """Keep a frozen job still, and end it when its time is over; return whether it was looked at."""
        assert run.frozen_at is not None
        if now - run.frozen_at >= run.job["freeze_s"]:
            run.end("fenced", f"the worker's lease was over for {run.job['freeze_s']:g} s", now)
        elif now >= run.next_look:
            if not self._still(run) and now - run.frozen_at >= _FREEZING_S:
                # We may not stop it, or it forks faster than we do: others may start the task at any moment.
                run.end("fenced", "the worker's lease ran out, and its processes could not be frozen", now)
            return True
        return False

    def thaw(self, run: Run, until: float) -> None:
        """Let a frozen job go on until then, if that is not past: the worker has seen that it holds the claim."""
        if time.clock_gettime(_BOOTTIME) >= until:
            self._send({"key": run.key, "frozen": time.time(), "signals": self._signals})
            return
        self.until = until if self.until is None else max(self.until, until)
        run.go_on(time.monotonic())
        self.melt(run)

    def melt(self, run: Run) -> None:
        """Continue all stopped processes, and dismiss the guard."""
        self._room.thaw()
        run.ice.melt()
        self._signals = ""
        if self._guard is not None:
            self._guard.dismiss()
            self._guard = None

    def guarded_by(self, pid: int) -> bool:
        """Return whether this dead process was a guard and no part of a job."""
        if pid not in self._guards:
            return False
        self._guards.remove(pid)
        return True

    def _post_guard(self, run: Run) -> None:
        with suppress(OSError):  # without a guard, only a successor's sweep is left
            self._guard = self._post(lambda: self._end(run))
            self._guards.add(self._guard.pid)

    def _end(self, run: Run) -> None:
        run.ice.end()
        self._room.clear()

    def _still(self, run: Run) -> bool:
        """Stop all processes that move, and plan the next look; return whether all are stopped."""
        cold = self._freeze(run)
        still = run.ice.stop(lambda: self._moving(run, cold), _STILL_PATIENCE_S)
        run.next_look = time.monotonic() + (_STILL_LOOK_S if still else 0.0)
        return still

    def _freeze(self, run: Run) -> bool:
        """Freeze the control group; False if its processes must be stopped by signals."""
        if self._signals:
            return False
        if self._room.freeze(_ROOM_PATIENCE_S):
            return True
        self._signals = self._room.trouble or "the kernel could not freeze all of the control group in time"
        # Frozen processes get SIGSTOP before the thaw, and take it before they move.
        run.ice.hold(self._moving(run, cold=False))
        self._room.thaw()
        return False

    def _moving(self, run: Run, cold: bool) -> list[process_tree.Seen]:
        """Return the processes that the control group has not frozen: if it is cold, only those that left it."""
        found = [seen for seen in self._find(run) if seen.pid not in self._guards]
        return [seen for seen in found if not self._room.holds(seen.pid)] if cold else found


# The processes that a supervisor keeps between jobs: one calls Python, one starts programs.


_LAST_WORD_MS = 500


class Staff:
    """The helpers of a supervisor: at most one of each kind."""

    def __init__(self, end: Callable[[frozenset[int]], object], room: Room, python: str) -> None:
        """end: kills all processes below, except these pids. room: the group of the helpers and their children.
        python: the interpreter of calls."""
        self._room = room
        self._python = python
        self._end = end
        self._children = process_tree.watch_children()
        self._host: Host | None = None
        self._launcher: Launcher | None = None
        self._launches = running_job.launcher_usable()
        self._dead: set[int] = set()

    def start(self, run: Run, env: dict[str, str], marks: dict[str, str]) -> None:
        """Start a job's main process, or give the call to a warm one. Errors: Refused, OSError."""
        job = run.job
        self.wake()
        if "call" in job:
            run.helper = self._host_for(env, job)
            run.child = run.helper.child
            request = {name: job[name] for name in ("call", "cwd", "stdin", "path", "within", "allow")}
            run.helper.wire.send({**request, "own": {**marks, **job["own"]}})
            return
        environment = {**env, **job["own"]}
        if self._launches:
            self._launcher = run.helper = self._launcher or Launcher(self._room)
            run.child = run.helper.launch(job["argv"], environment, job["cwd"], job["stdin"], job["within"])
        else:
            cwd, within = job["cwd"], job["within"]
            run.child = Child(job["argv"], environment, cwd, job["stdin"], within=within, room=self._room)

    def wake(self, run: Run | None = None) -> None:
        """Continue helpers that were stopped, except the host that runs this job: a job may stop itself."""
        for helper in (self._host, self._launcher):
            if helper is not None and (run is None or helper is not run.helper or helper is self._launcher):
                with suppress(OSError):
                    os.kill(helper.pid, signal.SIGCONT)

    def _host_for(self, env: dict[str, str], job: dict[str, Any]) -> Host:
        """Return a warm process that fits, or a new one."""
        if self._host is not None and not self._host.serves(env, job["path"]):
            # It is idle, so nothing else below is killed with it.
            self._end(frozenset() if self._launcher is None else frozenset({self._launcher.pid}))
            if self._host is not None:  # it could not be killed
                self._drop(self._host)
        if self._host is None:
            self._host = Host(self._python, env, job["own"], job["path"], self._room)
        return self._host

    def stop(self, run: Run, told: list[int]) -> None:
        """Ask a program to end, unless it was asked already."""
        if isinstance(run.helper, Launcher) and run.status is None:
            run.helper.stop(told)

    def weigh(self, run: Run, pids: list[int]) -> None:
        """Let the launcher, which has no deadlines, weigh these processes, unless it is doing so."""
        if run.weigher is not None and run.weigher is self._launcher:
            return
        if not self._launches:
            run.hear({"weighed": process_tree.share_of(pids), "key": run.key, "took_s": 0.0})
            return
        self._launcher = run.weigher = self._launcher or Launcher(self._room)
        run.weigher.weigh(run.key, pids)

    def last_word(self, run: Run) -> None:
        """Kill a program before its launcher, which can then report how it ended."""
        if isinstance(run.helper, Launcher) and run.status is None:
            self._end(self.apart(run))
            poll = select.poll()
            poll.register(run.helper.wire.source, select.POLLIN)
            told = False
            while not told and not run.helper.wire.closed and poll.poll(_LAST_WORD_MS):
                for answer in run.helper.wire.receive():
                    told = told or "status" in answer
                    run.hear(answer)

    def apart(self, run: Run) -> frozenset[int]:
        """Return the pids that have no part in the job."""
        pids = {self._launcher.pid} if self._launcher is not None else set()
        if self._host is not None and run.helper is not self._host:
            pids.add(self._host.child.pid)
        return frozenset(pids)

    def kept(self, run: Run) -> frozenset[int]:
        """Return the pids that may outlive the job, without a helper that gave no answer: it still runs the job."""
        pids = self.apart(run) - self._dead
        if isinstance(run.helper, Launcher) and run.status is None:
            return pids - {run.helper.pid}
        if isinstance(run.helper, Host) and run.kill_at is None and run.answer is not None and run.answer["clean"]:
            return pids | {run.helper.pid}
        return pids

    def alone(self, run: Run) -> bool:
        """Return whether nothing of a job that is over can be left below.

        A helper without children, with only other helpers beside it, leaves nothing to look for: this process would
        have adopted any lost process of it before the helper answered.
        """
        kept = self.kept(run)
        if run.helper is None or run.helper.pid not in kept:
            return False
        childless = run.answer is None or run.answer["alone"]
        return childless and process_tree.only(self._children, kept)

    def finish(self, run: Run) -> None:
        """Close the pipes of a job that is over; all helpers that are not kept are dead."""
        if run.helper is not None and run.helper.pid not in self.kept(run):
            self._drop(run.helper)
        if isinstance(run.child, Child | Launched) and not isinstance(run.helper, Host):
            run.child.close()

    def more(self, run: Run, pid: int, cpu_s: float) -> float:
        """Return the CPU time (s) of a dead process that the job used and that is not counted yet. cpu_s: all."""
        if self._host is not None and self._host.pid == pid:
            return self._host.more(cpu_s) if run.helper is self._host else 0.0
        return 0.0 if self._launcher is not None and self._launcher.pid == pid else cpu_s

    def died(self, pid: int, run: Run | None) -> None:
        """Handle the death of a process, which may have been a helper."""
        for helper in (self._host, self._launcher):
            if helper is None or helper.pid != pid:
                continue
            if run is not None and run.weigher is helper:
                run.weigher = None  # another one is asked at the next look
            if run is None or run.helper is not helper:
                self._drop(helper)
                continue
            self._dead.add(pid)  # its last messages are still to be read
            if isinstance(helper, Launcher) and run.status is None:
                run.end("lost", "the process that started it ended unexpectedly", time.monotonic())

    def _drop(self, helper: Host | Launcher) -> None:
        if helper is self._host:
            self._host = None
        elif helper is self._launcher:
            self._launcher = None
        else:
            return
        self._dead.discard(helper.pid)
        helper.close()
