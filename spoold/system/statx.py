"""statx(2) with AT_STATX_FORCE_SYNC: has the client ask its server about a name, whatever the client believes.

Law: nothing is opened, changed or returned; the server's answer goes into the client's own cache. Touches `ctypes`
and `os`, and nothing if the C library has no statx.

Touches: processes.
"""

from __future__ import annotations

import ctypes
import os

_AT_FDCWD = -100
_AT_SYMLINK_NOFOLLOW, _AT_STATX_FORCE_SYNC = 0x100, 0x2000
# A request for the type alone is answered from memory: a type never changes (Linux, fs/nfs/inode.c, nfs_getattr).
_STATX_MODE, _STATX_CTIME = 0x2, 0x80
_STATX_BYTES = 256

_STATX = getattr(ctypes.CDLL(None, use_errno=True), "statx", None)


def ask_server(name: str, above: int | None = None, *, follow: bool = False) -> None:
    """Have the server asked. above: a descriptor of a relative name's directory. follow: follow a link at the end,
    too. Never raises OSError: the next call finds the server's answer.
    """
    if _STATX is not None:
        flags = _AT_STATX_FORCE_SYNC | (0 if follow else _AT_SYMLINK_NOFOLLOW)
        place = _AT_FDCWD if above is None else above
        _STATX(place, os.fsencode(name), flags, _STATX_MODE | _STATX_CTIME, ctypes.create_string_buffer(_STATX_BYTES))
