"""Notes for people that the programs of handlers left on this machine, such as of work that is nowhere else.

A handler's `notes` names a folder. An entry is a file of two lines, or a link to one: the spool, and the note.

Law: nothing here blocks the worker: a folder may be on a mount that hangs, so a thread looks, and until it has an
answer the last one holds. However many notes there are, a bounded number is looked at, and a few are told. A note
that a process has locked is not told yet, and a link whose target is gone is none.

Touches: files, threads.
"""

from __future__ import annotations

import fcntl
import math
import os
import stat
import threading
from collections.abc import Iterable
from contextlib import suppress
from itertools import islice

from spoold.protocol.amount import amount, clip
from spoold.protocol.errors import legible
from spoold.system.clock import Clock
from spoold.worker.handlers.handler import Handler

# How often (s) to look.
LOOK_EVERY_S = 5.0
# So many entries of a folder are looked at, and so many are told; so much of each is read (bytes), and told
# (characters).
LISTED_MAX, TOLD, _READ, _LENGTH = 1000, 3, 8192, 500


class HandlerNotes:
    """The notes of one spool. root: its directory."""

    def __init__(self, handlers: Iterable[Handler], root: str, clock: Clock) -> None:
        self._folders = sorted({handler.notes for handler in handlers if handler.notes})
        self._spool = os.path.realpath(root) if self._folders else root
        self._clock = clock
        self._thread: threading.Thread | None = None
        self._due = -math.inf
        self.told: tuple[str, ...] = ()

    def look(self) -> None:
        """Look again when it is time."""
        now = self._clock.monotonic()
        idle = self._thread is None or not self._thread.is_alive()
        if self._folders and idle and now >= self._due:
            self._due = now + LOOK_EVERY_S
            self._thread = threading.Thread(target=self._look, name="notes", daemon=True)
            with suppress(RuntimeError):  # the machine has no thread to give: the last answer holds
                self._thread.start()

    def _look(self) -> None:
        self.told = tuple(note for folder in self._folders for note in notes_in(folder, self._spool))


def notes_in(folder: str, spool: str) -> list[str]:
    """Return what is told of the notes in a folder. spool: the directory of the spool, with all links resolved."""
    try:
        with os.scandir(folder) as entries:
            paths = sorted(entry.path for entry in islice(entries, LISTED_MAX))
    except FileNotFoundError:
        return []
    except OSError as error:
        return [f"{folder}, where handlers leave notes for people, cannot be read: {error.strerror}"]
    found = [note for path in paths if (note := _note(path, spool))]
    more, least = len(found) - TOLD, " or more" if len(paths) == LISTED_MAX else ""
    if more <= 0:
        return found
    return [*found[:TOLD], f"and {amount(more, 'more note')}{least} of this kind, in {folder}"]


def _note(path: str, spool: str) -> str:
    """Return the note in a file; '' for none of this spool, and for one that is locked."""
    with suppress(OSError):
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
        try:
            if stat.S_ISREG(os.fstat(file).st_mode):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                whose, _, note = os.read(file, _READ).decode("utf-8", "surrogateescape").partition("\n")
                return clip(legible(" ".join(note.split())), _LENGTH) if whose == spool else ""
        finally:
            os.close(file)
    return ""
