"""Errors for a caller, beyond those in `protocol.errors`.

Law: each error here is a SpoolError. A task without a result yet counts as not found. `shell_code` takes the signal
from the words `(signal N)`, with which the runner ends its message.
"""

from __future__ import annotations

import re

from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.result import Code, Result

_SIGNAL = re.compile(r"\(signal (\d{1,3})\)")


def shell_code(result: Result) -> int | None:
    """Return the attempt's exit code as a shell gives it: 128 plus the signal for a killed one; None if unknown."""
    error = result.error
    if result.exit_code is not None or error is None or Code.SIGNALED not in (error.code, error.cause):
        return result.exit_code
    # Only the message names the signal.
    found = _SIGNAL.search(error.message)
    return 128 + int(found[1]) if found else None


class NotFinished(NotFound):
    """The task exists and has no result yet."""


class TaskFailed(SpoolError):
    """A task did not succeed: its id, the error's code and message, its Result, the end of its log."""

    def __init__(self, result: Result, log_tail: str = "") -> None:
        self.id = result.task_id
        self.result = result
        self.code = result.error.code if result.error else Code.EXIT_NONZERO
        self.message = result.error.message if result.error else str(result.status)
        self.log_tail = log_tail
        tail = f"\n{log_tail.rstrip()}" if log_tail.strip() else ""
        super().__init__(f"task {self.id} failed: {self.code}: {self.message}{tail}")
