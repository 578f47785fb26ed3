"""Loans of slots: files in a directory of a worker's scratch, by which a task that waits lends its slot.

`ID.ATTEMPT.UNIQUE.lend` says that a process of that attempt waits, and that other tasks may have its slot. When the
process wants to go on, it renames the file to `….back`, and must not go on while that name stands. The worker removes
it when a slot is free again.

Law: the process holds a lock (flock) on its file for as long as it lives, so a loan without a lock has lost its
process, whatever namespaces are between the two. All of it is on a local disk, and never on the share.

Touches: files, the clock.
"""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

LEND, BACK = ".lend", ".back"
# Pauses (s) between two looks of a process that wants its slot back.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.2
_WARY = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Loan:
    """The worker's sight of one file: which attempt (`ID.ATTEMPT`), and whether its process asks for the slot."""

    attempt: str
    file: str
    back: bool


class Loans(Protocol):
    """The worker's end."""

    directory: str

    def look(self) -> list[Loan]:
        """Return the loans whose process lives, and remove the others. Never raises OSError."""
        ...

    def settle(self, loan: Loan) -> None:
        """Let the process of this loan go on; also the end of a loan whose attempt is over. Never raises OSError."""
        ...


class LocalLoans:
    """Loans in a directory of this machine, which is made at once. '' for no directory: then nothing is lent."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self._seen: int | None = None
        self._loans: list[Loan] = []
        if directory:
            os.makedirs(directory, 0o700, exist_ok=True)

    def look(self) -> list[Loan]:
        try:
            changed = os.stat(self.directory).st_mtime_ns
            # Without loans an unchanged directory has none; with one, its process may have died meanwhile.
            if not self._loans and changed == self._seen:
                return []
            names = os.listdir(self.directory)
        except OSError:
            return []
        # A change within the clock's tick leaves the time as it was: only a time that has passed is remembered.
        self._seen = changed if time.time_ns() - changed > 50_000_000 else None
        found = [loan for loan in map(_parsed, sorted(names)) if loan is not None]
        self._loans = [loan for loan in found if self._lives(loan)]
        return list(self._loans)

    def settle(self, loan: Loan) -> None:
        with suppress(OSError):
            os.unlink(f"{self.directory}/{loan.file}")
        self._loans = [other for other in self._loans if other != loan]

    def _lives(self, loan: Loan) -> bool:
        try:
            descriptor = os.open(f"{self.directory}/{loan.file}", _WARY)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        self.settle(loan)
        return False


def _parsed(name: str) -> Loan | None:
    """The loan of a file name; None for another file."""
    stem, dot, ending = name.rpartition(".")
    attempt, _, unique = stem.rpartition(".")
    if dot + ending not in (LEND, BACK) or not attempt or not unique or name.startswith("."):
        return None
    return Loan(attempt, name, dot + ending == BACK)


class OwnLoan:
    """The task's end: one process that waits."""

    def __init__(self, directory: str, attempt: str, unique: str) -> None:
        """attempt: `ID.ATTEMPT`. Nothing is lent yet."""
        self._stem = f"{directory}/{attempt}.{unique}"
        self._hidden = f"{directory}/.{attempt}.{unique}"
        self._descriptor: int | None = None
        self._asked = False

    def lend(self) -> None:
        """Lend the slot, unless it is lent. A worker that lends nothing, or is gone, is no error."""
        if self._descriptor is not None:
            return
        try:
            self._descriptor = os.open(self._hidden, _WARY | os.O_CREAT | os.O_EXCL, 0o600)
            # Locked before it has its name: no worker may see it without its lock.
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            os.rename(self._hidden, self._stem + LEND)
        except OSError:
            self.drop()

    def ask_back(self) -> None:
        """Ask for the slot: `is_back` says when it is here. A second call, or one without a loan, does nothing."""
        if self._descriptor is None or self._asked:
            return
        try:
            os.rename(self._stem + LEND, self._stem + BACK)
            self._asked = True
        except OSError:
            self.drop()  # the worker has settled it

    def is_back(self) -> bool:
        """Return whether the slot is this process's: it was not lent, or was asked for and is here again."""
        if self._asked and not os.path.lexists(self._stem + BACK):
            self.drop()
        return self._descriptor is None

    def take_back(self) -> None:
        """Ask for the slot, and return once it is this process's again; at once where it was not lent.

        Where its worker is gone it waits for the end of the task, which is near: nothing of it outlives the worker.
        """
        try:
            self.ask_back()
            pause_s = FIRST_PAUSE_S
            while not self.is_back():
                time.sleep(pause_s)
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)
        finally:
            self.drop()

    def drop(self) -> None:
        """End the loan without a wait, for a process that ends: its worker counts the slot as taken again."""
        for path in (self._hidden, self._stem + LEND, self._stem + BACK):
            with suppress(OSError):
                os.unlink(path)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
        self._asked = False


class _NoLoans:
    """For a worker whose tasks lend nothing."""

    directory = ""

    def look(self) -> list[Loan]:
        return []

    def settle(self, loan: Loan) -> None:
        pass


NO_LOANS: Loans = _NoLoans()
