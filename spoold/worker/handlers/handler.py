"""A handler: how the tasks of one type are run on this worker, and what they may say about it themselves.

Law: what a handler does not allow, a task does not get. A task fills in words of a command; it chooses no directory,
no variable and no option unless the owner of this machine has named it. A handler that would fail every task, or make
code of a task's text, is refused here, before a worker takes any.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic_core import SchemaError

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Callable, Directory, Env, SomeSeconds, Strict, Whole, Word, argv
from spoold.protocol.settings import LostShare
from spoold.worker.handlers import hazards

# Fields that are filled into the words of a handler's command. ${NAME} is a shell's, which reads its environment.
FIELD = re.compile(r"(?<!\$)\{([A-Za-z_][\w.-]*)\}")
FIELDS = ("id", "attempt", "type", "batch", "input", "meta")
# Of these only the last two hold free text of a task's author; the others are checked words and numbers.
_FREE = ("input", "meta")


def _exact(value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if not name or set(name) & set("=\0*?["):
            raise WrongValue(
                f"{name!r} is not the name of one variable", "write each name in full; patterns do not count"
            )
    return value


def _straight(value: tuple[str, ...]) -> tuple[str, ...]:
    for path in value:
        if ".." in path.split("/"):
            raise WrongValue(f"{path} goes back by '..'", "write the directory that it means")
    return value


class Permits(Strict):
    """Where tasks may start (below these directories), which variables they may set, and whether they may set their
    standard input. By default: nowhere, none, and no.
    """

    allow_cwd: Annotated[tuple[Directory, ...], AfterValidator(_straight)] = ()
    allow_env: Annotated[tuple[str, ...], AfterValidator(_exact)] = ()
    allow_stdin: bool = False


class Handler(Permits):
    """How tasks of one type are run: a command in which {input.KEY}, {id} and the like are filled in, or a callable.

    The command gets the task's input as JSON on stdin; the task's own stdin only where that is allowed. timeout (s)
    holds unless the task names its own, which max_timeout caps. match: which values a field may have, as regular
    expressions. allow_options: the fields that may begin a word with a dash. lost_share: the treatment of a running
    task once its lease is over. secrets: the secrets of the worker that it gets, as variables of these names.
    max_concurrent: how many of its tasks run here at once. needs: programs that its command starts, so that a machine
    without one of them leaves the type to others. check: a command that must succeed before this worker takes its
    tasks, with what it says of its version. about: what people are told of it, by name. instead: the types as
    which its tasks may run while a limit of their own type is closed, in order.
    """

    command: tuple[str, ...] = ()
    python: Callable | None = None
    env: Env = {}
    cwd: Directory | None = None
    timeout: SomeSeconds | None = None
    max_timeout: SomeSeconds | None = None
    match: dict[str, str] = {}
    allow_options: tuple[str, ...] = ()
    lost_share: LostShare | None = None
    secrets: tuple[str, ...] = ()
    max_concurrent: Whole | None = Field(default=None, ge=1, le=4096)
    needs: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    about: dict[str, str] = {}
    instead: tuple[Word, ...] = ()

    @field_validator("command")
    @classmethod
    def _command(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for path in (path for word in value for path in FIELD.findall(word)):
            if path.partition(".")[0] not in FIELDS:
                known = ", ".join(f"{{{name}}}" for name in FIELDS)
                raise WrongValue(f"{{{path}}} is no field of a task", f"use {known}; other braces belong in a script")
        for index, word in enumerate(value):
            _no_code(value[:index], word)
        return value and argv(value)

    @field_validator("check")
    @classmethod
    def _check(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return value and argv(value)

    @field_validator("match")
    @classmethod
    def _match(cls, value: dict[str, str]) -> dict[str, str]:
        for field, pattern in value.items():
            try:
                _pattern(pattern)  # alone first: a stray bracket must not end the group that is put around it
                _pattern(_whole(pattern))
            except SchemaError as error:
                problem = f"the pattern of {field} is no regular expression: {str(error).splitlines()[-1].strip()}"
                raise WrongValue(problem, "use the syntax of RE2 or Rust, in '…', without look-around") from None
        return value

    @model_validator(mode="after")
    def _fits_together(self) -> Handler:
        if bool(self.command) == (self.python is not None):
            raise WrongValue(
                "a handler has either a command (a list of words) or a python callable (module:function)",
                "give it one of the two",
            )
        if self.timeout and self.max_timeout and self.timeout > self.max_timeout:
            raise WrongValue(f"timeout {self.timeout:g} is above max_timeout {self.max_timeout:g}", "lower the first")
        filled = {path for word in self.command for path in FIELD.findall(word)}
        for field in (*self.match, *self.allow_options):
            if field not in filled:
                known = ", ".join(sorted(filled)) or "none"
                raise WrongValue(f"{field} is not in its command", f"name a field that is: {known}")
        return self

    def takes_for(self, field: str, word: str) -> str | None:
        """Return what its program would take a word for that begins with this field; None for an operand."""
        if field in self.allow_options:
            return None
        if word.startswith("-"):
            return "an option"
        return None if field in self.match else hazards.word_is(self.command, word)

    def makes_of(self, field: str, value: str) -> str | None:
        """Return what its program would make of the field's value in any place; None for plain text."""
        if field in self.allow_options or field in self.match:
            return None
        return hazards.part_is(self.command, value)

    def matches(self, field: str, value: str) -> bool:
        """Whether the owner lets this field of a task have this value."""
        if field not in self.match:
            return True
        try:
            _pattern(_whole(self.match[field])).validate_python(value)
        except ValidationError:
            return False
        return True


def _no_code(command: tuple[str, ...], word: str) -> None:
    """Errors: WrongValue if a field would become part of a line that a shell or another interpreter runs."""
    free = next((field for field in FIELD.finditer(word) if field[1].partition(".")[0] in _FREE), None)
    if free is None:
        return
    before = hazards.code_after(command, word[: free.start()])
    if before is not None:
        raise WrongValue(
            f"{free[0]} would become code in the line after {before}, whatever quotes are around it",
            f"""pass it as an argument: ["sh", "-c", 'prog "$1"', "sh", "{free[0]}"]""",
        )


def _whole(pattern: str) -> str:
    return rf"\A(?:{pattern})\z"


@lru_cache(maxsize=256)
def _pattern(pattern: str) -> TypeAdapter[Any]:
    """Return the checker of a pattern. The engine takes linear time, so that no value can keep this worker busy."""
    return TypeAdapter(Annotated[str, Field(pattern=pattern)])
