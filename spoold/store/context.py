"""What the tasks of a batch share: entries that are published, listed and read.

Law: an entry is published whole and never replaced. Whether it counts is decided by the listing alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from spoold.protocol import codec, layout
from spoold.protocol.entry import BYTES_MAX, Entry, EntryName, directory, parse_entry
from spoold.protocol.names import is_id, key
from spoold.store import absence
from spoold.store.regular import regular
from spoold.store.store import Store, make_directory
from spoold.system.filesystem import FileSystem

# JSON may spell a byte with six characters.
_FILE_MAX = 6 * BYTES_MAX + 4096


def entries(fs: FileSystem, batch: str) -> list[EntryName]:
    """The entries of a batch, in their order; none where nobody has made any. Errors: OSError."""
    try:
        names = absence.names_in(fs, directory(batch))
    except FileNotFoundError:
        if absence.stands(fs, layout.CONTEXT):
            raise
        names = []  # a spool of an earlier release
    return sorted(filter(None, map(parse_entry, names)))


def batches(fs: FileSystem) -> list[str]:
    """The batches that share something, by key. Errors: OSError."""
    return sorted(name for name in absence.names_in(fs, layout.CONTEXT) if is_id(name))


def publish_entry(store: Store, batch: str, name: EntryName, entry: dict[str, object]) -> None:
    """Publish an entry under a name that only this writer makes. Errors: OSError, ShutOut."""
    path, data = layout.join(directory(batch), name.encode()), codec.dump(entry)
    try:
        staged = store.publish(path, data, durable=store.durable)
    except FileNotFoundError:
        # A spool of an earlier release lacks context/, and the first entry of a batch its directory.
        make_directory(store.fs, layout.CONTEXT)
        make_directory(store.fs, directory(batch))
        staged = store.publish(path, data, durable=store.durable)
    if store.durable:
        store.settle(directory(batch), {staged: path})


def read_entry(fs: FileSystem, batch: str, name: EntryName) -> Entry | None:
    """An entry; None if it is gone. Errors: BadFile, OSError."""
    path = layout.join(directory(batch), name.encode())
    with regular(path):
        data = absence.read(fs, path, _FILE_MAX)
    return None if data is None else codec.load_model(Entry, data, path)


def foreign(names: Callable[[str], list[str]]) -> Iterator[str]:
    """The paths in context/ that are no entries. names: the listing of a directory."""
    for batch in names(layout.CONTEXT):
        path = layout.join(layout.CONTEXT, batch)
        if not is_id(batch) or batch != key(batch):
            yield path
            continue
        yield from (layout.join(path, name) for name in names(path) if parse_entry(name) is None)
