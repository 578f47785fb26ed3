"""The identity of this machine and process, whether another process still lives, the machine's capacity, and which
nodes ran on it before.

Law: "dead" is said only if it is certain. A process number alone identifies nothing, since numbers are used again:
only together with the start time, on the same boot of the same kernel and in the same process table, does it identify
a process. Start times of two time namespaces count from different moments and are never compared; there, only a
number that no process has is certain. Another boot of the same machine proves nothing: a clone has its machine id and
host name. If in doubt, a process counts as alive. Touches /proc, /etc/machine-id and the files of `hardware`.

Touches: files, processes, the clock, the network, the environment.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import time
from dataclasses import dataclass, field, replace
from typing import ClassVar, Protocol

from spoold.protocol.names import is_marked, marked, unmarked
from spoold.system import hardware, kernel_random

# The kernel's constants for the namespaces outside all containers (PROC_PID_INIT_INO, PROC_TIME_INIT_INO), and the
# word for the one of a kernel that has no time namespaces.
_INITIAL_PID_NAMESPACE, _INITIAL_TIME_NAMESPACE, _NO_TIME_NAMESPACES = "4026531836", "4026531834", "0"

# The clock and the unit of a process's start in /proc; on other systems /proc is not read.
_BOOTTIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
_TICKS = os.sysconf("SC_CLK_TCK")

# An id of the kernel or of systemd has fewer characters.
_LINE_MAX = 256

# State letters of a process that has ended: a zombie, waiting for its parent, and one just ending.
_ENDED = "ZX"


@dataclass(frozen=True, slots=True)
class HostIdentity:
    """One boot of one machine, seen from one process table. '' for an unknown value.

    `machine_id` is a hash of systemd's, which should not be written where other users read it. Start times of
    processes are counted from a moment that belongs to `time_namespace`.
    """

    hostname: str
    machine_id: str
    boot_id: str
    pid_namespace: str
    time_namespace: str = ""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process of one boot: its number, and its start in clock ticks since boot, which setting the date does
    not change; None if that is unknown."""

    pid: int
    start_time: int | None


@dataclass(frozen=True, slots=True)
class Capacity:
    """A machine's resources: CPUs (a quota may be a fraction), memory in MiB (0: unknown), GPUs."""

    cpus: float
    mem_mb: int
    gpus: int


@dataclass(frozen=True, slots=True)
class Load:
    """How busy a machine is: the one-minute load average, available memory and free disk in MiB. None: unknown."""

    load1: float | None
    mem_available_mb: int | None
    disk_free_mb: int | None

    def known(self) -> dict[str, float]:
        """The figures as fields of a heartbeat, without the unknown ones."""
        figures = {"load": self.load1, "mem_available_mb": self.mem_available_mb, "disk_free_mb": self.disk_free_mb}
        return {name: figure for name, figure in figures.items() if figure is not None}


class Host(Protocol):
    """The machine a process runs on. None of the methods raises."""

    def identity(self) -> HostIdentity:
        """This machine, this boot."""
        ...

    def process(self) -> ProcessIdentity:
        """This process."""
        ...

    def doubt(self) -> None:
        """Another machine has this one's identity: give this one an identity that equals no other's."""
        ...

    def alive(self, process: ProcessIdentity) -> bool:
        """Whether a process of this boot and process table still runs; True in doubt."""
        ...

    def capacity(self) -> Capacity:
        """The usable resources. May start a program and take seconds: ask once, at start."""
        ...

    def load(self, path: str) -> Load:
        """How busy the machine is now, and the room where `path`, a directory on a local disk, lies."""
        ...

    def battery(self) -> hardware.Battery | None:
        """The battery's state; None without a battery."""
        ...


def same_host(one: HostIdentity, other: HostIdentity) -> bool:
    """Whether a process number of one can be looked up on the other: same boot, same process table.

    A boot id is drawn at random at each boot, so it distinguishes even cloned machines that share a machine id.
    """
    return (
        one.boot_id == other.boot_id != ""
        and one.pid_namespace == other.pid_namespace != ""
        and one.machine_id == other.machine_id
    )


def twins(one: HostIdentity, other: HostIdentity) -> bool:
    """Whether a machine that found out that it is not the only one of its identity speaks of the other's identity.

    So it is after two machines were resumed from one image of memory: even the boot id and the processes are equal.
    """
    return (
        is_marked(one.machine_id)
        and one.machine_id != other.machine_id
        and same_host(_unmarked(one), _unmarked(other))
    )


def _unmarked(identity: HostIdentity) -> HostIdentity:
    return replace(identity, machine_id=unmarked(identity.machine_id))


def surely_gone(then: HostIdentity, process: ProcessIdentity, host: Host) -> bool:
    """Whether a process that ran on the machine `then` is gone for certain, seen from `host`. False in doubt."""
    here = host.identity()
    if not same_host(then, here):
        return False
    if not then.time_namespace == here.time_namespace != "":
        process = replace(process, start_time=None)
    return not host.alive(process)


def this_host() -> HostIdentity:
    """The machine this process runs on."""
    machine_id = _first_line("/etc/machine-id") or _first_line("/var/lib/dbus/machine-id")
    return HostIdentity(
        hostname=socket.gethostname(),
        machine_id=_hashed(machine_id) if machine_id and machine_id != "uninitialized" else "",
        boot_id=_first_line("/proc/sys/kernel/random/boot_id"),
        pid_namespace=_namespace("pid"),
        time_namespace=_namespace("time") or (_NO_TIME_NAMESPACES if _namespace("pid") else ""),
    )


def process_of(pid: int) -> ProcessIdentity | None:
    """The process that has this number now; None if there is none, or if it has ended and only awaits reaping."""
    found = _state_and_start(pid)
    if found is None or found[0] in _ENDED:
        return None
    return ProcessIdentity(pid, found[1])


def this_process() -> ProcessIdentity:
    """The process that asks."""
    return process_of(os.getpid()) or ProcessIdentity(os.getpid(), 0)


def alive(process: ProcessIdentity) -> bool:
    """Whether the process still runs: its number is taken, by the same start, and not by a zombie. True in doubt.

    For processes of this boot and process table only; ask `same_host` first.
    """
    if process.pid <= 0:
        return False
    found = _state_and_start(process.pid)
    if found is not None:
        state, start_time = found
        if process.start_time is None or process.start_time > time.clock_gettime(_BOOTTIME) * _TICKS:
            return state not in _ENDED  # written in another unit, such as seconds since 1970: only the number counts
        return state not in _ENDED and start_time == process.start_time
    # No entry in /proc: gone, or hidden from this user (hidepid). Only the kernel's answer to a signal is certain.
    try:
        os.kill(process.pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except OSError:
        return True
    return True


class SystemHost:
    """The machine this program runs on."""

    # Of the process: all its nodes run on one machine.
    _chance: ClassVar[str] = ""

    def identity(self) -> HostIdentity:
        here = this_host()
        return replace(here, machine_id=marked(here.machine_id, self._chance)) if self._chance else here

    def process(self) -> ProcessIdentity:
        return this_process()

    def doubt(self) -> None:
        SystemHost._chance = f"{kernel_random.below(1 << 64):016x}"  # anew: an image may hold the last one

    def alive(self, process: ProcessIdentity) -> bool:
        return alive(process)

    def capacity(self) -> Capacity:
        return Capacity(hardware.cpus(), hardware.memory_mb() or 0, hardware.gpus())

    def load(self, path: str) -> Load:
        return Load(hardware.load1(), hardware.memory_available_mb(), hardware.disk_free_mb(path))

    def battery(self) -> hardware.Battery | None:
        return hardware.battery()


@dataclass(slots=True)
class FakeMachine:
    """A machine of the simulator: its resources, load and processes. All may be set."""

    identity: HostIdentity
    capacity: Capacity = Capacity(cpus=4, mem_mb=8192, gpus=0)
    load: Load = Load(load1=0.0, mem_available_mb=8192, disk_free_mb=100_000)
    battery: hardware.Battery | None = None
    running: set[ProcessIdentity] = field(default_factory=set)
    started: int = 0
    boots: int = 1


class FakeHost:
    """The `Host` of one process on a machine that exists only in memory."""

    def __init__(self, hostname: str = "host", *, machine: FakeMachine | None = None) -> None:
        spaces = _INITIAL_PID_NAMESPACE, _INITIAL_TIME_NAMESPACE
        self.machine = machine or FakeMachine(
            HostIdentity(hostname, f"machine-{hostname}", f"boot-{hostname}-1", *spaces)
        )
        self.machine.started += 1
        self._process = ProcessIdentity(100 + self.machine.started, self.machine.started)
        self.machine.running.add(self._process)

    def identity(self) -> HostIdentity:
        return self.machine.identity

    def process(self) -> ProcessIdentity:
        return self._process

    def doubt(self) -> None:
        machine = self.machine
        other = marked(machine.identity.machine_id, f"{kernel_random.below(1 << 64):016x}")
        machine.identity = replace(machine.identity, machine_id=other)

    def alive(self, process: ProcessIdentity) -> bool:
        if process.start_time is None:
            return any(process.pid == other.pid for other in self.machine.running)
        return process in self.machine.running

    def capacity(self) -> Capacity:
        return self.machine.capacity

    def load(self, path: str) -> Load:
        del path  # A machine in memory has one disk.
        return self.machine.load

    def battery(self) -> hardware.Battery | None:
        return self.machine.battery

    def another(self) -> FakeHost:
        """A further process, just started on the same machine."""
        return FakeHost(machine=self.machine)

    def die(self) -> None:
        """This process ends; the machine goes on."""
        self.machine.running.discard(self._process)

    def reboot(self) -> None:
        """Every process on the machine ends, and the next ones start in another boot, with the same numbers again."""
        machine = self.machine
        machine.boots += 1
        machine.identity = replace(machine.identity, boot_id=f"boot-{machine.identity.hostname}-{machine.boots}")
        machine.running.clear()
        machine.started = 0


def _state_and_start(pid: int) -> tuple[str, int] | None:
    """The state letter and the start in ticks, fields 3 and 22 of proc(5)'s stat; None if it cannot be read."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            # The name before them is in parentheses, and may itself contain spaces and parentheses.
            fields = file.read().rpartition(b")")[2].split()
        state, started = fields[0].decode("ascii"), int(fields[19])
        return (state, started) if 0 <= started < 1 << 63 else None
    except (OSError, IndexError, ValueError):
        return None


def _namespace(kind: str) -> str:
    """The number of this process's namespace of a kind; '' where there is none, or it cannot be read."""
    try:
        return os.readlink(f"/proc/self/ns/{kind}").removeprefix(f"{kind}:[").removesuffix("]")
    except OSError:
        return ""


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.readline(_LINE_MAX).strip()
    except (OSError, ValueError):
        return ""


def _hashed(machine_id: str) -> str:
    return hashlib.blake2b(machine_id.encode(), digest_size=16, person=b"spoold").hexdigest()


# Nodes that ran on this machine before: each leaves a file in the folder that systemd keeps when a unit restarts.
#
# An image of a machine's memory holds no trace of a node that began later. So a trace proves that its node ran on
# this very machine, and not on one that was resumed from the same image. Without such a folder there are none.


# Set by systemd for `RuntimeDirectory=`; RuntimeDirectoryPreserve=restart keeps it.
FOLDER = "RUNTIME_DIRECTORY"


def succeed(node: str) -> set[str]:
    """Leave this node's trace; return the nodes whose traces were there, which are removed. Never raises OSError."""
    folder = os.environ.get(FOLDER, "")
    found = set[str]()
    if not os.path.isabs(folder):
        return found
    with contextlib.suppress(OSError):
        found = {name for name in os.listdir(folder) if name != node}
        for name in found:
            with contextlib.suppress(OSError):  # what a task put there must not keep this node from leaving its own
                os.unlink(os.path.join(folder, name))
        os.close(os.open(os.path.join(folder, node), os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    return found
