"""runner/supervisor: the small process that runs one slot's jobs, one at a time, and lets nothing outlive them.

Law: it adopts every orphan below it (child subreaper) and runs one job at a time, so all processes below it belong to
that job, however they detached themselves. When its worker is gone, or it fails itself, it kills all of them and
ends. It never blocks on the worker, on a program's start or on a full pipe, because it keeps the time.
It may fork, kill, read /proc and write a job's local output file; it does not know the shared directory.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import os
import select
import signal
import time

from spoold.runner import tree
from spoold.runner.lease import Lease
from spoold.runner.refusal import Refused, refused
from spoold.runner.run import Run
from spoold.runner.staff import Staff
from spoold.runner.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
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
        self._staff = Staff(lambda spare: tree.end(self._below, self._reap, spare, _KILL_PATIENCE_S), room, python)
        self._size = tree.OwnSize()
        self._bell, ring = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(ring, False)
        # Interrupts poll() when a child ends; the handler itself has nothing to do.
        signal.set_wakeup_fd(ring, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)
        self._worker = tree.watch_parent(worker)

    def serve(self) -> None:
        """Run jobs until the worker is gone; in any case no process is left below afterwards."""
        try:
            while not self._control.closed:
                self._turn()
        finally:
            tree.end(self._below, self._reap)

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
            tree.send(found, signal.SIGTERM)
            # A stopped process takes SIGTERM only when it continues.
            tree.send(found, signal.SIGCONT)
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
            run.survivors = tree.end(self._below, self._reap, self._staff.kept(run), _KILL_PATIENCE_S)
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

    def _movers(self, run: Run) -> list[tree.Seen]:
        """Return the processes of a job, and the one that may be about to begin it."""
        return self._part_of(run, frozenset({run.helper.pid} if run.helper is not None else ()))

    def _part_of(self, run: Run, more: frozenset[int] = frozenset()) -> list[tree.Seen]:
        """Return the processes of a job, and those in `more`."""
        spare = self._staff.apart(run) - more
        return [seen for seen in self._below() if seen.pid not in spare]

    def _below(self) -> list[tree.Seen]:
        return tree.below(os.getpid())

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
