"""A task's own choices about how it is run: where it starts, which variables it sets, its standard input.

Law: for a raw command, which anyone may write here, all of them count; likewise where any callable may be named.
Otherwise a task's choices count as far as the owner of the machine allows them, and the handler's own come first. A
task that asks for more is refused, with the line that would allow it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import NamedTuple

from spoold.protocol.errors import legible
from spoold.protocol.task import Task
from spoold.rules.attempts import outcome as outcomes
from spoold.rules.attempts.outcome import Outcome
from spoold.runner.job import Within
from spoold.worker.handlers.handler import Handler, Permits


class CannotRun(Exception):
    """The task cannot be run as it is; outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


class Rights(NamedTuple):
    """The basis for judging a task: the permits, None where all is allowed; the handler; the place of both."""

    permits: Permits | None
    handler: Handler | None
    table: str

    @property
    def agent(self) -> bool:
        """Whether the handler is that of a profile, [agents.NAME]."""
        return self.handler is not None and "agent" in self.handler.about


def directory(task: Task, rights: Rights, own: str) -> tuple[str, Within | None]:
    """Return where it starts, and below which directories that must be then. own: its folder. Errors: CannotRun."""
    fixed = rights.handler.cwd if rights.handler is not None else None
    if task.cwd is None or rights.permits is None or task.cwd == fixed:
        return (task.cwd or fixed or own), None
    allowed = rights.permits.allow_cwd
    if not allowed or ".." in task.cwd.split("/") or (fixed is not None and not _is_below(task.cwd, allowed)):
        raise CannotRun(outcomes.refused(_no_directory(task.cwd, fixed, rights)))
    return (task.cwd, Within(allowed, rights.table)) if fixed is None else (fixed, None)


def variables(task: Task, rights: Rights, base: Mapping[str, str]) -> Mapping[str, str]:
    """Return its environment; mostly `base` itself, so that a slot need not send it again. Errors: CannotRun."""
    fixed = rights.handler.env if rights.handler is not None else {}
    if rights.permits is not None:
        allowed = rights.permits.allow_env
        more = [name for name, text in task.env.items() if name not in allowed and fixed.get(name) != text]
        if more:
            raise CannotRun(outcomes.refused(_no_variables(more, rights)))
    return {**base, **task.env, **fixed} if task.env or fixed else base


def standard_input(task: Task, rights: Rights) -> bytes:
    """Return its stdin; for a handler, the input as JSON: a program may trust it to be no more. Errors: CannotRun."""
    if task.stdin is not None:
        if rights.permits is not None and not rights.permits.allow_stdin:
            raise CannotRun(outcomes.refused(_no_stdin(rights)))
        return task.stdin.encode()
    if rights.handler is not None and task.input is not None:
        return json.dumps(task.input, ensure_ascii=False).encode()
    return b""


def quoted(text: str) -> str:
    """Return the text as TOML and JSON spell it."""
    return json.dumps(legible(text), ensure_ascii=False)


def _plain(name: str) -> str:
    return name if name.isprintable() else quoted(name)


def _is_below(path: str, tops: tuple[str, ...]) -> bool:
    """Whether a path, as it is spelled, is one of these directories or below one, component by component."""
    names = os.path.normpath(path).split("/")
    return any(names[: len(top)] == top for top in (os.path.normpath(top).rstrip("/").split("/") for top in tops))


def _no_directory(cwd: str, fixed: str | None, rights: Rights) -> str:
    if ".." in cwd.split("/"):
        return f"cwd is {quoted(cwd)}, and '..' could lead anywhere: write the directory that it means"
    if fixed is not None:
        return (
            f"cwd is {quoted(cwd)}, but the handler always starts in {quoted(fixed)}: leave cwd out of the task, or "
            f"write allow_cwd = [{quoted(cwd)}] in place of cwd under {rights.table}"
        )
    return (
        f"a task may not choose where it starts here (cwd {quoted(cwd)}): leave cwd out of it, or add "
        f"allow_cwd = [{quoted(cwd)}] under {rights.table}"
    )


def _no_stdin(rights: Rights) -> str:
    why = "a task may not set its standard input here: leave stdin out of it"
    # A profile has no such key: its prompt is the standard input, or an argument.
    return why if rights.agent else f"{why}, or add allow_stdin = true under {rights.table}"


def _no_variables(names: list[str], rights: Rights) -> str:
    fixed = rights.handler.env if rights.handler is not None else {}
    free = [name for name in names if name not in fixed]
    if not free:
        own = ", ".join(map(_plain, names))
        return f"the handler itself sets {own}, and its own value counts: leave it out of env"
    return (
        f"a task may not set {', '.join(map(_plain, free))} here: leave it out of env, or add "
        f"allow_env = [{', '.join(map(quoted, free))}] under {rights.table}"
    )
