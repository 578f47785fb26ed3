"""A claimed task becomes a job: what to run, with which environment, in which folder, under which limits.

Templates are filled into single words of a handler's command, never into a line for a shell, so nothing that a task
says can become a command of its own.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase as fnmatch
from typing import Any

from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.matching import allows, promises
from spoold.rules.outcome import Outcome, failure, not_started
from spoold.rules.policy import retry_policy, timeout_s
from spoold.worker.config import FIELD, Handler, WorkerConfig
from spoold.worker.job import Call, Command, Job

# What a command needs to find its way about; the rest of the worker's environment is the worker's own business.
_PASSED = ("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TERM")
# By these a program is told what else to load or to run: whoever may set them may run anything.
_STEERING = re.compile(
    "PATH|IFS|ENV|HOME|SHELL|SHELLOPTS|ZDOTDIR|CLASSPATH|NLSPATH|SSH_ASKPASS|(.*_)?(EDITOR|VISUAL|PAGER)"
    "|(BASH|LD_|DYLD_|GLIBC_|GCONV_|XDG_|PYTHON|PERL|RUBY|GEM_|BUNDLE_|NODE_|NPM_|LUA_|_?JAVA_|JDK_|GIT_).*",
    re.IGNORECASE,
)


class CannotRun(Exception):
    """The task cannot be run as it is; outcome says why."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


@dataclass(frozen=True, slots=True)
class Place:
    """Where an attempt runs: the worker, the spool as mounted here, the attempt's local folder (absolute paths)."""

    worker: str
    root: str
    folder: str


def inherited(config: WorkerConfig, environ: Mapping[str, str]) -> Mapping[str, str]:
    """What every task finds in its environment: of the worker's own what may be passed on, and what it adds."""
    passed = _PASSED if config.pass_env is None else config.pass_env
    return {
        key: value for key, value in environ.items() if any(fnmatch(key, pattern) for pattern in passed)
    } | config.env


def prepare(
    task: Task, name: TaskName, place: Place, config: WorkerConfig, settings: Settings, base: Mapping[str, str]
) -> Job:
    """The job for one attempt; base: as `inherited`. Errors: CannotRun."""
    handler = config.handlers.get(task.kind) if task.run == "handler" else None
    cap_mb = task.requires.mem_mb or config.max_memory_mb
    limit_s = (
        timeout_s(task, settings) if handler is None else task.timeout or handler.timeout or timeout_s(task, settings)
    )
    return Job(
        key=f"{name.id}.{name.attempt}",
        run=_what(task, name, handler, config),
        env=_environment(task, handler, config, base),
        own=_own(task, name, place, settings),
        cwd=_cwd(task, handler, place),
        output_path=f"{place.folder}/output",
        stdin=_stdin(task, handler),
        timeout_s=limit_s,
        grace_s=config.kill_grace_s,
        memory_bytes=cap_mb << 20 if cap_mb else None,
        stall_s=task.stall_timeout,
        progress_path=f"{place.folder}/progress.json",
        output_cap_bytes=config.log_max_mb << 20,
        tail_bytes=config.output_tail_kb << 10,
    )


def _what(task: Task, name: TaskName, handler: Handler | None, config: WorkerConfig) -> Command | Call:
    if task.command is not None:
        if not config.allow_command:
            raise CannotRun(_unfit("this worker does not run raw commands"))
        return Command(("/bin/sh", "-c", task.command) if isinstance(task.command, str) else task.command)
    if task.python is not None:
        _check_allowed(task.python, config.python.allow)
        return Call(task.python, tuple(task.args), task.kwargs, config.python.path)
    if handler is None:
        raise CannotRun(_unfit(f"this worker has no handler for type {task.kind}"))
    if handler.python is not None:
        return Call(handler.python, (task.input,), {}, config.python.path)
    words = tuple(_fill(word, task, name) for word in handler.command)
    if not words[0] or any("\0" in word for word in words):
        message = f"the handler for {task.kind} and this input make no command: {words!r}"
        raise CannotRun(failure(Code.INVALID_TASK, message, final=True))
    return Command(words)


def _check_allowed(target: str, prefixes: tuple[str, ...]) -> None:
    module = target.partition(":")[0]
    if allows(module, prefixes):
        return
    if promises(module, prefixes):
        message = f"this worker's list ([python] allow) has {module} in another case only; spell both alike"
        raise CannotRun(not_started(message))
    raise CannotRun(_unfit(f"{target} is not on this worker's list ([python] allow)"))


def _unfit(message: str) -> Outcome:
    return failure(Code.SPAWN_FAILED, message)


def _fill(word: str, task: Task, name: TaskName) -> str:
    """A word of a handler's command with its {fields} filled in."""

    def value(match: re.Match[str]) -> str:
        path = match[1].split(".")
        found: Any = {"id": name.id, "attempt": name.attempt, "type": task.kind, "batch": task.batch or ""} | {
            "input": task.input,
            "meta": task.meta,
        }
        for part in path:
            if not isinstance(found, dict) or part not in found:
                have = f"it has {', '.join(found)}" if isinstance(found, dict) and found else "it has no fields"
                message = f"the handler for {task.kind} wants {{{match[1]}}}, which the task lacks ({have})"
                raise CannotRun(failure(Code.INVALID_TASK, message, final=True))
            found = found[part]
        return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)

    return FIELD.sub(value, word)


def _stdin(task: Task, handler: Handler | None) -> bytes:
    if task.stdin is not None:
        return task.stdin.encode()
    if handler is not None and task.input is not None:
        return json.dumps(task.input, ensure_ascii=False).encode()
    return b""


def _cwd(task: Task, handler: Handler | None, place: Place) -> str:
    return task.cwd or (handler.cwd if handler else None) or f"{place.folder}/work"


def _environment(
    task: Task, handler: Handler | None, config: WorkerConfig, base: Mapping[str, str]
) -> Mapping[str, str]:
    """Mostly the very same object, by which a slot sees that it need not send it again."""
    steering = list(filter(_STEERING.fullmatch, task.env))
    if steering and not config.allow_command:
        message = f"env.{steering[0]} would choose what runs, and this worker does not run raw commands"
        raise CannotRun(_unfit(message))
    more = (handler.env if handler else {}) | task.env
    return {**base, **more} if more else base


def _own(task: Task, name: TaskName, place: Place, settings: Settings) -> dict[str, str]:
    """What is of this attempt alone."""
    folder = place.folder
    return {
        "SPOOL_TASK_ID": name.id,
        "SPOOL_TASK_TYPE": task.kind,
        "SPOOL_ATTEMPT": str(name.attempt),
        "SPOOL_MAX_ATTEMPTS": str(retry_policy(task, settings).max + 1),
        "SPOOL_WORKER_ID": place.worker,
        "SPOOL_ROOT": place.root,
        "SPOOL_BATCH": task.batch or "",
        "SPOOL_TASK_FILE": f"{folder}/task.json",
        "SPOOL_RESULT_FILE": f"{folder}/result.json",
        "SPOOL_PROGRESS_FILE": f"{folder}/progress.json",
        "SPOOL_WORK_DIR": f"{folder}/work",
        "SPOOL_DEPS_DIR": f"{folder}/deps",
    }
