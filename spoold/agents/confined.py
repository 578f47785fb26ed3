"""The sandbox of one attempt: what the profile asks for, tried out, around every program of the attempt.

Law: fails closed. What an adapter says of its program holds inside, too: each variable, file and log. The spool is
not shown, and of the task's own files only what it was given to read. Its result is written by the program outside,
never by the agent.

Touches: files, the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pydantic import Field, model_validator

from spoold.agents.context.copied import copied
from spoold.agents.places import Bare, NoPlace, Opened, Sandbox
from spoold.agents.program import leave_keyring
from spoold.agents.sandbox import policy
from spoold.agents.sandbox.entering import Entered, entered
from spoold.agents.sandbox.guarded import disarm, guarded
from spoold.agents.sandbox.mailbox import mailbox
from spoold.agents.sandbox.policy import NoSandbox, Scene
from spoold.agents.sandbox.programs import needed
from spoold.client.spool.connection import Connection
from spoold.protocol import codec
from spoold.protocol.errors import SpoolError, WrongValue
from spoold.protocol.fields import Directory, MemMb, Strict, Whole
from spoold.system.remover import remove

_MISSED = re.compile(r"cannot open|can't open|no such file or directory|not found", re.IGNORECASE)
# Ways into this machine that some variables name, and places of it that are not shown.
WAYS_IN = (
    "SPOOL_",
    "TMPDIR",
    "DBUS_",
    "SSH_AUTH_SOCK",
    "XDG_RUNTIME_DIR",
    "GPG_AGENT_INFO",
    "WAYLAND_DISPLAY",
    "DISPLAY",
)


class SandboxConfig(Strict):
    """What a profile says of its sandbox: the fields of `policy.Sandbox`, and show: what else may be read in it."""

    kind: policy.Kind = "none"
    network: policy.Network | None = None
    hosts: tuple[str, ...] = ()
    image: str = ""
    nested: bool = False
    memory_mb: MemMb | None = None
    processes: Whole | None = Field(default=None, ge=1, le=1_000_000)
    show: tuple[Directory, ...] = ()

    @model_validator(mode="after")
    def _makes_sense(self) -> SandboxConfig:
        try:
            self.asked()
        except ValueError as error:
            problem, _, fix = str(error).partition("; ")
            raise WrongValue(problem, fix or "see docs/guide/sandbox.md") from None
        return self

    def asked(self) -> policy.Sandbox:
        """Return it as the sandbox takes it. Errors: ValueError."""
        return policy.Sandbox(**self.model_dump(exclude={"show"}))


def read(said: str | Mapping[str, Any], place: str) -> SandboxConfig:
    """Return what a profile says of its sandbox; place: its file, for errors. Errors: BadFile."""
    return codec.check(SandboxConfig, {"kind": said} if isinstance(said, str) else dict(said), place)


def sandbox_for(
    said: str | Mapping[str, Any], environ: Mapping[str, str] = os.environ, memory_mb: int = 0
) -> Sandbox:
    """Return the sandbox of a profile. memory_mb: the cap of the task, 0 for none. Errors: BadFile."""
    config = read(said, "the sandbox of the profile")
    return Bare() if config.kind == "none" else Confined(config, environ, memory_mb)


class Confined:
    """A sandbox around the programs of one attempt."""

    def __init__(self, config: SandboxConfig, environ: Mapping[str, str], memory_mb: int = 0) -> None:
        self._config, self._environ, self._memory_mb = config, environ, memory_mb
        self._entered: Entered | None = None
        self._own: Mapping[str, str] = {}

    @contextmanager
    def enter(self, opened: Opened) -> Iterator[None]:
        """Try it out, and open its way out for as long as the attempt works. Errors: NoPlace, OSError."""
        # Not in the home: what an agent may write, the next attempt must not follow.
        folder = f"{os.path.dirname(self._environ['SPOOL_WORK_DIR'])}/confined"
        remove(folder)
        os.mkdir(folder, mode=0o700)
        os.mkdir(f"{folder}/empty")
        held = guarded(opened.directory, opened.whose, opened.submodules)
        box = mailbox(self._given(f"{folder}/context"), f"{folder}/box")
        shown = (*self._config.show, *box.shown, *opened.borrowed)
        root = self._environ.get("SPOOL_ROOT")
        scene = Scene(
            opened.directory,
            opened.home,
            shown=shown,
            writable=tuple(path for path in box.writable if path != opened.directory),
            hidden=(root,) if root else (),
            held=held,
            others=opened.whose == "shared",
            empty=f"{folder}/empty",
            memory_mb=self._memory_mb,
        )
        self._own = box.env
        leave_keyring()
        with _no_place(), entered(self._config.asked(), scene) as inside:
            self._entered = inside
            try:
                yield
            finally:
                self._entered = None
                disarm(held)

    @property
    def refused(self) -> tuple[str, ...]:
        """Which hosts its proxy did not let through, or did not reach, since it was entered."""
        return () if self._entered is None else self._entered.refused

    def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], fixed: Sequence[str] = (), own: Collection[str] = ()
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command in the sandbox, and its variables. Errors: NoPlace, OSError."""
        if self._entered is None:
            raise NoPlace("the sandbox was not entered.")
        passed = {name: value for name, value in env.items() if name in own or not name.startswith(WAYS_IN)}
        scene, shown = self._entered.scene, self._programs(argv[0], env)
        scene = replace(scene, env={**passed, **self._own}, shown=(*scene.shown, *shown), fixed=tuple(fixed))
        with _no_place():
            wrapped = replace(self._entered, scene=scene).wrap(argv)
        return wrapped.argv, wrapped.env

    def _programs(self, program: str, env: Mapping[str, str]) -> list[str]:
        """Return what has to be shown so that a program can run; a container brings its own. Errors: OSError."""
        return [] if self._config.kind == "podman" else needed(program, env.get("PATH", os.defpath))

    def _given(self, folder: str) -> dict[str, str]:
        """Return the variables of the task whose files the agent may read. The program outside writes result and
        progress. What the batch shares lies in the spool, so the agent gets a copy, in this folder.
        """
        said = ("SPOOL_RESULT_FILE", "SPOOL_PROGRESS_FILE")
        given = {name: value for name, value in self._environ.items() if name not in said}
        batch = given.get("SPOOL_BATCH")
        if given.pop("SPOOL_CONTEXT_DIR", None) and batch:
            try:
                copied(Connection(self._environ["SPOOL_ROOT"]), batch, folder)
            except SpoolError:
                return given
            given["SPOOL_CONTEXT_DIR"] = folder
        return given


def hint(said: str | Mapping[str, Any], errors: str) -> str:
    """Return what may be missing in the sandbox of a profile; '' without one, or where nothing was missed.

    errors: the end of stderr.
    """
    kind = said if isinstance(said, str) else said.get("kind", "none")
    if kind == "none" or not _MISSED.search(errors):
        return ""
    return f" (in the sandbox {kind} only the agent's program, its workspace and what `show` lists can be read)"


@contextmanager
def _no_place() -> Iterator[None]:
    """Inside, what a sandbox refuses is an error of the attempt's place."""
    try:
        yield
    except NoSandbox as error:
        raise NoPlace(f"{error.problem}. {error.fix[:1].upper()}{error.fix[1:]}.") from error
