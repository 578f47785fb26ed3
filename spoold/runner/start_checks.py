"""runner/start_checks: whether a program starts here, whether an interpreter can call Python functions, and which
modules it can find.

Law: a separate process looks, so that the worker imports nothing of the user's. If that process fails, no module
counts as missing. A command that is tried is never waited for without an end, and its processes end with it. One that
cannot be started has failed. Whatever it prints costs a bounded amount of memory, and a process that it left behind
is not waited for.

Touches: files, processes, the clock, the environment.
"""

from __future__ import annotations

import json
import os
import re
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.runner.child_process import loader

PATIENCE_S = 30.0
# `pyhost` needs what this version brought.
OLDEST = (3, 11)
_NUMBERS = re.compile(r"\d+\.\d+")
_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"
_PYSEEK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyseek.py")


def useless(python: str) -> str | None:
    """Return why this program cannot call Python functions; None if it can."""
    good, said = tried([python, "-I", "-S", "-c", _VERSION], {**os.environ, **loader()}, PATIENCE_S)
    if not good:
        return f"is no Python that starts here: {said}"
    version = tuple(map(int, said.split("."))) if _NUMBERS.fullmatch(said) else ()
    if version < OLDEST:
        return f"is Python {said}" if version else "is no Python"
    return None


def missing(
    modules: Collection[str], path: Sequence[str], env: Mapping[str, str], python: str = sys.executable
) -> set[str]:
    """Return the modules, by the first part of their names, that a call with this path and environment lacks.
    python: the interpreter of calls."""
    tops = {module.partition(".")[0] for module in modules}
    command = [python, "-P", _PYSEEK, json.dumps([list(path), sorted(tops)])]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={**loader(), **env},
            timeout=PATIENCE_S,
            check=False,
        )
        found = codec.load(done.stdout.rstrip().rpartition(b"\n")[2], "its list of modules")
    except (BadFile, OSError, ValueError, subprocess.TimeoutExpired):
        return set()
    return tops.intersection(map(str, found)) if isinstance(found, list) else set()


# A short command that tells whether a program starts here.


TRY_PATIENCE_S = 60.0
WORDS_MAX = 400
# So often (s) is looked whether it has ended. So much (bytes) of the end of its output is kept, however much it says.
_LOOK_S, _PIECE = 0.05, 64 << 10
# How long (s) the rest of its output is read, where something that it left behind goes on writing.
_REST_S = 0.5


def tried(argv: Sequence[str], env: Mapping[str, str], within_s: float = TRY_PATIENCE_S) -> tuple[bool, str]:
    """Return whether a command succeeds within so many seconds, and its last words: the last line of its stdout, or
    of its stderr where it failed.
    """
    try:
        process = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd="/",
            env=dict(env),
            start_new_session=True,
        )
    except OSError as error:
        return False, f"its check {argv[0]} cannot be started: {error.strerror or error}"
    with process:
        try:
            said, errors = _heard(process, time.monotonic() + within_s)
        finally:
            # What it left behind would hold its pipes open.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    if said is None:
        return False, f"its check did not end within {within_s:g} s"
    if process.returncode == 0:
        return True, _last(said)
    return False, _last(errors) or f"its check ended with exit code {process.returncode}"


def _heard(process: subprocess.Popen[bytes], until: float) -> tuple[bytes | None, bytes]:
    """Return the ends of stdout and stderr; None for the first if it runs on until then."""
    assert process.stdout is not None
    assert process.stderr is not None
    ends = {process.stdout: b"", process.stderr: b""}
    with selectors.DefaultSelector() as pipes:
        for pipe in ends:
            pipes.register(pipe, selectors.EVENT_READ, pipe)
        while time.monotonic() < until:
            over = process.poll() is not None
            ready = pipes.select(0 if over else _LOOK_S) if pipes.get_map() else []
            for found, _ in ready:
                data = os.read(found.fd, _PIECE)
                ends[found.data] = (ends[found.data] + data)[-_PIECE:]
                if not data:
                    pipes.unregister(found.fd)
            if over:
                if not ready:
                    break
                until = min(until, time.monotonic() + _REST_S)
            elif not pipes.get_map():
                time.sleep(_LOOK_S)  # it has closed both, and runs on
    return (None if process.poll() is None else ends[process.stdout]), ends[process.stderr]


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").splitlines()
    return next((line.strip()[:WORDS_MAX] for line in reversed(lines) if line.strip()), "")
