"""The records in results/: read as far as possible, written even if something stands in their place, listed once for
the earlier attempts of many tasks; and the checkpoints in status/, which say how far the leader has read them.

Law: only its decider writes a result, so nothing else belongs under its name. A link, a pipe, a directory or another
user's file there is never followed or read: it is renamed where it is, to a name that no grammar has, for people. The
node that ends an attempt writes its record before the next attempt begins: a listing that is younger than an attempt
shows all records before it. Unreadable records are left out. Each checkpoint has a new name, and none is replaced;
the highest that can be read counts.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.feed_checkpoint import Checkpoint, CheckpointName, parse_checkpoint
from spoold.protocol.names import EndedName, ended_key_in, key, parse_ended
from spoold.protocol.result import Result, Total
from spoold.rules.attempts.attempt_costs import total_of
from spoold.store import existence
from spoold.store.existence import names_unless_blocked, reading, regular
from spoold.store.store import Store
from spoold.system.errnos import concerns_one_file
from spoold.system.filesystem import FileSystem

# Errors beyond those that concern one file: a pipe without a reader, a file that has another name.
_IN_PLACE = (errno.ENXIO, errno.EMLINK)
NAME_MAX = 150
ASIDE = ".aside"


def read_record(fs: FileSystem, path: str) -> Result | None:
    """The result at a path; None if it is gone, invalid or unreadable. Errors: OSError of the share."""
    try:
        with reading("record", path):
            return codec.load_model(Result, fs.read(path), path)
    except (BadFile, FileNotFoundError):
        return None
    except OSError as error:
        if not concerns_one_file(error):
            raise
        return None


def is_taken(error: OSError) -> bool:
    """Whether a file could not be written because another writer's entry has its name."""
    return concerns_one_file(error) or error.errno in _IN_PLACE


def write_record(store: Store, path: str, data: bytes, *, durable: bool) -> list[str]:
    """Write a result that this node decides; list what was in its place and where that is now. Errors: OSError."""
    try:
        store.fs.write(path, data, durable=durable)
    except OSError as error:
        if not is_taken(error):
            raise
        try:
            there = set_aside(store, path)
        except FileNotFoundError:
            told = []  # the failed write removed it
        except OSError:
            raise error from None
        else:
            told = [f"{path} was in the place of a result ({error.strerror}); it is {there} now: remove it"]
        store.fs.write(path, data, durable=durable)
        return told
    return []


def set_aside(store: Store, path: str) -> str:
    """Rename the entry at a path where it is, so that no node takes it for a file of the spool; return its new path.

    A user who may write to the directory may rename it there, even if its owner forbids moving it. Errors: OSError.
    """
    above, _, name = path.rpartition("/")
    there = f"{above}/.{name[:NAME_MAX]}.{store.writer}-{int(store.clock.wall() * 1e6)}{ASIDE}"
    store.fs.rename(path, there)
    return there


# The records of the earlier attempts of a task, found by listing results/ once for many tasks.


class Ledger:
    """Valid for one step: each directory is listed once."""

    def __init__(self, fs: FileSystem) -> None:
        self._fs = fs
        self._names: dict[str, list[str]] | None = None

    def before(self, task_id: str, attempt: int) -> Iterator[Result]:
        """The records of the attempts before this one, the latest first. Errors: OSError."""
        listed = (parse_ended(name) for name in self._listed().get(key(task_id), ()))
        earlier = [name for name in listed if name is not None and _is_of(name, task_id) and name.attempt < attempt]
        for name in sorted(earlier, key=lambda one: one.attempt, reverse=True):
            found = read_record(self._fs, layout.join(layout.RESULTS, name.encode()))
            if found is not None:
                yield found

    def total_before(self, task_id: str, attempt: int) -> Total | None:
        """The sums over those attempts; None without any record. Errors: OSError."""
        found: list[Result] = []
        for result in self.before(task_id, attempt):
            if found and result.attempt < found[-1].attempt and any(one.total is not None for one in found):
                break  # this record holds the total of all before it
            found.append(result)
        return total_of(found)

    def _listed(self) -> dict[str, list[str]]:
        if self._names is None:
            names: dict[str, list[str]] = {}
            for name in self._fs.list(layout.RESULTS):
                names.setdefault(ended_key_in(name), []).append(name)
            self._names = names
        return self._names


def _is_of(name: EndedName, task_id: str) -> bool:
    return key(name.id) == key(task_id)


# Checkpoints of the leader's feed in status/.


def checkpoint_path(name: CheckpointName) -> str:
    """Where that checkpoint is."""
    return layout.join(layout.STATUS, name.encode())


def publish_checkpoint(store: Store, name: CheckpointName, data: bytes) -> None:
    """Publish a checkpoint, durable where the settings ask for it. Errors: OSError, ShutOut.

    One whose publishing failed may yet appear, so its name must not be used again.
    """
    store.publish(checkpoint_path(name), data, durable=store.durable)


def list_checkpoints(fs: FileSystem) -> list[CheckpointName]:
    """All that there are, the newest first. Errors: OSError."""
    parsed = (parse_checkpoint(name) for name in names_unless_blocked(fs, layout.STATUS))
    return sorted((name for name in parsed if name is not None), reverse=True)


class UnreadableCheckpoint(Exception):
    """A checkpoint cannot be read just now."""


def latest_checkpoint(
    fs: FileSystem, names: list[CheckpointName], faults: list[str], *, patient: bool = False
) -> Checkpoint | None:
    """The newest of these that can be read, or None. Errors: OSError of the share.

    names: as listed, the newest first. faults: gets a sentence for each that had to be passed over. patient: raise
    Unreadable rather than pass over one that may be read a moment later, as where an SMB client holds it open.
    """
    for name in names:
        path = checkpoint_path(name)
        try:
            with reading("checkpoint", path):
                with regular(path):
                    data = existence.read(fs, path)
                if data is not None:
                    return codec.load_model(Checkpoint, data, path)
        except BadFile as error:
            faults.append(str(error))
        except OSError as error:
            if not concerns_one_file(error):
                raise
            if patient:
                raise UnreadableCheckpoint from error
            faults.append(f"{path}: {error.strerror}")
    return None
