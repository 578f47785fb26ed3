"""The secrets of a worker: where each is on this machine, and its value for the handlers that name it.

Law: a value is read anew for each attempt, and is never part of a message. Nothing is given that others could have
read or changed: a file belongs to the worker's user or to root, and is open to its owner alone. A value that is too
short to be masked is not given either.

Touches: files, the environment.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import AfterValidator, model_validator

from spoold.protocol.errors import WrongValue
from spoold.protocol.fields import Directory, Strict

# The most bytes of a value: a program can be given twice as many in one variable.
MOST = 64 << 10
# A shorter value would be found in plain text, too. The rules of redaction say the same of a spelling.
SHORTEST = 6
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_CREDENTIALS = "CREDENTIALS_DIRECTORY"


def variable(name: str) -> str:
    """Return the name of a secret, which is that of its variable, too. Errors: WrongValue."""
    if _VARIABLE.fullmatch(name) is None or name.startswith("SPOOL_"):
        raise WrongValue(
            f"{name!r} cannot be the name of a secret", "use letters, digits and _, and no SPOOL_ in the beginning"
        )
    return name


def _credential(name: str) -> str:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise WrongValue(
            f"{name!r} is not the name of a credential", "write its name in LoadCredential=, and no path"
        )
    return name


class Source(Strict):
    """Where a secret is: a file, a variable of the worker's environment, or a credential of its systemd unit."""

    file: Directory | None = None
    env: str | None = None
    credential: Annotated[str, AfterValidator(_credential)] | None = None

    @model_validator(mode="after")
    def _one(self) -> Source:
        if sum(place is not None for place in (self.file, self.env, self.credential)) != 1:
            raise WrongValue(
                "a secret is in one place",
                'write {file = "/path"}, {env = "VARIABLE"} or {credential = "name"}',
            )
        return self


class Lacking(Exception):
    """A secret cannot be given; the words say which, where and why, and name the fix."""


class Secrets:
    """The secrets of one worker. table: the place of [secrets] for people."""

    def __init__(self, sources: Mapping[str, Source], environ: Mapping[str, str], table: str) -> None:
        self._sources, self._environ, self._table = sources, environ, table

    def given(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values of these secrets. Errors: Lacking."""
        return {name: self._value(name) for name in names}

    def lacking(self, names: Iterable[str]) -> str | None:
        """Return why one of these secrets cannot be given; None if all can."""
        try:
            self.given(names)
        except Lacking as error:
            return str(error)
        return None

    def _value(self, name: str) -> str:
        source = self._sources[name]
        try:
            value, place = self._read(source)
        except OSError as error:
            place = source.file or f"the credential {source.credential}"
            fix = "create it with mode 0600, or let the worker's user read it"
            raise self._lack(name, f"{place} cannot be read ({error.strerror}); {fix}") from None
        except WrongValue as error:
            raise self._lack(name, str(error)) from None
        wrong = _wrong(name, value)
        if wrong is not None:
            raise self._lack(name, f"{place} {wrong}")
        return value

    def _lack(self, name: str, why: str) -> Lacking:
        return Lacking(f"it lacks the secret {name}: {why} ({name} in {self._table})")

    def _read(self, source: Source) -> tuple[str, str]:
        """Return the value, and its place in words. Errors: OSError, WrongValue."""
        if source.env is not None:
            found = self._environ.get(source.env)
            if not found:
                raise WrongValue(f"the variable {source.env} is not set", "start the worker with it")
            return found, f"the variable {source.env}"
        if source.file is not None:
            return _content(source.file, private=True), source.file
        folder = self._environ.get(_CREDENTIALS)
        if not folder:
            raise WrongValue(
                f"systemd gave this worker no credentials ({_CREDENTIALS} is not set)",
                f"add LoadCredential={source.credential}:/path to its unit",
            )
        return _content(f"{folder}/{source.credential}", private=False), f"the credential {source.credential}"


def _content(path: str, *, private: bool) -> str:
    """Return a file's text without the line ends behind it. Errors: OSError, WrongValue."""
    # A pipe of that name would block for ever.
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        facts = os.fstat(descriptor)
        if not stat.S_ISREG(facts.st_mode):
            raise WrongValue(f"{path} is no regular file", "name the file that holds the value")
        if private and facts.st_mode & 0o077:
            mode = stat.S_IMODE(facts.st_mode)
            raise WrongValue(f"{path} is open to others (mode {mode:04o})", f"run: chmod 600 {path}")
        if private and facts.st_uid not in (0, os.geteuid()):
            raise WrongValue(f"{path} belongs to user {facts.st_uid}", "make it the worker's own, or root's")
        data = b""
        while len(data) <= MOST and (more := os.read(descriptor, MOST + 1 - len(data))):
            data += more
    finally:
        os.close(descriptor)
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise WrongValue(f"{path} is not UTF-8", "write the value as text, for example in base64") from None


def _wrong(name: str, value: str) -> str | None:
    """Return why a value cannot be given, with the fix; None if it can."""
    if len(value.encode("utf-8", "surrogateescape")) < SHORTEST:
        return f"holds less than {SHORTEST} bytes, which cannot be masked in a text; use a longer secret"
    if len(value) > MOST:
        return f"holds more than {MOST >> 10} KiB, too much for a variable; give the path of the file to the program"
    if "\0" in value or value != value.encode("utf-8", "replace").decode():
        return "holds a NUL or half a character, which no variable may; write the value as text"
    if value in f"[redacted:{name}]":
        return "holds what stands in the place of the secret in a log; use another value"
    return None
