"""What programs of tasks keep in the spool: what the tasks of a batch share (put, get, list), and the steps of one
task.

Law: nothing is ever overwritten. Where two entries are put without knowledge of each other, both stand, and at least
one of their authors is told. A step is durable, where the spool is, before the call returns. What does not come back
the same is refused.

Touches: the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from spoold.client.in_task import task_of
from spoold.client.spool.connection import Connection
from spoold.protocol import codec
from spoold.protocol.context_entry import BYTES_MAX as ENTRY_BYTES_MAX
from spoold.protocol.context_entry import ENTRIES_MAX, NAME_MAX, Entry, EntryName, content, is_name
from spoold.protocol.context_entry import directory as entry_directory
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.names import is_id, key
from spoold.protocol.step import BYTES_MAX as STEP_BYTES_MAX
from spoold.protocol.step import Step, StepName, sum_of
from spoold.protocol.step import directory as step_directory
from spoold.rules.tree.context_versions import latest, rivals, unseen, version
from spoold.store import versioned_files
from spoold.store.versioned_files import ENTRIES


@dataclass(frozen=True, slots=True)
class Shared:
    """One entry. version: its number; base: that of the entry of its name that its author had seen; conflicts: the
    versions of its name that its author had not seen; size: in bytes, None where only names were read.
    """

    name: str
    version: int
    base: int
    node: str
    task: str = ""
    attempt: int = 0
    by: str = ""
    at: str = ""
    size: int | None = None
    conflicts: tuple[int, ...] = ()


class Conflict(SpoolError):
    """Another entry of that name came, or stood already, that the caller had not seen. version: that was put all the
    same, 0 for none.
    """

    def __init__(self, words: str, version: int = 0) -> None:
        super().__init__(words)
        self.version = version


class SharedContext:
    """The context of one batch over one connection. Thread-safe."""

    def __init__(self, spool: Connection, batch: str | None = None) -> None:
        """batch: by name; None for that of the task in which this process runs. Errors: SpoolError where none is."""
        self._spool = spool
        self._task = task_of(spool.directory) or ""
        own = os.environ.get("SPOOL_BATCH", "") if self._task else ""
        self.batch = batch or own
        if not self.batch:
            raise SpoolError("which batch? This is no task of one. Name a batch (--batch).")
        if not is_id(self.batch):
            raise SpoolError(f"{self.batch!r} cannot be the name of a batch.")

    def put(self, name: str, data: bytes, *, if_version: int | None = None) -> Shared:
        """Add an entry, which counts from now on; returns it, with conflicts if others came at the same moment.

        if_version: only if this is the version that counts now; 0: only if there is none. Errors: Conflict, with
        nothing put unless its words say so; SpoolError for a name, or too much; BadFile for an entry
        that leaves no number for another; Unavailable.
        """
        if not is_name(name):
            raise SpoolError(
                f"{name!r} cannot name an entry: use up to {NAME_MAX} letters, digits and _ = + , . -, "
                "beginning with a letter or digit."
            )
        if len(data) > ENTRY_BYTES_MAX:
            raise SpoolError(
                f"an entry has at most {ENTRY_BYTES_MAX >> 10} KiB, and this one {len(data):,} bytes: put a summary."
            )
        fs = self._spool.store.fs
        with self._spool.reaching(), self._spool.numbers.giving:
            there = ENTRIES.names(fs, self.batch)
            if len(there) >= ENTRIES_MAX:
                raise SpoolError(f"batch {self.batch} has {ENTRIES_MAX:,} entries, and more are not taken.")
            now = version(there, name)
            if if_version is not None and if_version != now:
                raise Conflict(
                    f"{name} is at version {now}, not {if_version}: get it, merge, and put with version {now}. "
                    "Nothing was put."
                )
            number = self._spool.numbers.above(entry_directory(self.batch), there)
            mine = EntryName(number, self._spool.store.writer, name, now)
            self._spool.change(
                lambda by: ENTRIES.publish(self._spool.store, self.batch, mine, self._filled(data, by))
            )
            others = rivals(ENTRIES.names(fs, self.batch), mine)
        if others and if_version is not None:
            told = ", ".join(f"{each.number} of {each.node}" for each in others)
            raise Conflict(
                f"{name} is put as version {mine.number}, but version {told} came at the same moment. Both stand: "
                "get them, merge, and put again.",
                mine.number,
            )
        return self._shown(mine, tuple(each.number for each in others), len(data))

    def get(self, name: str, number: int | None = None) -> tuple[Shared, bytes]:
        """Return an entry and its content: the one that counts, or an earlier version. Of several with one number the
        last one. Errors: NotFound, BadFile, Unavailable.
        """
        with self._spool.reaching():
            there = ENTRIES.names(self._spool.store.fs, self.batch)
            own = [each for each in there if key(each.name) == key(name) and number in (None, each.number)]
            found = None if not own else ENTRIES.read(self._spool.store.fs, self.batch, own[-1])
        if found is None:
            which = name if number is None else f"{name}, version {number},"
            raise NotFound(f"there is no {which} in the context of batch {self.batch}; `spool context ls` lists all.")
        conflicts = tuple(each.number for each in unseen(there, name)) if number is None else ()
        return replace(self._shown(own[-1], conflicts, len(found.data)), **self._told(found)), found.data

    def whole(self, entries: Iterable[Shared]) -> list[Shared]:
        """Return entries with their authors, times and sizes: one read for each. One that is gone, or cannot be read,
        stays as it is. Errors: Unavailable.
        """
        found = []
        for each in entries:
            name = EntryName(each.version, each.node, each.name, each.base)
            read = None
            with self._spool.reaching(), suppress(BadFile):
                read = ENTRIES.read(self._spool.store.fs, self.batch, name)
            found.append(each if read is None else replace(each, **self._told(read), size=len(read.data)))
        return found

    def current(self) -> list[Shared]:
        """Return the entry of each name that counts, by name; from names alone. Errors: Unavailable."""
        with self._spool.reaching():
            there = ENTRIES.names(self._spool.store.fs, self.batch)
        return [
            self._shown(each, tuple(other.number for other in unseen(there, each.name)))
            for _, each in sorted(latest(there).items())
        ]

    def log(self) -> list[Shared]:
        """Return all entries, in their order; from names alone. Errors: Unavailable."""
        with self._spool.reaching():
            there = ENTRIES.names(self._spool.store.fs, self.batch)
        return [self._shown(each, ()) for each in there]

    def _shown(self, each: EntryName, conflicts: tuple[int, ...], size: int | None = None) -> Shared:
        return Shared(each.name, each.number, each.base, each.node, size=size, conflicts=conflicts)

    @staticmethod
    def _told(entry: Entry) -> dict[str, Any]:
        return {"task": entry.task, "attempt": entry.attempt, "by": entry.by, "at": entry.at}

    def _filled(self, data: bytes, by: str) -> dict[str, object]:
        attempt = os.environ.get("SPOOL_ATTEMPT", "") if self._task else ""
        told = {"task": self._task, "attempt": int(attempt) if attempt.isdecimal() else 0}
        return {**told, "by": by, "at": self._spool.store.stamp(), **content(data)}


# The steps of the task in which this process runs: save how far it has come, and go on from there.


class Steps:
    """The steps of one task over one connection. Thread-safe."""

    def __init__(self, spool: Connection) -> None:
        """Errors: SpoolError outside of a task of this spool."""
        self._spool = spool
        task, attempt = task_of(spool.directory), os.environ.get("SPOOL_ATTEMPT", "")
        if task is None or not attempt.isdecimal():
            raise SpoolError("this is no task of this spool: there is nothing to go on from. Use it within a task.")
        self._task, self._attempt = task, int(attempt)

    def save(self, value: Any) -> int:
        """Save a step, any JSON value, and return its number. Errors: SpoolError for no JSON, or too much of it;
        BadFile for a step that leaves no number for another; Unavailable.
        """
        step = self._checked(value)
        fs = self._spool.store.fs
        with self._spool.reaching(), self._spool.numbers.giving:
            there = versioned_files.STEPS.names(fs, self._task)
            number = self._spool.numbers.above(step_directory(self._task), there)
            name = StepName(self._attempt, number, self._spool.store.writer)
            self._spool.change(lambda by: versioned_files.publish_step(self._spool.store, self._task, name, step))
        return number

    def last(self) -> tuple[int, Any] | None:
        """Return the number and value of the last whole step, of this attempt or an earlier one; None for none.

        Errors: Unavailable.
        """
        with self._spool.reaching():
            found = versioned_files.last_step(self._spool.store.fs, self._task, self._attempt)
        return None if found is None else (found[0].number, found[1].value)

    def _checked(self, value: Any) -> dict[str, object]:
        try:
            step = {"sum": sum_of(value), "value": value, "at": self._spool.store.stamp()}
            data = codec.dump(step)
            back = codec.load_model(Step, data, "the step")
        except (TypeError, ValueError, RecursionError) as error:
            raise SpoolError(f"a step has to be a value of JSON: {error}.") from error
        if not back.whole or back.value != value:
            raise SpoolError(
                "a step has to be JSON that comes back the same: lists and no tuples, keys that are texts, no NaN."
            )
        if len(data) > STEP_BYTES_MAX:
            raise SpoolError(
                f"a step has at most {STEP_BYTES_MAX >> 20} MiB, and this one {len(data):,} bytes: save a path to it."
            )
        return step
