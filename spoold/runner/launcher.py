"""runner/launcher: a process between supervisor and job, which starts programs for the supervisor.

Forking a Python process costs twice as much as the program that is then started. vfork is cheaper, but holds its
caller until the program has begun, which on a hung mount may be never: so a process without deadlines calls it. For
the same reason it weighs processes: the kernel can make the reader wait.

Law: it has at most one child, which gets its own session, default signals and three descriptors. When the supervisor
is gone, it kills the child's group and ends; processes that had left that group become the worker's children. It may
spawn and kill its child, and has the descriptors that the supervisor passes for the job.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import _socket  # `socket` itself costs a supervisor 1.5 MB
import errno
import os
import select
import signal
import sys
import time

from spoold.runner import tree
from spoold.runner.child import RESET, readable
from spoold.runner.entering import NotAllowed, enter
from spoold.runner.refusal import ENTERING, Refused, forbidden, refused
from spoold.runner.wire import Wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from spoold.runner.entering import Within
    from spoold.runner.freezer import Room

# The size of a descriptor's number in a message, in bytes.
_INT = 4


def usable() -> bool:
    """Return whether this system has all calls that a launcher needs."""
    return tree.AVAILABLE and hasattr(os, "posix_spawn") and hasattr(os, "pidfd_open")


class Launched:
    """An ordered program: its output, and why it never began, if it did not. Takes the place of a Child."""

    __slots__ = ("errors", "output", "refused", "streams")

    pid = 0  # the launcher's child, not the supervisor's

    def __init__(self, stdin: bytes) -> None:
        """Make its descriptors. Errors: OSError."""
        source = readable(stdin)
        # Each end has flags of its own: those of the program's ends stay as a program expects them.
        self.output, sink = os.pipe2(os.O_CLOEXEC)
        self.errors, error_sink = os.pipe2(os.O_CLOEXEC)
        os.set_blocking(self.output, False)
        os.set_blocking(self.errors, False)
        self.streams = (source, sink, error_sink)  # its standard descriptors
        self.refused: Refused | None = None

    def refusal(self) -> Refused | None:
        """Return why the program never began; None if it did begin."""
        return self.refused

    def close(self) -> None:
        """Close all descriptors."""
        for descriptor in (self.output, self.errors, *self.streams):
            os.close(descriptor)


class Launcher:
    """The supervisor's end."""

    __slots__ = ("_passing", "pid", "wire")

    def __init__(self, room: Room | None = None) -> None:
        """Fork the launcher. room: the control group for it and its programs. Errors: OSError."""
        # Descriptors are passed: what a concealed process has open, nobody can open by its number in /proc.
        self._passing, passed = _socket.socketpair()
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            for descriptor in (asked, ask, answered, answer):
                os.close(descriptor)
            raise
        if self.pid == 0:
            try:
                if room is not None:
                    room.enter()
                _become(asked, answer, passed)
            finally:
                os._exit(1)
        os.close(asked)
        os.close(answer)
        self.wire = Wire(answered, ask)

    def launch(self, argv: list[str], env: dict[str, str], cwd: str, stdin: bytes, within: Within = None) -> Launched:
        """Order a program; its ending comes by the wire. within: as in `child.enter`. Errors: OSError."""
        launched = Launched(stdin)
        numbers = b"".join(number.to_bytes(_INT, sys.byteorder) for number in launched.streams)
        try:
            self._passing.sendmsg([b"."], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, numbers)])
        except (BrokenPipeError, ConnectionResetError):
            pass  # the launcher is gone, which the wire shows
        except OSError:
            launched.close()
            raise
        self.wire.send({"argv": argv, "env": env, "cwd": cwd, "within": within})
        return launched

    def stop(self, told: list[int]) -> None:
        """Ask the program to end, unless its pid is among `told`, which were asked already."""
        self.wire.send({"stop": told})

    def weigh(self, key: str, pids: list[int]) -> None:
        """Ask how much memory these processes of a job hold."""
        self.wire.send({"weigh": pids, "key": key})

    def close(self) -> None:
        """Close the wire of a launcher that is dead."""
        self.wire.close()
        self._passing.close()


def _become(asked: int, answer: int, passed: _socket.socket) -> None:
    """Serve in the launcher until the supervisor is gone."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    tree.wake_with_parent()  # it may be frozen together with its child
    tree.set_name("task-launcher")
    at = 3
    for kept in sorted((asked, answer, passed.fileno())):
        os.closerange(at, kept)
        at = kept + 1
    os.closerange(at, os.sysconf("SC_OPEN_MAX"))
    _Launching(Wire(asked, answer), passed).serve()


class _Launching:
    """The launcher's end: at most one child, known by its pid and a descriptor that is readable at its end."""

    def __init__(self, wire: Wire, passed: _socket.socket) -> None:
        self._wire = wire
        self._passed = passed
        self._pid = 0
        self._end = -1
        self._size = tree.OwnSize()

    def serve(self) -> None:
        while not self._wire.closed:
            poll = select.poll()
            poll.register(self._wire.source, select.POLLIN)
            if self._pid:
                poll.register(self._end, select.POLLIN)
            ready = {descriptor for descriptor, _ in poll.poll()}
            if self._pid and self._end in ready:
                self._bury()
            if self._wire.source in ready:
                for message in self._wire.receive():
                    self._obey(message)
        if self._pid:
            os.killpg(self._pid, signal.SIGKILL)

    def _obey(self, message: dict[str, Any]) -> None:
        if "stop" in message:
            if self._pid and self._pid not in message["stop"]:
                os.kill(self._pid, signal.SIGTERM)
                os.kill(self._pid, signal.SIGCONT)
            return
        if "weigh" in message:
            began = time.monotonic()
            share = tree.share_of(message["weigh"])
            self._wire.send({"weighed": share, "key": message["key"], "took_s": time.monotonic() - began})
            return
        stage = "cannot prepare the process"
        opened: list[int] = []
        try:
            opened += self._streams()
            stage = f"{ENTERING} {message['cwd']}"
            enter(message["cwd"], message["within"])
            stage = f"cannot execute {message['argv'][0]}"
            self._pid = _spawn(message["argv"], message["env"], opened)
            self._end = os.pidfd_open(self._pid)
        except NotAllowed as problem:
            self._refuse(forbidden(problem))
        except (OSError, ValueError, TypeError) as problem:
            self._refuse(refused(stage, problem, message["argv"], message["env"]))
        finally:
            # A waiting launcher must not keep a directory busy that a person wants to remove or unmount.
            os.chdir("/")
            for descriptor in opened:
                os.close(descriptor)

    def _streams(self) -> list[int]:
        """Return the descriptors of the message that has come: they were passed before it. Errors: OSError."""
        _, said, _, _ = self._passed.recvmsg(1, _socket.CMSG_SPACE(3 * _INT), _socket.MSG_CMSG_CLOEXEC)
        data = b"".join(numbers for _, _, numbers in said)
        return [int.from_bytes(data[at : at + _INT], sys.byteorder) for at in range(0, len(data), _INT)]

    def _refuse(self, why: Refused) -> None:
        self._wire.send({"status": 0, "peak": 0, "cpu_s": 0.0, "refused": why.to_wire()})

    def _bury(self) -> None:
        """Report how the child ended."""
        _, status, used = os.wait4(self._pid, 0)
        os.close(self._end)
        self._pid = 0
        peak, cpu_s = self._size.more(used.ru_maxrss << 10), used.ru_utime + used.ru_stime
        self._wire.send({"status": status, "peak": peak, "cpu_s": cpu_s})


def _spawn(argv: list[str], env: dict[str, str], streams: Sequence[int]) -> int:
    """Start the program, looked up in the PATH of its own environment; return its pid. Errors: OSError."""
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(streams)]
    places = [""] if "/" in argv[0] else [f"{directory}/" for directory in os.get_exec_path(env) if directory]
    failed: OSError = FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    for place in places:
        try:
            return os.posix_spawn(
                place + argv[0], argv, env, file_actions=actions, setsid=True, setsigmask=(), setsigdef=RESET
            )
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            # Another directory may have a program that can be run; else this error is reported.
            failed = problem
    raise failed
