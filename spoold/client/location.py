"""Which directory is the spool: said, or found in the environment or a configuration file.

Touches: the environment, ~/.config/spoold/config.toml, /etc/spoold/*.toml.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping

from spoold.protocol.errors import BadFile, SpoolError

VARIABLE = "SPOOL_DIR"
SYSTEM = "/etc/spoold"


class NoSpoolNamed(SpoolError):
    """Nothing says which spool is meant, or several things do."""


def spool_directory(
    given: str | os.PathLike[str] | None = None,
    *,
    configured: str | None = None,
    environ: Mapping[str, str] = os.environ,
    system: str = SYSTEM,
) -> str:
    """The absolute path of the spool; whether it is there is for `open_store` to say.

    In this order: given, SPOOL_DIR, configured (by the node's own file), `spool` in the user's config.toml, `spool`
    in the only file of /etc/spoold that has one. Errors: NoSpoolNamed, BadFile for a configuration that is no TOML.
    """
    said = given or environ.get(VARIABLE) or configured or _from_user(environ) or _from_system(system)
    if not said:
        raise NoSpoolNamed(
            'No spool is named. Give --spool DIR, set SPOOL_DIR, or write `spool = "DIR"` into '
            f"{user_file(environ)}. `spool init DIR` makes a new one."
        )
    return os.path.abspath(os.path.expanduser(os.fspath(said)))


def user_file(environ: Mapping[str, str] = os.environ) -> str:
    """The user's own configuration file."""
    home = environ.get("XDG_CONFIG_HOME") or os.path.join(environ.get("HOME") or "~", ".config")
    return os.path.join(os.path.expanduser(home), "spoold", "config.toml")


def _from_user(environ: Mapping[str, str]) -> str | None:
    return _spool_key(user_file(environ))


def _from_system(directory: str) -> str | None:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return None
    paths = [os.path.join(directory, name) for name in names if name.endswith(".toml")]
    found = {path: spool for path in paths if (spool := _spool_key(path))}
    if len(set(found.values())) > 1:
        raise NoSpoolNamed(
            f"Several spools are configured ({', '.join(found)}); say which with --spool DIR or SPOOL_DIR."
        )
    return next(iter(found.values()), None)


def _spool_key(path: str) -> str | None:
    """The `spool` key of a file; None where there is no such file or key, or it is not for us to read."""
    try:
        with open(path, "rb") as file:
            value = tomllib.load(file).get("spool")
    except OSError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as why:
        raise BadFile(path, "", f"is not TOML: {why}.", "see https://toml.io for the syntax.") from why
    if value is not None and not isinstance(value, str):
        raise BadFile(path, "spool", "is not a string.", 'write the directory in quotes: spool = "/mnt/spool".')
    return value
