"""Whom what is made in a spool is for: its owner, a group, or everybody; by the permissions of its directories.

Law: what is made below one of the spool's directories gets what that directory gives. In one that a group shares (it
is setgid, and the group may write) the group may use every directory and read every file, whatever umask made it; in
one that is closed to others everything is closed to them. Only what this process made is touched.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from stat import S_IMODE, S_IRWXG, S_IRWXO, S_ISDIR, S_ISGID, S_IWGRP, S_IWOTH

from spoold.system.beneath import LISTED, Beneath
from spoold.system.ground import Ground

_READ, _BOTH = 0o040, 0o060
_SHARED = S_ISGID | S_IWGRP
_CANNOT = (errno.EPERM, errno.EACCES, errno.ENOTSUP, errno.EROFS)


@dataclass(frozen=True, slots=True)
class Way:
    """How things are made below a directory. group: for all of its group; closed: not for others."""

    group: bool
    closed: bool

    @property
    def file_mode(self) -> int:
        """What open(2) is asked for; the umask then takes away."""
        return 0o660 if self.closed else 0o666

    @property
    def directory_mode(self) -> int:
        """What mkdir(2) is asked for."""
        return 0o770 if self.closed else 0o777


def way_of(mode: int) -> Way:
    """How things are made below a directory of this mode."""
    return Way(group=mode & _SHARED == _SHARED, closed=not mode & S_IRWXO)


def is_shut(status: os.stat_result) -> bool:
    """Whether this is a directory of another user, whose mode does not let this process write. Asks no server."""
    user = os.geteuid()
    if not S_ISDIR(status.st_mode) or user in (0, status.st_uid):
        return False
    ours = status.st_gid == os.getegid() or status.st_gid in os.getgroups()
    return not status.st_mode & (S_IWGRP if ours else S_IWOTH)


class Sharing:
    """How things are made below each of the directories of a root, looked up once for each on one mount.

    private: directories right below the root that are made closed to others.
    """

    def __init__(self, root: str, beneath: Beneath, ground: Ground, private: Collection[str] = ()) -> None:
        self._root = root
        self._beneath = beneath
        self._ground, self._mount = ground, ground.mount
        self._private = frozenset(private)
        self._ways: dict[str, Way] = {}

    def way(self, path: str) -> Way:
        """How what is at `path` is made. Errors: OSError."""
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
        """A directory was made: its group may use it where a group shares the spool. Errors: OSError."""
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
        """A file is about to be written: its group may read it where a group shares the spool. Errors: OSError.

        What lies in the root is the spool's own, for all of the group to edit and to lock. All else is written once.
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
    """Who owns a spool's root and who this process is. root_mode: its permissions; member: of the root's group, which
    is the primary one of this process, or not. unshared: directories in it that its group does not share as it does.
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
    """Whether that group may write in the directory, and what is made there is the group's; also if nothing is there.

    Errors: OSError.
    """
    try:
        status = os.lstat(directory)
    except FileNotFoundError:
        return True
    return status.st_gid == group and way_of(status.st_mode).group


def umask() -> int | None:
    """As the kernel tells it: asking with umask(2) would change it for a moment, for every thread. None: unknown."""
    try:
        with open("/proc/self/status", encoding="utf-8") as lines:
            return next((int(line.split()[1], 8) for line in lines if line.startswith("Umask:")), None)
    except OSError:
        return None


def user_name() -> str:
    """What this process's user is called; the number where it has no name."""
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
    """Some mounts know no modes (SMB), and a stranger's file is his to open."""
    try:
        os.fchmod(fd, mode)
    except OSError as error:
        if error.errno not in _CANNOT:
            raise


def _open(name: str, above: int | None) -> int:
    return os.open(name, LISTED, dir_fd=above)


def _lstat(name: str, above: int | None) -> os.stat_result:
    return os.stat(name, dir_fd=above, follow_symlinks=False)
