"""Results as files: read as far as possible, and written even if something stands in their place.

Law: only its decider writes a result, so nothing else belongs under its name. A link, a pipe, a directory or another
user's file there is never followed or read: it is renamed where it is, to a name that no grammar has, for people.
"""

from __future__ import annotations

import errno

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.result import Result
from spoold.store.regular import reading
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
