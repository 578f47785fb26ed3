"""This process's own stdin, stdout and stderr.

A stream that was closed before we began (`>&-`) becomes the null device: else the next file that we open would get
its number, and our output would be written into that file.

Law: a failed write to stdout or stderr is never taken for an error of the spool. On stdout it raises OutputFailed,
which is not an OSError, so that no code for errors of the spool catches it by mistake. On stderr it is dropped: no
stream is left to report it.

Touches: files, the terminal, the environment.
"""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TextIO

FAILED = 74  # EX_IOERR
READ_ENOUGH = 0


class OutputFailed(Exception):
    """stdout cannot be written. why: the error of the system."""

    def __init__(self, why: OSError) -> None:
        self.why = why
        super().__init__(f"stdout cannot be written: {why.strerror or why}")


class ReaderGone(OutputFailed):
    """The reader of our output, such as `head`, has closed the pipe."""


def guard() -> None:
    """Make the three streams safe to use; once in a process, before anything is opened."""
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number is this one
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = _writer(1, sys.stdout, _fail)
    sys.stderr = _writer(2, sys.stderr, _drop)


def sleep(seconds: float) -> None:
    """Sleep while stdout has a reader: without this check a command that prints nothing would go on in vain.

    Errors: ReaderGone as soon as the pipe behind stdout has no reader.
    """
    poll = select.poll()
    poll.register(1, 0)
    if any(events & select.POLLERR for _, events in poll.poll(seconds * 1000)):
        raise ReaderGone(OSError(errno.EPIPE, os.strerror(errno.EPIPE)))


def is_piped() -> bool:
    """Return whether the pipe behind stdin has data, as in `echo x | spool …`; not if it is only open."""
    try:
        if not stat.S_ISFIFO(os.fstat(0).st_mode):
            return False
        poll = select.poll()
        poll.register(0, select.POLLIN)
        return any(events & select.POLLIN for _, events in poll.poll(0))
    except OSError:
        return False


def give_up(failed: OutputFailed) -> int:
    """Report the failure of stdout; return the exit code of this process. Buffered output is dropped: the interpreter
    flushes stdout when it ends, and must not fail there."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.close(null)
    if isinstance(failed, ReaderGone):
        return READ_ENOUGH
    print(
        f"spool: {failed}. The spool is not the cause. The command may have been carried out: look with "
        "`spool ls` before you repeat it. Fix where stdout goes.",
        file=sys.stderr,
    )
    return FAILED


class _Writer(io.BufferedWriter):
    """The buffer between text and descriptor; errors go to `refused`, which drops them or raises.

    Not our own raw stream: data would be written twice after an interrupt within its `write`.
    """

    def __init__(self, number: int, refused: Callable[[OSError], None]) -> None:
        super().__init__(io.FileIO(number, "wb", closefd=False))
        self._refused = refused

    def write(self, data: Any, /) -> int:
        """Write data and return how much was taken; all of it, if a refused write is dropped."""
        try:
            return super().write(data)
        except OSError as error:
            self._refused(error)
            return len(data)

    def flush(self) -> None:
        """Write the buffered data."""
        try:
            super().flush()
        except OSError as error:
            self._refused(error)


def _fail(error: OSError) -> None:
    raise (ReaderGone if error.errno == errno.EPIPE else OutputFailed)(error)


def _drop(_error: OSError) -> None:
    pass


def _writer(number: int, before: TextIO | None, refused: Callable[[OSError], None]) -> TextIO:
    """Return a text stream like Python's own, over our writer."""
    at_once = number == 2 or os.isatty(number) or bool(os.environ.get("PYTHONUNBUFFERED"))
    return io.TextIOWrapper(
        _Writer(number, refused),
        encoding=before.encoding if before is not None else None,
        errors=before.errors if before is not None else "backslashreplace",
        line_buffering=at_once,
    )
