"""Wake-ups when something comes into a directory: a hint, never the truth.

Law: nothing may depend on a hint. Events get lost, and on a network file system those of other machines never come;
the listing of the next poll finds the same. So of an event only this is looked at: whether the directories to watch
may have changed. Touches inotify through libc, and the mount table; no thread, nothing is done until somebody asks.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from contextlib import suppress

from spoold.system.mounts import mount_of

# What is beyond this many is found by polling: the kernel's limit is for all programs of this user together.
MAX_WATCHES = 512

# inotify(7). What leaves a directory is news for nobody: whoever took it has put it somewhere.
_CREATE, _MOVED_TO, _ONLYDIR = 0x100, 0x80, 0x01000000
_OVERFLOW, _IGNORED, _ISDIR = 0x4000, 0x8000, 0x40000000
_HEADER = struct.Struct("iIII")
_CHUNK = 1 << 16
_libc = ctypes.CDLL(None, use_errno=True)


class Hints:
    """Its descriptor is readable soon after a name has come into a watched directory below `root`.

    `reason` is None while hints work, else a sentence that says why there are none, or why not for every directory.
    No method raises for what is wrong with the file system. For one thread.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.reason: str | None = None
        self._root = os.path.realpath(root)
        self._watches: dict[str, int] = {}
        self._fd = -1
        mount = mount_of(self._root)
        if mount is not None and mount.network:
            self.reason = f"{mount.point} is {mount.fstype}, where other machines' changes raise no events"
            return
        try:
            self._fd = _call("inotify_init1", os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as error:
            self.reason = _why(error)

    def fileno(self) -> int:
        """What to wait for; −1 where there are no hints."""
        return self._fd

    def watch(self, relative_dirs: Iterable[str]) -> None:
        """Watch these directories too, without what is below them. May be called at any time with all of them.

        One that is missing is left out until a later call finds it; so is one that was removed and made again.
        """
        if self._fd < 0:
            return
        for directory in relative_dirs:
            if self.reason is None and directory not in self._watches:
                self._add(directory)

    def clear(self) -> bool:
        """What has come is known. True if a directory came or went, so that there may be others to watch."""
        changed = False
        while self._fd >= 0:
            try:
                events = os.read(self._fd, _CHUNK)
            except OSError:
                break
            at = 0
            while at < len(events):
                watch, mask, _, length = _HEADER.unpack_from(events, at)
                at += _HEADER.size + length
                if mask & (_ISDIR | _IGNORED | _OVERFLOW):
                    changed = True
                if mask & _IGNORED:  # the directory was removed: a new one of that name needs a new watch
                    self._watches = {name: number for name, number in self._watches.items() if number != watch}
        return changed

    def close(self) -> None:
        """Stop. May be called twice."""
        descriptor, self._fd = self._fd, -1
        self._watches.clear()
        if descriptor >= 0:
            os.close(descriptor)

    def _add(self, directory: str) -> None:
        if len(self._watches) >= MAX_WATCHES:
            self.reason = f"only {MAX_WATCHES} directories are watched; changes in others are found by polling"
            return
        path = os.fsencode(os.path.join(self._root, directory) if directory else self._root)
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                mask = _CREATE | _MOVED_TO | _ONLYDIR
                self._watches[directory] = _call("inotify_add_watch", self._fd, path, ctypes.c_uint32(mask))
        except OSError as error:
            self.reason = _why(error)


def _call(name: str, *arguments: object) -> int:
    """A function of libc. Errors: OSError as it says; ENOSYS where there is none."""
    function = getattr(_libc, name, None)
    result = -1 if function is None else int(function(*arguments))
    if result < 0:
        code = errno.ENOSYS if function is None else ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def _why(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise the sysctl fs.inotify.max_user_watches"
    if error.errno == errno.EMFILE:
        return "the limit of inotify instances or open files is reached; raise max_user_instances or ulimit -n"
    return f"inotify does not work here: {error}"
