"""Shares that are unsafe on purpose: each tells one lie that some file system was seen to tell."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from spoold.doctor.share import LockKind, Share


def refuse(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)


class CopyingShare(Share):
    """A rename is a copy and a delete, and whoever began before the delete succeeds too."""

    def rename(self, src: str, dst: str) -> None:
        try:
            data = self.read(src)
        except OSError:
            super().rename(src, dst)  # a directory, or nothing there
            return
        threading.Event().wait(0.001)
        self.write(dst, data, durable=False)
        try:
            self.unlink(src)
        except FileNotFoundError:
            return


class TwoVolumes(Share):
    """`tmp/` and all else are different file systems."""

    def rename(self, src: str, dst: str) -> None:
        if (src.partition("/")[0] == "tmp") != (dst.partition("/")[0] == "tmp"):
            raise refuse(errno.EXDEV, src)
        super().rename(src, dst)


class LocklessShare(Share):
    """No locks at all."""

    @contextmanager
    def locked(self, path: str, kind: LockKind = "flock") -> Iterator[bool]:
        with super().locked(f"{path}/no", kind) as granted:
            yield granted

    def _full(self, path: str) -> str:
        if path.endswith("/no"):
            raise refuse(errno.ENOLCK, path)
        return super()._full(path)


class GenerousShare(Share):
    """Grants every lock: the mount keeps locks to itself."""

    @contextmanager
    def locked(self, path: str, kind: LockKind = "flock") -> Iterator[bool]:
        yield True


class WindowsShare(Share):
    """Names that differ by case alone are one, long names do not fit, and `+` is another character."""

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        directory, _, name = path.rpartition("/")
        if len(name) > 143:
            raise refuse(errno.ENAMETOOLONG, path)
        super().write(f"{directory}/{name.lower().replace('+', '_')}", data, durable=durable)


class ForgetfulShare(Share):
    """A listing is remembered for two seconds: what another machine made meanwhile is not in it."""

    FOR_S = 2.0

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._remembered: dict[str, tuple[float, list[str]]] = {}

    def list(self, path: str) -> list[str]:
        import time

        now = time.monotonic()
        known = self._remembered.get(path)
        # Only in directories of trials: the meeting itself must come about.
        if "fresh." not in path:
            return super().list(path)
        if known is None or now - known[0] > self.FOR_S:
            known = self._remembered[path] = (now, super().list(path))
        return known[1]
