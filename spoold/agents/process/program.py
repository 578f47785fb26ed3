"""A program that an agent is, or that judges its work: started, read line by line, and ended with all its processes.

Some agents print nothing for a long time: while a subagent of theirs works, or while a command runs. Signs of life
are what its processes use (`Life`).

Law: nothing here waits for ever. Standard input is closed after what is to be read there; a pipe that a process left
behind holds open is not waited for; and what was started is ended, in whichever session it hides.

One that says something lives. One that is silent lives while its processes use the processor, read or write, or start
others, but not for longer than BUSY_TIMES its bound: a busy loop is no work. One that does nothing is ended after its
bound.

Touches: files, processes, threads, the clock, the environment.
"""

from __future__ import annotations

import ctypes
import os
import queue
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Literal

import psutil

from spoold.agents.sandbox import private_home
from spoold.agents.sandbox.seccomp import TABLES

Source = Literal["out", "errors", "log"]
# A longer line (bytes) is read in pieces; so many lines wait to be read; so much of stderr (lines) is kept.
LINE_MAX, LINES_MAX, ERRORS_MAX = 8 << 20, 2048, 200
# How long (s) the streams of a program that has ended are waited for, and its processes after SIGTERM.
EOF_S, GRACE_S = 1.0, 3.0
# How often (s) its logs are looked at, and how much of one at once.
LOGS_S, LOG_CHUNK = 0.5, 1 << 20
# How often it is read on from a program that was ended.
REST_MAX = 64
_SUBREAPER = 36
# What is asked of keyctl(2).
_JOIN_SESSION_KEYRING = 1
NO_LOGS: Mapping[str, str] = {}


def adopt_orphans() -> None:
    """Have processes whose parent ends become children of this one, so that they can be found and ended."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def leave_keyring() -> None:
    """Have this process, and what it starts from now on, a session keyring of its own with nothing in it: that of the
    worker's user may hold keys, and a sandbox of namespaces does not hide it. Errors: none; where the machine is not
    known it stays."""
    for table in TABLES.get(os.uname().machine, ())[:1]:
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).syscall(table.keyctl, _JOIN_SESSION_KEYRING, None)


class Program:
    """One run of a program. Errors of the start: OSError."""

    def __init__(
        self,
        argv: Sequence[str],
        directory: str,
        env: Mapping[str, str],
        stdin: str = "",
        logs: Mapping[str, str] = NO_LOGS,
    ) -> None:
        """logs: the program's own logs, each with the home in which it is."""
        self._others = {child.pid for child in _children(set())}
        # Before it starts: what it writes at once is new, too.
        self._homes, self._logs = logs, {path: _end(home, path) for path, home in logs.items()}
        self._process = subprocess.Popen(
            list(argv),
            cwd=directory,
            env=dict(env),
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: queue.Queue[tuple[Source, str]] = queue.Queue(LINES_MAX)
        self._errors: deque[str] = deque(maxlen=ERRORS_MAX)
        self._ended_at: float | None = None
        self._look_at = 0.0
        if stdin:
            _begin(self._feed, stdin.encode("utf-8", "surrogateescape"))
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._readers = (
            _begin(self._listen, self._process.stdout, "out"),
            _begin(self._listen, self._process.stderr, "errors"),
        )

    @property
    def code(self) -> int | None:
        """Its exit code, below 0 for a signal; None while it runs."""
        return self._process.poll()

    @property
    def errors(self) -> str:
        """The end of its stderr."""
        return "\n".join(self._errors)

    @property
    def over(self) -> bool:
        """Whether it has ended, and what it said has been read."""
        if self.code is None:
            return False
        now = time.monotonic()
        self._ended_at = self._ended_at or now
        reading = any(reader.is_alive() for reader in self._readers)
        return self._lines.empty() and (not reading or now - self._ended_at > EOF_S)

    def heard(self, wait_s: float) -> list[tuple[Source, str]]:
        """Return the next lines, and new ones of its logs; wait for the first at most so long."""
        found: list[tuple[Source, str]] = self._new_in_logs()
        with suppress(queue.Empty):
            found.append(self._lines.get(timeout=0.0 if found else wait_s) if wait_s else self._lines.get_nowait())
            while len(found) < LINES_MAX:
                found.append(self._lines.get_nowait())
        for source, line in found:
            if source == "errors":
                self._errors.append(line[:2000])
        return found

    def sample(self) -> Sample:
        """Return what it and all that it started have used, also in a sandbox of their own."""
        used: dict[Process, tuple[float, float]] = {}
        for child in self._left():
            with suppress(psutil.Error):
                spent = child.cpu_times()
                cpu = spent.user + spent.system + spent.children_user + spent.children_system
                used[child.pid, child.create_time()] = (cpu, _moved(child))
        return Sample(time.monotonic(), used)

    def rest(self) -> list[tuple[Source, str]]:
        """Return what is left to be read of a program that was ended; of one that writes on for ever, so much."""
        found: list[tuple[Source, str]] = []
        for _ in range(REST_MAX):
            self._look_at = 0.0
            more = self.heard(0.0)
            if not more:
                break
            found += more
        return found

    def end(self) -> None:
        """End it and everything that it started: SIGTERM, after a grace SIGKILL."""
        give_up_at = time.monotonic() + GRACE_S
        self._signal(signal.SIGTERM)
        while self._left() and time.monotonic() < give_up_at:
            self._process.poll()
            time.sleep(0.02)
        give_up_at = time.monotonic() + GRACE_S
        while self._left() and time.monotonic() < give_up_at:  # a child may have been started just before
            self._signal(signal.SIGKILL)
            self._process.poll()
            time.sleep(0.02)
        self._process.poll()

    def _left(self) -> list[psutil.Process]:
        found = []
        for child in _children(self._others):
            with suppress(psutil.Error):
                if child.status() != psutil.STATUS_ZOMBIE:
                    found.append(child)
        return found

    def _signal(self, number: int) -> None:
        for child in self._left():
            with suppress(psutil.Error):
                child.send_signal(number)

    def _feed(self, data: bytes) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        # A program may end, or close it, without having read all.
        with suppress(OSError, ValueError):
            stdin.write(data)
        with suppress(OSError, ValueError):
            stdin.close()

    def _listen(self, stream: IO[bytes], source: Source) -> None:
        with suppress(OSError, ValueError), stream:
            while line := stream.readline(LINE_MAX):
                self._lines.put((source, line.decode("utf-8", "replace").rstrip("\r\n")))

    def _new_in_logs(self) -> list[tuple[Source, str]]:
        now = time.monotonic()
        if not self._logs or now < self._look_at:
            return []
        self._look_at = now + LOGS_S
        found: list[tuple[Source, str]] = []
        for path, (number, offset) in self._logs.items():
            with suppress(OSError, ValueError), open(private_home.opened(self._homes[path], path), "rb") as file:
                about = os.fstat(file.fileno())
                # another file, or a shorter one, was begun anew
                file.seek(offset if about.st_ino == number and about.st_size >= offset else 0)
                data = file.read(LOG_CHUNK)
                whole = data[: data.rfind(b"\n") + 1] if len(data) < LOG_CHUNK else data
                self._logs[path] = (about.st_ino, file.tell() - len(data) + len(whole))
                found += [("log", line) for line in whole.decode("utf-8", "replace").splitlines()]
        return found


def _moved(process: psutil.Process) -> float:
    """Return how many bytes a process has read and written; 0 where that is not to be known."""
    with suppress(psutil.Error, AttributeError):
        counts = process.io_counters()
        return float(counts.read_chars + counts.write_chars)
    return 0.0


def _begin(target: Callable[..., None], *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def _children(but: Set[int]) -> list[psutil.Process]:
    """Return all processes below this one, without these and what is below them."""
    found: list[psutil.Process] = []
    with suppress(psutil.Error):
        for child in psutil.Process().children():
            if child.pid not in but:
                found.append(child)
                with suppress(psutil.Error):
                    found += [one for one in child.children(recursive=True) if one.pid not in but]
    return found


def _end(home: str, path: str) -> tuple[int, int]:
    """Return the inode of a log and its size in bytes; (0, 0) where there is none."""
    with suppress(OSError, ValueError), open(private_home.opened(home, path), "rb") as file:
        about = os.fstat(file.fileno())
        return about.st_ino, about.st_size
    return 0, 0


# Signs of life: whether a silent agent is at work or hangs, from what its processes use.


# How many times its bound a silent agent may be at work.
BUSY_TIMES = 8
# At least so much of one processor, or so many bytes a second, is work. Measured in the five known agents while their
# model did not answer: up to 4 % and 15 kB/s.
CPU_SHARE, BYTES_S = 0.1, 65536.0
# How often (s) it is looked at, at most; and into how many parts a bound is divided.
LOOK_S, PARTS = 5.0, 8

# A process, by its id and the time at which it began.
Process = tuple[int, float]


@dataclass(frozen=True, slots=True)
class Bounds:
    """start_s: until its first word; idle_s: the longest silence; both in seconds."""

    start_s: float
    idle_s: float


@dataclass(frozen=True, slots=True)
class Sample:
    """What the processes of an agent have used since they began. at: s; used: processor (s), and bytes read and
    written, of each."""

    at: float
    used: Mapping[Process, tuple[float, float]]


def worked(before: Sample, now: Sample) -> bool:
    """Whether anything was done between two samples."""
    if now.used.keys() - before.used.keys():
        return True
    cpu_s, moved, within_s = 0.0, 0.0, now.at - before.at
    for process, (cpu, size) in now.used.items():
        earlier = before.used[process]
        cpu_s, moved = cpu_s + max(0.0, cpu - earlier[0]), moved + max(0.0, size - earlier[1])
    return cpu_s > CPU_SHARE * within_s or moved > BYTES_S * within_s


class Life:
    """One turn of an agent. now: monotonic, s."""

    def __init__(self, bounds: Bounds, now: float) -> None:
        self._bounds, self.idle_s = bounds, bounds.idle_s
        self._spoke = False
        self._last, self._worked = now, now
        self._sample: Sample | None = None

    def speaks(self, now: float) -> None:
        """It said something."""
        self._last, self._spoke = now, True

    def wants(self, now: float) -> bool:
        """Whether it is time for a sample."""
        return self._sample is None or now - self._sample.at >= min(LOOK_S, self._most / PARTS)

    def take(self, sample: Sample) -> None:
        """Take in what its processes have used."""
        if self._sample is None or worked(self._sample, sample):
            self._worked = sample.at
        self._sample = sample

    def over(self, now: float) -> str:
        """Return why it has to be ended; '' while it lives."""
        if now - max(self._last, self._worked) > self._most:
            return f"it said nothing for {self._most:g} s"
        if now - self._last > self._most * BUSY_TIMES:
            return f"it said nothing for {self._most * BUSY_TIMES:g} s, although its processes were busy"
        return ""

    @property
    def _most(self) -> float:
        return self._bounds.idle_s if self._spoke else self._bounds.start_s
