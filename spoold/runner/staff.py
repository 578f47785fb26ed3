"""runner/staff: the processes that a supervisor keeps between jobs: one calls Python, one starts programs.

Law: a helper has no part in a job but its own, and outlives its job only if nothing of the job is left in it. Then it
is not counted, stopped or killed with the next job.

Touches: processes, the clock.
"""

from __future__ import annotations

import os
import select
import signal
import time
from contextlib import suppress

from spoold.runner import launcher, tree
from spoold.runner.child import Child
from spoold.runner.launcher import Launched, Launcher
from spoold.runner.run import Host

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from spoold.runner.freezer import Room
    from spoold.runner.run import Run


_LAST_WORD_MS = 500


class Staff:
    """The helpers of a supervisor: at most one of each kind."""

    def __init__(self, end: Callable[[frozenset[int]], object], room: Room, python: str) -> None:
        """end: kills all processes below, except these pids. room: the group of the helpers and their children.
        python: the interpreter of calls."""
        self._room = room
        self._python = python
        self._end = end
        self._children = tree.watch_children()
        self._host: Host | None = None
        self._launcher: Launcher | None = None
        self._launches = launcher.usable()
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
            run.hear({"weighed": tree.share_of(pids), "key": run.key, "took_s": 0.0})
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
        return childless and tree.only(self._children, kept)

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
