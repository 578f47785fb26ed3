"""runner/entering: enters a job's working directory, if it is below a directory in which its task may start.

Law: a directory is judged from inside, by the kernel's own name for it, since a link may change a moment later. The
supervisor loads this room: kept small.

Touches: files.
"""

from __future__ import annotations

import json
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeAlias

    # The directories, and the table of the configuration that lists them; None for anywhere.
    Within: TypeAlias = tuple[Sequence[str], str] | None


class NotAllowed(Exception):
    """The job asked for a directory that this worker does not allow."""


def enter(cwd: str, within: Within) -> None:
    """Make cwd the working directory. Errors: OSError; NotAllowed if it is not below one of the directories."""
    try:
        os.chdir(cwd)
        where = os.getcwd()
    except OSError:
        # A task must not learn what exists where it may not start.
        if within is None or _below(os.path.normpath(cwd), within[0]):
            raise
        where = cwd
    if within is not None and not _below(where, within[0]):
        really = "" if where == cwd else f", which is {where},"
        allowed = ", ".join(within[0])
        line = f"add {json.dumps(where, ensure_ascii=False)} to allow_cwd under {within[1]}"
        raise NotAllowed(f"a task may start below {allowed}, and cwd {cwd}{really} is not: change it, or {line}")


def _below(path: str, prefixes: Sequence[str]) -> bool:
    """Return whether a path is one of these directories or below one, as spelled or with links resolved."""
    for prefix in prefixes:
        for top in {os.path.normpath(prefix), os.path.realpath(prefix)}:
            if path == top or path.startswith(top.rstrip("/") + "/"):
                return True
    return False
