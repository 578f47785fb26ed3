"""Does any process have a file open for writing? The kernel says so of local files, by refusing a lease.

`posix` loads it only when somebody asks.

Law: a file that an NFS server writes for its clients is no process's open file: NFS 3 has no word for opening and
closing. So on a machine that serves NFS, a "no" proves nothing. (A Samba server opens files as clients do.)

Touches one open file, for a moment, and reads the kernel's counters of its NFS server.

Touches: files.
"""

from __future__ import annotations

import errno
import fcntl
import signal
import sys
from pathlib import Path

# The counters of the kernel's NFS server; the line `th` begins with its threads. Missing if it was never started.
SERVER = Path("/proc/net/rpc/nfsd")


def has_writer(fd: int) -> bool | None:
    """Whether any process has the file open for writing, which is open here for reading. None if that is unknown: it
    belongs to another user, the file system or the system has no leases, or this machine serves NFS.
    """
    if sys.platform != "linux":
        return None
    try:
        # A read lease is granted only while no process has the file open for writing. A writer that comes meanwhile
        # waits for that moment, and the signal of it must not be SIGIO, which would end this process.
        fcntl.fcntl(fd, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError as error:
        return True if error.errno == errno.EAGAIN else None
    return None if serves_nfs() else False


def serves_nfs() -> bool:
    """Whether this machine's kernel serves NFS to any client, be it this directory or another one. True in doubt."""
    try:
        lines = SERVER.read_text("ascii").splitlines()
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True
    return any(words[:1] == ["th"] and words[1:2] != ["0"] for words in map(str.split, lines))
