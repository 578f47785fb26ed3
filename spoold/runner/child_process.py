"""runner/child_process: one process that a supervisor starts: its way into its directory, why it could not be
started, its output, and a file of its job.

Law: a child begins with a clean slate (own session, default signals, only its three standard descriptors) and dies
with its supervisor. Its output is always read, also when its file cannot be written, so that a full disk or a reached
cap never blocks it. This file may fork, exec, and write the one output file. Only a single-threaded process may use
it: the parent-death signal belongs to the thread that forks. A working directory is judged from inside, by the
kernel's own name for it, since a link may change a moment later. The errno goes with the words of a refusal, since
`system.errnos` decides by it. A job may rename its directory, mount a file system that never answers on it, or put a
pipe, a link, a lease or a second name of somebody's file in the place of its file. So no call waits, and nothing but
a plain file on that directory's own mount is written, which has no other name. The supervisor loads this file: kept
small.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import stat

from spoold.runner import process_tree
from spoold.system.same_mount import NAMED, PLACE, open_here

TYPE_CHECKING = False


if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from spoold.runner.freezer import Room

    # The directories, and the table of the configuration that lists them; None for anywhere.
    Within: TypeAlias = tuple[Sequence[str], str] | None


_READ = 1 << 16
# Signals that the supervisor ignores and a program must not.
RESET = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
_LOADER = ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
# More than any pipe holds; bounds the last read of a pipe that a process outside the tree keeps filling.
_DRAIN_LIMIT = 16 << 20


class Child:
    """A started process: its pid and the read ends of the pipes of its standard output and its errors."""

    __slots__ = ("_refusal", "errors", "output", "pid")

    def __init__(
        self,
        argv: Sequence[str],
        env: dict[str, str],
        cwd: str,
        stdin: bytes,
        keep: Sequence[int] = (),
        within: Within = None,
        room: Room | None = None,
    ) -> None:
        """Fork and let the child exec. keep: more descriptors to pass on; within: as in `enter`; room: the control
        group. Errors: Refused if fork fails.

        Does not wait for exec, which on a hung mount may take for ever: see `refusal`.
        """
        opened: list[int] = []
        parent = os.getpid()
        try:
            source = readable(stdin)
            opened.append(source)
            self.output, sink = os.pipe()
            opened += [self.output, sink]
            self.errors, error_sink = os.pipe()
            opened += [self.errors, error_sink]
            self._refusal, complaint = os.pipe()
            opened += [self._refusal, complaint]
            # Signals to the child are held until it has the program's dispositions: it begins with ours, which
            # ignore SIGTERM, so an early stop would be lost.
            signal.pthread_sigmask(signal.SIG_BLOCK, RESET)
            self.pid = os.fork()
        except OSError as problem:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, RESET)
            for descriptor in opened:
                os.close(descriptor)
            raise refused("cannot start a process", problem) from problem
        if self.pid == 0:
            if room is not None:
                room.enter()
            _become(argv, env, (cwd, within), (source, sink, error_sink), keep, complaint, parent)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, RESET)
        for descriptor in (source, sink, error_sink, complaint):
            os.close(descriptor)
        os.set_blocking(self.output, False)
        os.set_blocking(self.errors, False)
        os.set_blocking(self._refusal, False)

    def refusal(self) -> Refused | None:
        """Return why the program never began, once the process has ended; None if it did begin."""
        try:
            report = os.read(self._refusal, 16384)
        except BlockingIOError:
            return None
        if not report:
            return None
        return Refused(*json.loads(report))

    def close(self) -> None:
        """Close the supervisor's ends of the pipes."""
        for descriptor in (self.output, self.errors, self._refusal):
            os.close(descriptor)


def loader() -> dict[str, str]:
    """Return the variables of this process that an interpreter may need to find its own libraries."""
    return {name: os.environ[name] for name in _LOADER if name in os.environ}


def readable(data: bytes) -> int:
    """Return a descriptor from which `data` can be read: a file in memory, so that no process has to feed a pipe."""
    if not data:
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    if hasattr(os, "memfd_create"):
        file = os.memfd_create("stdin", os.MFD_CLOEXEC)
    else:
        import tempfile

        file, name = tempfile.mkstemp()
        os.unlink(name)
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
    os.lseek(file, 0, os.SEEK_SET)
    return file


def _become(
    argv: Sequence[str],
    env: dict[str, str],
    place: tuple[str, Within],
    streams: tuple[int, int, int],
    keep: Sequence[int],
    complaint: int,
    parent: int,
) -> None:
    """Turn the child into the program, or report why not and exit. Never returns."""
    stage = "cannot prepare the process"
    try:
        os.setsid()
        process_tree.die_with_parent(parent)
        signal.set_wakeup_fd(-1)
        for number in RESET:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, RESET)
        os.dup2(streams[0], 0)
        os.dup2(streams[1], 1)
        os.dup2(streams[2], 2)
        for descriptor in keep:
            os.set_inheritable(descriptor, True)
        stage = f"{ENTERING} {place[0]}"
        enter(*place)
        stage = f"cannot execute {argv[0]}"
        os.execvpe(argv[0], list(argv), env)
    except NotAllowed as problem:
        os.write(complaint, json.dumps(forbidden(problem).to_wire()).encode())
    except (OSError, ValueError, TypeError) as problem:
        os.write(complaint, json.dumps(refused(stage, problem, argv, env).to_wire()).encode())
    finally:
        os._exit(127)


class Output:
    """A job's output: the first `cap` bytes in a file (made on the first byte), the last `tail` in memory.

    Standard output and errors go to one file, about in the order in which they came. The end of standard output alone
    is kept too, since it is the task's answer. sources: pipes that still have a writer.
    """

    __slots__ = (
        "_cap",
        "_file",
        "_keep",
        "_path",
        "_said",
        "_spot",
        "_tail",
        "_voice",
        "dropped",
        "sources",
        "total",
        "trouble",
    )

    def __init__(self, path: str, cap: int, tail: int) -> None:
        self._path = path
        self._cap = cap
        self._keep = tail
        self._file: int | None = None
        self._spot: Spot | None = None
        self._tail = b""
        self._said = b""
        self._voice: int | None = None
        self.sources: list[int] = []
        self.total = 0
        self.dropped = 0
        self.trouble = ""

    def prepare(self) -> None:
        """Find the place of its file, before the job can change what the path leads to."""
        self._spot = Spot(self._path)

    def listen(self, output: int, errors: int) -> None:
        """Read from these two pipes: a process's standard output and its errors."""
        self._voice = output
        self.sources = [output, errors]

    def pump(self) -> bool:
        """Read once from each non-blocking pipe; False if nothing came."""
        taken = False
        for source in tuple(self.sources):
            try:
                chunk = os.read(source, _READ)
            except BlockingIOError:
                continue
            if chunk:
                taken = True
                self._take(chunk, source == self._voice)
            else:
                self.sources.remove(source)  # no writer is left, so waiting for more would only spin
        return taken

    def drain(self) -> None:
        """Read the rest; call it only when the writers are dead, because then it is complete."""
        limit = self.total + _DRAIN_LIMIT
        while self.pump() and self.total < limit:
            pass

    def _take(self, chunk: bytes, said: bool) -> None:
        room = max(0, self._cap - (self.total - self.dropped)) if not self.dropped else 0
        written = self._write(chunk[:room]) if room else 0
        self.total += len(chunk)
        self.dropped += len(chunk) - written
        if self._keep:
            self._tail = (self._tail + chunk)[-self._keep :]
            if said:
                self._said = (self._said + chunk)[-self._keep :]

    def _write(self, data: bytes) -> int:
        """Write to the file; return how many bytes the disk took. After a failure (`trouble`) no more is tried."""
        written = 0
        try:
            if self._file is None:
                if self._spot is None:
                    raise OSError(errno.ENOENT, os.strerror(errno.ENOENT), self._path)
                self._file = self._spot.open_anew()
            while written < len(data):
                written += os.write(self._file, data[written:])
        except OSError as problem:
            self.trouble = f"the output could not be kept in the worker's scratch (TMPDIR): {describe(problem)}"
        return written

    def tail(self) -> str:
        """Return the end of all its output."""
        return self._text(self._tail)

    def said(self) -> str:
        """Return the end of its standard output."""
        return self._text(self._said)

    def _text(self, tail: bytes) -> str:
        """Return the last bytes as text, without a character that the cut went through."""
        if len(tail) == self._keep:
            cut = 0
            while cut < min(3, len(tail)) and tail[cut] & 0xC0 == 0x80:
                cut += 1
            tail = tail[cut:]
        return tail.decode("utf-8", "replace")

    def close(self) -> None:
        """Close the file and its place."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if self._spot is not None:
            self._spot.close()


# Enters a job's working directory, if it is below a directory in which its task may start.


class NotAllowed(Exception):
    """The job asked for a directory that this worker does not allow."""


def enter(cwd: str, within: Within) -> None:
    """Make cwd the working directory. Errors: OSError; NotAllowed if it is not below one of the directories."""
    try:
        os.chdir(cwd)
        where = os.getcwd()
    except OSError:
        # A task must not learn what exists where it may not start.
        if within is None or _below(os.path.normpath(cwd), within[0]):
            raise
        where = cwd
    if within is not None and not _below(where, within[0]):
        really = "" if where == cwd else f", which is {where},"
        allowed = ", ".join(within[0])
        line = f"add {json.dumps(where, ensure_ascii=False)} to allow_cwd under {within[1]}"
        raise NotAllowed(f"a task may start below {allowed}, and cwd {cwd}{really} is not: change it, or {line}")


def _below(path: str, prefixes: Sequence[str]) -> bool:
    """Return whether a path is one of these directories or below one, as spelled or with links resolved."""
    for prefix in prefixes:
        for top in {os.path.normpath(prefix), os.path.realpath(prefix)}:
            if path == top or path.startswith(top.rstrip("/") + "/"):
                return True
    return False


# Why a process could not be started, in words that name the fix where the cause is known.


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


# A file of a job, found by the directory that was there before the job began.


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
