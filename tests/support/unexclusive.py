"""A file system on which rename is not exclusive, as sync folders and object stores have it: copy, then delete.

Law: only `rename` is worse than it should be; whoever found the source when the call began is told that it was done.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from spoold.system.filesystem import FileSystem
from tests.support.faults import FaultyFileSystem


class CopyThenDelete(FaultyFileSystem):
    """One node's mount of it. between: what the rest of the world does between the copy and the deletion."""

    def __init__(self, inner: FileSystem, between: Callable[[], object]) -> None:
        super().__init__(inner)
        self._between = between

    def rename(self, src: str, dst: str) -> None:
        def copy_then_delete() -> None:
            data = self.inner.read(src)
            self._between()
            self.inner.write(dst, data, durable=False)
            with contextlib.suppress(FileNotFoundError):
                self.inner.unlink(src)

        self._call("rename", copy_then_delete, src, dst)
