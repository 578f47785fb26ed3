"""runner/trying: a short command that tells whether a program starts here.

Law: it never waits for ever, and its processes end with it. A command that cannot be started has failed.

Touches: processes.
"""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

PATIENCE_S = 60.0
WORDS_MAX = 400


def tried(argv: Sequence[str], env: Mapping[str, str], within_s: float = PATIENCE_S) -> tuple[bool, str]:
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
            said, errors = process.communicate(timeout=within_s)
        except subprocess.TimeoutExpired:
            return False, f"its check did not end within {within_s:g} s"
        finally:
            # What it left behind would hold its pipes open.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
    if process.returncode == 0:
        return True, _last(said)
    return False, _last(errors) or f"its check ended with exit code {process.returncode}"


def _last(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").splitlines()
    return next((line.strip()[:WORDS_MAX] for line in reversed(lines) if line.strip()), "")
