"""Reads a .jsonl in pieces, some in each step: a member may drop one that no memory can hold.

Law: a file without a line's end, such as one that is a hole from its first byte to its last, costs no more memory
than the longest line that is allowed, and some MiB: reading stops at the first line that is too long. A long read
goes on over steps, and other drops are admitted meanwhile. Lines are found by searches, so that a gigabyte of line
ends costs no more than any other gigabyte.
"""

from __future__ import annotations

import hashlib
import io
import math

from spoold.master.desk import Desk
from spoold.protocol.door import BatchName
from spoold.protocol.errors import BadFile
from spoold.rules.entry.admission import too_large
from spoold.rules.entry.batch import NEWLINE
from spoold.store import absence

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


class Reading:
    """The content of one .jsonl, as far as it was read; a new drop, or what was admitted of a batch."""

    def __init__(self, path: str, file: str, admitted: BatchName | None = None) -> None:
        """file: its name for people."""
        self._path, self._file, self._admitted = path, file, admitted
        self._content, self._read = io.BytesIO(), 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._number, self._length, self._zeros = 1, 0, False  # of the line that the last piece ended in

    @property
    def digest(self) -> bytes:
        """The digest of what was read, as `rules.entry.batch` makes it."""
        return self._hash.digest()

    def whole(self, desk: Desk) -> bytes | None:
        """Read on to the end, whatever time it takes, as `go_on`."""
        while (data := self._go_on(desk)) is None:
            desk.breathe()
        return data[0]

    def go_on(self, desk: Desk) -> tuple[bytes | None] | None:
        """Read for as long as this stage has time. Return the content, or None in its place when the file of a batch
        is gone; None while there is more to read.

        Errors: TooLarge; OSError, DoorShut. Begin with a new Reading then.
        """
        while (data := self._go_on(desk)) is None:
            desk.breathe()
            if desk.late:
                desk.step.leave()
                return None
        return data

    def _go_on(self, desk: Desk) -> tuple[bytes | None] | None:
        """Read a piece."""
        limit = desk.store.settings.drop.max_batch_bytes
        most: float = limit + 1
        if self._admitted is not None:
            most = math.inf if self._admitted.size is None else self._admitted.size
        wanted = int(min(PIECE + (not self._read), most - self._read))
        if self._admitted is None:
            piece: bytes | None = desk.store.fs.read(self._path, wanted, offset=self._read)
        else:
            piece = absence.read(desk.store.fs, self._path, wanted, self._read)
        if piece is None:
            return (None,)
        self._take(desk, piece)
        if len(piece) < wanted or self._read >= most:
            return (self._content.getvalue(),)
        if self._read == wanted and self._admitted is None and desk.store.fs.read(self._path, 1, offset=limit):
            self._refuse_size(desk, limit)
        return None

    def _take(self, desk: Desk, piece: bytes) -> None:
        limit = desk.store.settings.drop.max_batch_bytes
        if self._admitted is None and self._read + len(piece) > limit:
            self._refuse_size(desk, limit)
        self._hash.update(piece)
        self._content.write(piece)
        self._read += len(piece)
        # The lines of a small file are judged by its admission. Those of an admitted batch were, unless anyone has
        # made its file larger than the limit since.
        admitted = self._admitted
        judged = self._read <= PIECE if admitted is None else (admitted.size or self._read) <= limit
        if admitted is None or admitted.size is None or not judged:
            self._gauge(desk, piece, refuse=not judged)

    def _refuse_size(self, desk: Desk, limit: int) -> None:
        size = desk.store.fs.stat(self._path).size
        raise TooLarge(too_large(self._file, size, "max_batch_bytes", limit), size, False, b"")

    def _gauge(self, desk: Desk, piece: bytes, *, refuse: bool) -> None:
        """Look for a line that is too long. refuse: whether that is an error here. Errors: TooLarge; OSError."""
        limit, start = desk.store.settings.drop.max_bytes, 0
        while True:
            # All lines up to the last line's end within the limit are short enough: one search for many of them.
            end = piece.rfind(NEWLINE, start, start + max(limit - self._length, 0) + 1)
            if end < 0:
                break
            self._number += piece.count(NEWLINE, start, end + 1)
            self._length, self._zeros, start = 0, False, end + 1
        end = piece.find(NEWLINE, start)
        end = len(piece) if end < 0 else end
        self._zeros = self._zeros or piece.find(b"\0", start, end) >= 0
        self._length += end - start
        if refuse and self._length > limit:
            size = max(self._read, desk.store.fs.stat(self._path).size)
            error = too_large(f"{self._file} line {self._number}", None, "max_bytes", limit)
            raise TooLarge(error, size, self._zeros, self.digest)
