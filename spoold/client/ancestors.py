"""The variables of this task, for a program whose parent has filtered its environment.

Some programs start others with a few variables only, such as clients that start a server. Then the nearest ancestor
whose environment names a task says which task this is.

Law: only a task of the same spool counts, and a variable that is set stays as it is. What cannot be read is skipped.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from contextlib import suppress

from spoold.client.inside import task_of

PREFIX = "SPOOL_"
# A chain of processes is shorter; a number that was used again cannot make this go round for ever.
GENERATIONS = 64


def adopt_task(directory: str, environ: MutableMapping[str, str] = os.environ, proc: str = "/proc") -> str | None:
    """Complete the environment from the nearest ancestor in a task of this spool; return its id, None in none."""
    found = task_of(directory, environ)
    if found is not None or environ.get("SPOOL_TASK_ID"):
        return found
    process = os.getppid()
    for _ in range(GENERATIONS):
        if process <= 1:
            break
        variables = _variables(f"{proc}/{process}/environ")
        if variables.get("SPOOL_TASK_ID"):
            found = task_of(directory, variables)
            for name, value in variables.items() if found is not None else ():
                if name.startswith(PREFIX):
                    environ.setdefault(name, value)
            break
        process = _parent(f"{proc}/{process}/stat")
    return found


def _variables(path: str) -> dict[str, str]:
    with suppress(OSError), open(path, "rb") as file:
        pairs = (os.fsdecode(pair).partition("=") for pair in file.read().split(b"\0"))
        return {name: value for name, _, value in pairs if name}
    return {}


def _parent(path: str) -> int:
    """The number of the parent process; 0 where it cannot be read. A program's name may hold anything but its end."""
    with suppress(OSError, ValueError, IndexError), open(path, "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[1])
    return 0
