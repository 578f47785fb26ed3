"""Processes that take turns at every file-system call, in virtual time.

Each process is a greenlet that runs until it sleeps; a file-system call is a sleep of random length with an effect in
it, so which process acts next is decided by the seed alone, and any two calls of two processes may come in any order.
"""

from __future__ import annotations

import errno
import heapq
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count

from greenlet import getcurrent, greenlet


class Killed(BaseException):
    """The process is gone. Nothing that it still does has any effect."""


@dataclass(slots=True, eq=False)
class Process:
    """One process. frozen_until: it gets no turn before that moment (s)."""

    name: str
    body: Callable[[], None]
    dead: bool = False
    frozen_until: float = 0.0
    failure: BaseException | None = None
    thread: greenlet | None = field(default=None)


class Scheduler:
    """The turns. `now` is virtual time in seconds, the only true one."""

    def __init__(self) -> None:
        self.now = 0.0
        self.turns = 0
        self.current: Process | None = None
        self._queue: list[tuple[float, int, Process]] = []
        self._number = count()
        self._hub = getcurrent()
        self._all: list[Process] = []

    def spawn(self, name: str, body: Callable[[], None], after: float = 0.0) -> Process:
        """A new process, which begins after that many seconds."""
        process = Process(name, body)
        process.thread = greenlet(lambda: self._live(process), parent=self._hub)
        self._all.append(process)
        self._push(self.now + after, process)
        return process

    def close(self) -> None:
        """The world is over: every process unwinds, since one that stands still in the middle is never collected."""
        for process in self._all:
            process.dead = True
            if process.thread is not None and not process.thread.dead:
                self.current = process
                process.thread.switch()
        self.current = None
        self._all.clear()
        self._queue.clear()

    def sleep(self, seconds: float) -> None:
        """Let the others have their turns for that long. Errors: Killed."""
        process = self.current
        if process is None:
            raise OSError(errno.ENOTCONN, "this world is over")  # somebody's finalizer
        if process.dead:
            raise Killed(process.name)
        self._push(self.now + seconds, process)
        self._hub.switch()
        if process.dead:
            raise Killed(process.name)

    def kill(self, process: Process) -> None:
        """The process is gone, wherever it was."""
        process.dead = True

    def run(self, until: float, over: Callable[[], bool]) -> None:
        """Give turns until that moment, or until it is over. Errors: what a process failed with."""
        while self._queue and not over():
            moment, _, process = self._queue[0]
            if moment > until:
                self.now = until
                return
            heapq.heappop(self._queue)
            if moment < process.frozen_until and not process.dead:
                self._push(process.frozen_until, process)
                continue
            self.now = max(self.now, moment)
            self.turns += 1
            self.current = process
            assert process.thread is not None
            process.thread.switch()
            self.current = None
            if process.failure is not None:
                raise process.failure

    def _push(self, moment: float, process: Process) -> None:
        heapq.heappush(self._queue, (moment, next(self._number), process))

    def _live(self, process: Process) -> None:
        try:
            if not process.dead:
                process.body()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001  handed to whoever runs the universe
            process.failure = error
        process.dead = True
