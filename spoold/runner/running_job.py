"""runner/running_job: one running job, the warm Python process that calls may share, and the launcher of programs.

It stands apart from `supervisor`, its only user, because both in one file would be too long to read.

Law: this file decides how a job ended; the supervisor decides when to look and which processes to kill. It starts
processes only through `child_process` and its launcher, and may look at the one progress file. The launcher has at
most one child, which gets its own session, default signals and three descriptors. When the supervisor is gone, the
launcher kills the child's group and ends; processes that had left that group become the worker's children. The
supervisor loads this file: kept small.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import _socket
import errno
import os
import select
import signal
import sys
import time

from spoold.runner import process_tree
from spoold.runner.child_process import (
    ENTERING,
    RESET,
    Child,
    NotAllowed,
    Output,
    Refused,
    Spot,
    enter,
    forbidden,
    loader,
    readable,
    refused,
)
from spoold.runner.freezer import Stopper
from spoold.runner.wire import Answers, Wire

TYPE_CHECKING = False


if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from spoold.runner.child_process import Within
    from spoold.runner.freezer import Room


FIRST_LOOK_S = 0.1
# A job that was above its cap once is weighed again after SOON_S seconds. Any other is weighed again after
# WEIGHING_REST times the duration of the weighing, which is long for a large job.
SOON_S = 0.2
WEIGHING_REST = 20
_PYHOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyhost.py")


class Host:
    """A warm Python process for calls, with its environment and path; a call with the same ones may reuse it."""

    __slots__ = ("_cpu_s", "_env", "_path", "child", "wire")

    def __init__(self, python: str, env: dict[str, str], own: dict[str, str], path: list[str], room: Room) -> None:
        """Start it in the room. python: the interpreter. Errors: Refused, OSError."""
        asked, ask = os.pipe()
        answered, answer = os.pipe()
        try:
            argv = [python, "-P", "-u", _PYHOST, str(asked), str(answer)]
            # It enters the working directory itself, call by call.
            self.child = Child(argv, {**loader(), **env, **own}, "/", b"", (asked, answer), room=room)
        except Refused:
            os.close(ask)
            os.close(answered)
            raise
        finally:
            os.close(asked)
            os.close(answer)
        self.wire = Answers(answered, ask)
        self._env, self._path = env, path
        self._cpu_s = 0.0

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.child.pid

    def serves(self, env: dict[str, str], path: list[str]) -> bool:
        """Return whether a call may reuse it: many libraries read their environment only once, when imported."""
        return path == self._path and (env is self._env or _foreign(env) == _foreign(self._env))

    def more(self, cpu_s: float) -> float:
        """Return the CPU time (s) that it has used since the last call. cpu_s: in all."""
        more = max(0.0, cpu_s - self._cpu_s)
        self._cpu_s += more
        return more

    def close(self) -> None:
        """Close the pipes of a host that is dead."""
        self.child.close()
        self.wire.close()


def _foreign(env: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in env.items() if not name.startswith("SPOOL_")}


class Run:
    """The running job, with all facts about it so far."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.job = job
        self.key: str = job["key"]
        self.output = Output(job["output_path"], job["output_cap_bytes"], job["tail_bytes"])
        self._progress: Spot | None = None
        self.child: Child | Launched | None = None
        self.helper: Host | Launcher | None = None  # the process that runs it
        self.began = time.monotonic()
        self.began_wall = time.time()
        timeout = job["timeout_s"]
        self.deadline = None if timeout is None else self.began + timeout
        self.kind = "exited"  # another one once we have decided to end it
        self.message = ""
        self.kill_at: float | None = None
        self.status: int | None = None  # as from wait(2), once the main process has ended
        self.answer: dict[str, Any] | None = None
        self.weight = Weight(job["memory_bytes"])
        self.weigher: Launcher | None = None  # asked how much memory it holds
        self._weigh_at = self.began
        self.cpu_s = 0.0  # of all its ended processes
        self.survivors: list[int] = []
        self.refusal: Refused | None = None  # why it never began
        self.look_pause = FIRST_LOOK_S
        self.next_look = self.began + FIRST_LOOK_S
        self.ice = Stopper()
        self.frozen_at: float | None = None
        self.frozen_s = 0.0  # before that
        self.lent = False  # it waits for other tasks, so its silence means nothing
        self.sign: object = None
        self.sign_at = self.began
        self.told_at = 0.0

    def end(self, kind: str, message: str, kill_at: float) -> bool:
        """Decide to end it; False if that was decided before: then only the time to kill may move nearer."""
        first = self.kill_at is None
        self.kill_at = kill_at if self.kill_at is None else min(self.kill_at, kill_at)
        if first or kind == "fenced":
            self.kind, self.message = kind, message
        return first

    def refuse(self, refusal: Refused) -> None:
        """Record that its main process could not be started."""
        self.kind, self.message, self.refusal = refusal.kind, str(refusal), refusal

    @property
    def due(self) -> float:
        """The latest moment for the supervisor's next look; while the job is frozen, its own time stands still."""
        if self.frozen_at is not None:
            limit: float | None = self.frozen_at + self.job["freeze_s"]
        else:
            limit = self.deadline
        return min(at for at in (self.next_look, limit, self.kill_at) if at is not None)

    def go_on(self, now: float) -> None:
        """End the freeze: move the deadline and the last sign of life later by the frozen time."""
        assert self.frozen_at is not None
        passed, self.frozen_at = now - self.frozen_at, None
        self.frozen_s += passed
        self.sign_at += passed
        if self.deadline is not None:
            self.deadline += passed

    def hear(self, answer: dict[str, Any]) -> None:
        """Take a helper's message: the answer of a call, the ending of a program, or the memory of the job."""
        if "weighed" in answer:
            if answer["key"] == self.key:
                self._weigh(answer)
            return
        if "status" not in answer:
            # A true answer may follow a garbled one, but its process is no longer trusted.
            self.answer = self.answer or answer
            if isinstance(self.helper, Host):
                self.cpu_s += self.helper.more(answer["cpu_s"])
            return
        self.status = answer["status"]
        self.cpu_s += answer["cpu_s"]
        self.weight.peak = max(self.weight.peak, answer["peak"])
        if "refused" in answer and isinstance(self.child, Launched):
            self.child.refused = Refused(*answer["refused"])

    def _weigh(self, answer: dict[str, Any]) -> None:
        self.weigher = None
        self.weight.weigh(*answer["weighed"])
        now = time.monotonic()
        if self.weight.excess:
            self.end("oom", self.weight.excess, now)
        elif self.weight.doubtful:
            self.next_look = min(self.next_look, now + SOON_S)
        else:
            self._weigh_at = now + answer["took_s"] * WEIGHING_REST

    def may_be_weighed(self, now: float) -> bool:
        """Return whether enough time has passed since the last weighing."""
        return now >= self._weigh_at

    @property
    def wires(self) -> list[Wire]:
        """The open wires of its helpers."""
        helpers = {id(helper): helper for helper in (self.helper, self.weigher) if helper is not None}
        return [helper.wire for helper in helpers.values() if not helper.wire.closed]

    def prepare(self) -> None:
        """Find the places of its files, before the job can change what their paths lead to."""
        self.output.prepare()
        if self.job["progress_path"] and self.job["stall_s"] is not None:
            self._progress = Spot(self.job["progress_path"])

    def close(self) -> None:
        """Close its files."""
        self.output.close()
        if self._progress is not None:
            self._progress.close()

    def sign_of_life(self) -> object:
        """Return a value that changes when the job prints or makes progress."""
        return self.output.total, self._progress and self._progress.seen()

    def ending(self) -> dict[str, Any]:
        """Return the fields of an Ending, for the wire."""
        kind, code, number, message = self.kind, None, None, self.message
        if self.answer is not None:
            code, message = self.answer["exit"], message or self.answer["message"]
            if kind == "exited" and not self.answer["began"]:
                kind = self.answer.get("kind", "spawn_failed")
        elif self.status is not None:
            code, number, ended = _read_status(self.status)
            if "call" in self.job and not code and number is None:
                code = 1  # a call that ends its process has not returned, whatever the exit code
            message = message or ("the Python process died: " if "call" in self.job else "") + ended
            if kind == "exited" and number is not None:
                kind = "signaled"
        unsure = self.child is not None and kind == "exited" and self.answer is None
        refused = self.refusal or (self.child.refusal() if self.child is not None and unsure else None)
        if refused is not None:
            kind, code, message = refused.kind, refused.exit_code, str(refused)
        if self.survivors:
            message += f"; could not be killed yet: {', '.join(map(str, self.survivors))}"
        said = {
            "output_bytes": self.output.total,
            "output_dropped": self.output.dropped,
            "output_trouble": self.output.trouble,
            "tail": self.output.tail(),
            "stdout": self.output.said(),
            "max_rss_bytes": self.weight.peak,
            "frozen_s": self.frozen_s,
            "value_text": self.answer["value"] if self.answer is not None else None,
            "survivors": self.survivors,
        }
        if refused is not None and refused.number is not None:
            said["refusal"] = refused.number
        return {
            "key": self.key,
            "kind": kind,
            "exit_code": code,
            "signal": number,
            "message": "; ".join(part for part in (message, self.output.trouble) if part),
            "started_at": self.began_wall,
            "ended_at": time.time(),
            "duration_s": time.monotonic() - self.began - self.frozen_s,
            "cpu_s": self.cpu_s,
            **{name: value for name, value in said.items() if value or name == "refusal"},
        }


def _read_status(status: int) -> tuple[int | None, int | None, str]:
    """Return exit code or signal of a wait status, and a sentence."""
    if not os.WIFSIGNALED(status):
        code = os.WEXITSTATUS(status)
        return code, None, f"exited with code {code}"
    number = os.WTERMSIG(status)
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = "a real-time signal"
    return None, number, f"killed by {name} (signal {number})"


# How much memory one job holds, and whether that is more than it may hold.


_TWICE = 2


class Weight:
    """The memory that a job holds now and held at most, by the looks so far. limit: its cap, None for none."""

    __slots__ = ("_above", "excess", "held", "limit", "peak")

    def __init__(self, limit: int | None) -> None:
        self.limit = limit
        self.held = 0
        self.peak = 0
        self.excess = ""  # the sentence, once the job has to end
        self._above = 0

    def look(self, resident: int) -> bool:
        """Take the sum of all resident sizes; return whether the processes must be weighed."""
        if self.limit is not None and resident > self.limit:
            return True
        self._above = 0
        self._hold(resident)
        return False

    def weigh(self, share: int, unread: int) -> None:
        """Take the result of a weighing, each page counted once. unread: processes with all shared pages counted."""
        self._hold(share)
        if self.limit is None or share <= self.limit:
            self._above = 0
            return
        self._above += 1
        if self._above >= _TWICE:
            self.excess = f"used {share >> 20} MiB of memory, {self.limit >> 20} MiB are allowed"
            if unread:
                self.excess += f" (memory that {unread} of its processes share with others is counted more than once)"

    @property
    def doubtful(self) -> bool:
        """Whether the last weighing was above the cap, so that the next should come soon."""
        return self._above > 0

    def _hold(self, held: int) -> None:
        self.held = held
        self.peak = max(self.peak, held)


# A process between supervisor and job, which starts programs for the supervisor.
#
# Forking a Python process costs twice as much as the program that is then started. vfork is cheaper, but holds its
# caller until the program has begun, which on a hung mount may be never: so a process without deadlines calls it. For
# the same reason it weighs processes: the kernel can make the reader wait.


# The size of a descriptor's number in a message, in bytes.
_INT = 4


def launcher_usable() -> bool:
    """Return whether this system has all calls that a launcher needs."""
    return process_tree.AVAILABLE and hasattr(os, "posix_spawn") and hasattr(os, "pidfd_open")


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
        """Order a program; its ending comes by the wire. within: as in `child_process.enter`. Errors: OSError."""
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
    process_tree.wake_with_parent()  # it may be frozen together with its child
    process_tree.set_name("task-launcher")
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
        self._size = process_tree.OwnSize()

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
            share = process_tree.share_of(message["weigh"])
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
