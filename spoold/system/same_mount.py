"""Opening a name without leaving the mount of its directory.

A bind mount of the same file system counts as another mount. The kernel is asked by openat2(2), which refuses before
it asks the mounted file system anything, so a mount that does not answer hangs nobody. Without openat2 the ids of
both mounts are compared after the open: those of statx(2), else those of /proc/self/fdinfo, else the devices.

Law: what is mounted on a name is neither read nor changed, and no link is followed.

Touches: files, processes.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
import sys

# The directory of a name, to be used as `above`; O_PATH asks nothing of the file system.
PLACE = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_CLOEXEC
# A name of any kind, as it stands; and a directory, to be listed.
NAMED = getattr(os, "O_PATH", os.O_RDONLY) | os.O_NOFOLLOW | os.O_CLOEXEC
LISTED = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_LIBC = ctypes.CDLL(None, use_errno=True)
_STATX = getattr(_LIBC, "statx", None)
_SYSCALL = getattr(_LIBC, "syscall", None) if sys.platform == "linux" else None
_OPENAT2 = 437  # the same on all architectures but alpha
_NO_XDEV, _NO_SYMLINKS = 0x01, 0x04
_HOW = struct.Struct("QQQ")
# openat2 is missing: an old kernel, or a container that forbids what it does not know.
_MISSING = frozenset([errno.ENOSYS, errno.EPERM])
_AT_SYMLINK_NOFOLLOW, _AT_NO_AUTOMOUNT, _AT_EMPTY_PATH, _DONT_SYNC = 0x100, 0x800, 0x1000, 0x4000
_STATX_MODE, _STATX_MNT_ID = 0x2, 0x1000
_STATX_BYTES, _ATTRIBUTES_AT, _MNT_ID_AT = 256, 8, 144
_IMMUTABLE, _APPEND = 0x10, 0x20


def open_here(name: str, flags: int, above: int, mode: int = 0o600) -> int:
    """Open a name below the directory `above`; no step on the way, and not the name itself, may be a link.

    Errors: OSError; EXDEV where another mount is on the way or on the name.
    """
    how = _HOW.pack(flags, mode if flags & os.O_CREAT else 0, _NO_XDEV | _NO_SYMLINKS)
    number = errno.ENOSYS
    while _SYSCALL is not None:
        found: int = _SYSCALL(_OPENAT2, above, os.fsencode(name), how, ctypes.c_size_t(_HOW.size))
        if found >= 0:
            return found
        number = ctypes.get_errno()
        if number != errno.EINTR:
            break
    if number not in _MISSING:
        raise OSError(number, os.strerror(number), name)
    return _compared(name, flags | os.O_NOFOLLOW, above, mode)


def _compared(name: str, flags: int, above: int, mode: int) -> int:
    opened = os.open(name, flags, mode, dir_fd=above)
    try:
        if mount_id(opened) != mount_id(above):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), name)
    except OSError:
        os.close(opened)
        raise
    return opened


def mount_id(descriptor: int) -> int:
    """Return a number that differs between mounts; negative where only the device is known. Errors: OSError."""
    answer = _statx("", descriptor, _AT_EMPTY_PATH | _DONT_SYNC, _STATX_MNT_ID)
    if answer is not None and struct.unpack_from("I", answer)[0] & _STATX_MNT_ID:
        return int(struct.unpack_from("Q", answer, _MNT_ID_AT)[0])
    try:
        with open(f"/proc/self/fdinfo/{descriptor}", encoding="ascii") as file:
            for line in file:
                if line.startswith("mnt_id:"):
                    return int(line.split()[1])
    except (OSError, ValueError, IndexError):
        pass
    return -1 - os.fstat(descriptor).st_dev


def is_fixed(name: str, above: int) -> bool:
    """Whether a name is immutable or append-only (chattr +i, +a), as far as its file system says. '' is `above`."""
    answer = _statx(name, above, _AT_SYMLINK_NOFOLLOW | _AT_NO_AUTOMOUNT | _AT_EMPTY_PATH | _DONT_SYNC, _STATX_MODE)
    return answer is not None and bool(struct.unpack_from("Q", answer, _ATTRIBUTES_AT)[0] & (_IMMUTABLE | _APPEND))


def _statx(name: str, above: int, flags: int, mask: int) -> bytes | None:
    if _STATX is None:
        return None
    answer = ctypes.create_string_buffer(_STATX_BYTES)
    failed = _STATX(above, os.fsencode(name), flags, mask, answer)
    return None if failed else answer.raw
