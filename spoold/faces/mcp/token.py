"""The file that holds the token of the server over HTTP.

Law: only this user may read the file, or the server does not start. It is made once and stays, so that a
configuration that was pasted once goes on working.

Touches: files, the environment.
"""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import suppress

from spoold.protocol.errors import SpoolError

LENGTH = 32
_WARY = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def token_file(environ: Mapping[str, str] = os.environ) -> str:
    """Return the path of the token that servers of this user have where they are told no other."""
    state = environ.get("XDG_STATE_HOME") or os.path.join(environ.get("HOME") or "~", ".local", "state")
    return os.path.join(os.path.expanduser(state), "spoold", "mcp.token")


def read_or_make(path: str) -> str:
    """Return the token in a file, which is made where there is none. Errors: SpoolError, OSError."""
    with suppress(FileNotFoundError):
        return _read(path)
    os.makedirs(os.path.dirname(path) or ".", 0o700, exist_ok=True)
    with suppress(FileExistsError):
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(made, "w", encoding="ascii") as file:
            file.write(secrets.token_urlsafe(LENGTH) + "\n")
    return _read(path)


def _read(path: str) -> str:
    descriptor = os.open(path, _WARY)
    with open(descriptor, encoding="utf-8", errors="replace") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise SpoolError(f"{path}: others may read the token. Fix: chmod 600 {path}, as its owner, or remove it.")
        token = file.read(1000).strip()
    if len(token) < LENGTH or not token.isascii() or not token.isprintable():
        raise SpoolError(f"{path}: holds no token of {LENGTH} characters or more. Fix: remove it, and one is made.")
    return token
