"""Reads a .jsonl whole, once it is known to fit: a member may drop one that no memory can hold.

Law: a file without a line's end, such as one that is a hole from its first byte to its last, costs a few MiB and no
more. It is read in pieces until a line is too long, and only a file without such a line is read whole.
"""

from __future__ import annotations

import hashlib

from spoold.master.desk import Desk
from spoold.protocol.door import BatchName
from spoold.protocol.errors import BadFile
from spoold.rules.entry.admission import too_large
from spoold.rules.entry.batch import NEWLINE
from spoold.store import absence
from spoold.system.filesystem import FileSystem

# A file that is not longer is read at once.
PIECE = 4 << 20


class TooLarge(Exception):
    """The file, or a line of it, has more bytes than the settings allow.

    size: of the file, in bytes; young: it has zeros there, perhaps bytes that an NFS client has not sent yet; seen:
    a digest of the bytes that were read.
    """

    def __init__(self, error: BadFile, size: int, young: bool, seen: bytes) -> None:
        super().__init__(str(error))
        self.error, self.size, self.young, self.seen = error, size, young, seen


def read(desk: Desk, path: str, file: str) -> bytes:
    """Return the content of a batch. file: its name for people. Errors: TooLarge; OSError."""
    fs, drops = desk.store.fs, desk.store.settings.drop
    limit = drops.max_batch_bytes
    data = fs.read(path, min(PIECE, limit) + 1)
    if len(data) <= min(PIECE, limit):
        return data
    if fs.read(path, 1, offset=limit):
        size = fs.stat(path).size
        raise TooLarge(too_large(file, size, "max_batch_bytes", limit), size, False, b"")
    _gauge(desk, path, file, data)
    return fs.read(path, limit + 1)


def read_accepted(desk: Desk, path: str, name: BatchName) -> bytes | None:
    """Return the content of an accepted batch, whatever `max_batch_bytes` says by now; None when it is gone.

    Anyone may have made the file larger than the limit since: then no line of it may be too long.
    Errors: TooLarge; OSError.
    """
    fs, size, limit = desk.store.fs, name.size, desk.store.settings.drop.max_batch_bytes
    data = absence.read(fs, path, limit + 1 if size is None else min(size, limit + 1))
    if data is None or len(data) <= limit:
        return data
    _gauge(desk, path, f"{name.prefix}.jsonl", data)
    return absence.read(fs, path, size)


def _gauge(desk: Desk, path: str, file: str, data: bytes) -> None:
    """Look for a line that is too long. data: the beginning of the file. Errors: TooLarge; OSError."""
    limit = desk.store.settings.drop.max_bytes
    digest, number, length, zeros, offset = hashlib.blake2b(digest_size=16), 1, 0, False, 0
    while data:
        desk.breathe()
        digest.update(data)
        offset += len(data)
        for index, part in enumerate(data.split(NEWLINE)):
            if index:
                number, length, zeros = number + 1, 0, False
            length, zeros = length + len(part), zeros or b"\0" in part
            if length > limit:
                size = _size(desk.store.fs, path, offset)
                error = too_large(f"{file} line {number}", None, "max_bytes", limit)
                raise TooLarge(error, size, zeros, digest.digest())
        data = desk.store.fs.read(path, PIECE, offset=offset)


def _size(fs: FileSystem, path: str, known: int) -> int:
    return max(known, fs.stat(path).size)
