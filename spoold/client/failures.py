"""What goes wrong for a caller, beyond what `protocol.errors` has."""

from __future__ import annotations

from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.result import Code, Result


class NotFinished(NotFound):
    """The task is known and has no result yet."""


class TaskFailed(SpoolError):
    """A task ended and not well: its id, the error's code and message, its Result, the end of its log."""

    def __init__(self, result: Result, log_tail: str = "") -> None:
        self.id = result.task_id
        self.result = result
        self.code = result.error.code if result.error else Code.EXIT_NONZERO
        self.message = result.error.message if result.error else str(result.status)
        self.log_tail = log_tail
        tail = f"\n{log_tail.rstrip()}" if log_tail.strip() else ""
        super().__init__(f"task {self.id} failed: {self.code}: {self.message}{tail}")
