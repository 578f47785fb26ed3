"""Paths below a directory, on which no link is followed.

Anyone who may write to a share may put a link in any place at any moment, so a look beforehand proves nothing: each
directory on the way is opened from its parent, and the system call itself uses the last name. The way to the root is
its owner's choice: links above the root count.

Law: nothing stays open, since on NFS a held directory goes stale.

Touches: files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import TypeVar

from spoold.system.filesystem import components

T = TypeVar("T")

# A link is refused with ENOTDIR, as a file would be. O_PATH asks an NFS server nothing that a path would not ask.
_REAL = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
STEP = getattr(os, "O_PATH", os.O_RDONLY) | _REAL
# An open for reading makes an NFS client ask whether the directory still has this name.
_FRESH = os.O_RDONLY | os.O_NONBLOCK | _REAL
LISTED = _FRESH


class Beneath:
    """The tree below `root`, an absolute path.

    doubt: called with the path of a denied call; returns whether another try is worthwhile.
    """

    def __init__(self, root: str, doubt: Callable[[str], bool] = lambda path: False) -> None:
        self._prefix = root.rstrip("/") + "/"
        self._doubt = doubt

    def at(self, path: str, act: Callable[[str, int | None], T]) -> T:
        """Make one system call on a name: act(name, dir_fd). Errors: ValueError; OSError with the whole path."""
        try:
            return self._at(path, act, STEP)
        except OSError as error:
            again = self._again(error, path)
            if again is None:
                raise
        return self._at(path, act, again)

    def names(self, path: str) -> list[str]:
        """The names in a directory. Errors: as for `at`; ENOENT if it is removed during the listing."""
        return self.at(path, _names)

    def between(self, src: str, dst: str, act: Callable[[str, str, int | None, int | None], T]) -> T:
        """Make one system call on two names: act(src, dst, src_dir_fd, dst_dir_fd). Errors as for `at`."""
        try:
            return self._between(src, dst, act, STEP)
        except OSError as error:
            again = self._again(error, src, dst)
            if again is None:
                raise
        return self._between(src, dst, act, again)

    def _again(self, error: OSError, *paths: str) -> int | None:
        """The flags for a second walk of the whole path; None if the result would be the same."""
        if error.errno == errno.ESTALE:
            return _FRESH
        asked = [self._doubt(path) for path in paths] if error.errno == errno.EACCES else ()
        return STEP if any(asked) else None

    def _at(self, path: str, act: Callable[[str, int | None], T], flags: int) -> T:
        above: int | None = None
        try:
            above, name = self._above(path, flags)
            return act(name, above)
        except OSError as error:
            error.filename = self._prefix + path
            raise
        finally:
            if above is not None:
                os.close(above)

    def _between(self, src: str, dst: str, act: Callable[[str, str, int | None, int | None], T], flags: int) -> T:
        giver: int | None = None
        taker: int | None = None
        try:
            giver, source = self._above(src, flags)
            taker, target = self._above(dst, flags)
            return act(source, target, giver, taker)
        except OSError as error:
            error.filename, error.filename2 = self._prefix + src, self._prefix + dst
            raise
        finally:
            for descriptor in (giver, taker):
                if descriptor is not None:
                    os.close(descriptor)

    def _above(self, path: str, flags: int) -> tuple[int | None, str]:
        """The directory of a path, open, and its last name; None and the path if it is directly below the root."""
        parts = components(path)
        if len(parts) < 2:
            return None, self._prefix + path
        here = os.open(self._prefix + parts[0], flags)
        for part in parts[1:-1]:
            try:
                below = os.open(part, flags, dir_fd=here)
            finally:
                os.close(here)
            here = below
        return here, parts[-1]


def unless_stale(act: Callable[[], T]) -> T:
    """Do it; repeat once if the object that it opened was removed on the server meanwhile: the name counts anew."""
    try:
        return act()
    except OSError as error:
        if error.errno != errno.ESTALE:
            raise
    return act()


def _names(name: str, above: int | None) -> list[str]:
    fd = os.open(name, LISTED, dir_fd=above)
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)
