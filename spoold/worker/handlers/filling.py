"""A handler's command with a task's fields filled in: words of a program's arguments, never a line for a shell.

Law: text from a task stays within its word and is an operand there. If it would begin the word with a dash, it is
refused, since a program takes that for an option, unless the handler allows options there.
"""

from __future__ import annotations

import json
from typing import Any

from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.attempts import outcome as outcomes
from spoold.rules.attempts.outcome import failure
from spoold.runner.job import Command
from spoold.worker.handlers.handler import FIELD, Handler
from spoold.worker.handlers.permits import CannotRun, quoted

SHOWN = 80


def command(task: Task, name: TaskName, handler: Handler, table: str) -> Command:
    """Return the program and its arguments. table: where the handler is. Errors: CannotRun."""
    words = tuple(_Filling(task, name, handler, table).word(word) for word in handler.command)
    if not words[0] or any("\0" in word for word in words):
        message = f"the handler for {task.kind} and this input make no command: {words!r}"
        raise CannotRun(failure(Code.INVALID_TASK, message, final=True))
    return Command(words)


class _Filling:
    def __init__(self, task: Task, name: TaskName, handler: Handler, table: str) -> None:
        self._kind, self._handler, self._table = task.kind, handler, table
        self._fields: dict[str, Any] = {
            "id": name.id,
            "attempt": name.attempt,
            "type": task.kind,
            "batch": task.batch or "",
            "input": task.input,
            "meta": task.meta,
        }

    def word(self, template: str) -> str:
        """Return the word, filled in and checked. Errors: CannotRun."""
        # Text of the handler at the even places, fields of the task at the odd ones.
        parts = FIELD.split(template)
        fields = parts[1::2]
        parts[1::2] = [self._value(field) for field in fields]
        word = "".join(parts)
        first = next((place for place, part in enumerate(parts) if part), 0)
        if first % 2:
            field = fields[first // 2]
            self._refuse(field, word, self._handler.takes_for(field, word))
        for field, value in zip(fields, parts[1::2], strict=True):
            self._refuse(field, value, self._handler.makes_of(field, value))
        return word

    def _refuse(self, field: str, said: str, what: str | None) -> None:
        """Errors: CannotRun if the program would not take the task's text for an operand."""
        if what is not None:
            line = f"allow_options = [{quoted(field)}] under {self._table}"
            said = f"{field} is {_shown(said)}, which its program would take for {what}: change it, or add {line}"
            raise CannotRun(outcomes.refused(said))

    def _value(self, path: str) -> str:
        found: Any = self._fields
        for part in path.split("."):
            if not isinstance(found, dict) or part not in found:
                have = f"it has {', '.join(found)}" if isinstance(found, dict) and found else "it has no fields"
                message = f"the handler for {self._kind} wants {{{path}}}, which the task lacks ({have})"
                raise CannotRun(failure(Code.INVALID_TASK, message, final=True))
            found = found[part]
        value = found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)
        if not self._handler.matches(path, value):
            message = (
                f"{path} is {_shown(value)}, which does not match {self._handler.match[path]}: change it, or "
                f"match under {self._table}"
            )
            raise CannotRun(outcomes.refused(message))
        return value


def _shown(value: str) -> str:
    return quoted(value if len(value) <= SHOWN else f"{value[:SHOWN]}…")
