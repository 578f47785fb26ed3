"""Wake-ups when something moves in a directory: a hint, never the truth.

Law: nothing may depend on a hint. Events get lost, and on a network file system those of other machines never come;
the listing of the next poll finds the same. So an event is not even looked at: it wakes, and that is all. Touches
inotify through watchdog, and the mount table.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Callable, Iterable

from watchdog.events import (
    DirCreatedEvent,
    DirDeletedEvent,
    DirMovedEvent,
    FileCreatedEvent,
    FileDeletedEvent,
    FileMovedEvent,
    FileSystemEvent,
    FileSystemEventHandler,
)
from watchdog.observers.api import ObservedWatch

# By name, since watchdog's own choice falls back to a poller that stats every file, which is worse than nothing.
from watchdog.observers.inotify import InotifyObserver

from spoold.system.mounts import mount_of

# watchdog spends a thread on each watched directory; what is beyond this many is found by polling.
MAX_WATCHES = 64

# watchdog makes the kernel's mask of these, so that opening, reading and writing files costs nothing at all.
_KINDS: list[type[FileSystemEvent]] = [
    FileCreatedEvent,
    FileMovedEvent,
    FileDeletedEvent,
    DirCreatedEvent,
    DirMovedEvent,
    DirDeletedEvent,
]


# An emitter that is being closed says so as if it were an error.
logging.getLogger("watchdog").setLevel(logging.CRITICAL)


class _Waker(FileSystemEventHandler):
    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake

    def dispatch(self, event: FileSystemEvent) -> None:
        self._wake()


class Hints:
    """Calls `wake` soon after a name was created, moved or deleted in a watched directory below `root`.

    `wake` is called on a thread of watchdog's, possibly many times in a row: it must be quick and must not
    raise, like `threading.Event.set`. `reason` is None while hints work, else a sentence that says why there are
    none, or why not for every directory. No method raises for what is wrong with the file system.
    """

    def __init__(self, root: str | os.PathLike[str], wake: Callable[[], None]) -> None:
        self.reason: str | None = None
        self._root = os.path.realpath(root)
        self._waker = _Waker(wake)
        self._watches: dict[str, ObservedWatch] = {}
        self._observer: InotifyObserver | None = None
        mount = mount_of(self._root)
        if mount is not None and mount.network:
            self.reason = f"{mount.point} is {mount.fstype}, where other machines' changes raise no events"
            return
        try:
            observer = InotifyObserver()
            observer.start()
        except (OSError, RuntimeError) as error:
            self.reason = _why(error)
        else:
            self._observer = observer

    def watch(self, relative_dirs: Iterable[str]) -> None:
        """Watch these directories too, without what is below them. May be called at every step with all of them.

        One that is missing is left out until a later call finds it; so is one that was removed and made again.
        """
        observer = self._observer
        if observer is None:
            return
        self._forget_removed(observer)
        for directory in relative_dirs:
            if self.reason is None and directory not in self._watches:
                self._add(observer, directory)

    def close(self) -> None:
        """Stop; `wake` is not called after this returns. May be called twice, but not from within `wake`."""
        observer, self._observer = self._observer, None
        self._watches.clear()
        if observer is not None:
            observer.stop()
            observer.join()

    def _forget_removed(self, observer: InotifyObserver) -> None:
        """The thread of a directory ends when the directory is removed: a new one of that name needs a new watch."""
        living = {emitter.watch for emitter in observer.emitters if emitter.is_alive()}
        for directory, watch in list(self._watches.items()):
            if watch not in living:
                del self._watches[directory]
                observer.unschedule(watch)

    def _add(self, observer: InotifyObserver, directory: str) -> None:
        if len(self._watches) >= MAX_WATCHES:
            self.reason = f"only {MAX_WATCHES} directories are watched; changes in others are found by polling"
            return
        path = os.path.join(self._root, directory) if directory else self._root
        try:
            self._watches[directory] = observer.schedule(self._waker, path, event_filter=_KINDS)
        except (FileNotFoundError, NotADirectoryError):
            return
        except (OSError, RuntimeError) as error:
            self.reason = _why(error)


def _why(error: Exception) -> str:
    code = error.errno if isinstance(error, OSError) else None
    if code == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise the sysctl fs.inotify.max_user_watches"
    if code == errno.EMFILE:
        return "the limit of inotify instances or open files is reached; raise max_user_instances or ulimit -n"
    return f"inotify does not work here: {error}"
