"""Loans of slots: files in a directory of a worker's scratch, by which a task that waits lends its slot.

`ID.ATTEMPT.UNIQUE.lend` says that a process of that attempt waits, and that other tasks may have its slot. When the
process wants to go on, it renames the file to `….back`, and must not go on while that name stands. The worker removes
it when a slot is free again.

Law: the process holds a lock (flock) on its file for as long as it lives, so a loan without a lock has lost its
process, whatever namespaces are between the two. All of it is on a local disk, and never on the share. Every task may
write there, and nothing stays that is no loan: it is removed, or put aside for the remover. The worker looks at the
directory that it made and at no other: what took its place is put aside, too.

Touches: files, the clock.
"""

from __future__ import annotations

import errno
import fcntl
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from stat import S_ISREG
from typing import Protocol

from spoold.system.same_mount import LISTED, NAMED, PLACE, open_here

LEND, BACK = ".lend", ".back"
# Pauses (s) between two looks of a process that wants its slot back.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.2
_WARY = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_MODE = 0o700
# A file without a lock may be about to become a loan for so long (s).
_BEGINS_S = 5.0
# With more entries than that it is no directory of loans; so many of them are removed in one look.
_ENTRIES_MAX, _AT_ONCE = 10_000, 500


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


# Takes the name of an entry, the directory that it is in, and the same as a path; whether the name is free now.
Aside = Callable[[str, int, str], bool]


class LocalLoans:
    """Loans in a directory of this machine, which is made at once, below one that is there. Errors: OSError."""

    def __init__(
        self,
        directory: str,
        aside: Aside = lambda name, above, path: False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """aside: what becomes of an entry that cannot be unlinked; one for which it says False is left alone."""
        self.directory, self._aside, self._clock = directory, aside, clock
        self._seen: int | None = None
        self._loans: list[Loan] = []
        self._fresh: dict[str, float] = {}  # files that may become loans, and when (s) they were first seen
        self._stuck: set[str] = set()  # entries that could not be put aside
        self._blocked = False  # so it is with what has the name of the directory
        above, self._name = os.path.split(directory)
        self._above = os.open(above, PLACE)
        self._at = self._make()

    def close(self) -> None:
        """Look no more."""
        os.close(self._at)
        os.close(self._above)

    def look(self) -> list[Loan]:
        try:
            # Not by its path: where a task put a link or a mount, others' files would be taken for what it left.
            folder = open_here(self._name, LISTED, self._above)
        except OSError:
            self._begin_anew()
            return []
        try:
            found = os.fstat(folder)
            if not os.path.samestat(found, os.fstat(self._at)):
                self._begin_anew()
                return []
            # Without loans an unchanged directory has none; with one, its process may have died meanwhile.
            if not self._loans and not self._fresh and found.st_mtime_ns == self._seen:
                return []
            with os.scandir(folder) as entries:
                names = [entry.name for entry in islice(entries, _ENTRIES_MAX + 1)]
        except OSError:
            return []
        finally:
            os.close(folder)
        if len(names) > _ENTRIES_MAX:
            self._begin_anew()
            return []
        # A change within the clock's tick leaves the time as it was: only a time that has passed is remembered.
        self._seen = found.st_mtime_ns if time.time_ns() - found.st_mtime_ns > 50_000_000 else None
        self._loans = [loan for loan in map(_parsed, sorted(names)) if loan is not None and self._locked(loan.file)]
        self._remove_all_but({loan.file for loan in self._loans}, names)
        return list(self._loans)

    def settle(self, loan: Loan) -> None:
        self._remove(loan.file)
        self._loans = [other for other in self._loans if other != loan]

    def _make(self) -> int:
        """Make the directory, unless it is there; return a descriptor of it. Errors: OSError."""
        with suppress(FileExistsError):
            os.mkdir(self._name, _MODE, dir_fd=self._above)
        return open_here(self._name, NAMED | os.O_DIRECTORY, self._above)

    def _begin_anew(self) -> None:
        """Put aside what has the name of the directory, and make it again; while that cannot be, nothing is lent."""
        self._loans, self._fresh, self._stuck, self._seen = [], {}, set(), None
        stands = _stands(self._name, self._above)
        self._blocked = stands and (self._blocked or not self._aside(self._name, self._above, self.directory))
        if not self._blocked:
            with suppress(OSError):
                made = self._make()
                os.close(self._at)
                self._at = made

    def _remove_all_but(self, loans: set[str], names: list[str]) -> None:
        """Remove what is no loan, unless it may be about to become one; as much as one look may."""
        now = self._clock()
        self._stuck &= set(names)
        others = [name for name in names if name not in loans and name not in self._stuck]
        self._fresh = {name: self._fresh.get(name, now) for name in others if self._begins(name)}
        over = [name for name in others if now - self._fresh.get(name, -math.inf) >= _BEGINS_S]
        for name in over[:_AT_ONCE]:
            self._remove(name)
        if len(over) > _AT_ONCE:
            self._seen = None

    def _begins(self, name: str) -> bool:
        """Whether this may be the file of a process that has not given it its name yet."""
        try:
            place = open_here(name, _WARY, self._at)
        except OSError:
            return False
        try:
            hidden = name.startswith(".") and _parsed(name[1:] + LEND) is not None
            return hidden and S_ISREG(os.fstat(place).st_mode)
        finally:
            os.close(place)

    def _remove(self, name: str) -> None:
        try:
            os.unlink(name, dir_fd=self._at)
        except FileNotFoundError:
            pass
        except OSError:
            if not self._aside(name, self._at, f"{self.directory}/{name}"):
                self._stuck.add(name)

    def _locked(self, name: str) -> bool:
        try:
            descriptor = open_here(name, _WARY, self._at)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
        finally:
            os.close(descriptor)
        return False


def _stands(name: str, above: int) -> bool:
    try:
        os.close(open_here(name, NAMED, above))
    except OSError as error:
        return error.errno != errno.ENOENT
    return True


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
