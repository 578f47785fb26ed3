"""Permission denied on NFS: does the server say so now, or does the client remember it?

An NFS client keeps a user's permissions for a directory as long as it keeps the directory's attributes, which is 30
to 60 s by default (acdirmin, acdirmax). Meanwhile a path through the directory does not ask the server: measured on
Linux 6.1 and NFS 4.2, EACCES went on for 19 and 25 s after the server had allowed everything again. stat, access,
chdir and O_PATH change nothing. statx with AT_STATX_FORCE_SYNC ends it with the next call, and so does opening the
directory itself for reading.

Law: only a denied call makes the client ask, and for each directory at most once a second, so permanent denials cost
little. No link below the root is followed. Changes nothing.

Touches: files, the clock.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress

from spoold.system.beneath import STEP
from spoold.system.filesystem import components
from spoold.system.statx import ask_server

EVERY_S = 1.0
DIRECTORIES_MAX = 4096


class Denials:
    """The denials below `root`, an absolute path. nfs: whether that is on NFS now."""

    def __init__(
        self,
        root: str,
        nfs: Callable[[], bool],
        ask: Callable[..., None] = ask_server,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._root, self._nfs, self._ask, self._now = root, nfs, ask, now
        self._asked: dict[str, float] = {}

    def doubt(self, path: str) -> bool:
        """Have the server asked about every directory on the way to `path`, also those above the root. Return True if
        that was done, so that the call is worth another try.
        """
        if not self._nfs():
            return False
        above, now = path.rpartition("/")[0], self._now()
        if now - self._asked.get(above, now - EVERY_S) < EVERY_S:
            return False
        if len(self._asked) >= DIRECTORIES_MAX:
            self._asked.clear()
        self._asked[above] = now
        parts = self._root.split("/")
        for end in range(1, len(parts) + 1):
            self._ask("/".join(parts[:end]) or "/", follow=True)
        with suppress(OSError):
            self._ask_below(components(above))
        return True

    def _ask_below(self, parts: tuple[str, ...]) -> None:
        here = os.open(self._root, STEP & ~os.O_NOFOLLOW)
        try:
            for part in parts:
                self._ask(part, here)
                below = os.open(part, STEP, dir_fd=here)
                os.close(here)
                here = below
        finally:
            os.close(here)
