"""The file system of a path, from the kernel; and the mount below a spool's root, looked up anew when it has changed.

A node may start before the share is mounted over its directory, an automount mounts it at the first look, and a share
may come back as another kind. The kernel reports when its table of mounts has changed, and no server is asked.

Law: only /proc/self/mountinfo is read. Asking the file system itself could hang on a server that is away, and this is
read to find out why something hangs. Until the mount is known, a directory counts as one on a server that forgets,
which promises the least.

Touches: files, the clock.
"""

from __future__ import annotations

import math
import os
import re
import select
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

MOUNTINFO = "/proc/self/mountinfo"
_OCTAL = re.compile(rb"\\([0-7]{3})")

# Served from elsewhere: other machines change it, and inotify does not report that. An automount that is not mounted
# yet (autofs) will be, more likely than not.
_NETWORK = frozenset(
    "9p afs autofs beegfs ceph cifs coda gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 "  # noqa: SIM905 - a column is no easier
    "ocfs2 orangefs pvfs2 smb2 smb3 smbfs vboxsf virtiofs".split()
)

# FUSE is a network file system until known otherwise: the unknown one is more likely to be a bucket than a
# disk.
_LOCAL_FUSE = frozenset(["fuseblk", "fuse.exfat", "fuse.ext2", "fuse.fuse-overlayfs", "fuse.lxcfs", "fuse.ntfs-3g"])


@dataclass(frozen=True, slots=True)
class Mount:
    """One mount: where it is, the kernel's name of its type, its source, and all its options, the server's
    last.
    """

    point: str
    fstype: str
    source: str
    options: tuple[str, ...]

    @property
    def network(self) -> bool:
        """Whether other machines may change what is below."""
        return is_network(self.fstype)

    @property
    def nfs(self) -> bool:
        """Whether it is NFS, of any version."""
        return self.fstype.startswith("nfs")


def is_network(fstype: str) -> bool:
    """Whether a file system of this type is served from elsewhere. An unknown FUSE counts as such."""
    if fstype.startswith("fuse"):
        return fstype not in _LOCAL_FUSE
    return fstype in _NETWORK


def parse(mountinfo: bytes) -> list[Mount]:
    """The mounts in /proc/self/mountinfo's format (proc(5)), in its order. Other lines are left
    out.
    """
    mounts = []
    for line in mountinfo.splitlines():
        # Between the options and the type stand any number of optional fields, ended by a lone dash.
        left, dash, right = line.partition(b" - ")
        fields, tail = left.split(b" "), right.split(b" ")
        if not dash or len(fields) < 6 or len(tail) < 3:
            continue
        options = [*fields[5].split(b","), *tail[2].split(b",")]
        mounts.append(
            Mount(
                point=_text(fields[4]),
                fstype=_text(tail[0]),
                source=_text(tail[1]),
                options=tuple(dict.fromkeys(_text(option) for option in options)),
            )
        )
    return mounts


def lying_on(path: str, mounts: list[Mount]) -> Mount | None:
    """The mount that an absolute path without symlinks lies on: the longest prefix, the latest of equals.

    The latest, because mounting twice on one directory hides the first. None if no mount is above the path.
    """
    above = [mount for mount in mounts if _is_below(path, mount.point)]
    return max(reversed(above), key=lambda mount: len(mount.point), default=None)


def mount_of(path: str | os.PathLike[str]) -> Mount | None:
    """The mount `path` lies on; None if that is unknown (no /proc).

    Symlinks are resolved, which looks at every component of the path.
    """
    try:
        with open(MOUNTINFO, "rb") as file:
            mounts = parse(file.read())
    except OSError:
        return None
    return lying_on(os.path.realpath(path), mounts)


def on_fuse(path: str | os.PathLike[str]) -> bool:
    """Whether `path` lies on a FUSE mount, as far as that is known. Looks at every component of the path."""
    mount = mount_of(path)
    return mount is not None and mount.fstype.startswith("fuse")


def _is_below(path: str, point: str) -> bool:
    return path == point or path.startswith(point.rstrip("/") + "/")


def _text(escaped: bytes) -> str:
    """mountinfo writes space, tab, newline and backslash as octal escapes."""
    return os.fsdecode(_OCTAL.sub(lambda match: bytes([int(match.group(1), 8) & 0xFF]), escaped))


# The mount below a spool's root, and its consequences, looked up anew when something was mounted or unmounted.


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
