"""A handler: how the tasks of one type are run on this worker, and what they may say about it themselves.

Law: what a handler does not allow, a task does not get. A task fills in words of a command; it chooses no directory,
no variable and no option unless the owner of this machine has named it. A handler that would fail every task, or make
code of a task's text, is refused here, before a worker takes any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Annotated, Any, NamedTuple

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError, field_validator, model_validator
from pydantic_core import SchemaError

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Callable, Directory, Env, SomeSeconds, Strict, Whole, Word, argv
from spoold.protocol.settings import LostShare

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
    tasks, with what it says of its version. notes: a folder on this machine in which its program leaves notes for
    people (`handler_notes`). about: what people are told of it, by name. instead: the types as
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
    notes: Directory | None = None
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
        return None if field in self.match else word_is(self.command, word)

    def makes_of(self, field: str, value: str) -> str | None:
        """Return what its program would make of the field's value in any place; None for plain text."""
        if field in self.allow_options or field in self.match:
            return None
        return part_is(self.command, value)

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
    before = code_after(command, word[: free.start()])
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


# Words that programs take for more than an operand: options, variables, commands, and lines of code.


class _Runner(NamedTuple):
    """Programs that take code as an argument. option: the word before it; attached: how a word with both begins.

    between: the words allowed between program and option, each with a space after it.
    """

    programs: re.Pattern[str]
    option: re.Pattern[str]
    attached: re.Pattern[str]
    between: re.Pattern[str]


def _runner(programs: str, option: str, attached: str, between: str) -> _Runner:
    # A versioned name counts as the plain one.
    return _Runner(*map(re.compile, (rf"({programs})[\d.]*", option, attached, between)))


# Options, and the word after one that takes another; words behind an operand are the operand's own.
_OPTIONS = r"([-+]\S*\s|([-+][oOWXIur]|--(rcfile|init-file|require|import|loader))\s\S+\s)*"
_ANYWHERE = r"(\S+\s)*"
_RUNNERS = (
    _runner(
        r"(ba|da|a|z|k|mk|fi|c|tc)?sh|busybox|python|pypy|perl|ruby|node|nodejs|php|lua|Rscript",
        r"-[A-Za-z]*[ceErp]|--(command|eval|execute|run|print)",
        r"-(?![IWXmMoOux])[A-Za-z]{0,3}[ceE].*|--(command|eval|execute|run|print)=.*",
        _OPTIONS,
    ),
    _runner("su|runuser|script|psql", r"-[a-z]*c|--command", "--command=.*", _ANYWHERE),
    _runner("flock", r"-[a-z]*c|--command", "--command=.*", r"(-\S*\s([\d.]+\s)?)*(\S+\s)?"),
    _runner("expect|nu|xonsh|elvish", r"-[a-z]*c|--commands?", "-c.*|--commands?=.*", _OPTIONS),
    _runner("R|julia|octave|groovy|scala", "-[eE]|--(eval|print)", "-[eE].*|--(eval|print)=.*", _OPTIONS),
    _runner("emacs", "--?(eval|execute)", "--(eval|execute)=.*", _ANYWHERE),
    _runner("gdb", "--?(i?ex|(init-)?eval-command)", "--?(i?ex|(init-)?eval-command)=.*", _ANYWHERE),
    _runner("g?vim?|nvim|vimdiff|n?view|ex", "-c|--cmd", r"\+.*|-c.+", _ANYWHERE),
    _runner("pwsh|powershell", "(?i:-(c|co|command))", "(?!)", _OPTIONS),
    _runner("env", "-[a-z]*S|--split-string", "-[a-z]*S.*|--split-string=.*", _OPTIONS),
    # It joins all its words to a line for a shell.
    _runner("watch", r"(?!-n|--interval|-q|--equexit).*", r"[^-].*", _ANYWHERE),
)

# make runs the $(…) in it, and so does the shell of a recipe.
_MAKE = "[bg]?make|remake"


def _special(word: str, programs: str, what: str) -> tuple[re.Pattern[str], re.Pattern[str], str]:
    return re.compile(word, re.DOTALL), re.compile(rf"(?<![\w-])({programs})(?![\w+])(?!-(?!\d))"), what


# Words that begin with no dash and yet are no operands to some programs: which words, which programs, what they are.
_WORDS = (
    _special(".*=.*", rf"{_MAKE}|env|sudo|doas|rake|just|scons|[gm]?awk|dd", "a variable"),
    # By its own rules make builds any path that it is given, through links, too: `x` out of `x.sh` beside it.
    _special(".*/.*", _MAKE, "a path, which make builds by rules of its own"),
    _special(
        "@.*",
        r"(\w+-)*(gcc|g\+\+|cc|c\+\+|clang|clang\+\+|ld)|javac?|jar|rustc|pytest|py\.test|mypy",
        "a file of options",
    ),
    _special(r"\+.*", r"g?vim?|nvim|vim?diff|n?view|ex|less|more", "a command"),
    _special("!.*", "ed|red", "a command"),
    _special(r"\s*\..*", r"sqlite3?", "a command"),
    _special(r"\s*\+?[<>|].*", r"perl[\d.]*", "a command"),
    _special(r"\|.*", r"convert|magick|mogrify|identify|composite|montage|gnuplot", "a command"),
)
# Text from a task that no part of a word may hold, in any place.
_PARTS = (
    _special(r".*[^\w./:@%+,=~ -].*", _MAKE, "text that a shell runs"),
    _special(r".*\|.*", r"perl[\d.]*", "a command"),
)


def word_is(command: Iterable[str], word: str) -> str | None:
    """Return what the program of this command would take the word for; None for an operand, or an option."""
    return _is(command, word, _WORDS)


def part_is(command: Iterable[str], part: str) -> str | None:
    """Return what the program would make of this text in any place of a word; None for plain text."""
    return _is(command, part, _PARTS)


def _is(
    command: Iterable[str], text: str, table: tuple[tuple[re.Pattern[str], re.Pattern[str], str], ...]
) -> str | None:
    # A line for a shell has several words; of a path only the last name is a program's.
    said = [os.path.basename(each) or each for word in command for each in word.split()]
    return next(
        (what for special, programs, what in table if special.fullmatch(text) and any(map(programs.search, said))),
        None,
    )


def code_after(command: Sequence[str], text: str) -> str | None:
    """Return the option after which text in this place becomes code; None where it does not.

    command: the words before this one; text: the text before it in its own word.
    """
    for index, program in enumerate(map(os.path.basename, command)):
        rest = [f"{word} " for word in command[index + 1 :]]
        for runner in _RUNNERS:
            if not runner.programs.fullmatch(program):
                continue
            if rest and runner.option.fullmatch(command[-1]) and runner.between.fullmatch("".join(rest[:-1])):
                return command[-1]
            if runner.attached.match(text) and runner.between.fullmatch("".join(rest)):
                return text
    return None
