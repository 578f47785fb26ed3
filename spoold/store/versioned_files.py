"""Files that never change, below one directory for each owner: what the tasks of a batch share, and the steps of a
task.

Law: a file is published whole and never replaced. Whether it counts is decided by the listing alone. An author
removes only earlier steps of its own. Where a spool of an earlier release lacks the shelf, nothing is on it. A link
in the place of a directory is an error, and no empty shelf.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from pydantic import BaseModel

from spoold.protocol import codec, layout
from spoold.protocol.context_entry import BYTES_MAX as ENTRY_BYTES_MAX
from spoold.protocol.context_entry import Entry, parse_entry
from spoold.protocol.errors import BadFile
from spoold.protocol.names import is_id, key
from spoold.protocol.step import BYTES_MAX as STEP_BYTES_MAX
from spoold.protocol.step import KEPT, Step, StepName, parse_step
from spoold.store import existence
from spoold.store.existence import regular
from spoold.store.path_conflicts import obstacle
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem


class Name(Protocol):
    """The name of a file on a shelf."""

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        ...

    def __lt__(self, other: Any, /) -> bool: ...


N = TypeVar("N", bound=Name)
C = TypeVar("C", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Shelf(Generic[N, C]):
    """One shelf. room: its directory; parse: a name on it, None for another; content: the model of a file; file_max:
    how many bytes a file has at most. An owner is an id, in any case.
    """

    room: str
    parse: Callable[[str], N | None]
    content: type[C]
    file_max: int

    def directory(self, owner: str) -> str:
        """Where the files of an owner are."""
        return layout.join(self.room, key(owner))

    def owners(self, fs: FileSystem) -> list[str]:
        """The owners of anything, by key. Errors: OSError."""
        return sorted(name for name in existence.names_in(fs, self.room) if is_id(name))

    def names(self, fs: FileSystem, owner: str) -> list[N]:
        """The names of an owner's files, in their order; none where there are none. Errors: OSError, also for a link
        or a file in the place of a directory: what lies behind it is not what the owner has put there.
        """
        directory = self.directory(owner)
        try:
            names = existence.names_in(fs, directory)
            if not names and obstacle(fs, directory) is not None:
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), directory)
        except FileNotFoundError:
            if existence.stands(fs, self.room):
                raise
            names = []
        return sorted(found for found in map(self.parse, names) if found is not None)

    def publish(self, store: Store, owner: str, name: N, content: dict[str, object]) -> None:
        """Publish a file under a name that only this writer makes. Errors: OSError, ShutOut."""
        path, data = self._path(owner, name), codec.dump(content)
        try:
            staged = store.publish(path, data, durable=store.durable)
        except FileNotFoundError:  # the first file of an owner
            make_directory(store.fs, self.room)
            make_directory(store.fs, self.directory(owner))
            staged = store.publish(path, data, durable=store.durable)
        if store.durable:
            store.settle(self.directory(owner), {staged: path})

    def read(self, fs: FileSystem, owner: str, name: N) -> C | None:
        """A file; None if it is gone. Errors: BadFile, OSError."""
        path = self._path(owner, name)
        with regular(path):
            data = existence.read(fs, path, self.file_max)
        return None if data is None else codec.load_model(self.content, data, path)

    def remove(self, fs: FileSystem, owner: str, name: N) -> None:
        """Remove a file, if it is there. Errors: OSError."""
        existence.remove(fs, self._path(owner, name))

    def foreign(self, names: Callable[[str], list[str]]) -> Iterator[str]:
        """The paths that do not belong on it. names: the listing of a directory."""
        for owner in names(self.room):
            path = layout.join(self.room, owner)
            if not is_id(owner) or owner != key(owner):
                yield path
                continue
            yield from (layout.join(path, name) for name in names(path) if self.parse(name) is None)

    def _path(self, owner: str, name: N) -> str:
        return layout.join(self.directory(owner), name.encode())


def file_max(bytes_max: int) -> int:
    """How many bytes a file has at most whose content has so many: JSON may spell a byte with six characters."""
    return 6 * bytes_max + 4096


# What the tasks of a batch share: entries that are published, listed and read.


# The owner of an entry is its batch.
ENTRIES = Shelf(layout.CONTEXT, parse_entry, Entry, file_max(ENTRY_BYTES_MAX))


# The steps of a task: published, listed, and the last one that is whole.


# The owner of a step is its task.
STEPS = Shelf(layout.STEPS, parse_step, Step, file_max(STEP_BYTES_MAX))


def publish_step(store: Store, task_id: str, name: StepName, step: dict[str, object]) -> None:
    """Publish a step, and remove the author's steps of this attempt that are no longer needed. Errors: OSError."""
    STEPS.publish(store, task_id, name, step)
    own = [each for each in STEPS.names(store.fs, task_id) if each.attempt == name.attempt]
    for old in own[:-KEPT]:
        STEPS.remove(store.fs, task_id, old)


def last_step(fs: FileSystem, task_id: str, before: int) -> tuple[StepName, Step] | None:
    """The last whole step of the attempts up to this one; None for none. Errors: OSError."""
    for name in reversed([each for each in STEPS.names(fs, task_id) if each.attempt <= before]):
        try:
            step = STEPS.read(fs, task_id, name)
        except BadFile:
            continue
        if step is not None and step.whole:
            return name, step
    return None
