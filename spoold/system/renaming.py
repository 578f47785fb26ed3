"""rename(2) on a server that may forget confirmed changes: only a rename that happened succeeds.

An SMB client keeps the entry of every name that it has made. When a server loses power and with it a rename, the file
has its old name again, and the client believes in both names of one file. POSIX calls a rename from one to the other
done, and nothing happens at the server. As long as the file is looked at, that belief stays fresh (measured: after
2.5 s without a look, too). With RENAME_NOREPLACE the kernel refuses a name that it believes in, without another
request. Then the server is asked about that name, which drops the belief, and the rename is made.

Law: an existing destination is refused (EEXIST) and never replaced. Touches two names and nothing else.

Touches: files, processes.
"""

from __future__ import annotations

import ctypes
import errno
import os

from spoold.system.statx import ask_server

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1

_RENAMEAT2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)


def rename_plainly(src: str, dst: str, giver: int | None = None, taker: int | None = None) -> None:
    """rename(2). giver, taker: as for `rename_known`. Errors: OSError."""
    os.rename(src, dst, src_dir_fd=giver, dst_dir_fd=taker)


def rename_known(src: str, dst: str, giver: int | None = None, taker: int | None = None) -> None:
    """Rename, unless dst exists; rename(2) if the file system cannot make that difference.

    giver, taker: descriptors of the directories of the names. Errors: OSError; FileExistsError if dst exists, or is
    still believed to.
    """
    try:
        _rename_noreplace(src, dst, giver, taker)
    except FileExistsError:
        if _there(dst, taker):
            raise
        _rename_noreplace(src, dst, giver, taker)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOSYS):
            raise
        rename_plainly(src, dst, giver, taker)


def _rename_noreplace(src: str, dst: str, giver: int | None, taker: int | None) -> None:
    if _RENAMEAT2 is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), src)
    place, other = (_AT_FDCWD if above is None else above for above in (giver, taker))
    if _RENAMEAT2(place, os.fsencode(src), other, os.fsencode(dst), _RENAME_NOREPLACE):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), src, None, dst)


def _there(name: str, above: int | None) -> bool:
    """Whether the server has that name. Errors: OSError.

    The server answers the first question, but the client's entry stays as it is. After that the entry counts as old,
    so the second question drops it if the server does not know the name (measured, Linux 6.1).
    """
    ask_server(name, above)
    try:
        os.stat(name, dir_fd=above, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
