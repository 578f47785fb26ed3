"""Wake-ups when something comes into a directory: a hint, never the truth.

Law: nothing may depend on a hint. Events get lost, and on a network file system those of other machines never come;
the listing of the next poll finds the same. So an event only rings a bell, and notes whether there may be other
directories to watch. No link is followed. Touches the watcher of `watching`, the mount table, and a pipe.

Touches: files.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from spoold.system.mounts import Ground
from spoold.system.wakeup import Bell, Notice

if TYPE_CHECKING:
    from watchdog.observers.api import ObservedWatch


# More directories than this are found by polling: the kernel's limit is for all programs of this user together.
MAX_WATCHES = 512


class Hints:
    """Watches directories; its descriptor is readable soon after a name has come into one of them below `root`.

    `reason` is None while hints work, else a sentence that says why there are none, or why not for every directory.
    No method raises for an error of the file system. For one thread.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.reason: str | None = None
        self._root = os.path.realpath(root)
        self._watches: dict[str, object] = {}
        self._watching: Watching | None = None
        # Written by the watching thread; each is read and reset before the directories are listed.
        self._rung = self._changed = False
        self._gone: deque[object] = deque()
        self._ground = Ground(self._root)
        self._begin()

    def _begin(self) -> None:
        mount = self._mount = self._ground.mount
        if mount is not None and mount.network:
            self.reason = f"{mount.point} is {mount.fstype}, where other machines' changes raise no events"
            return
        try:
            self._bell = Bell()
            self._watching = self._open()
        except OSError as error:
            self.reason = _why(error)

    def fileno(self) -> int:
        """The descriptor to wait for, to be fetched before each wait; −1 if there are no hints."""
        if self._watching is None:
            return -1
        self._watching.listen()
        return self._bell.fileno()

    def watch(self, relative_dirs: Iterable[str]) -> None:
        """Watch these directories too, without what is below them. May be called at any time with all of them.

        A missing directory, or one behind a link, is left out until a later call finds it; so is one that was removed
        and made again.
        """
        if self._watching is None:
            return
        for directory in relative_dirs:
            if self.reason is None and directory not in self._watches:
                self._add(self._watching, directory)

    def clear(self) -> bool:
        """Take note of all events so far. True if a directory came or went, so that there may be others to watch;
        also if something was mounted there, and hides the watched directories.
        """
        if self._ground.mount != self._mount:
            self.close()
            self.reason, self._rung = None, False
            self._begin()
            return True
        if self._rung:
            # In this order: a file that comes in between does not ring, and the following listing finds it.
            self._bell.hush()
            self._rung = False
        if not self._changed:
            return False
        self._changed = False
        while self._gone:  # a new directory of that name needs a new watch
            gone = self._gone.popleft()
            self._watches = {name: watch for name, watch in self._watches.items() if watch != gone}
        return True

    def close(self) -> None:
        """Stop. May be called twice."""
        watching, self._watching = self._watching, None
        self._watches.clear()
        if watching is not None:
            watching.close()
            self._bell.close()

    def _open(self) -> Watching:
        try:
            return open_watching(self._notice)
        except OSError:
            self._bell.close()
            raise

    def _notice(self, changed: bool, gone: object | None) -> bool:
        """Events came; called by the watching thread. changed: of a directory; gone: the watch that has ended.

        False if the bell has been rung before and not been heard.
        """
        if gone is not None:
            self._gone.append(gone)
        if changed:
            self._changed = True
        if self._rung:
            return False
        self._rung = True
        self._bell.ring()
        return True

    def _add(self, watching: Watching, directory: str) -> None:
        if len(self._watches) >= MAX_WATCHES:
            self.reason = f"only {MAX_WATCHES} directories are watched; changes in others are found by polling"
            return
        path = os.path.join(self._root, directory) if directory else self._root
        if os.path.realpath(path) != path:
            return
        try:
            with suppress(FileNotFoundError, NotADirectoryError):
                self._watches[directory] = watching.add(path)
        except OSError as error:
            self.reason = _why(error)


def _why(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the limit of inotify watches is reached; raise the sysctl fs.inotify.max_user_watches"
    if error.errno == errno.EMFILE:
        return "the limit of inotify instances or open files is reached; raise max_user_instances or ulimit -n"
    return f"changes cannot be watched here: {error.strerror or error}"


# Watching directories with watchdog: a thread notices new entries, and calls back.


_LEAVE_WITHIN_S = 5.0


class Watching(Protocol):
    """Watches directories, each without its subdirectories."""

    def add(self, path: str) -> object:
        """Watch one more directory; return its id in notices. Errors: OSError."""

    def listen(self) -> None:
        """A loop is about to wait for a notice; until then events may stay unnoticed."""

    def close(self) -> None:
        """Stop; nothing is noticed any more."""


def open_watching(notice: Notice) -> Watching:
    """The best watcher that this system has. Errors: OSError."""
    try:
        # Here, since a node on a network share does not need it.
        from spoold.system.inotify import Inotify

        return Inotify(notice)
    except (ImportError, AttributeError):
        return Observing(notice)


class Observing:
    """Any system's notifications, by way of watchdog's public Observer."""

    def __init__(self, notice: Notice) -> None:
        """Start it. Errors: OSError."""
        from watchdog.events import DirDeletedEvent, FileSystemEvent, FileSystemEventHandler
        from watchdog.observers import Observer
        from watchdog.observers.polling import PollingObserver

        class Handler(FileSystemEventHandler):
            def on_any_event(self, event: FileSystemEvent) -> None:
                if event.event_type in ("created", "moved"):
                    notice(event.is_directory, None)
                elif isinstance(event, DirDeletedEvent):
                    notice(True, os.fsdecode(event.src_path))

        self._observer = Observer()
        if isinstance(self._observer, PollingObserver):
            raise OSError(errno.ENOSYS, "this system does not notify of changes")
        self._handler = Handler()
        self._watches: dict[str, ObservedWatch] = {}
        self._observer.start()

    def add(self, path: str) -> object:
        if (old := self._watches.pop(path, None)) is not None:
            self._observer.unschedule(old)
        self._watches[path] = self._observer.schedule(self._handler, path, recursive=False)
        return path

    def listen(self) -> None:
        pass  # it always listens

    def close(self) -> None:
        self._observer.stop()
        self._observer.join(_LEAVE_WITHIN_S)
