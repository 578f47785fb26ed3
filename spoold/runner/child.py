"""runner/child: one process that a supervisor starts, and its output.

Law: a child begins with a clean slate (own session, default signals, only its three standard descriptors) and
dies with its supervisor. Its output is always read, also when its file cannot be written, so that a full disk or a
reached cap never blocks it. This room may fork, exec, and write the one output file.
Only a single-threaded process may use it: the parent-death signal belongs to the thread that forks.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import warnings  # noqa: F401 - os.execvpe imports it: here that is done once, not in every child (0.8 ms)

from spoold.runner import tree
from spoold.runner.entering import NotAllowed, enter
from spoold.runner.refusal import ENTERING, Refused, describe, forbidden, refused
from spoold.runner.spot import Spot

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from spoold.runner.entering import Within
    from spoold.runner.freezer import Room

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
        tree.die_with_parent(parent)
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
