"""The mount below a spool's root, and its consequences, looked up anew when something was mounted or unmounted.

A node may start before the share is mounted over its directory, an automount mounts it at the first look, and a share
may come back as another kind. The kernel reports when its table of mounts has changed, and no server is asked.

Law: only the table of mounts is read, as in `mounts`. Until it is known, a directory counts as one on a server that
forgets, which promises the least.

Touches: files, the clock.
"""

from __future__ import annotations

import math
import os
import select
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from spoold.system.mounts import MOUNTINFO, Mount, mount_of

# Between two looks (s) whether the table has changed.
LOOK_S = 0.5


class Ground:
    """The mount on which a directory lies. Safe for use by several threads."""

    def __init__(
        self, root: str, find: Callable[[str], Mount | None] = mount_of, look: Callable[[], int] | None = None
    ) -> None:
        """find: the mount of a path; look: how often the table has changed, as far as was seen."""
        self._root = root
        self._find = find
        self._look = look or changes
        self._seen = -1
        self._mount: Mount | None = None
        self._touching: Touching | None = None

    @property
    def mount(self) -> Mount | None:
        """The mount of the directory now; None if it is unknown."""
        seen = self._look()
        if seen != self._seen:
            found = self._find(self._root)
            if found is None or not found.nfs:
                self._touching = None
            elif found != self._mount or self._touching is None:
                self._touching = Touching("vers=3" in found.options)
            self._mount, self._seen = found, seen
        return self._mount

    @property
    def remote(self) -> bool:
        """Whether a server holds the files."""
        mount = self.mount
        return mount is None or mount.network

    @property
    def nfs(self) -> bool:
        """Whether it is NFS, of any version."""
        mount = self.mount
        return mount is not None and mount.nfs

    @property
    def forgets(self) -> bool:
        """Whether a server that loses power may forget changes that it has confirmed."""
        return self.remote and not self.nfs

    @property
    def unbuffered(self) -> int:
        """The open(2) flag for a file that is read once.

        Linux asks an NFS 4.1 server for a delegation with every other open. A client that then moves the file has the
        delegation called back first: one more round trip for each reader, and a wait for the mover.
        """
        mount = self.mount
        return os.O_DIRECT if mount is not None and mount.fstype == "nfs4" and sys.platform == "linux" else 0

    @property
    def touching(self) -> Touching | None:
        """The directories to touch when they are polled; None if none are."""
        return self._touching if self.nfs else None


class _Table:
    """Asks the kernel whether the table of mounts has changed, for all of this process."""

    def __init__(self) -> None:
        self._poll = select.poll()
        with suppress(OSError):
            self._poll.register(os.open(MOUNTINFO, os.O_RDONLY | os.O_CLOEXEC), select.POLLPRI)
        self._changes = 0
        self._looked_at = float("-inf")

    def changes(self) -> int:
        now = time.monotonic()
        if now - self._looked_at >= LOOK_S:
            self._looked_at = now
            self._changes += bool(self._poll.poll(0))
        return self._changes


_table = cache(_Table)


def changes() -> int:
    """How often the table of mounts has changed, as far as this process has seen. Checked twice a second."""
    return _table().changes()


# Touching polled directories on NFS, so that a client does not keep an old listing for ever.


SOON_S, AT_LEAST_S = 10.0, 60.0
RARER = 4
DIRECTORIES_MAX = 4096


@dataclass(slots=True)
class _Polled:
    """A directory: when (monotonic, s) it was touched or changed, for how long that counts, a hash of its names."""

    at: float
    every_s: float
    names: int


class Touching:
    """The directories that one process polls. by_times: the client can see changes only by times."""

    def __init__(self, by_times: bool) -> None:
        self._by_times = by_times
        self._polled: dict[str, _Polled] = {}

    def due(self, path: str, now: float) -> bool:
        """Whether to touch the directory now, before it is listed; then it counts as done. now: monotonic, s."""
        polled = self._polled.get(path)
        if polled is None:
            if len(self._polled) >= DIRECTORIES_MAX:
                self._polled.clear()
            polled = self._polled[path] = _Polled(-math.inf, SOON_S if self._by_times else AT_LEAST_S, 0)
        elif now - polled.at >= polled.every_s:
            polled.every_s = min(RARER * polled.every_s, AT_LEAST_S)
        else:
            return False
        polled.at = now
        return True

    def after(self, path: str, now: float, names: Iterable[str]) -> None:
        """Take in that the directory was listed, with these names. now: as before."""
        polled = self._polled.get(path)
        if polled is not None and self._by_times:
            seen = hash(frozenset(names))
            if seen != polled.names:
                polled.names, polled.every_s, polled.at = seen, SOON_S, now
