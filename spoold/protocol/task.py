"""A task file, as people write it.

Exactly one thing says what to run: a `command` (argv, or a string for the shell), a `python` callable
("module:function"), or neither: then the worker's own handler for the `type` does. A callable is called once with
`args` and `kwargs`, or once with each list of arguments in `calls`. For agents there is a short form, see
`agent_fields`.

Law: the content of a task never changes after its admission; only its name and its place do.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated, Any

from pydantic import AliasChoices, Field, field_validator, model_validator

from spoold.protocol import agent_fields
from spoold.protocol.amount import MOST
from spoold.protocol.approval import Approval
from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import (
    Callable,
    Directory,
    Env,
    MemMb,
    OptionalWord,
    Priority,
    Real,
    Seconds,
    SomeSeconds,
    Stamp,
    Strict,
    TaskId,
    Timeout,
    Uses,
    Whole,
    Words,
    argv,
)
from spoold.protocol.lanes import Lane
from spoold.protocol.lock_patterns import PATTERNS_MAX, Pattern
from spoold.protocol.plain_fields import DEPTH_MAX

DEPENDENCIES_MAX = 10_000
# The keys of a task's own `budget` that budgets reserve by; other tools may have others there.
RESERVED = ("cost_usd", "tokens", "task_s")
ExitCode = Annotated[Whole, Field(ge=0, le=255)]


class Requires(Strict):
    """What a worker must have free: cpus in cores, mem_mb in MiB (also the task's cap), gpus in devices, labels."""

    cpus: Real = Field(default=0, ge=0, le=9999, validation_alias=AliasChoices("cpus", "cpu"))
    mem_mb: MemMb = Field(default=0, validation_alias=AliasChoices("mem_mb", "mem"))
    gpus: Whole = Field(default=0, ge=0, le=9999, validation_alias=AliasChoices("gpus", "gpu"))
    labels: Words = Field(default=(), validation_alias=AliasChoices("labels", "label"))


class Retry(Strict):
    """How often and how soon to try again; None leaves it to the spool's settings. Times in seconds.

    memory_factor: the memory of the next attempt, relative to one that ran out of it.
    on: only these exit codes are tried again; never: these are not. Both empty: see `rules.attempts.retry_rule`.
    """

    max: Whole | None = Field(default=None, ge=0, le=1000)
    backoff_s: Seconds | None = None
    factor: Real | None = Field(default=None, ge=1, le=100)
    jitter: Real | None = Field(default=None, ge=0, le=1)
    memory_factor: Real | None = Field(default=None, ge=1, le=100)
    on: tuple[ExitCode, ...] = ()
    never: tuple[ExitCode, ...] = ()


class Locks(Strict):
    """What no other task may touch meanwhile (write), or only read meanwhile (read): patterns, see `patterns`."""

    write: tuple[Pattern, ...] = ()
    read: tuple[Pattern, ...] = ()

    @field_validator("write", "read", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @model_validator(mode="after")
    def _not_too_many(self) -> Locks:
        if (count := len(self.write) + len(self.read)) > PATTERNS_MAX:
            problem = f"{count:,} patterns, and a task may lock {PATTERNS_MAX}"
            raise WrongValue(problem, "lock a folder, with a / at its end")
        return self


class Task(Strict):
    """One task. `timeout` is in seconds for one attempt; `deadline` and `not_before` are times with a zone."""

    id: TaskId | None = None
    type: OptionalWord = ""
    name: str = Field(default="", max_length=500)
    priority: Priority | None = None
    created_at: Stamp | None = None
    timeout: Timeout | None = None
    input: Any = None
    command: str | tuple[str, ...] | None = None
    python: Callable | None = Field(default=None, max_length=200)
    args: list[Any] = Field(default_factory=list)
    kwargs: dict[str, Any] = Field(default_factory=dict)
    calls: tuple[list[Any], ...] | None = Field(default=None, min_length=1)
    stdin: str | None = None
    env: Env = Field(default_factory=dict)
    cwd: Directory | None = Field(default=None, max_length=4096)
    dependencies: tuple[TaskId, ...] = Field(
        default=(), validation_alias=AliasChoices("dependencies", "after"), max_length=DEPENDENCIES_MAX
    )
    after_any: tuple[TaskId, ...] = Field(default=(), max_length=DEPENDENCIES_MAX)
    after_failed: tuple[TaskId, ...] = Field(default=(), max_length=DEPENDENCIES_MAX)
    after_batch: TaskId | None = None
    retry_count: Whole = Field(default=0, ge=0, le=1000)
    max_retries: Whole | None = Field(default=None, ge=0, le=1000)
    retry: Retry = Retry()
    requires: Requires = Requires()
    uses: Uses = Field(default_factory=dict, max_length=20)
    bulkhead: OptionalWord = Field(default="", validation_alias=AliasChoices("bulkhead", "class"))
    pool: OptionalWord = ""
    labels: dict[str, str] | tuple[str, ...] = ()
    batch: TaskId | None = None
    parent: TaskId | None = None
    depth: Whole = Field(default=0, ge=0, le=DEPTH_MAX)
    deadline: Stamp | None = None
    not_before: Stamp | None = None
    stall_timeout: SomeSeconds | None = None
    locks: Locks = Locks()
    artifacts: tuple[str, ...] = ()
    budget: dict[str, Real] = Field(default_factory=dict)
    hold: str | None = Field(default=None, min_length=1, max_length=500)
    approval: Approval | None = None
    budgets: Words = ()
    meta: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _long_form(cls, value: Any) -> Any:
        return agent_fields.expanded(value) if isinstance(value, dict) else value

    @field_validator("dependencies", "after_any", "after_failed", "artifacts", mode="before")
    @classmethod
    def _one_or_many(cls, value: Any) -> Any:
        return (value,) if isinstance(value, str) else value

    @field_validator("command")
    @classmethod
    def _command(cls, value: str | tuple[str, ...] | None) -> str | tuple[str, ...] | None:
        if value is not None:
            argv((value,) if isinstance(value, str) else value)
        return value

    @field_validator("budget")
    @classmethod
    def _budget(cls, value: dict[str, float]) -> dict[str, float]:
        for name in RESERVED:
            if not 0 <= value.get(name, 0) <= MOST:
                raise WrongValue(f"{name} is no amount from 0 to {MOST:,}", f"give {name} an amount, or none")
        return value

    @model_validator(mode="after")
    def _one_thing_to_run(self) -> Task:
        if self.command is not None and self.python is not None:
            raise WrongValue("command and python both say what to run", "keep one of them")
        if (self.args or self.kwargs or self.calls) and self.python is None:
            problem = "args, kwargs and calls belong to python"
            raise WrongValue(problem, "put a command's arguments into its list")
        if self.calls and (self.args or self.kwargs):
            raise WrongValue("calls and args both say what python is called with", "keep one of them")
        if not self.type and self.command is None and self.python is None:
            raise WrongValue("nothing to run", "give a type that workers have a handler for, a command, or python")
        if self.depth and self.parent is None:
            raise WrongValue("depth is for a task with a parent", "leave it out; `spool submit` in a task sets both")
        if self.id is not None and self.id == self.parent:
            raise WrongValue(f"the task is its own parent ({self.id})", "leave parent out")
        if self.id is not None and self.id in (*self.dependencies, *self.after_any, *self.after_failed):
            mend = "take its own id out of dependencies, after_any and after_failed"
            raise WrongValue(f"the task depends on itself ({self.id})", mend)
        return self

    @property
    def kind(self) -> str:
        """The type, or its substitute if none was given; settings, limits and lanes use it."""
        return self.type or self.run

    @property
    def run(self) -> str:
        """The source of the work: command, python or handler."""
        if self.command is not None:
            return "command"
        return "python" if self.python is not None else "handler"

    @property
    def conditional(self) -> bool:
        """Whether the content must be read before the task may be moved: parents, times, people, budgets, locks."""
        parents = self.dependencies or self.after_any or self.after_failed or self.after_batch
        draws = self.budgets or self.reserves or self.locks.write or self.locks.read
        waits = parents or self.deadline or self.not_before or draws
        return bool(waits) or self.hold is not None or self.approval is not None

    @property
    def level(self) -> int:
        """How many tasks are above it, as it says itself: 0 for a task without a parent."""
        return max(self.depth, 1) if self.parent is not None else 0

    @property
    def reserves(self) -> dict[str, float]:
        """The part of its own budget that budgets reserve before an attempt: USD, tokens, seconds."""
        return {name: self.budget[name] for name in RESERVED if name in self.budget} if self.budget else {}

    @property
    def lane(self) -> Lane:
        """The demand that its lane's name states."""
        return Lane(*self._demand())

    @property
    def lane_name(self) -> str:
        """The name of its lane. Errors: BadName."""
        return _lane_name(*self._demand())

    def _demand(self) -> tuple[Any, ...]:
        needs, module = self.requires, self.python.partition(":")[0] if self.python else ""
        uses = tuple(self.uses.items())
        demand = (self.kind, self.run, self.pool, needs.cpus, needs.mem_mb, needs.gpus, needs.labels, module)
        return (*demand, uses, self.bulkhead)


@lru_cache(maxsize=4096)
def _lane_name(*demand: Any) -> str:
    """Cached: most tasks share their lane with many others, and spelling a name is slow."""
    return Lane(*demand).encode()
