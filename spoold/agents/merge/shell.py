"""Runs a line for the shell in a checkout, where no sandbox does.

Law: a line gets no standard input. Its output is this process's, and its end is returned besides. When it has
ended, or its time is over, all that it started and that has not left its session ends, too.

Touches: files, processes, the clock, the terminal.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress

# So much of what a line prints is returned (bytes): the names of 50,000 tests.
OUTPUT_MAX = 4 << 20
_PIECE = 1 << 16
_LOOK_S = 0.05
TIMED_OUT = 124


def run(line: str, directory: str, within_s: float | None = None) -> tuple[int, str]:
    """Run a line in a directory; returns its exit code, 124 where its time was over, and the end of its output."""
    until = None if within_s is None else time.monotonic() + within_s
    end = bytearray()
    with subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        source = process.stdout.fileno()
        code, over = None, False
        while code is None and not over:
            code = process.poll()  # what it left behind may hold the pipe open for ever
            over = until is not None and time.monotonic() >= until
            while piece := _piece(source, 0.0 if code is not None or over else _LOOK_S):
                sys.stdout.write(piece.decode("utf-8", "replace"))
                end += piece
                if len(end) > 2 * OUTPUT_MAX:
                    del end[:-OUTPUT_MAX]
                if until is not None and time.monotonic() >= until:
                    break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    sys.stdout.flush()
    said = end[-OUTPUT_MAX:].decode("utf-8", "replace").strip()
    return (TIMED_OUT, f"it has not ended within {within_s:g} s; {said}") if over else (code, said)


def _piece(source: int, within_s: float) -> bytes:
    """Return the next piece of output; b"" at its end, or when none came in this time."""
    ready, _, _ = select.select([source], [], [], within_s)
    return os.read(source, _PIECE) if ready else b""
