"""The cause of a process that could not be started, which decides what the attempt is charged.

Law: only an error that occurs on every machine is the task's own fault; an unknown error may be the machine's alone.
"""

from __future__ import annotations

import errno
from enum import StrEnum


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
