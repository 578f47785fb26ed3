"""runner/freezer: the control group of one slot (cgroup v2), which the kernel freezes as a whole.

Law: what is started in it stays in it, however it detaches itself, so freezing it needs no look at the processes. A
group is made only below the worker's own, and only groups that spoold made are removed. Where one cannot be had,
nothing fails: the processes are stopped by signals. The supervisor loads it: kept small.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

from spoold.runner import tree

# A group is called after the namespace of process ids, the worker with its start, and the supervisor.
_PREFIX, _NUMBERS = "spoold", 4
_PAUSE_S = 0.001
_CLEAR_PATIENCE_S = 1.0


def home() -> str:
    """The directory of this process's own control group; '' where no cgroup v2 is mounted that shows it."""
    try:
        group, mounts = _group("self"), _read("/proc/self/mountinfo").splitlines()
    except OSError:
        return ""
    for line in mounts:
        fields, _, kind = line.partition(b" - ")
        if kind.startswith(b"cgroup2 "):
            root, point = map(_unescaped, fields.split()[3:5])
            path = point + group.removeprefix(root)
            if f"{group}/".startswith(f"{root}/") and os.path.exists(f"{path}/cgroup.procs"):
                return path
    return ""


def sweep(where: str) -> int:
    """Removes the groups in this directory whose worker is dead, with all that is in them; how many there were."""
    found = 0
    with suppress(OSError):
        for name in os.listdir(where) if where else ():
            if _abandoned(name):
                _clear(f"{where}/{name}")
                found += 1
    return found


class Room:
    """The control group of one supervisor. trouble: why there is none to be used, '' where there is."""

    def __init__(self, where: str, worker: int, supervisor: int) -> None:
        """where: the worker's own group, '' for none. Nothing is made yet."""
        self._name = f"{_made_by(worker)}-{supervisor}"
        self._path = f"{where}/{self._name}"
        self.trouble = "" if where else "no cgroup v2 is mounted here"

    def open(self) -> None:
        """Makes it."""
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
        """Has the calling process in it, and all that it will start. One that cannot is stopped by signals later."""
        if not self.trouble:
            with suppress(OSError):
                _write(f"{self._path}/cgroup.procs", b"0")

    def freeze(self, patience_s: float) -> bool:
        """Stops all in it, with what is started in it later; whether the kernel says in time that it stands."""
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
        """Has all in it go on."""
        if not self.trouble:
            with suppress(OSError):
                _write(f"{self._path}/cgroup.freeze", b"0")

    def holds(self, pid: int) -> bool:
        """Whether this process is in it, or in a group below it that the job made."""
        try:
            return f"/{self._name}/" in f"{_group(pid)}/"
        except OSError:
            return False  # it has ended

    def clear(self) -> None:
        """Ends all that is in it and removes it. What the kernel holds on to is left to a successor's sweep."""
        if not self.trouble:
            _clear(self._path)


def _made_by(worker: int) -> str:
    """How the groups of one worker are called. A process id means something in its namespace only, and for a time."""
    seen = tree.look(worker)
    return f"{_PREFIX}-{_namespace()}-{worker}-{seen.started if seen is not None else 0}"


def _abandoned(name: str) -> bool:
    prefix, *numbers = name.split("-")
    if prefix != _PREFIX or len(numbers) != _NUMBERS or not all(map(str.isdecimal, numbers)):
        return False
    namespace, worker, started, _ = map(int, numbers)
    seen = tree.look(worker)
    return namespace == _namespace() and (seen is None or not seen.alive or seen.started != started)


def _namespace() -> int:
    try:
        return os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        return 0


def _group(pid: int | str) -> str:
    """Where a process is in the tree of groups. Errors: OSError."""
    for line in _read(f"/proc/{pid}/cgroup").splitlines():
        if line.startswith(b"0::"):
            return os.fsdecode(line[3:]).rstrip("/")
    raise FileNotFoundError(f"/proc/{pid}/cgroup names no group of version 2")


def _unescaped(field: bytes) -> str:
    """A path as mountinfo shows it, with blanks in octal."""
    return os.fsdecode(field.decode("unicode_escape").encode("latin-1")).rstrip("/")


def _clear(path: str) -> None:
    until = time.monotonic() + _CLEAR_PATIENCE_S
    while not _removed(path):
        _kill(path)
        if time.monotonic() > until:
            return
        time.sleep(_PAUSE_S)


def _removed(path: str) -> bool:
    """Whether the group is gone, with the groups below it that the job made: one that holds a process stays."""
    for folder, _, _ in os.walk(path, topdown=False):
        with suppress(OSError):
            os.rmdir(folder)
    return not os.path.exists(path)


def _kill(path: str) -> None:
    """Kills all in it; a process that is frozen takes SIGKILL, too."""
    try:
        _write(f"{path}/cgroup.kill", b"1")
    except OSError:  # before Linux 5.14
        for folder, _, _ in os.walk(path):
            with suppress(OSError):
                for pid in map(int, _read(f"{folder}/cgroup.procs").split()):
                    if pid > 0:  # 0: of another namespace
                        os.kill(pid, signal.SIGKILL)


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.readall()


def _write(path: str, data: bytes) -> None:
    with open(path, "wb", buffering=0) as file:
        file.write(data)
