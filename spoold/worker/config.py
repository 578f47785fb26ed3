"""A worker's own configuration: what it serves and how it runs it. A file on the machine, never on the share.

What a worker may run is decided here and not by whoever can write to the share: handlers by type, Python modules by
prefix, and raw commands only where `allow_command` says so.
"""

from __future__ import annotations

import os
import re

from pydantic import Field, field_validator, model_validator

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.fields import (
    Callable,
    Directory,
    Env,
    MemMb,
    Real,
    Seconds,
    SomeSeconds,
    Strict,
    Whole,
    Word,
    Words,
    argv,
)
from spoold.rules.power import RunOnBattery

# What is filled into the words of a handler's command. ${NAME} is a shell's, which finds it in its environment.
FIELD = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
FIELDS = ("id", "attempt", "type", "batch", "input", "meta")


class Handler(Strict):
    """How tasks of one type are run: a command in which {input.KEY}, {id} and the like are filled in, or a callable.

    The command gets the task's input as JSON on stdin. timeout (s) holds unless the task names its own. What would
    fail every task is refused here, before a worker takes any.
    """

    command: tuple[str, ...] = ()
    python: Callable | None = None
    env: Env = {}
    cwd: Directory | None = None
    timeout: SomeSeconds | None = None

    @field_validator("command")
    @classmethod
    def _command(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in (path for word in value for path in FIELD.findall(word)):
            if path.partition(".")[0] not in FIELDS:
                known = ", ".join(f"{{{name}}}" for name in FIELDS)
                raise WrongValue(f"{{{path}}} is no field of a task", f"use {known}; other braces belong in a script")
        return value and argv(value)

    @model_validator(mode="after")
    def _one_of(self) -> Handler:
        if bool(self.command) == (self.python is not None):
            raise WrongValue(
                "a handler has either a command (a list of words) or a python callable (module:function)",
                "give it one of the two",
            )
        return self


class PythonSettings(Strict):
    """Which callables may run (prefixes of module names; "*" is any), and where else to look for modules."""

    allow: tuple[str, ...] = ()
    path: tuple[str, ...] = ()


class Laptop(Strict):
    """What a machine with a battery and a lid does. Nothing here matters to a machine that has neither.

    run_on_battery: true, as on mains; "finish", take nothing new; false, hand back what runs too, after the drain
    grace. Below min_battery_percent, on battery, it is as if it were false. inhibit_sleep: keep the machine awake
    while tasks run, whatever the lid does. sleep_grace_s: how long tasks may finish when the machine is to sleep.
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
    """A worker's TOML file; command-line options go over it. Times in seconds, memory in MiB.

    max_memory_mb caps tasks that name no limit of their own. Nothing new is taken while the load per cpu is above
    max_load, or while less than min_free_mb of memory is available. idle_timeout_s: leave after that long idle.
    """

    spool: str | None = None
    name: str | None = None
    slots: Whole | None = Field(default=None, ge=1, le=4096)
    types: Words = ()
    labels: Words = ()
    pools: Words = ()
    allow_command: bool = False
    handlers: dict[Word, Handler] = {}
    python: PythonSettings = PythonSettings()
    laptop: Laptop = Laptop()
    env: Env = {}
    pass_env: tuple[str, ...] | None = None
    cpus: Real | None = Field(default=None, gt=0, allow_inf_nan=False)
    mem_mb: MemMb | None = None
    gpus: Whole | None = Field(default=None, ge=0)
    max_memory_mb: MemMb | None = None
    max_load: Real | None = Field(default=None, gt=0)
    min_free_mb: MemMb = 0
    idle_timeout_s: SomeSeconds | None = None
    kill_grace_s: Seconds = 10
    drain_grace_s: Seconds = 60
    log_max_mb: Whole = Field(default=64, ge=0)
    output_tail_kb: Whole = Field(default=16, ge=0, le=1024)

    @field_validator("spool")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return os.path.abspath(os.path.expanduser(value)) if value else None


def load_config(path: str) -> WorkerConfig:
    """Read a worker's configuration. Errors: BadFile that names the file, the key and the mend."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise BadFile(path, "", f"cannot be read: {error.strerror}.", "check the path given to --config.") from error
    return codec.load_toml(WorkerConfig, data, path)
