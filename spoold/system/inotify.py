"""inotify by way of watchdog's lowest layer: one thread that reads, with its own mask.

A wake of that thread costs a busy loop more than reading inotify did, because it takes the interpreter from the loop.
So all events of one read are one notice, and after an unneeded notice the thread rests until the loop waits again.

Only `hints` imports it, and only where watchdog is used: short commands never load that.

Law: as for `watching`. A lost event does no harm: an overflow is noticed as any other event.

Touches: files, threads.
"""

from __future__ import annotations

import errno
import itertools
import logging
import os
import threading

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from spoold.system.wakeup import Notice

# A file that leaves a directory is no news: the process that moved it knows.
_CAME = Mask(
    InotifyConstants.IN_CREATE
    | InotifyConstants.IN_MOVED_TO
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
)
_DIRECTORY = InotifyConstants.IN_ISDIR
# Events that watchdog itself must follow, too.
_OWN = InotifyConstants.IN_IGNORED | InotifyConstants.IN_UNMOUNT | InotifyConstants.IN_Q_OVERFLOW
_LEAVE_WITHIN_S = 5.0


class Inotify:
    """Watches directories, each without what is below it."""

    def __init__(self, notice: Notice) -> None:
        """Start its thread. Errors: OSError."""
        # It warns of lost events, which people need not know.
        logging.getLogger(InotifyFD.__module__).setLevel(logging.ERROR)
        self._notice = notice
        self._ids = itertools.count()
        self._closing = threading.Event()
        self._fd = _Reader(notice)
        try:
            self._fd.start()
        except RuntimeError as error:
            raise OSError(errno.EAGAIN, f"{error}") from error

    def add(self, path: str) -> object:
        """Watch one more directory; return its id in notices. Errors: OSError."""
        number = CallbackId(next(self._ids))
        watch = self._fd.add_callback(os.fsencode(path), _CAME, self, number)
        if watch < 0:  # if this user may not read the directory
            self._fd.remove_callbacks([(watch, number)])
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return watch

    def listen(self) -> None:
        """A loop is about to wait for a notice."""
        self._fd.resume()

    def close(self) -> None:
        """Stop; nothing is noticed any more."""
        self._closing.set()
        self._fd.stop()
        self._fd.resume()
        self._fd.join(_LEAVE_WITHIN_S)

    def on_event(self, event: InotifyEvent) -> None:
        """Called by its thread for events that it does not notice by itself."""
        self._notice(bool(event.mask & _DIRECTORY), None)

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        """Called by its thread when a directory is gone, and for each directory at close."""
        if not self._closing.is_set():
            self._notice(True, wd)

    def on_queue_overflow(self) -> None:
        """Called by its thread: a lost event may have been a directory."""
        self._notice(True, None)


class _Reader(InotifyFD):
    """The thread. Used from one other thread."""

    def __init__(self, notice: Notice) -> None:
        super().__init__()
        self.name = "hints"
        self._notice = notice
        self._resting = False
        self._gate = threading.Lock()
        self._gate.acquire()

    def run(self) -> None:
        """Notice events; called in the thread."""
        while self.should_keep_running():
            seen = 0
            for event in self.read_events():
                if event.mask & _OWN:
                    self.handle_event(event)
                else:
                    seen |= event.mask
            if seen and not self._notice(bool(seen & _DIRECTORY), None):
                self._rest()

    def _rest(self) -> None:
        """Wait until `resume`: the last notice has not been heard yet."""
        self._resting = True
        # The loop may have heard it just now, before it could see this thread rest: notify for the wait that follows.
        self._notice(False, None)
        if self.should_keep_running():
            self._gate.acquire()

    def resume(self) -> None:
        """Go on reading."""
        if self._resting:
            self._resting = False
            self._gate.release()
