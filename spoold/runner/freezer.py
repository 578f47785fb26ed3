"""runner/freezer: stops and continues a job as a whole: by the control group of its slot (cgroup v2), or by signals.

Law: a process that is started in the group stays in it, however it detaches itself, so freezing needs no look at the
processes. A group is made only below the worker's own, and only groups that spoold made are removed. Where no group
can be made, nothing fails: the processes are stopped by signals. A look is never the whole truth, because processes
fork during it: stopping goes on until two looks in a row find all of them stopped. A process that had stopped itself
before is left alone, and is not continued later. A guard ends the stopped tree if the supervisor dies. A worker is
dead if no process has its number, or one that started at another moment of the same time namespace. The supervisor
loads this file: kept small.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from spoold.runner import process_tree

TYPE_CHECKING = False


if TYPE_CHECKING:
    from collections.abc import Callable


# A group's name: the namespaces of process ids and of time, the worker with its start time, and the supervisor. The
# second was missing in former releases.
_PREFIX, _NUMBERS = "spoold", (4, 5)
_PAUSE_S = 0.001
_CLEAR_PATIENCE_S = 1.0


def home() -> str:
    """Return the directory of this process's own control group; '' where no mounted cgroup v2 shows it."""
    try:
        group, mounts = _group("self"), _read("/proc/self/mountinfo").splitlines()
    except OSError:
        return ""
    for line in mounts:
        fields, _, kind = line.partition(b" - ")
        if kind.startswith(b"cgroup2 "):
            with suppress(ValueError):  # a line that the kernel did not write
                root, point = map(_unescaped, fields.split()[3:5])
                path = point + group.removeprefix(root)
                if f"{group}/".startswith(f"{root}/") and os.path.exists(f"{path}/cgroup.procs"):
                    return path
    return ""


def sweep(where: str) -> int:
    """Remove the groups in this directory whose worker is dead, and kill their processes; return their number."""
    found = 0
    with suppress(OSError):
        for name in os.listdir(where) if where else ():
            if _abandoned(name):
                _clear(f"{where}/{name}")
                found += 1
    return found


class Room:
    """The control group of one supervisor. trouble: why it cannot be used, '' if it can."""

    def __init__(self, where: str, worker: int, supervisor: int) -> None:
        """where: the worker's own group, '' for none. Nothing is made yet."""
        self._name = f"{_made_by(worker)}-{supervisor}"
        self._path = f"{where}/{self._name}"
        self.trouble = "" if where else "no cgroup v2 is mounted here"

    def open(self) -> None:
        """Make the group."""
        if self.trouble:
            return
        try:
            os.mkdir(self._path)
            os.stat(f"{self._path}/cgroup.freeze")
        except OSError as problem:
            self.trouble = f"no control group can be made that freezes: {problem}"
            with suppress(OSError):
                os.rmdir(self._path)

    def enter(self) -> None:
        """Move the calling process, with all that it will start, into the group. If that fails, signals stop it."""
        if not self.trouble:
            with suppress(OSError):
                _write(f"{self._path}/cgroup.procs", b"0")

    def freeze(self, patience_s: float) -> bool:
        """Freeze the group, also for processes to come; return whether the kernel reports it frozen in time."""
        if self.trouble:
            return False
        until = time.monotonic() + patience_s
        with suppress(OSError):
            _write(f"{self._path}/cgroup.freeze", b"1")
            while b"frozen 1" not in _read(f"{self._path}/cgroup.events"):
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_S)
            return True
        return False

    def thaw(self) -> None:
        """Let the group go on."""
        if not self.trouble:
            with suppress(OSError):
                _write(f"{self._path}/cgroup.freeze", b"0")

    def holds(self, pid: int) -> bool:
        """Return whether this process is in the group, or in a group below it that the job made."""
        try:
            return f"/{self._name}/" in f"{_group(pid)}/"
        except OSError:
            return False  # it has ended

    def clear(self) -> None:
        """Kill all processes in the group and remove it. A group that the kernel keeps is left to a later sweep."""
        if not self.trouble:
            _clear(self._path)


def _made_by(worker: int) -> str:
    """Return the name prefix of one worker's groups. A process id is unique only in its namespace, and for a time."""
    seen = process_tree.look(worker)
    spaces = f"{_namespace('pid')}-{_namespace('time')}"
    return f"{_PREFIX}-{spaces}-{worker}-{seen.started if seen is not None else 0}"


def _abandoned(name: str) -> bool:
    prefix, *numbers = name.split("-")
    if prefix != _PREFIX or len(numbers) not in _NUMBERS or not all(map(str.isdecimal, numbers)):
        return False
    *spaces, worker, started, _ = map(int, numbers)
    if spaces[0] != _namespace("pid"):
        return False
    seen = process_tree.look(worker)
    if seen is None or not seen.alive:
        return True
    # Start times of two time namespaces count from different moments.
    return spaces[1:] == [_namespace("time")] and seen.started != started


def _namespace(kind: str) -> int:
    try:
        return os.stat(f"/proc/self/ns/{kind}").st_ino
    except OSError:
        return 0


def _group(pid: int | str) -> str:
    """Return the path of a process in the tree of groups. Errors: OSError."""
    for line in _read(f"/proc/{pid}/cgroup").splitlines():
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:]).rstrip("/")
    raise FileNotFoundError(f"/proc/{pid}/cgroup names no group of version 2")


def _unescaped(field: bytes) -> str:
    """Return a path from mountinfo, which writes blanks in octal."""
    return os.fsdecode(field.decode("unicode_escape").encode("latin-1")).rstrip("/")


def _clear(path: str) -> None:
    until = time.monotonic() + _CLEAR_PATIENCE_S
    while not _removed(path):
        _kill(path)
        if time.monotonic() > until:
            return
        time.sleep(_PAUSE_S)


def _removed(path: str) -> bool:
    """Remove the group and those that the job made below it; return whether it is gone. One with a process stays."""
    for group in reversed(_groups(path)):
        with suppress(OSError):
            os.rmdir(group)
    return not os.path.exists(path)


def _groups(path: str) -> list[str]:
    """The group and those below it, each before its own; without recursion, since the job says how deep they are."""
    found = [path]
    for group in found:
        with suppress(OSError), os.scandir(group) as names:
            found += [name.path for name in names if name.is_dir(follow_symlinks=False)]
    return found


def _kill(path: str) -> None:
    """Kill all processes in the group; frozen ones take SIGKILL, too."""
    try:
        _write(f"{path}/cgroup.kill", b"1")
    except OSError:  # before Linux 5.14
        for group in _groups(path):
            with suppress(OSError):
                for pid in map(int, _read(f"{group}/cgroup.procs").split()):
                    if pid > 0:  # 0: of another namespace
                        os.kill(pid, signal.SIGKILL)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(data)


# Stops and continues a tree of processes as a whole; a guard ends it if the supervisor dies.


class Stopper:
    """The held processes of one tree: pid → start time (ticks since boot), parents before their children."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, int] = {}

    def stop(self, find: Callable[[], list[process_tree.Seen]], patience_s: float) -> bool:
        """Stop all processes that `find` finds; False if some still ran when the patience was over.

        SIGSTOP takes effect before a process is back in its own code. A process that waits in the kernel, such as for
        a hung share, takes the signal on its way out: it counts as stopped.
        """
        until = time.monotonic() + patience_s
        quiet = 0
        while quiet < 2:
            moving = self.hold(find())
            quiet = 0 if moving else quiet + 1
            if moving:
                if time.monotonic() > until:
                    return False
                time.sleep(_PAUSE_S)
        return True

    def hold(self, found: list[process_tree.Seen]) -> bool:
        """Send SIGSTOP to the processes that still run; return whether there are any."""
        moving = [seen for seen in found if seen.alive and not self._stands(seen)]
        for seen in moving:
            self._held[seen.pid] = seen.started
            with suppress(OSError):
                os.kill(seen.pid, signal.SIGSTOP)
        return bool(moving)

    def _stands(self, seen: process_tree.Seen) -> bool:
        if seen.state in (b"T", b"t"):
            return True
        # A zombie that is alive has lost its first thread, and /proc does not show the others.
        return seen.state in (b"D", b"Z") and self._held.get(seen.pid) == seen.started

    def melt(self) -> None:
        """Continue all held processes. Children first: a shell would treat a child that is still stopped as a
        suspended job."""
        self._send(signal.SIGCONT)
        self._held.clear()

    def end(self) -> None:
        """Kill all held processes."""
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        for pid, started in reversed(self._held.items()):
            seen = process_tree.look(pid)
            if seen is not None and seen.started == started:
                with suppress(OSError):
                    os.kill(pid, number)


class Guard:
    """A process outside the ice that kills the held processes if the supervisor dies before it continues them."""

    def __init__(self, end: Callable[[], None]) -> None:
        """Fork the guard. Errors: OSError."""
        watched, hold = os.pipe()
        try:
            self.pid = os.fork()
        except OSError:
            os.close(watched)
            os.close(hold)
            raise
        if self.pid == 0:
            try:
                _watch(watched)
                end()
            finally:
                os._exit(0)
        os.close(watched)
        self._hold = hold

    def dismiss(self) -> None:
        """Kill the guard; the supervisor collects it."""
        with suppress(OSError):
            os.kill(self.pid, signal.SIGKILL)
        os.close(self._hold)


def _watch(watched: int) -> None:
    """Wait in the guard until the supervisor has died."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    process_tree.set_name("task-guard")
    os.closerange(0, watched)
    os.closerange(watched + 1, os.sysconf("SC_OPEN_MAX"))
    os.read(watched, 1)
