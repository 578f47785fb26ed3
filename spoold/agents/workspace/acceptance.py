"""What was reported is not accepted: the conditions that we check ourselves, after the agent, where it worked.

Law: a condition that cannot be checked does not hold. A file counts only where it lies in the workspace, with all
links resolved: what lies elsewhere is not the agent's work. Nothing here takes longer than its bound.

Touches: files, processes.
"""

from __future__ import annotations

import os
import re
import signal
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import SchemaError

from spoold.protocol import codec
from spoold.protocol.agent_fields import commands
from spoold.protocol.errors import BadFile, SpoolError

# The most bytes of a file that is looked into, and of a command's output that are kept; how long (s) a schema takes.
FILE_MAX, OUTPUT_MAX, SCHEMA_S = 16 << 20, 8 << 10, 20.0
# How a line of a shell ends that names a program which is not there, and why it does not hold.
NOT_FOUND = 127
NO_PROGRAM = f"exit code {NOT_FOUND}"
_FENCED = re.compile(r"```(?:json)?\s*\n(.*?)\n\s*```", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended. code: None where it was ended for its time; output: the end of what it printed."""

    code: int | None
    output: str


@dataclass(frozen=True, slots=True)
class Check:
    """One condition that was tried. why: why it does not hold, '' where it does; output: of a command; here: that is
    the fault of this machine, and not of the work."""

    what: str
    why: str = ""
    output: str = ""
    here: bool = False

    def plain(self) -> dict[str, Any]:
        """Return it as a plain object."""
        return {"check": self.what, "holds": not self.why, "why": self.why, "output": self.output}

    @property
    def reason(self) -> str:
        """Why it does not hold, with the end of the output, for the next attempt."""
        said = f"\n{self.output.strip()}" if self.output.strip() else ""
        return f"{self.what}: {self.why}{said}"


def checked(plain: Any) -> Check | None:
    """Return a condition that was tried from a plain object of it; None for something else."""
    if not isinstance(plain, Mapping) or not isinstance(plain.get("check"), str):
        return None
    return Check(plain["check"], str(plain.get("why") or ""), str(plain.get("output") or ""))


Run = Callable[[Sequence[str]], Ran]
# The content of a file of the work, or in words why there is none.
Content = Callable[[str], bytes | str]


def judge(accept: Sequence[Any], success_if: Mapping[str, Any], text: str, content: Content, run: Run) -> list[Check]:
    """Return each condition, tried. accept: commands; text: the agent's own words; run: runs a command where it
    worked. Errors: SpoolError, of `content`."""
    found = [*_by_content(success_if, text, content)]
    lines = [*commands(accept), *commands([success_if["command"]] if "command" in success_if else [])]
    return [*found, *(_by_command(words, run) for words in lines)]


def _by_command(words: Sequence[str], run: Run) -> Check:
    what = words[-1] if words[:2] == ["/bin/sh", "-c"] else " ".join(words)
    try:
        ran = run(words)
    except SpoolError as error:
        return Check(what, str(error))
    why = "" if ran.code == 0 else ("it took too long" if ran.code is None else f"exit code {ran.code}")
    return Check(what, why, ran.output[-OUTPUT_MAX:])


def _by_content(success_if: Mapping[str, Any], text: str, content_of: Content) -> Iterator[Check]:
    content, name = text, "its answer"
    if "file" in success_if:
        name = success_if["file"]
        found = content_of(name)
        yield Check(f"file {name}", "" if isinstance(found, bytes) else found)
        content = found.decode("utf-8", "replace") if isinstance(found, bytes) else ""
    if success_if.get("nonempty"):
        yield Check(f"{name} is not empty", "" if content.strip() else "it is empty")
    if "regex" in success_if:
        yield Check(f"{name} matches {success_if['regex']}", _no_match(success_if["regex"], content))
    if "schema" in success_if:
        yield Check(f"{name} fits the schema", _no_fit(success_if["schema"], content))


def inside(directory: str, name: str) -> bytes | str:
    """Return the content of a file of the workspace, or in words why there is none."""
    top, path = os.path.realpath(directory), os.path.realpath(os.path.join(directory, name))
    if not path.startswith(top + os.sep):
        return "it is not in the workspace"
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return "it is not there" if isinstance(error, FileNotFoundError) else f"it cannot be read: {error.strerror}"
    try:
        status = os.fstat(opened)
        if not stat.S_ISREG(status.st_mode):
            return "it is no regular file"
        if status.st_size > FILE_MAX:
            return f"it has more than {FILE_MAX >> 20} MiB"
        with os.fdopen(os.dup(opened), "rb") as file:
            return file.read(FILE_MAX)
    finally:
        os.close(opened)


def _no_match(pattern: str, content: str) -> str:
    try:
        # This engine takes linear time, whatever the pattern is.
        TypeAdapter(Annotated[str, Field(pattern=pattern)]).validate_python(content)
    except SchemaError as error:
        return f"the pattern is no regular expression: {str(error).splitlines()[-1].strip()}"
    except ValidationError:
        return "it does not match"
    return ""


def _no_fit(schema: Any, content: str) -> str:
    blocks = _FENCED.findall(content)
    try:
        value = codec.load_text(blocks[-1] if blocks else content, "it")
    except BadFile as error:
        return f"it is no JSON: {error.problem}"
    try:
        jsonschema, registry = import_module("jsonschema"), import_module("referencing").Registry()
    except ImportError:
        return "this worker lacks the package jsonschema: install spoold[agents] there"
    try:
        with _bounded(SCHEMA_S):
            kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
            kind.check_schema(schema)
            # Without a registry a schema could have this worker fetch any address.
            wrong = jsonschema.exceptions.best_match(kind(schema, registry=registry).iter_errors(value))
    except _TooLong:
        return f"the schema took more than {SCHEMA_S:g} s"
    except Exception as error:  # noqa: BLE001 - of a schema that others wrote, and of a library: it does not hold
        return f"the schema cannot be used: {' '.join(str(error).split())[:300]}"
    if wrong is None:
        return ""
    at = "".join(f"[{part!r}]" for part in wrong.absolute_path)
    return f"{at or 'it'}: {wrong.message[:500]}"


class _TooLong(BaseException):
    pass


@contextmanager
def _bounded(most_s: float) -> Iterator[None]:
    """End what goes on within it after so long: a pattern in a schema can keep Python's own engine busy for years."""

    def give_up(number: int, frame: object) -> None:
        raise _TooLong

    before = signal.signal(signal.SIGALRM, give_up)
    signal.setitimer(signal.ITIMER_REAL, most_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
