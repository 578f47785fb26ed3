"""Wake-ups when something comes into a directory: a hint, never the truth.

Law: nothing may depend on a hint. Events get lost, and on a network file system those of other machines never come;
the listing of the next poll finds the same. So of an event only this is looked at: whether the directories to watch
may have changed. Touches inotify and the mount table; no thread, nothing is done until somebody asks. (watchdog tells
what happened, and takes every event through three threads for that: as much work as all the rest of a short task.)
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from contextlib import suppress

from inotify_simple import INotify, flags

from spoold.system.mounts import mount_of

# What is beyond this many is found by polling: the kernel's limit is for all programs of this user together.
MAX_WATCHES = 512

# What leaves a directory is news for nobody: whoever took it has put it somewhere.
_CAME = flags.CREATE | flags.MOVED_TO | flags.ONLYDIR
_OTHERS = flags.ISDIR | flags.IGNORED | flags.Q_OVERFLOW


class Hints:
    """Its descriptor is readable soon after a name has come into a watched directory below `root`.

    `reason` is None while hints work, else a sentence that says why there are none, or why not for every directory.
    No method raises for what is wrong with the file system. For one thread.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.reason: str | None = None
        self._root = os.path.realpath(root)
        self._watches: dict[str, int] = {}
        self._inotify: INotify | None = None
        mount = mount_of(self._root)
        if mount is not None and mount.network:
            self.reason = f"{mount.point} is {mount.fstype}, where other machines' changes raise no events"
            return
        try:
            self._inotify = INotify(nonblocking=True)
        except (OSError, AttributeError) as error:  # a libc without it has no such function
            self.reason = _why(error)

    def fileno(self) -> int:
        """What to wait for; −1 where there are no hints."""
        return self._inotify.fileno() if self._inotify is not None else -1

    def watch(self, relative_dirs: Iterable[str]) -> None:
        """Watch these directories too, without what is below them. May be called at any time with all of them.

        One that is missing is left out until a later call finds it; so is one that was removed and made again.
        """
        if self._inotify is None:
            return
        for directory in relative_dirs:
            if self.reason is None and directory not in self._watches:
                self._add(self._inotify, directory)

    def clear(self) -> bool:
        """What has come is known. True if a directory came or went, so that there may be others to watch."""
        changed = False
        while self._inotify is not None and (events := self._inotify.read(timeout=0)):
            for event in events:
                changed = changed or bool(event.mask & _OTHERS)
                if event.mask & flags.IGNORED:  # the directory was removed: a new one of that name needs a new watch
                    self._watches = {name: watch for name, watch in self._watches.items() if watch != event.wd}
        return changed

    def close(self) -> None:
        """Stop. May be called twice."""
        inotify, self._inotify = self._inotify, None
        self._watches.clear()
        if inotify is not None:
            inotify.close()

    def _add(self, inotify: INotify, directory: str) -> None:
        if len(self._watches) >= MAX_WATCHES:
            self.reason = f"only {MAX_WATCHES} directories are watched; changes in others are found by polling"
            return
        path = os.path.join(self._root, directory) if directory else self._root
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._watches[directory] = inotify.add_watch(path, _CAME)
        except OSError as error:
            self.reason = _why(error)


def _why(error: Exception) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise the sysctl fs.inotify.max_user_watches"
    if code == errno.EMFILE:
        return "the limit of inotify instances or open files is reached; raise max_user_instances or ulimit -n"
    return f"inotify does not work here: {error}"
