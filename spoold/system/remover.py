"""The one remover of local folders whose content a task, an agent or a clone decided.

It goes by descriptors and without recursion. A directory inside the top one is emptied where it lies: its files are
removed, and its own directories are moved up into the top one, if they are not empty. So at any depth three
descriptors are open, no path grows, and a kill at any moment leaves a tree that the next call removes.

Law: nothing outside the folder changes. No link is followed, and no mount is entered: a directory is only moved or
opened after rmdir(2) said that nothing is mounted on it. Whatever is in the folder is removed, or its nearest folder
is named with the reason. Nothing is raised.

Touches: files, the environment.
"""

from __future__ import annotations

import errno
import os
import secrets
import shlex
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from stat import S_IRWXU

from spoold.system import mounts
from spoold.system.same_mount import LISTED, NAMED, PLACE, is_fixed, open_here
from spoold.system.walking import disk_use

# So many directories are moved up before the first of them is emptied; from then on one for each level of depth.
_PENDING_MAX = 1000
# At most so many of the things that stay are named, each with the size of at most so many entries.
_NAMED_MAX, _COUNTED_MAX = 16, 10_000
_DIRECTORY = frozenset([errno.EISDIR, errno.EPERM, errno.EACCES])
_FULL = frozenset([errno.ENOTEMPTY, errno.EEXIST])
_GONE = frozenset([errno.ENOENT, errno.ENOTDIR, errno.ESTALE])


@dataclass(frozen=True, slots=True)
class Left:
    """Something that could not be removed. path: where it is now; why: the reason, with the fix if there is one;
    size: bytes on disk; more: whether it may have more than that."""

    path: str
    why: str
    size: int = 0
    more: bool = False


class _Stopped(Exception):
    """The caller wants no more to be done now."""


def remove(path: str, go_on: Callable[[], bool] = lambda: True) -> list[Left]:
    """Remove a file, or a folder with all that is in it; return what stays, at most 16 of it, or [] if it is gone.

    go_on: asked before each entry; where it says False, the rest stays for now. Never raises OSError.
    """
    parent, name = os.path.split(os.path.abspath(path))
    try:
        above = os.open(parent, PLACE)
    except OSError as error:
        return [] if error.errno in _GONE else [Left(path, _said(error))]
    try:
        return _Removal(above, name, os.path.join(os.path.realpath(parent), name), go_on).run()
    finally:
        os.close(above)


class _Removal:
    """One call of `remove`."""

    def __init__(self, above: int, name: str, path: str, go_on: Callable[[], bool]) -> None:
        self._above, self._name, self._path, self._go_on = above, name, path, go_on
        self._top = -1
        self._mark, self._moved = f".{secrets.token_hex(6)}.", 0  # names that nothing in the folder has
        self._pending: list[str] = []  # directories in the top that are to be emptied
        self._stuck: set[str] = set()  # directories in the top in which something stays
        self._left: dict[str, list[Left]] = {}  # what stays, by the directory in the top, '' for the top

    def run(self) -> list[Left]:
        """Do it; return what stays."""
        refused = _removed(self._name, self._above)
        if refused is not None and refused.errno in _FULL:
            try:
                self._top = self._enter(self._name, self._above)
                return self._removed()
            except _Stopped:
                return [self._sized(self._path, "it is not removed yet", self._name, self._above)]
            except OSError as error:
                refused = error
            finally:
                if self._top >= 0:
                    os.close(self._top)
        if refused is None or refused.errno in _GONE:
            return []
        return [self._named(self._name, self._above, self._path, refused)]

    def _removed(self) -> list[Left]:
        while True:
            gone = self._empty("", self._top)
            worked = bool(self._pending)
            while self._pending:
                self._work(self._pending[-1])
            error = _removed(self._name, self._above)
            if error is None or error.errno in _GONE:
                return []
            if not gone and not worked:
                found = [left for lefts in self._left.values() for left in lefts]
                return found[:_NAMED_MAX] or [self._named(self._name, self._above, self._path, error)]

    def _work(self, name: str) -> None:
        """Empty a directory in the top; it stays pending while it may become emptier."""
        try:
            folder = self._enter(name, self._top)
        except OSError as error:
            self._give_up(name, None if error.errno in _GONE else error)
            return
        try:
            gone = self._empty(name, folder)
        finally:
            os.close(folder)
        refused = _removed(name, self._top)
        if refused is None or refused.errno in _GONE:
            self._give_up(name, None)
        elif not gone:
            self._give_up(name, refused)

    def _give_up(self, name: str, error: OSError | None) -> None:
        """Work no more on a directory in the top; error: why it stays, None if it is gone."""
        self._pending.remove(name)
        if error is None:
            self._left.pop(name, None)
        else:
            self._stuck.add(name)
            if name not in self._left:
                self._note(name, name, self._top, error)

    def _empty(self, inside: str, folder: int) -> int:
        """Remove the files of a directory, and move its directories up, as long as there is room for them; return
        how many entries it has less. inside: its name in the top, '' for the top."""
        gone, most = 0, max(len(self._pending) + 1, _PENDING_MAX)
        self._left.pop(inside, None)
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if not self._go_on():
                        raise _Stopped
                    if inside or entry.name not in self._stuck:
                        gone += self._one(entry.name, folder, inside)
                    if len(self._pending) >= most:
                        break
        except OSError as error:
            self._note(inside, "", folder, error)
        return gone

    def _one(self, name: str, folder: int, inside: str) -> bool:
        """Take one entry out of a directory; whether it is out."""
        refused = _removed(name, folder)
        if refused is None or refused.errno in _GONE:
            return True
        if refused.errno in _FULL:
            try:
                self._pending.append(self._moved_up(name, folder) if inside else name)
                return bool(inside)
            except OSError as error:
                refused = error
        self._note(inside, name, folder, refused)
        return False

    def _moved_up(self, name: str, folder: int) -> str:
        self._moved += 1
        new = f"{self._mark}{self._moved}"
        try:
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        except PermissionError:
            # Its own entry `..` changes, so it must be writable itself.
            _open_up(name, folder)
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=self._top)
        return new

    def _enter(self, name: str, above: int) -> int:
        """Open a directory that nothing is mounted on, so that its entries can be removed. Errors: OSError."""
        try:
            folder = open_here(name, LISTED, above)
        except PermissionError:
            _open_up(name, above)
            folder = open_here(name, LISTED, above)
        found = os.fstat(folder)
        if found.st_mode & S_IRWXU != S_IRWXU and found.st_uid == os.geteuid():
            with suppress(OSError):  # what cannot be removed then is named
                os.fchmod(folder, S_IRWXU)
        return folder

    def _note(self, inside: str, name: str, folder: int, error: OSError) -> None:
        if sum(map(len, self._left.values())) < _NAMED_MAX:
            path = "/".join(filter(None, [self._path, inside if folder != self._top else "", name]))
            self._left.setdefault(inside, []).append(self._named(name, folder, path, error))

    def _named(self, name: str, folder: int, path: str, error: OSError) -> Left:
        if error.errno in (errno.EBUSY, errno.EXDEV) and _is_mounted(path):
            return Left(path, f"something is mounted on it; run: umount {quoted(path)}")
        if error.errno == errno.EPERM and is_fixed(name, folder):
            return self._sized(path, f"it is immutable; run: chattr -R -i -a {quoted(path)}", name, folder)
        if error.errno == errno.EPERM and is_fixed("", folder):
            above = os.path.dirname(path)
            return self._sized(path, f"its folder is immutable; run: chattr -i -a {quoted(above)}", name, folder)
        if error.errno in (errno.EPERM, errno.EACCES) and (owner := _stranger(name, folder)) is not None:
            return self._sized(
                path, f"it belongs to user {owner}; run as root: rm -r --one-file-system {quoted(path)}", name, folder
            )
        return self._sized(path, _said(error), name, folder)

    def _sized(self, path: str, why: str, name: str, folder: int) -> Left:
        size, whole = disk_use(name, folder, _COUNTED_MAX)
        return Left(path, why, size, not whole)


def _is_mounted(path: str) -> bool:
    try:
        with open(mounts.MOUNTINFO, "rb") as file:
            return any(mount.point == path for mount in mounts.parse(file.read()))
    except OSError:
        return False


def _removed(name: str, above: int) -> OSError | None:
    """Remove a name that is no full directory; return why it stays, None if it is gone."""
    try:
        os.unlink(name, dir_fd=above)
    except OSError as error:
        if error.errno not in _DIRECTORY:
            return error
        try:
            os.rmdir(name, dir_fd=above)
        except OSError as refused:
            # Of a file, what unlink said is the reason.
            return error if refused.errno == errno.ENOTDIR else refused
    return None


def _open_up(name: str, above: int) -> None:
    """Let the owner of a directory list and change it. Errors: OSError."""
    place = open_here(name, NAMED | os.O_DIRECTORY, above)
    try:
        os.chmod(f"/proc/self/fd/{place}", S_IRWXU)
    finally:
        os.close(place)


def _stranger(name: str, folder: int) -> int | None:
    """Return the owner of a name or of its folder, if that is another user. A mount is not asked."""
    for what in (name, ""):
        try:
            place = open_here(what or ".", NAMED, folder)
        except OSError:
            continue
        try:
            if (owner := os.fstat(place).st_uid) != os.geteuid():
                return owner
        finally:
            os.close(place)
    return None


def _said(error: OSError) -> str:
    return f"{error.strerror or error}"


def quoted(path: str) -> str:
    """Return a path as a shell takes it, on one line of text that any terminal can show."""
    if path.isprintable():
        return shlex.quote(path)
    return (
        "$'"
        + "".join(
            chr(byte) if 32 <= byte < 127 and byte not in b"'\\" else f"\\x{byte:02x}" for byte in os.fsencode(path)
        )
        + "'"
    )
