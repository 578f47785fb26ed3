"""The content of a file when it was judged, whether it has changed, and what is remembered of rejected/.

Law: a quiet look costs a call or two, however large the file is. A small file is read whole. Of a larger file the
size and the time of the last change are compared. Only if that time differs is the file read, some MiB a look. On NFS
the time is fresh, since the file was opened just before.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from spoold.system.filesystem import FileSystem

# A file with more bytes is not read at every look, but in pieces, so many a look.
SMALL = 1 << 20
PIECE, PIECES_PER_LOOK = 4 << 20, 16
# How many bytes of a digest are in the reason of a rejection, and in the name of a batch.
IN_REASON, IN_NAME = 8, 4


def digest_of(data: bytes) -> bytes:
    """Return the digest, of which the first bytes are kept: BLAKE2b, 16 bytes, as in `rules.entry.admission`."""
    return hashlib.blake2b(data, digest_size=16).digest()


class Content:
    """The first `size` bytes of a file, known by the beginning of their digest; without one only the size counts.

    unread: whether there is more to compare than one look may read; open_ended: whether added bytes are ignored.
    """

    def __init__(self, size: int, digest: bytes = b"") -> None:
        self.size = size
        self.digest = digest
        self.unread = self.open_ended = False
        self._mtime_ns: int | None = None
        self._read = 0
        self._hash = hashlib.blake2b(digest_size=16)

    def look(self, fs: FileSystem, path: str) -> int | None:
        """Return the file's size (bytes); None when its first `size` bytes have changed. Errors: OSError."""
        if self.digest and self.size <= SMALL:
            data = fs.read(path, self.size + 1)
            if not self._is(digest_of(data[: self.size])):
                return None
            return len(data) if len(data) <= self.size else max(len(data), fs.stat(path).size)
        grown = len(fs.read(path, 1, offset=self.size))
        found = fs.stat(path)
        if not grown and found.size < self.size:
            return None
        if self.digest and not self._reads_the_same(fs, path, found.mtime_ns):
            return None
        return max(found.size, self.size + 1) if grown else self.size

    def _reads_the_same(self, fs: FileSystem, path: str, mtime_ns: int) -> bool:
        """Read on in a file that changed since it was last read to its end; False once its content differs."""
        if mtime_ns != self._mtime_ns:
            self._mtime_ns, self.unread, self._read = mtime_ns, True, 0
            self._hash = hashlib.blake2b(digest_size=16)
        for _ in range(PIECES_PER_LOOK if self.unread else 0):
            piece = fs.read(path, min(PIECE, self.size - self._read), offset=self._read)
            self._hash.update(piece)
            self._read += len(piece)
            if not piece or self._read == self.size:
                self.unread = False
                return self._is(self._hash.digest())
        return True

    def _is(self, digest: bytes) -> bool:
        return digest[: len(self.digest)] == self.digest


# What a leader remembers of rejected/.


@dataclass(slots=True)
class Rejects:
    """taken: the names there, if a step listed them; open: names that may be written again, and their content."""

    taken: set[str] | None = None
    open: dict[str, Content] = field(default_factory=dict)

    def begin_step(self) -> None:
        """Forget the names: people may clear the directory."""
        self.taken = None

    def see(self, names: Iterable[str]) -> set[str]:
        """Note the names there, and return them."""
        self.taken = set(names)
        return self.taken

    def came(self, *names: str) -> None:
        """Note names that this leader made there, once they were listed."""
        if self.taken is not None:
            self.taken.update(names)

    def watch(self, name: str, content: Content) -> None:
        """Note that this entry may be written again, and the content it was rejected for; the first one counts."""
        self.open.setdefault(name, content)

    def take_watched(self) -> dict[str, Content]:
        """Hand over the entries that may be written again."""
        watched, self.open = self.open, {}
        return watched
