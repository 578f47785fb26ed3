"""Shares that are unsafe on purpose: each tells one lie that some file system was seen to tell."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from spoold.doctor.trial_share import LockKind, Share


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
        threading.Event().wait(0.003)
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

    has_locks = False

    @contextmanager
    def locked(self, path: str, kind: LockKind = "flock") -> Iterator[bool]:
        if not self.has_locks:
            raise refuse(errno.ENOLCK, path)
        with super().locked(path, kind) as granted:
            yield granted


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


class ShallowShare(Share):
    """Holds every name, but no path of more than 400 bytes below the room of the trials."""

    def write(self, path: str, data: bytes, *, durable: bool) -> None:
        if len(path) > 400:
            raise refuse(errno.ENAMETOOLONG, path)
        super().write(path, data, durable=durable)


class ForgetfulShare(Share):
    """A listing is remembered for a while: what another machine made meanwhile is not in it."""

    FOR_S = 1.1

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._remembered: dict[str, tuple[float, list[str]]] = {}

    def list(self, path: str) -> list[str]:
        if "fresh." not in path:  # the meeting itself must come about
            return super().list(path)
        now, known = time.monotonic(), self._remembered.get(path)
        if known is None or now - known[0] > self.FOR_S:
            known = self._remembered[path] = (now, super().list(path))
        return known[1]


class StubbornShare(Share):
    """What was once absent stays so, listing or not."""

    def __init__(self, root: str) -> None:
        super().__init__(root)
        self._absent: set[str] = set()

    def sees(self, path: str) -> bool:
        if path not in self._absent and super().sees(path):
            return True
        self._absent.add(path)
        return False


class ClingingShare(Share):
    """Refuses for a moment to rename what was read lately, as Samba does with a deferred close."""

    FOR_S = 0.2
    read_at: ClassVar[dict[str, float]] = {}

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        self.read_at[path] = time.monotonic()
        return super().read(path, limit, offset=offset)

    def rename(self, src: str, dst: str) -> None:
        if time.monotonic() - self.read_at.get(src, -1e9) < self.FOR_S:
            raise refuse(errno.EIO, src)
        super().rename(src, dst)


class BrittleShare(Share):
    """Cannot hold a file open."""

    @contextmanager
    def holding(self, path: str) -> Iterator[None]:
        with super().holding(f"{path}/no"):
            yield
