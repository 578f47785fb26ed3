"""runner/spot: a file of a job, found by the directory that was there before the job began.

Law: no call waits, and nothing but a plain file on that directory's own mount is written, which has no other name. A
job may rename the directory, mount a file system that never answers on it, or put a pipe, a link, a lease or a second
name of somebody's file in the place of the file.
The supervisor loads it: kept small.

Touches: files.
"""

from __future__ import annotations

import errno
import os
import stat

from spoold.system.same_mount import NAMED, PLACE, open_here

_ANEW = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Spot:
    """One file, which need not be there."""

    __slots__ = ("_folder", "_name")

    def __init__(self, path: str) -> None:
        """Open its directory; where that cannot be, no file is there."""
        folder, self._name = os.path.split(path)
        try:
            self._folder = os.open(folder, PLACE)
        except OSError:
            self._folder = -1

    def open_anew(self) -> int:
        """Return a descriptor of the file, emptied, or made if it is not there. Errors: OSError."""
        file = open_here(self._name, _ANEW, self._folder, 0o644)
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                raise OSError(errno.EINVAL, "a task put something else in the place of its file")
            if found.st_nlink > 1:
                raise OSError(errno.EMLINK, "a task put a file that has another name in the place of its file")
            os.ftruncate(file, 0)
        except OSError:
            os.close(file)
            raise
        return file

    def seen(self) -> tuple[int, int] | None:
        """Return a pair that changes with the file; None where there is none."""
        try:
            file = open_here(self._name, NAMED, self._folder)
        except OSError:
            return None
        status = os.fstat(file)
        os.close(file)
        return status.st_mtime_ns, status.st_size

    def close(self) -> None:
        """Close its directory."""
        if self._folder >= 0:
            os.close(self._folder)
            self._folder = -1
