"""The meaning of an OSError for a rename (or another change of a name), and the advice to the user.

Law: an errno is evidence, never a verdict, except the last three. After any other the caller looks, by listing; the
meaning says how long looking is worthwhile. Pure: touches nothing.

    Meaning   errnos                                      what happened          what the caller does
    GONE      ENOENT                                      moved by a peer, or by list the own destination, then the
                                                          me with reply lost     source: there means a stale name
    UNKNOWN   EIO ETIMEDOUT EAGAIN EINTR EHOSTDOWN        anything; it may even  look until known, keep looking, run
              ENOTCONN ECONN* 512, and all not listed     happen later           only what is in the own directory
    STALE     ESTALE                                      a handle aged          look, then try again
    BUSY      EACCES EPERM EBUSY ETXTBSY                  refused for now (SMB)  look, try again, not for ever
    FULL      ENOSPC EDQUOT                               nothing                keep the source, report
    CONFIG    EXDEV ENAMETOOLONG EROFS EINVAL             nothing                report, point to the doctor
              ENOLCK ENOSYS ENOTSUP
    BROKEN    EEXIST ENOTEMPTY EISDIR ENOTDIR             a law is broken        report, touch nothing
"""

from __future__ import annotations

import errno
from enum import Enum, StrEnum

from spoold.system.filesystem import DamagedError, NotRegularError

# Linux's ERESTARTSYS, which must not leave the kernel, and once did after an NFS server's restart.
ERESTARTSYS = 512


class Meaning(Enum):
    """The meaning of a rename's error."""

    GONE = "gone"
    UNKNOWN = "unknown"
    STALE = "stale"
    BUSY = "busy"
    FULL = "full"
    CONFIG = "config"
    BROKEN = "broken"


_MEANINGS: dict[Meaning, tuple[int, ...]] = {
    Meaning.GONE: (errno.ENOENT,),
    Meaning.UNKNOWN: (
        errno.EIO,
        errno.ETIMEDOUT,
        errno.EAGAIN,
        errno.EINTR,
        errno.EHOSTDOWN,
        errno.ENOTCONN,
        errno.ECONNABORTED,
        errno.ECONNREFUSED,
        errno.ECONNRESET,
        ERESTARTSYS,
    ),
    Meaning.STALE: (errno.ESTALE,),
    Meaning.BUSY: (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY),
    Meaning.FULL: (errno.ENOSPC, errno.EDQUOT),
    Meaning.CONFIG: (
        errno.EXDEV,
        errno.ENAMETOOLONG,
        errno.EROFS,
        errno.EINVAL,
        errno.ENOLCK,
        errno.ENOSYS,
        errno.ENOTSUP,
    ),
    Meaning.BROKEN: (errno.EEXIST, errno.ENOTEMPTY, errno.EISDIR, errno.ENOTDIR),
}
_MEANING_OF = {code: meaning for meaning, codes in _MEANINGS.items() for code in codes}

_ADVICE_BY_MEANING = {
    Meaning.GONE: "Another process moved the file first, or the spool is not mounted; nothing needs to be done "
    "if this does not repeat.",
    Meaning.UNKNOWN: "The file server did not answer clearly, so the change may or may not have happened; spoold "
    "looks again until it knows. Check the network and the server if this goes on.",
    Meaning.STALE: "A directory on the server was replaced or the server restarted; spoold opens it again. Remount "
    "the share if this goes on.",
    Meaning.BUSY: "The server refuses the change for now; spoold tries again. If this goes on, check who owns the "
    "spool's directories, and on SMB mount with `nolease`.",
    Meaning.FULL: "The file system or the quota is full; nothing was lost. Free some room, for instance with a "
    "shorter retention.",
    Meaning.CONFIG: "The mount cannot do what a spool needs; run `spool doctor` to see what is wrong.",
    Meaning.BROKEN: "A foreign file stands where a file of spoold's should be; run `spool fsck` and "
    "move it away by hand.",
}

_NO_LINKS = (
    "A link or a file stands where a directory or a file of the spool should be, and no link below a spool is "
    "followed. `spool status` names it, and the fix."
)
_NO_LOCKS = (
    "The mount has no lock to give, and this spool claims by lock. Run `spool doctor` to see whether it can: on NFS "
    "mount without `nolock` and `local_lock`, on SMB without `nobrl`; a machine that died with the lock may hold it."
)
_ADVICE_BY_ERRNO = {
    errno.ENOTDIR: _NO_LINKS,
    errno.ELOOP: _NO_LINKS,
    errno.EMLINK: "A file of the spool has a second name elsewhere (a hard link), so nothing is written into it. "
    "Remove it from the spool.",
    errno.ENOLCK: _NO_LOCKS,
    errno.ENOSYS: _NO_LOCKS,
    errno.ENOTSUP: _NO_LOCKS,
    errno.EXDEV: "Parts of the spool lie on different file systems; a spool must be one file system, since a rename "
    "cannot cross two. Run `spool doctor`.",
    errno.EROFS: "The file system is mounted read-only; mount it read-write.",
    errno.ENAMETOOLONG: "The name is longer than this file system allows; use shorter ids and names.",
    errno.EDQUOT: "Your quota on the file server is used up; nothing was lost. Free some room or raise the quota.",
    errno.EACCES: "The server denies access for now; spoold tries again. If this goes on, check that this user may "
    "write to the spool's directories.",
    errno.EHOSTDOWN: "The file server cannot be reached; spoold looks again until it answers. Check the network.",
}


# Errors about one file or directory: its mode, its owner, its kind, that a process has it open. A share that is away
# raises none of these.
_OF_ONE_FILE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY, errno.EISDIR, errno.ENOTDIR, errno.ELOOP)
)


# A share that answers one of these does not come back by itself: a CephFS client that its server has evicted, a
# device that is gone. Only a new mount helps. ESTALE is none of them: an NFS server answers it while it exports
# nothing.
_LOST = frozenset((errno.ESHUTDOWN, errno.ENODEV))


def is_lost(error: OSError, *, fuse: bool) -> bool:
    """Whether a share that answers this for long has become unusable for good.

    fuse: it is a FUSE mount, which says ENOTCONN when its process has died. A network client says it while it waits.
    """
    return error.errno in _LOST or (fuse and error.errno == errno.ENOTCONN)


def concerns_one_file(error: OSError) -> bool:
    """Whether the error is about one file only, so that work on others can go on."""
    return isinstance(error, (NotRegularError, DamagedError)) or error.errno in _OF_ONE_FILE


def meaning(code: int | None) -> Meaning:
    """The meaning of an errno. None, and any errno not in the table, is UNKNOWN: that meaning promises nothing."""
    return _MEANING_OF.get(code, Meaning.UNKNOWN) if code is not None else Meaning.UNKNOWN


def classify(error: OSError) -> Meaning:
    """The meaning of an error of rename, unlink, mkdir or rmdir."""
    return meaning(error.errno)


def advice(error: OSError) -> str:
    """A sentence or two for the user: the event and the fix. Never empty."""
    if isinstance(error, NotRegularError):
        return _ADVICE_BY_MEANING[Meaning.BROKEN]
    code = error.errno
    specific = _ADVICE_BY_ERRNO.get(code) if code is not None else None
    return specific or _ADVICE_BY_MEANING[meaning(code)]


# The cause of a process that could not be started, which decides what the attempt is charged.
#
# Only an error that occurs on every machine is the task's own fault; an unknown error may be the machine's alone.


class Fault(StrEnum):
    """The task's: it fails everywhere. This worker's: another may have the program. The machine's: no start works
    just now. Nobody's: the same start may work in a moment.
    """

    TASK = "task"
    WORKER = "worker"
    MACHINE = "machine"
    NOBODY = "nobody"


_TASK = frozenset({0, errno.E2BIG, errno.ENAMETOOLONG, errno.EINVAL})
_MACHINE = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE, errno.ENOSPC})
# A program that is just being written, or a signal in between.
_NOBODY = frozenset({errno.ETXTBSY, errno.EINTR})


def fault_of(number: int) -> Fault:
    """The fault behind an errno; 0 stands for values that no program can be given."""
    if number in _TASK:
        return Fault.TASK
    if number in _MACHINE:
        return Fault.MACHINE
    return Fault.NOBODY if number in _NOBODY else Fault.WORKER
