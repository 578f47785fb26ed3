"""runner/refusal: why a process could not be started, in words that name the fix where the cause is known.

Law: the errno goes with the words, since `system.refusals` decides by it. The supervisor loads it: kept small.

Touches: files.
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
_FIRST_LINE = 256  # Linux: BINPRM_BUF_SIZE
ENTERING = "cannot enter the working directory"
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
    elif stage.startswith(ENTERING):
        if number in (errno.ENOENT, errno.ENOTDIR):
            why += ". cwd names no folder of this machine: make it, or change cwd"
    elif number in (errno.ENOENT, errno.ENOEXEC) and argv:
        why += _unfit(argv, env or {})
    return Refused(f"{stage[:_SHOWN]}: {why[:_SHOWN]}", code, number)


def _unfit(argv: Sequence[str], env: Mapping[str, str]) -> str:
    """Return why a program that may well be there cannot be executed, and the fix; '' where that is not known."""
    if len(argv) == 1 and len(words := argv[0].split()) > 1:
        return f": this is one word with blanks. Give each word by itself ({words[0]!r}, {words[1]!r}, …), or a shell"
    begin = _begin(argv[0], env)
    first, line_break, _ = begin.partition(b"\n")
    if first.startswith(b"#!"):
        interpreter = first[2:].split()[0].decode(errors="replace") if first[2:].split() else ""
        if line_break and first.endswith(b"\r"):
            return (
                r": its lines end with CR LF, as Windows writes them. Save it with LF, as by `sed -i 's/\r$//' FILE`"
            )
        if not os.path.exists(interpreter):
            return f": {interpreter!r}, which its first line names, is not there. Install that, or correct the line"
        return ""
    if begin.startswith(b"\xef\xbb\xbf"):
        return ": it begins with a byte order mark. Save it as UTF-8 without one"
    if begin.startswith(b"\x7fELF"):
        return ": it is a program for another processor or system, or its loader is missing (`file FILE` names both)"
    if begin:
        return ": its first line does not say what runs it. Begin it with a line like #!/bin/sh, or run `sh FILE`"
    return ""


def _begin(program: str, env: Mapping[str, str]) -> bytes:
    """Return the first bytes of a program's file; empty where there is none to read."""
    for directory in [""] if "/" in program else os.get_exec_path(env):
        try:
            file = os.open(os.path.join(directory, program), os.O_RDONLY | os.O_NONBLOCK)
        except OSError:
            continue
        try:
            return os.read(file, _FIRST_LINE)
        except OSError:
            continue
        finally:
            os.close(file)
    return b""


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
