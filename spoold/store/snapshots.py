"""Status snapshots, which the leader publishes.

Law: each has a new name, and none is replaced. The highest that can be read counts, and the leader removes old ones.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.names import SnapshotName, parse_snapshot
from spoold.store.existence import names_unless_blocked, reading
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from spoold.protocol.snapshot import Snapshot

KEPT = 2


def publish(store: Store, name: SnapshotName, snapshot: Snapshot) -> None:
    """Publish a snapshot, and remove all but the last few. Errors: OSError."""
    store.publish(layout.join(layout.STATUS, name.encode()), codec.dump(snapshot), durable=False)
    old = SnapshotName(name.epoch, name.seq - KEPT)
    if old.seq >= 0:
        with contextlib.suppress(OSError):
            store.fs.unlink(layout.join(layout.STATUS, old.encode()))


def list_snapshots(fs: FileSystem) -> list[SnapshotName]:
    """All snapshots, the newest first. Errors: OSError."""
    parsed = (parse_snapshot(name) for name in names_unless_blocked(fs, layout.STATUS))
    return sorted((name for name in parsed if name is not None), reverse=True)


def load(data: bytes, file: str) -> Snapshot:
    """A snapshot as its model. Errors: BadFile."""
    from spoold.protocol.snapshot import Snapshot

    with reading("snapshot", file):
        return codec.load_model(Snapshot, data, file)


def latest(fs: FileSystem, load: Callable[[bytes, str], Snapshot] = load) -> tuple[SnapshotName, Snapshot] | None:
    """The newest snapshot that can be read by `load`, or None. Errors: OSError."""
    for _ in range(3):  # the one listed may be replaced before it is opened
        for name in list_snapshots(fs):
            try:
                with reading("snapshot", name.encode()):
                    return name, load(fs.read(layout.join(layout.STATUS, name.encode())), name.encode())
            except BadFile:
                continue
            except OSError as error:
                if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                    raise
    return None
