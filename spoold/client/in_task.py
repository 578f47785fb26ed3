"""A client inside a task: which task that is, and the slot that it lends while it waits for other tasks.

Some programs start others with a few variables only, such as clients that start a server. Then the nearest ancestor
whose environment names a task says which task this is.

Law: what the environment says counts only for the spool that it names; a wait for tasks of another spool lends the
slot, too. A variable that is set stays as it is, and an ancestor that cannot be read is skipped. A wait goes on only
after the slot has come back, whatever ended the wait, unless the process itself ends.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from spoold.client.spool import submission
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.names import key

if TYPE_CHECKING:
    from spoold.system.slot_loans import OwnLoan


# A shorter wait (s) lends nothing: another task could have the slot for hours.
LEND_AFTER_S = 0.2
Sleep = Callable[[float], object]
# Fields that a child has from its parent where it does not say otherwise.
# Of `uses` it has each limit that it does not name itself. Not `locks`: a parent that waits keeps its own.
INHERITED = ("batch", "budgets", "class", "priority")
TASK_MAX = 64 << 20


def task_of(directory: str, environ: Mapping[str, str] = os.environ) -> str | None:
    """Return the id of the task of this spool in which this process runs; None in none."""
    task_id, root = environ.get("SPOOL_TASK_ID"), environ.get("SPOOL_ROOT")
    if not task_id or not root or os.path.realpath(root) != os.path.realpath(directory):
        return None
    return task_id


def born(task: Mapping[str, Any], directory: str, environ: Mapping[str, str] = os.environ) -> Mapping[str, Any]:
    """Return the task, as a child of the one in which this process runs: with its parent, its depth, and what it
    inherits. A task that names its parent, or says that it has none (null), stays as it is.
    """
    parent = None if "parent" in task else task_of(directory, environ)
    if parent is None:
        return task
    above = _content(environ.get("SPOOL_TASK_FILE", ""))
    level = above.get("depth") or (1 if above.get("parent") else 0)
    inherited = {name: above[name] for name in INHERITED if above.get(name) is not None and name not in task}
    born = {**inherited, **task, "parent": parent, "depth": (level if isinstance(level, int) else 0) + 1}
    if (uses := _uses(above.get("uses"), task.get("uses"))) is not None:
        born["uses"] = uses
    return born


def _uses(above: Any, own: Any) -> Any:
    """Return the limits of a child, by those of its parent; None where it has nothing from there.

    What a child says of a limit counts. One that says that it uses none (`{}` or `[]`) inherits none.
    """
    names, mine = _by_name(above), {} if own is None else _by_name(own)
    if not names or mine is None or (own is not None and not mine):
        return None
    said = {name.lower() for name in mine}
    return {**{name: units for name, units in names.items() if name.lower() not in said}, **mine}


def _by_name(uses: Any) -> dict[str, Any] | None:
    """Return the units by the name of the limit; None for what a task cannot say, which its admission reports."""
    if isinstance(uses, list | tuple) and all(isinstance(name, str) for name in uses):
        return dict.fromkeys(uses, 1)
    return dict(uses) if isinstance(uses, Mapping) and all(isinstance(name, str) for name in uses) else None


def _content(path: str) -> dict[str, Any]:
    """Return the content of this process's own task; empty where it cannot be read, as in a container."""
    with suppress(OSError, BadFile), open(path, "rb") as file:
        return codec.load_object(file.read(TASK_MAX), path)
    return {}


def check_wait(ids: Collection[str], directory: str) -> None:
    """Refuse a wait of a task for itself. Errors: SpoolError."""
    own = task_of(directory)
    if own is not None and key(own) in map(key, ids):
        raise SpoolError(f"task {own} cannot wait for itself. Leave its id out.")


class SlotLoan:
    """The slot of this task, for a program with several waits at once: lent while one of them goes on.

    It never blocks. Outside of tasks, and where the worker lends nothing, all of it does nothing. Not thread-safe.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._loan = _own_loan(environ)

    def lend(self) -> None:
        """Lend the slot, unless it is lent, or was asked for and is not back yet."""
        if self._loan is not None and self._loan.is_back():
            self._loan.lend()

    def ask_back(self) -> None:
        """Ask for the slot."""
        if self._loan is not None:
            self._loan.ask_back()

    def is_back(self) -> bool:
        """Return whether the task may go on: its slot is not lent."""
        return self._loan is None or self._loan.is_back()


def _own_loan(environ: Mapping[str, str]) -> OwnLoan | None:
    directory, task_id = environ.get("SPOOL_SLOT_DIR"), environ.get("SPOOL_TASK_ID")
    if not directory or not task_id:
        return None
    from spoold.system.slot_loans import OwnLoan

    return OwnLoan(directory, f"{task_id}.{environ.get('SPOOL_ATTEMPT', '1')}", submission.suffix())


@contextmanager
def lending(now: Callable[[], float], sleep: Sleep, environ: Mapping[str, str] = os.environ) -> Iterator[Sleep]:
    """Lend this task's slot within the `with`, from the first pause on that comes LEND_AFTER_S after its beginning;
    at the end take it back, and wait for that. Yields what to sleep with. Outside of tasks that is `sleep` itself.

    now: monotonic, s.
    """
    loan, since = _own_loan(environ), now()
    if loan is None:
        yield sleep
        return

    def pause(seconds: float) -> None:
        if now() - since >= LEND_AFTER_S:
            loan.lend()
        sleep(seconds)

    try:
        yield pause
    except Exception:
        loan.take_back()
        raise
    except BaseException:
        loan.drop()  # it is about to end, and must not be kept from that
        raise
    loan.take_back()


# The variables of this task, for a program whose parent has filtered its environment.


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
