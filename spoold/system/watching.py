"""Watching directories with watchdog: a thread notices new entries, and calls back.

On Linux its lowest layer is enough: one thread that reads inotify, with its own mask. The layers above would pass
each event through two more threads, which costs as much as all the rest of a short task. Without inotify the public
Observer is used.

Law: the callback is quick and never raises; no link is followed. Touches inotify, or whatever the Observer touches.

Touches: files.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Protocol

from spoold.system.notice import Notice

if TYPE_CHECKING:
    from watchdog.observers.api import ObservedWatch

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
