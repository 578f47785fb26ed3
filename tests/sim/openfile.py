"""A file that a program has open for writing at the server: it is the same file wherever it is moved."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable


class OpenFile:
    """path: where it is by now; None once it was removed, which its writer does not notice, or lost with the power.

    late: its client keeps what is written until it is sent; looks: whether each who has read it did so since it was
    last written; unread_end: it was removed by somebody whose look was older.
    """

    def __init__(
        self, path: str, append: Callable[[str, bytes], None], closed: Callable[[OpenFile], None], late: bool
    ) -> None:
        self.path: str | None = path
        self.lost = self.unread_end = False
        self.looks: dict[object, bool] = {}
        self._append = append
        self._closed = closed
        self._late = late
        self._kept = b""

    def write(self, data: bytes) -> None:
        """Some more. Errors: OSError."""
        self._kept += data
        if not self._late:
            self.send()

    def send(self) -> None:
        """What the client has kept goes to the server. Errors: OSError, also when the power took the file."""
        if self.lost:
            raise OSError(errno.EIO, os.strerror(errno.EIO), self.path)
        data, self._kept = self._kept, b""
        if data and self.path is not None:
            self._append(self.path, data)

    def close(self) -> None:
        """That was all. Errors: as `send`."""
        try:
            self.send()
        finally:
            self._closed(self)
