"""Who may use new files in a spool: their owner, a group, or everybody; by the permissions of its directories.

Law: a new entry below one of the spool's directories gets the permissions that the directory gives. If a group shares
a directory (it is setgid, and the group may write), the group may use every directory and read every file in it,
whatever umask made them. In a directory that is closed to others, everything is closed to them. Only entries that
this process made are touched.

Touches: files, the environment.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from stat import S_IMODE, S_IRWXG, S_IRWXO, S_ISDIR, S_ISGID, S_IWGRP, S_IWOTH

from spoold.system.mounts import Ground
from spoold.system.openat import LISTED, Beneath

_READ, _BOTH = 0o040, 0o060
_SHARED = S_ISGID | S_IWGRP
_CANNOT = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Way:
    """The permissions of new entries below a directory. group: for all of its group; closed: not for others."""

    group: bool
    closed: bool

    @property
    def file_mode(self) -> int:
        """The mode for open(2); the umask then takes bits away."""
        return 0o660 if self.closed else 0o666

    @property
    def directory_mode(self) -> int:
        """The mode for mkdir(2)."""
        return 0o770 if self.closed else 0o777


def way_of(mode: int) -> Way:
    """The permissions of new entries below a directory of this mode."""
    return Way(group=mode & _SHARED == _SHARED, closed=not mode & S_IRWXO)


def is_shut(status: os.stat_result) -> bool:
    """Whether this is a directory of another user, whose mode does not let this process write. Asks no server."""
    user = os.geteuid()
    if not S_ISDIR(status.st_mode) or user in (0, status.st_uid):
        return False
    ours = status.st_gid == os.getegid() or status.st_gid in os.getgroups()
    return not status.st_mode & (S_IWGRP if ours else S_IWOTH)


class Sharing:
    """The permissions of new entries below each directory of a root, looked up once for each on one mount.

    private: directories right below the root that are made closed to others.
    """

    def __init__(self, root: str, beneath: Beneath, ground: Ground, private: Collection[str] = ()) -> None:
        self._root = root
        self._beneath = beneath
        self._ground, self._mount = ground, ground.mount
        self._private = frozenset(private)
        self._ways: dict[str, Way] = {}

    def way(self, path: str) -> Way:
        """The permissions of a new entry at `path`. Errors: OSError."""
        first, slash, _ = path.partition("/")
        if not slash:
            way = self._look("")
            return Way(way.group, closed=True) if path in self._private else way
        return self._look(first)

    def _look(self, directory: str) -> Way:
        if self._ground.mount != self._mount:
            self._mount = self._ground.mount
            self._ways.clear()
        found = self._ways.get(directory)
        if found is None:
            status = self._beneath.at(directory, _lstat) if directory else os.stat(self._root)
            found = way_of(status.st_mode)
            if S_ISDIR(status.st_mode):
                self._ways[directory] = found
        return found

    def give_directory(self, path: str) -> None:
        """Let the group use a directory just made, if a group shares the spool. Errors: OSError."""
        if not self.way(path).group:
            return
        fd = self._beneath.at(path, _open)
        try:
            mode = S_IMODE(os.fstat(fd).st_mode)
            wanted = mode | S_IRWXG | S_ISGID
            if mode != wanted:
                _chmod(fd, wanted)
        finally:
            os.close(fd)

    def give_file(self, fd: int, status: os.stat_result, path: str) -> None:
        """Let the group read a file about to be written, if a group shares the spool. Errors: OSError.

        Files in the root are the spool's: all of the group may edit and lock them. All others are written once.
        """
        wanted = _READ if "/" in path else _BOTH
        if status.st_mode & wanted != wanted and self.way(path).group:
            _chmod(fd, S_IMODE(status.st_mode) | wanted)


def give_to_group(root: str, gid: int) -> None:
    """Let a group share a directory that is about to become a spool. Errors: OSError."""
    fd = os.open(root, LISTED & ~os.O_NOFOLLOW)
    try:
        os.fchown(fd, -1, gid)
        os.fchmod(fd, S_IMODE(os.fstat(fd).st_mode) | S_IRWXG | S_ISGID)
    finally:
        os.close(fd)


@dataclass(frozen=True, slots=True)
class Owners:
    """The owner of a spool's root, and this process's user. root_mode: its permissions; member: of the root's group,
    which is the primary one of this process, or not. unshared: directories in it that its group does not share alike.
    """

    uid: int
    owner: int
    group: str
    member: bool
    primary: bool
    root_mode: int
    umask: int | None
    unshared: tuple[str, ...] = ()


def owners_of(root: str, below: Iterable[str] = ()) -> Owners:
    """Who owns the directory. below: names of directories in it, if they are there. Errors: OSError."""
    status = os.stat(root)
    groups = {os.getegid(), *os.getgroups()}
    group, mine = status.st_gid, os.getegid()
    mode = S_IMODE(status.st_mode)
    unshared = tuple(name for name in below if way_of(mode).group and not _shares(os.path.join(root, name), group))
    return Owners(os.geteuid(), status.st_uid, _name(group), group in groups, group == mine, mode, umask(), unshared)


def _shares(directory: str, group: int) -> bool:
    """Whether that group may write in the directory and owns new entries in it; also if the directory is missing.

    Errors: OSError.
    """
    try:
        status = os.lstat(directory)
    except FileNotFoundError:
        return True
    return status.st_gid == group and way_of(status.st_mode).group


def umask() -> int | None:
    """The umask, from /proc: asking with umask(2) would change it for a moment, for every thread. None: unknown."""
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as lines:
            return next((int(line.split()[1], 8) for line in lines if line.startswith("Umask:")), None)
    except (OSError, ValueError, IndexError):
        return None


def user_name() -> str:
    """The name of this process's user; the number if it has no name."""
    import pwd

    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return str(os.geteuid())


def _name(gid: int) -> str:
    import grp  # not at the top: most commands never need it

    try:
        return grp.getgrgid(gid).gr_name
    except KeyError:
        return str(gid)


def _chmod(fd: int, mode: int) -> None:
    """Set the mode if possible: some mounts know no modes (SMB), and a stranger's file is the stranger's to open."""
    try:
        os.fchmod(fd, mode)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _open(name: str, above: int | None) -> int:
    return os.open(name, LISTED, dir_fd=above)


def _lstat(name: str, above: int | None) -> os.stat_result:
    return os.stat(name, dir_fd=above, follow_symlinks=False)
