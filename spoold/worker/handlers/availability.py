"""Which handlers' programs, modules and secrets are on this machine, and do they start? Can it start tasks at all?

A worker does not offer what is missing. One that cannot start tasks would be the quickest of all to claim them, and
give them back.

Law: nothing here blocks the worker: a PATH may lead to a mount that hangs, so a thread looks, and until it has an
answer the last one holds. A handler with a check is not offered before that has succeeded. A program that is found
may be gone at the start, which the attempt handles. Only this machine's own faults count against starting, of its
disk and its processes; an error of the share concerns every worker.

Touches: files, threads.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from spoold.protocol.heartbeat import UNCHECKED
from spoold.rules.workers.readiness import MOST_S, pause_s
from spoold.runner import start_checks
from spoold.runner.job import Ending
from spoold.runner.start_checks import tried
from spoold.system.clock import Clock
from spoold.system.errnos import Fault, fault_of
from spoold.worker.handlers.handler import FIELD, Handler
from spoold.worker.handlers.job_preparation import NONE
from spoold.worker.handlers.secrets import Secrets
from spoold.worker.handlers.worker_config import PythonSettings, WorkerConfig

# How often (s) to look again, and how long a start waits for the first answer.
LOOKUP_EVERY_S, FIRST_WITHIN_S = 30.0, 2.0
# For how long (s) a check that succeeded is not made again.
HOLDS_S = 3600.0
_HEAD = 256  # bytes: the kernel reads no longer interpreter line


class Lookup:
    """The types whose handler cannot begin here, each with the lack. base: as `preparing.inherited`."""

    def __init__(
        self, config: WorkerConfig, base: Mapping[str, str], clock: Clock, environ: Mapping[str, str] = NONE
    ) -> None:
        """environ: the worker's own variables."""
        self._secrets = Secrets(config.secrets, environ, config.place("secrets"))
        self._handlers = config.handlers
        self._python = config.python
        self._base = base
        self._clock = clock
        self._found = {kind: UNCHECKED for kind, handler in self._handlers.items() if handler.check}
        # What each check said of a version, and when it succeeded.
        self._checked: dict[str, tuple[str, float]] = {}
        self._thread: threading.Thread | None = None
        self._due = -math.inf
        self.lacks()
        self._await(FIRST_WITHIN_S)

    def lacks(self) -> dict[str, str]:
        """Return the last findings; look again when it is time."""
        now = self._clock.monotonic()
        idle = self._thread is None or not self._thread.is_alive()
        if self._handlers and idle and now >= self._due:
            self._due = now + LOOKUP_EVERY_S
            self._thread = threading.Thread(target=self._look, name="lookup", daemon=True)
            self._thread.start()
        return self._found

    def versions(self) -> dict[str, str]:
        """Return what the checks that succeeded said of a version, by type."""
        return {kind: said for kind, (said, _) in self._checked.items() if said}

    def _await(self, timeout_s: float) -> None:
        if self._thread is not None:
            self._thread.join(timeout_s)

    def _look(self) -> None:
        found = {
            kind: lacking(handler, self._base) or self._secrets.lacking(handler.secrets)
            for kind, handler in self._handlers.items()
        }
        absent = {kind: why for kind, why in found.items() if why is not None}
        absent |= unknown({k: h for k, h in self._handlers.items() if k not in absent}, self._python, self._base)
        for kind, handler in self._handlers.items():
            if handler.check and kind not in absent and (why := self._check(kind, handler)) is not None:
                absent[kind] = why
        self._found = absent

    def _check(self, kind: str, handler: Handler) -> str | None:
        """Return why a handler's check fails; None if it succeeds, or did so a short while ago."""
        _, since = self._checked.get(kind, ("", -math.inf))
        if self._clock.monotonic() - since < HOLDS_S:
            return None
        good, said = tried(handler.check, {**self._base, **handler.env})
        rest = {other: found for other, found in self._checked.items() if other != kind}
        self._checked = {**rest, kind: (said, self._clock.monotonic())} if good else rest
        return None if good else said


def lacking(handler: Handler, base: Mapping[str, str]) -> str | None:
    """Return the obstacle to the handler's program here; None if none can be seen beforehand."""
    if handler.cwd is not None and not os.path.isdir(handler.cwd):
        return f"it lacks the directory {handler.cwd}"
    path = {**base, **handler.env}.get("PATH", os.defpath)
    for program in handler.needs:
        if (why := _lacking(program, path, interpreters=True)) is not None:
            return why
    if not handler.command:
        return None
    program = handler.command[0]
    if FIELD.search(program):
        return None  # each task names another
    if "/" in program and not program.startswith("/"):
        if handler.cwd is None:
            return None  # below the folder of the attempt
        program = os.path.join(handler.cwd, program)
    return _lacking(program, path, interpreters=True)


def unknown(handlers: Mapping[str, Handler], python: PythonSettings, base: Mapping[str, str]) -> dict[str, str]:
    """Return the types whose callable's top-level module its interpreter cannot find, each with the reason."""
    asked: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    for kind, handler in handlers.items():
        if handler.python is not None:
            top = handler.python.partition(":")[0].partition(".")[0]
            asked.setdefault(tuple(sorted({**base, **handler.env}.items())), {})[kind] = top
    found = {}
    for env, tops in asked.items():
        absent = start_checks.missing(set(tops.values()), python.path, dict(env), python.executable)
        found.update({kind: f"it lacks the Python module {top}" for kind, top in tops.items() if top in absent})
    return found


def _lacking(program: str, path: str, *, interpreters: bool) -> str | None:
    places = [program] if "/" in program else [os.path.join(d, program) for d in path.split(os.pathsep) if d]
    there = [place for place in places if os.path.isfile(place)]
    if not there:
        return f"it lacks the program {program}" + ("" if "/" in program else ", which is nowhere in its PATH")
    able = next((place for place in there if os.access(place, os.X_OK)), None)
    if able is None:
        return f"it may not execute {there[0]}"
    if interpreters and (wanted := _interpreter(able)) is not None:
        why = _lacking(wanted, path, interpreters=False)
        return why and f"{why} (the interpreter of {able})"
    return None


def _interpreter(file: str) -> str | None:
    """Return what a script's first line calls, also by way of env; None for no script, or one that cannot be read."""
    try:
        # A pipe of that name would block for ever.
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        head = os.read(descriptor, _HEAD) if stat.S_ISREG(os.fstat(descriptor).st_mode) else b""
    except OSError:
        return None
    finally:
        os.close(descriptor)
    if not head.startswith(b"#!") or b"\n" not in head:
        return None
    words = os.fsdecode(head.splitlines()[0][2:]).split()
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else None


# Can this machine start tasks? A worker that cannot would be the quickest of all to claim them, and give them back.


log = logging.getLogger("spoold")

_ROOM = "free some room where TMPDIR points, or /tmp"
_WRITE = "let this user write where TMPDIR points, or in /tmp"
_FILES = "raise how many files may be open (ulimit -n, LimitNOFILE=)"
# The fix for each error whose cause is clear. Other errors say too little for advice.
_ALWAYS = {errno.EMFILE: _FILES, errno.ENFILE: _FILES, errno.ENOMEM: "free some memory"}
_OF_WRITING = _ALWAYS | {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.EACCES: _WRITE,
    errno.EPERM: _WRITE,
    errno.EROFS: _WRITE,
}
_OF_STARTING = _ALWAYS | {
    errno.EAGAIN: "end processes, or raise how many this user or unit may have (ulimit -u, TasksMax=)",
}


class Fitness:
    """Counts the starts in a row that failed for the machine's fault. After each, nothing is claimed for a while."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failed = 0
        self._until = -math.inf
        self._why = ""
        self._late = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Wrap writes on this machine's own disk: errors count, and go on."""
        try:
            yield
        except OSError as error:
            self._fail(error, _OF_WRITING)
            raise

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Wrap the start of processes: errors count, and go on."""
        try:
            yield
        except OSError as error:
            self._fail(error, _OF_STARTING)
            raise

    def proved(self) -> None:
        """Note that a task was given to a slot. If starts failed only at the program's start, that proves nothing."""
        if not self._late:
            self._failed, self._why = 0, ""

    def hear(self, ending: Ending) -> None:
        """Take in a task's end: the machine refuses some tasks only when their program is to begin."""
        if ending.kind == "spawn_failed" and ending.refusal is not None:
            if fault_of(ending.refusal) is Fault.MACHINE:
                self._fail(OSError(ending.refusal, os.strerror(ending.refusal)), _OF_STARTING)
                self._late = True
        elif self._late and ending.kind in ("exited", "signaled"):
            self._late = False
            self.proved()

    def lacking(self) -> bool:
        """Whether nothing may be claimed just now."""
        return self._clock.monotonic() < self._until

    @property
    def notes(self) -> tuple[str, ...]:
        """The fault, until a start proves that it is gone, or a task that was started goes on and on."""
        stale = self._late and self._clock.monotonic() >= self._until + MOST_S
        return (self._why,) if self._why and not stale else ()

    def _fail(self, error: OSError, fixes: dict[int, str]) -> None:
        if self.lacking():
            return  # the task was here already when the pause began
        self._failed += 1
        pause = pause_s(self._failed)
        self._until = self._clock.monotonic() + pause
        fix = fixes.get(error.errno or 0, "")
        self._why = f"no task can be started here ({error}), and none is claimed for {pause:g} s{fix and f'; {fix}'}"
        if self._failed == 1:
            advice = f"Fix: {fix}. " if fix else ""
            log.error("no task can be started here: %s. %sIt is tried again now and then.", error, advice)
