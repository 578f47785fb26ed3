"""A worker's own configuration: what it serves and how it runs it. A file on the machine, never on the share.

Law: this file decides what a worker may run, not the users who can write to the share: handlers by type, Python
modules by prefix, and raw commands only where `allow_command` says so. A pattern of what is masked that cannot be
used is refused when the worker starts, never when a task has printed something.

Touches: files.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, Field, PrivateAttr, field_validator, model_validator

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.fields import ByWord, Directory, Env, MemMb, Real, Seconds, SomeSeconds, Strict, Whole, Words
from spoold.protocol.heartbeat import AMOUNT_MAX
from spoold.protocol.settings import LostShare
from spoold.protocol.toml_file import toml_table
from spoold.rules.scheduling.fallback_types import fault_in
from spoold.rules.workers.readiness import RunOnBattery
from spoold.worker.handlers.handler import Handler, Permits
from spoold.worker.handlers.secrets import Source, variable

# What is masked in the output of attempts, besides the secrets that they were given.


class Redact(Strict):
    """patterns: regular expressions in the syntax of Python, each within a line. tokens: whether well-known shapes of
    tokens and private keys are masked.
    """

    patterns: tuple[str, ...] = ()
    tokens: bool = True

    @field_validator("patterns")
    @classmethod
    def _patterns(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            try:
                empty = re.compile(pattern).search("")
            except re.error as error:
                raise WrongValue(
                    f"{pattern!r} is no regular expression: {error}", "use the syntax of Python, in '…'"
                ) from None
            if empty is not None:
                raise WrongValue(f"{pattern!r} also finds an empty text", "let it find at least one character")
        return value


class PythonSettings(Permits):
    """Which callables may run (prefixes of module names; "*" is any), and where else to look for modules.

    A callable must be from such a module itself. Where any is allowed, tasks may choose directory and variables.
    interpreter: of callables; by default the one that runs the worker, with all that is installed for it.
    """

    allow: tuple[str, ...] = ()
    path: tuple[Directory, ...] = ()
    interpreter: Directory | None = None

    @property
    def executable(self) -> str:
        """The interpreter of callables."""
        return self.interpreter or sys.executable


class Laptop(Strict):
    """The behaviour of a machine with a battery and a lid. It does not matter to a machine that has neither.

    run_on_battery: true, as on mains; "finish", take nothing new; false, also hand back running tasks, after the
    drain grace. Below min_battery_percent, on battery, it is as if it were false. inhibit_sleep: keep the machine
    awake while tasks run, whatever the lid does. sleep_grace_s: how long tasks may finish before it sleeps.
    """

    run_on_battery: RunOnBattery = True
    min_battery_percent: Whole = Field(default=0, ge=0, le=100)
    inhibit_sleep: bool = False
    sleep_grace_s: Seconds = 5

    @field_validator("run_on_battery", mode="before")
    @classmethod
    def _one_of_three(cls, value: object) -> object:
        if not isinstance(value, bool) and value != "finish":
            raise WrongValue("not a policy", 'use true, "finish" or false')
        return value


class WorkerConfig(Strict):
    """A worker's TOML file; command-line options override it. Times in seconds, memory in MiB.

    pass_env: which of the worker's own variables tasks get beside HOME, PATH and the like; drop_env: which not.

    max_memory_mb caps tasks without a limit of their own. Nothing new is taken while the load per cpu is above
    max_load, or while less than min_free_mb of memory is available. idle_timeout_s: leave after that long idle.
    lost_share: the treatment of a running task while the share is silent for longer than the lease: "freeze" (for at
    most freeze_s), "stop" or "continue"; a handler's own comes first, then that of the type in spool.toml.
    max_lent: how many tasks of one depth (a task, its children, …) may have lent their slot while they wait; then no
    more of that depth start here. Default: 16 times the slots.
    secrets: where each secret is on this machine; only handlers that name one get it. redact: what else is masked in
    the output of attempts.
    """

    # Tables of its file that are handlers by the time it is read: people are told of them as of the other keys.
    BESIDE: ClassVar[tuple[str, ...]] = ("agents", "merge")

    spool: str | None = None
    name: str | None = None
    slots: Whole | None = Field(default=None, ge=1, le=4096)
    types: Words = ()
    labels: Words = ()
    pools: Words = ()
    allow_command: bool = False
    handlers: ByWord[Handler] = {}
    python: PythonSettings = PythonSettings()
    laptop: Laptop = Laptop()
    secrets: dict[Annotated[str, AfterValidator(variable)], Source] = {}
    redact: Redact = Redact()
    env: Env = {}
    pass_env: tuple[str, ...] = ()
    drop_env: tuple[str, ...] = ()
    cpus: Real | None = Field(default=None, gt=0, le=AMOUNT_MAX, allow_inf_nan=False)
    mem_mb: MemMb | None = None
    gpus: Whole | None = Field(default=None, ge=0, le=AMOUNT_MAX)
    max_memory_mb: MemMb | None = None
    max_load: Real | None = Field(default=None, gt=0)
    min_free_mb: MemMb = 0
    idle_timeout_s: SomeSeconds | None = None
    kill_grace_s: Seconds = 10
    drain_grace_s: Seconds = 60
    lost_share: LostShare = "freeze"
    freeze_s: Seconds = 600
    max_lent: Whole | None = Field(default=None, ge=1, le=100_000)
    log_max_mb: Whole = Field(default=64, ge=0)
    output_tail_kb: Whole = Field(default=16, ge=0, le=1024)
    _file: str = PrivateAttr("")

    @field_validator("spool")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return os.path.abspath(os.path.expanduser(value)) if value else None

    @field_validator("spool", "name")
    @classmethod
    def _no_nul(cls, value: str | None) -> str | None:
        if value and "\0" in value:
            raise WrongValue("holds a NUL character, which no name may", "leave it out")
        return value

    @model_validator(mode="after")
    def _secrets_known(self) -> WorkerConfig:
        for kind, handler in self.handlers.items():
            for name in handler.secrets:
                if name not in self.secrets:
                    raise WrongValue(
                        f"the handler of {kind} gets the secret {name}, and [secrets] has none of that name",
                        f'add {name} = {{file = "/path"}} under [secrets]',
                    )
                if name in handler.env:
                    raise WrongValue(
                        f"the handler of {kind} has {name} as a secret and in its env",
                        f"take {name} out of one of the two",
                    )
        return self

    @model_validator(mode="after")
    def _instead_known(self) -> WorkerConfig:
        for kind, handler in self.handlers.items():
            if (fault := fault_in(kind, handler.instead)) is not None:
                raise WrongValue(f"handlers.{kind}.instead: {fault.problem}", fault.mend)
        return self

    @property
    def crowds(self) -> dict[str, int]:
        """How many tasks of a handler may run at once, by type, where that is bounded."""
        return {kind: one.max_concurrent for kind, one in self.handlers.items() if one.max_concurrent is not None}

    def found_in(self, file: str) -> WorkerConfig:
        """Return the same, as read from that file."""
        self._file = file
        return self

    def place(self, *table: str) -> str:
        """Return the place of a table for people: its header, and the file."""
        header = ".".join(f'"{part}"' if "." in part else part for part in table)
        return f"[{header}] in {self._file or 'the configuration of the worker'}"


# A table of a worker's file, and the name of the file, become what the table means.
Expand = Callable[[dict[str, Any], str], dict[str, Any]]


def load_config(
    path: str | None, options: Mapping[str, Any] | None = None, *, expand: Expand | None = None
) -> WorkerConfig:
    """Return a worker's configuration from its file, if any, with command-line options over it.

    expand: turns the tables of programs on top of a worker into handlers, before anything is checked.
    Errors: BadFile that names the file, the key and the fix.
    """
    said: dict[str, Any] = {}
    if path is not None:
        try:
            with open(path, "rb") as file:
                said = toml_table(file.read(), path)
        except (OSError, ValueError) as error:  # a NUL in its name is no OSError
            why = error.strerror if isinstance(error, OSError) else error
            raise BadFile(path, "", f"cannot be read: {why}.", "check the path given to --config.") from error
        said = said if expand is None else expand(said, path)
    made = codec.check(WorkerConfig, {**said, **(options or {})}, path or "the command line")
    return made if path is None else made.found_in(os.path.abspath(path))
