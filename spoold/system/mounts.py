"""The file system of a path, from the kernel.

Law: only /proc/self/mountinfo is read. Asking the file system itself could hang on a server that is away, and
this is read to find out why something hangs.

Touches: files.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

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
