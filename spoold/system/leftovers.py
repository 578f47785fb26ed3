"""The worker's end of the process that removes what tasks left (`cleaner`).

It stands apart from `scratch`, its only user, because both in one file would be too long to read.

Law: no call waits for that process, but `finish`, and that for a bounded time. One that dies or does not answer is
started anew after a pause, and what stays is told in `notes`.

Touches: files, processes, the clock, the environment.
"""

from __future__ import annotations

import json
import logging
import math
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.system.cleaner import off_wire, on_wire
from spoold.system.remover import Left, quoted

log = logging.getLogger("spoold")

# Appended, not inserted: it needs the standard library and files of this room, never another package beside us.
_BOOT = "import sys; sys.path.append({root!r}); from spoold.system.cleaner import main; main()"
_ROOT = str(Path(__file__).resolve().parents[2])
_LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD", "PYTHONHOME")
# It says something every 5 s while it works.
SILENT_S = 30.0
_PAUSE_S, _LONGEST_S = 1.0, 600.0
_TOLD_MAX, _HEARD_MAX = 3, 1 << 20
_ENDS_S = 1.0


class Remover(Protocol):
    """What moves rubbish aside asks this for its removal."""

    def clear(self, tmp: str, roots: list[str]) -> None:
        """Have the rubbish below `tmp` and in these scratch directories removed. Never raises, never waits."""
        ...

    def look(self) -> None:
        """Take in what became of it. Never raises, never waits."""
        ...

    def finish(self, within_s: float) -> None:
        """Wait until everything was tried, for at most so long, and end. Never raises."""
        ...

    @property
    def notes(self) -> tuple[str, ...]:
        """What stays, and why, for people."""
        ...


class Leftovers:
    """Starts, asks and hears the cleaner."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, python: str = sys.executable) -> None:
        self._clock, self._python = clock, python
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: list[subprocess.Popen[bytes]] = []  # killed; one that hangs in the kernel ends when it may
        self._tmp, self._roots = "", list[str]()
        self._asked = self._sent = self._answered = 0
        self._heard, self._heard_at = b"", -math.inf
        self._at, self._why = "", ""
        self._left: list[Left] = []
        self._failures, self._start_at = 0, -math.inf

    def clear(self, tmp: str, roots: list[str]) -> None:
        self._tmp, self._roots, self._asked = tmp, list(roots), self._asked + 1
        self._ask()

    def look(self) -> None:
        self._hear()
        now = self._clock()
        if self._process is not None and self._process.poll() is not None:
            self._hear()
            self._drop(None if self._process.returncode == 0 else f"ended with {self._process.returncode}")
        elif self._process is not None and self._answered < self._sent and now - self._heard_at >= SILENT_S:
            self._process.kill()
            self._drop(f"did not answer for {now - self._heard_at:.0f} s")
        if self._sent < self._asked:
            self._ask()
        self._ended = [process for process in self._ended if process.poll() is None]

    def finish(self, within_s: float) -> None:
        until = self._clock() + within_s
        while self._answered < self._asked and (left_s := until - self._clock()) > 0:
            if self._process is not None and self._process.stdout is not None:
                select.select([self._process.stdout], [], [], min(left_s, 0.5))
            else:
                time.sleep(min(left_s, 0.05))
            self.look()
        if self._answered < self._asked:
            log.warning("not everything that tasks left is removed yet; the next worker of this user goes on")
        else:
            for note in self.notes:
                log.warning("%s", note)
        self._close()

    @property
    def notes(self) -> tuple[str, ...]:
        told = tuple(map(_told, self._left[:_TOLD_MAX]))
        if (more := len(self._left) - _TOLD_MAX) > 0:
            told += (f"{more} more of what tasks left cannot be removed",)
        return (self._why, *told) if self._why else told

    def _ask(self) -> None:
        if self._process is None and not self._start():
            return
        assert self._process is not None
        assert self._process.stdin is not None
        order = {
            "n": self._asked,
            "tmp": on_wire(self._tmp),
            "roots": [*map(on_wire, self._roots)],
            "turn": self._failures,
        }
        if self._answered >= self._sent:
            self._heard_at = self._clock()  # it was not asked anything before
        try:
            os.write(self._process.stdin.fileno(), json.dumps(order).encode() + b"\n")
        except BlockingIOError:
            return  # it has many orders to read; `look` asks again
        except OSError:
            return  # it has ended; `look` finds out
        self._sent = self._asked

    def _start(self) -> bool:
        if self._clock() < self._start_at:
            return False
        try:
            self._process = subprocess.Popen(
                [self._python, "-I", "-S", "-c", _BOOT.format(root=_ROOT)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in _LOADER if name in os.environ},
                process_group=0,  # Ctrl-C is for us; in our session, since a child outside is an orphan of a task
            )
        except OSError as error:
            self._fail(f"cannot be started ({error})")
            return False
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                os.set_blocking(pipe.fileno(), False)
        self._heard, self._heard_at, self._at = b"", self._clock(), ""
        return True

    def _hear(self) -> None:
        if self._process is None or self._process.stdout is None:
            return
        with suppress(OSError):
            while data := os.read(self._process.stdout.fileno(), 1 << 16):
                self._heard_at = self._clock()
                *lines, self._heard = (self._heard + data).split(b"\n")
                self._heard = self._heard[-_HEARD_MAX:]
                for line in lines:
                    self._take(line)

    def _take(self, line: bytes) -> None:
        with suppress(BadFile, ValueError, TypeError, KeyError):
            message = codec.load_object(line, "the cleaner")
            if "at" in message:
                self._at = off_wire(message["at"])
            else:
                self._left = [Left(off_wire(path), str(why), *rest) for path, why, *rest in message["left"]]
                self._answered = max(self._answered, int(message["n"]))
                self._failures, self._why = 0, ""

    def _drop(self, why: str | None) -> None:
        """Forget the process. why: what went wrong, None if it ended as it should."""
        assert self._process is not None
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
        self._ended.append(self._process)
        self._process = None
        # What stays was for that process to try again: the next one does it at once.
        self._sent = min(self._sent, self._answered if not self._left else self._answered - 1)
        if why is not None:
            self._fail(f"{why}{f', at {quoted(self._at)}' if self._at else ''}")

    def _fail(self, why: str) -> None:
        pause_s = min(_PAUSE_S * 2 ** min(self._failures, 20), _LONGEST_S)
        self._failures, self._start_at = self._failures + 1, self._clock() + pause_s
        self._why = f"the process that removes what tasks left {why}; another is started in {pause_s:g} s"

    def _close(self) -> None:
        if self._process is not None:
            process = self._process
            self._drop(None)
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDS_S)
        for process in self._ended:
            process.kill()
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDS_S)
        self._ended = []


def _told(left: Left) -> str:
    size = f"{'at least ' if left.more else ''}{left.size / (1 << 20):.1f} MiB"
    return f"a task left {quoted(left.path)} ({size}), which cannot be removed: {left.why}"
