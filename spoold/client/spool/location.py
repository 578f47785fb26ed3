"""Finds the spool's directory: as given, from the environment, or from a configuration file.

Law: the first source that names a directory counts, in the order that `spool_directory` states. If the files of the
machine name different spools, that is an error and never a choice. The spool itself is not touched.
Touches: the environment, ~/.config/spoold/config.toml, /etc/spoold/*.toml.

Touches: files, the environment.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from spoold.protocol.errors import BadFile, SpoolError

VARIABLE = "SPOOL_DIR"
# Each attempt has this in its environment: a task that submits means its own spool.
OF_A_TASK = "SPOOL_ROOT"
SYSTEM = "/etc/spoold"


class NoSpoolNamed(SpoolError):
    """No setting names the spool, or several name different ones."""


def spool_directory(
    given: str | os.PathLike[str] | None = None,
    *,
    configured: str | None = None,
    environ: Mapping[str, str] = os.environ,
    system: str = SYSTEM,
) -> str:
    """Return the absolute path of the spool; `open_store` checks that it exists.

    In this order: given, SPOOL_DIR, configured (by the node's own file), SPOOL_ROOT, `spool` in the user's
    config.toml, `spool` in the only file of /etc/spoold that has one. Errors: NoSpoolNamed, BadFile for a
    configuration that is not TOML.
    """
    said = given or environ.get(VARIABLE) or configured or environ.get(OF_A_TASK)
    said = said or _from_user(environ) or _from_system(system)
    if not said:
        raise NoSpoolNamed(
            'No spool is named. Give --spool DIR, set SPOOL_DIR, or write `spool = "DIR"` into '
            f"{user_file(environ)}{_written(environ)}. `spool init DIR` makes a new one."
        )
    return os.path.abspath(os.path.expanduser(os.fspath(said)))


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """The user's own configuration file."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "~", ".config")
    return os.path.join(os.path.expanduser(home), "spoold", "config.toml")


def _from_user(environ: Mapping[str, str]) -> str | None:
    return _spool_key(_users_table(environ), user_file(environ))


def _written(environ: Mapping[str, str]) -> str:
    """Return ", which has only …": the keys in the user's file beside `spool`; '' where it has none or is missing."""
    keys = sorted(_users_table(environ))
    return f", which has only {', '.join(map(repr, keys))}" if keys else ""


def _users_table(environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the table of the user's own file; an empty one without a file. Errors: BadFile, also for a directory."""
    path = user_file(environ)
    try:
        return _table(path)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}  # a HOME that does not exist, or that `sudo -u` kept from another user
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BadFile(
            path, "", f"cannot be read: {why}.", "make it a file that you may read, or remove it."
        ) from error


def _from_system(directory: str) -> str | None:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return None
    paths = [os.path.join(directory, name) for name in names if name.endswith(".toml")]
    found: dict[str, str] = {}
    for path in paths:
        with suppress(OSError, ValueError):  # a worker's own file, with secrets that we may not read
            if spool := _spool_key(_table(path), path):
                found[path] = spool
    if len(set(found.values())) > 1:
        raise NoSpoolNamed(
            f"Several spools are configured ({', '.join(found)}); say which with --spool DIR or SPOOL_DIR."
        )
    return next(iter(found.values()), None)


def _table(path: str) -> dict[str, Any]:
    """Return the table of a configuration file. Errors: OSError (IsADirectoryError and so on), ValueError for a path
    that is not or cannot be a regular file, BadFile for text that is not TOML.
    """
    file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a FIFO must not block the program
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise ValueError("not a regular file")
        with open(file, "rb", closefd=False) as opened:
            data = opened.read()
    finally:
        os.close(file)
    from spoold.protocol.toml_file import toml_table  # only where there is such a file

    return toml_table(data, path)


def _spool_key(table: Mapping[str, Any], path: str) -> str | None:
    """Return the `spool` key of a file; None where it has none. Errors: BadFile for a value that is no path."""
    value = table.get("spool")
    if value is not None and (not isinstance(value, str) or "\0" in value):
        problem = "holds a NUL character." if isinstance(value, str) else "is not a string."
        raise BadFile(path, "spool", problem, 'write the directory in quotes: spool = "/mnt/spool".')
    return value
