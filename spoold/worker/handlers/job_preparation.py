"""A claimed task becomes a job: what to run, with which environment, in which folder, under which limits.

Law: a task that asks for more than this worker permits becomes no job (`CannotRun`), and is told the line that would
allow it. For a raw command, which anyone may write here, all choices of a task count; likewise where any callable may
be named. Otherwise they count as far as the owner of the machine allows them, and the handler's own come first. Of
the worker's own environment a task sees only the variables that are named here or in the configuration.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase as fnmatch
from typing import Any, NamedTuple

from spoold.protocol import context_entry, step, trace_ids
from spoold.protocol.errors import legible
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts import attempt_outcome as outcomes
from spoold.rules.attempts.attempt_outcome import Outcome, failure, unable, unable_here
from spoold.rules.attempts.task_policy import retry_policy, timeout_s
from spoold.rules.workers.matching import allows, promises
from spoold.runner.job import Call, Command, Job, Within
from spoold.worker.handlers.handler import FIELD, Handler, Permits
from spoold.worker.handlers.worker_config import WorkerConfig

# Variables that a command needs to find its way about; the rest of the worker's environment is private.
NONE: Mapping[str, str] = {}
_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM")


@dataclass(frozen=True, slots=True)
class Workplace:
    """Where an attempt runs: the worker, the spool as mounted here, the attempt's local folder, and the folder in
    which it may lend its slot (absolute paths; '' for no such folder). spool_id: as its marker says."""

    worker: str
    root: str
    folder: str
    loans: str = ""
    spool_id: str = ""


def inherited(config: WorkerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of every task: the worker's variables that may be passed on, and its additions."""
    return {**passed_on(config, environ), **config.env}


def passed_on(config: WorkerConfig, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of the worker's own environment that the processes below it may see."""
    secret = {source.env for source in config.secrets.values()}
    return {
        name: value
        for name, value in environ.items()
        if name not in secret and _named(name, (*_PASSED, *config.pass_env)) and not _named(name, config.drop_env)
    }


def _named(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def prepare(
    task: Task,
    name: TaskName,
    place: Workplace,
    config: WorkerConfig,
    settings: Settings,
    base: Mapping[str, str],
    auto: Callable[[], float | None] = lambda: None,
    secrets: Mapping[str, str] = NONE,
    tail_bytes: int | None = None,
    kind: str = "",
) -> Job:
    """Return the job for one attempt; base: as `inherited`; auto: as `timeout_s`; secrets: values by name;
    tail_bytes: how much of the end of its output is kept, if that is more than is shown. kind: the type as which it
    runs, '' for its own: all that a type says counts of that one, but for how often it is tried again.

    Errors: CannotRun.
    """
    tries = retry_policy(task, settings).max + 1
    task = task if kind in ("", task.kind) else task.model_copy(update={"type": kind})
    handler = handler_of(task, config)
    rights = _rights(task, handler, config)
    run = _what(task, name, rights, config)
    cwd, within = directory(task, rights, f"{place.folder}/work")
    cap_mb = task.requires.mem_mb or config.max_memory_mb
    own, most = (handler.timeout, handler.max_timeout) if handler is not None else (None, None)
    return Job(
        key=f"{name.id}.{name.attempt}",
        run=run,
        env=variables(task, rights, base),
        own={**secrets, **_own(task, name, place, tries)},
        cwd=cwd,
        within=within,
        output_path=f"{place.folder}/output",
        stdin=standard_input(task, rights),
        timeout_s=timeout_s(task, settings, own, most, auto),
        grace_s=config.kill_grace_s,
        memory_bytes=cap_mb << 20 if cap_mb else None,
        stall_s=task.stall_timeout,
        progress_path=f"{place.folder}/progress.json",
        output_cap_bytes=config.log_max_mb << 20,
        tail_bytes=config.output_tail_kb << 10 if tail_bytes is None else tail_bytes,
        lost_share=(handler and handler.lost_share) or settings.of(task.kind).lost_share or config.lost_share,
        freeze_s=config.freeze_s,
    )


def handler_of(task: Task, config: WorkerConfig, kind: str = "") -> Handler | None:
    """Return the handler that runs a task here; None for a task that no handler runs. kind: as for `prepare`."""
    return config.handlers.get(kind or task.kind) if task.run == "handler" else None


def _rights(task: Task, handler: Handler | None, config: WorkerConfig) -> Rights:
    """Return a task's rights. A raw command may do anything; likewise a callable, where any may be named."""
    if handler is not None:
        rights = Rights(handler, handler, config.place("handlers", task.kind))
        return rights._replace(table=config.place("agents", task.kind)) if rights.agent else rights
    python = config.python if task.run == "python" and "*" not in config.python.allow else None
    return Rights(python, None, config.place("python"))


def _what(task: Task, name: TaskName, rights: Rights, config: WorkerConfig) -> Command | Call:
    handler, path = rights.handler, config.python.path
    if task.command is not None:
        if not config.allow_command:
            raise CannotRun(unable("this worker does not run raw commands"))
        return Command(("/bin/sh", "-c", task.command) if isinstance(task.command, str) else task.command)
    if task.python is not None:
        _check_allowed(task.python, config.python.allow)
        allow = None if rights.permits is None else config.python.allow
        return Call(task.python, tuple(task.args), task.kwargs, path, allow, rights.table, task.calls)
    if handler is None:
        raise CannotRun(unable(f"this worker has no handler for type {task.kind}"))
    if handler.python is not None:
        return Call(handler.python, (task.input,), {}, path)
    return command(task, name, handler, rights.table)


def _check_allowed(target: str, prefixes: tuple[str, ...]) -> None:
    module = target.partition(":")[0]
    if allows(module, prefixes):
        return
    if promises(module, prefixes):
        message = f"this worker's list ([python] allow) has {module} in another case only; spell both alike"
        raise CannotRun(unable_here(message))
    raise CannotRun(unable(f"{target} is not on this worker's list ([python] allow)"))


def _own(task: Task, name: TaskName, place: Workplace, tries: int) -> dict[str, str]:
    """Return the variables that are of this attempt alone. tries: how many attempts it may have."""
    folder = place.folder
    return {
        "SPOOL_TASK_ID": name.id,
        "SPOOL_TASK_TYPE": task.kind,
        "SPOOL_ATTEMPT": str(name.attempt),
        "SPOOL_MAX_ATTEMPTS": str(tries),
        "SPOOL_WORKER_ID": place.worker,
        "SPOOL_ROOT": place.root,
        "SPOOL_BATCH": task.batch or "",
        **(
            {} if task.batch is None else {"SPOOL_CONTEXT_DIR": f"{place.root}/{context_entry.directory(task.batch)}"}
        ),
        "SPOOL_CHECKPOINT_DIR": f"{place.root}/{step.directory(name.id)}",
        "SPOOL_TASK_FILE": f"{folder}/task.json",
        "SPOOL_RESULT_FILE": f"{folder}/result.json",
        "SPOOL_PROGRESS_FILE": f"{folder}/progress.json",
        "SPOOL_WORK_DIR": f"{folder}/work",
        "SPOOL_DEPS_DIR": f"{folder}/deps",
        **({"SPOOL_TOLD_FILE": f"{folder}/told.jsonl"} if task.run == "handler" else {}),
        **({} if task.approval is None else {"SPOOL_ANSWER_FILE": f"{folder}/answer.json"}),
        **({"SPOOL_SLOT_DIR": place.loans} if place.loans else {}),
        **trace_ids.carrier(place.spool_id, name.id, name.attempt, task.batch, task.meta),
    }


# A handler's command with a task's fields filled in: words of a program's arguments, never a line for a shell.


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


# A task's own choices about how it is run: where it starts, which variables it sets, its standard input.


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
