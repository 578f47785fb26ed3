"""A file of the spool is a regular file. Any other kind under its name is the fault of the person who put it there.

Law: links and the like are never followed on a share, and looking again does not turn one into a file.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Protocol

from spoold.protocol.errors import BadFile
from spoold.system.filesystem import NotRegularError

_MEND = "put a file in its place, since links and the like are never followed on a share."


@contextmanager
def regular(file: str) -> Iterator[None]:
    """Around a read: make an error of the share into a BadFile of this name if the entry is not a regular file."""
    try:
        yield
    except NotRegularError as error:
        raise BadFile(file, "", f"is {error.strerror}.", _MEND) from error


class Unreadable(BadFile):
    """A file that this user may not read."""


@contextmanager
def readable(file: str) -> Iterator[None]:
    """As `regular`, for a person: a file that this user may not read is a BadFile, too. Errors: Unreadable."""
    try:
        with regular(file):
            yield
    except PermissionError as error:
        mend = f"its owner (or root) lets the group read it (`chmod -R g+rwX {file}`), or moves it out of the spool."
        raise Unreadable(file, "", f"may not be read by this user ({error.strerror}).", mend) from error


def readable_again(error: OSError) -> str:
    """What a person does about a request that the leader cannot read: the last part of a sentence."""
    if isinstance(error, NotRegularError):
        return "remove it (rmdir, rm), since it can never be read"
    return "let the user that the master runs as read it (chmod, chown)"


class Contains(Protocol):
    """What contains the faults of one node (see `store.faults`)."""

    def reading(
        self, kind: str, file: str, task: str | None = None, attempt: int | None = None
    ) -> AbstractContextManager[object]:
        """Read a file inside. Errors: BadFile, also for a fault of spoold."""


# The node whose step runs now. None in a command of a person, where a fault is loud.
NODE: ContextVar[Contains | None] = ContextVar("node", default=None)


def reading(
    kind: str, file: str, task: str | None = None, attempt: int | None = None
) -> AbstractContextManager[object]:
    """As `Faults.reading` of the node whose step runs now; outside of any step every exception passes."""
    node = NODE.get()
    return nullcontext() if node is None else node.reading(kind, file, task, attempt)
