"""runner/refusal: why a process could not be started, in words that name the fix where the cause is known.

Law: the errno goes with the words, since `system.refusals` decides by it. The supervisor loads it: kept small.
"""

from __future__ import annotations

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# No process could be made, which may work later: not the program's fault.
_NO_PROCESS = (errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE)
_PAGES = 32  # Linux: MAX_ARG_STRLEN
_SHOWN = 1000
_FIX = "have the program read it from standard input or from the file that SPOOL_TASK_FILE names"


class Refused(Exception):
    """The process could not be started. exit_code: as a shell gives it, None if fork failed.

    number: the errno, 0 for values that no program can be given, None for something that is not allowed.
    """

    def __init__(self, message: str, exit_code: int | None, number: int | None) -> None:
        super().__init__(message)
        self.exit_code = exit_code
        self.number = number

    @property
    def kind(self) -> str:
        """The kind of the ending."""
        return "refused" if self.number is None else "spawn_failed"

    def to_wire(self) -> tuple[str, int | None, int | None]:
        """Return its three values."""
        return str(self), self.exit_code, self.number


def forbidden(problem: Exception) -> Refused:
    """Return the refusal of something that the worker's owner does not allow."""
    return Refused(f"{problem}"[:_SHOWN], None, None)


def refused(
    stage: str, problem: Exception, argv: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> Refused:
    """Return the refusal for an error. stage: the failed step; argv and env: those for the program."""
    number = (problem.errno or 0) if isinstance(problem, OSError) else 0
    code = None if number in _NO_PROCESS else 127 if number in (errno.ENOENT, errno.ENOTDIR) else 126
    why = describe(problem)
    if number == errno.E2BIG:
        why = f"{why}: {_too_much(argv, env or {})}"
    elif not number and any("\0" in word for word in argv):
        place = next(n for n, word in enumerate(argv) if "\0" in word)
        why = f"argument {place} holds a NUL byte, which no program can be given"
    return Refused(f"{stage[:_SHOWN]}: {why[:_SHOWN]}", code, number)


def _too_much(argv: Sequence[str], env: Mapping[str, str]) -> str:
    limit = _PAGES * os.sysconf("SC_PAGE_SIZE")
    sizes = [(len(os.fsencode(word)) + 1, f"argument {number}") for number, word in enumerate(argv)]
    sizes += [(len(os.fsencode(f"{name}={text}")) + 1, f"variable {name[:80]}") for name, text in env.items()]
    most, what = max(sizes)
    if most > limit:
        return f"{what} has {most - 1:,} bytes, and {limit - 1:,} are the most that one can have; {_FIX}"
    total = sum(size for size, _ in sizes)
    return f"arguments and environment have {total:,} bytes, more than `ulimit -s` allows (a quarter of it); {_FIX}"


def describe(problem: BaseException) -> str:
    """Return the error's symbolic name, which people can look up, and its words."""
    if isinstance(problem, OSError) and problem.errno is not None:
        return f"{errno.errorcode.get(problem.errno, problem.errno)} ({os.strerror(problem.errno)})"
    return f"{type(problem).__name__}: {problem}"
