"""One turn of an agent: its program runs, and what it says is read, until it ends or has to be ended.

Law: a turn never hangs. It is ended when it falls silent and does nothing, when it hides a spent quota, or a model
that never answers, behind retries of its own, and when it stays after it said that it is done.

Touches: the clock, the terminal.
"""

from __future__ import annotations

import errno
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spoold.agents.adapters.adapter import Adapter, Event, Start, Trouble
from spoold.agents.process.ending import Turn
from spoold.agents.process.interfaces import Sandbox
from spoold.agents.process.program import Bounds, Life, Program, Source
from spoold.agents.process.transcript import Transcript
from spoold.agents.workspace.acceptance import OUTPUT_MAX, Ran
from spoold.protocol.errors import SpoolError

# How often (s) it is looked whether a turn has to end.
LOOK_S = 0.2
# For how long (s) an agent may stay after it said that it is done, or that it cannot go on; how long it may try a
# quota by itself before that counts as spent; and how long it may try a model that has not answered at all: codex
# waits for a network for ever.
LINGER_S, SETTLE_S, PATIENCE_S, UNANSWERED_S = 10.0, 5.0, 20.0, 180.0


class CannotStart(SpoolError):
    """A program cannot be started. code: the exit code that says so, as a shell has it."""

    def __init__(self, program: str, error: OSError) -> None:
        codes = {errno.ENOENT: 127, errno.EACCES: 126, errno.ENOEXEC: 126}
        self.code = codes.get(error.errno or 0, 1)
        super().__init__(f"{program} cannot be started: {error.strerror or error}")


@dataclass(frozen=True, slots=True)
class Scene:
    """Where programs run: the sandbox, the directory, the home, and the variables. stopped: whether the attempt has
    to end; alive: called now and then while one runs.
    """

    sandbox: Sandbox
    directory: str
    home: str
    env: Mapping[str, str]
    stopped: Callable[[], bool]
    alive: Callable[[], None]

    def program(self, start: Start) -> Program:
        """Start a program. Errors: CannotStart, SpoolError."""
        try:
            argv, env = self.wrapped(start)
            return Program(argv, self.directory, env, start.stdin, dict.fromkeys(start.logs, self.home))
        except OSError as error:
            raise CannotStart(start.argv[0], error) from error

    def wrapped(self, start: Start) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command of a program in its sandbox, and its variables. Errors: SpoolError, OSError."""
        # Some programs take PWD for the folder in which they are, whatever the kernel says.
        variables = {**self.env, **start.env, "PWD": self.directory}
        own = {name for name, value in start.env.items() if self.env.get(name) != value}
        return self.sandbox.wrap(start.argv, variables, tuple(start.files), own)


def take_turn(adapter: Adapter, start: Start, scene: Scene, heard: Transcript, bounds: Bounds) -> Turn:
    """Run the agent once; what it says is in `heard`. Errors: CannotStart, SpoolError."""
    program = scene.program(start)
    watch = _Watch(heard, Life(bounds, time.monotonic()))
    try:
        while not program.over:
            lines = program.heard(LOOK_S)
            events = _read(adapter, lines)
            for event in events:
                heard.take(event)
                _tell(event)
            scene.alive()
            why = "it was stopped" if scene.stopped() else watch.look(bool(lines), bool(events), program)
            if why is not None:
                return Turn(0 if heard.done and not why else None, why, program.errors)
        return Turn(program.code, "", program.errors)
    finally:
        program.end()
        scene.sandbox.clear()
        # What it used until its end counts; why it had to end is settled.
        for event in _read(adapter, program.rest()):
            heard.count(event)


def _read(adapter: Adapter, lines: Sequence[tuple[Source, str]]) -> list[Event]:
    events: list[Event] = []
    for source, line in lines:
        if source == "errors":
            _print(line, errors=True)
        events += (adapter.read if source == "out" else adapter.read_log)(line, time.time())
    return events


class _Watch:
    """Knows when a turn has to end."""

    def __init__(self, heard: Transcript, life: Life) -> None:
        self._heard, self._life = heard, life
        self._troubled: float | None = None
        self._done: float | None = None

    def look(self, heard_something: bool, said_something: bool, program: Program) -> str | None:
        """Return why it has to end now, '' where what it said is reason enough; None if it goes on. said_something:
        an event, so that it was not yet done: a subagent of it may go on.
        """
        now, heard = time.monotonic(), self._heard
        if heard_something:
            self._life.speaks(now)
        elif self._life.wants(now):
            self._life.take(program.sample())
        self._done = (now if said_something else self._done or now) if heard.done else None
        self._troubled = (self._troubled or now) if heard.trouble is not None else None
        if self._done is not None and now - self._done > LINGER_S:
            return ""
        if heard.trouble is not None and self._troubled is not None:
            idle_s = self._life.idle_s if heard.answered else min(self._life.idle_s, UNANSWERED_S)
            patience = _patience(heard.trouble, idle_s)
            if now - self._troubled > patience:
                return ""
        return self._life.over(now) or None


def _patience(trouble: Trouble, idle_s: float) -> float:
    """Return how long (s) an agent may try to get over a trouble. idle_s: of one that may pass by itself."""
    if trouble.fault not in ("quota", "rate"):
        return SETTLE_S if trouble.final else idle_s
    hopeless = trouble.until is not None and trouble.until - time.time() > PATIENCE_S
    return SETTLE_S if trouble.final or hopeless else PATIENCE_S


def run_command(
    words: Sequence[str],
    scene: Scene,
    within_s: float,
    *,
    aloud: bool = False,
    most: int = 2 * OUTPUT_MAX,
    stdin: str = "",
) -> Ran:
    """Run a command where the agent works. aloud: what it prints comes into the log of the attempt; most: so much of
    the end is kept, in characters; stdin: what it may read.

    Errors: CannotStart, SpoolError.
    """
    program, give_up_at = scene.program(Start(tuple(words), stdin)), time.monotonic() + within_s
    kept = ""
    try:
        while not program.over:
            said = [line for _, line in program.heard(LOOK_S)]
            for line in said if aloud else ():
                _print(line)
            kept = "\n".join([kept, *said] if kept else said)[-most:]
            scene.alive()
            if scene.stopped() or time.monotonic() > give_up_at:
                return Ran(program.code, kept)
        return Ran(program.code, kept)
    finally:
        program.end()
        scene.sandbox.clear()


def _tell(event: Event) -> None:
    """Print what was said, for the log of the attempt."""
    if event.text:
        _print(event.text)
    if event.tool:
        _print(f"[tool] {event.tool}")
    if event.trouble is not None:
        _print(f"[{event.trouble.fault}] {event.trouble.message}")


def _print(text: str, *, errors: bool = False) -> None:
    with suppress(OSError, ValueError):
        stream = sys.stderr if errors else sys.stdout
        stream.write(f"{text.encode('utf-8', 'replace').decode()}\n")
        stream.flush()
