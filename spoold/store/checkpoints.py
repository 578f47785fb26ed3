"""Checkpoints of the leader's feed in status/.

Law: each has a new name, and none is replaced. The highest that can be read counts.
"""

from __future__ import annotations

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.feed_checkpoint import Checkpoint, CheckpointName, parse_checkpoint
from spoold.store import absence
from spoold.store.absence import names_unless_blocked
from spoold.store.regular import reading, regular
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import FileSystem


def path_of(name: CheckpointName) -> str:
    """Where that checkpoint is."""
    return layout.join(layout.STATUS, name.encode())


def publish(store: Store, name: CheckpointName, data: bytes) -> None:
    """Publish a checkpoint, durable where the settings ask for it. Errors: OSError, ShutOut.

    One whose publishing failed may yet appear, so its name must not be used again.
    """
    store.publish(path_of(name), data, durable=store.durable)


def list_checkpoints(fs: FileSystem) -> list[CheckpointName]:
    """All that there are, the newest first. Errors: OSError."""
    parsed = (parse_checkpoint(name) for name in names_unless_blocked(fs, layout.STATUS))
    return sorted((name for name in parsed if name is not None), reverse=True)


class Unreadable(Exception):
    """A checkpoint cannot be read just now."""


def latest(
    fs: FileSystem, names: list[CheckpointName], faults: list[str], *, patient: bool = False
) -> Checkpoint | None:
    """The newest of these that can be read, or None. Errors: OSError of the share.

    names: as listed, the newest first. faults: gets a sentence for each that had to be passed over. patient: raise
    Unreadable rather than pass over one that may be read a moment later, as where an SMB client holds it open.
    """
    for name in names:
        path = path_of(name)
        try:
            with reading("checkpoint", path):
                with regular(path):
                    data = absence.read(fs, path)
                if data is not None:
                    return codec.load_model(Checkpoint, data, path)
        except BadFile as error:
            faults.append(str(error))
        except OSError as error:
            if not concerns_one_file(error):
                raise
            if patient:
                raise Unreadable from error
            faults.append(f"{path}: {error.strerror}")
    return None
