"""How big this machine is for this process, how busy, the state of its battery; and keeping it awake while tasks run.

Law: the container's share counts, not the machine's total: the smallest of hardware, affinity and cgroup limits.
Nothing here raises. An absent limit is none. A file of /proc or /sys that cannot be read, or holds something else (a
dead lxcfs, ProcSubset=pid), makes its figure unknown: None. A machine without a battery, without systemd, or whose
policy refuses, works on all the same: an impossible action is reported once, in words. Touches /proc, /sys, psutil,
nvidia-smi and systemd-inhibit.

Touches: files, processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol, TypeVar

_T = TypeVar("_T")
_Real = TypeVar("_Real", int, float)
_DIGITS = 20  # of 2^64

MIB = 1 << 20
_CGROUPS = "/sys/fs/cgroup"
_GPU_TIMEOUT = 2.0


def cpus() -> float:
    """CPUs that this process may use: affinity, and the tightest cgroup v2 quota above it. At least 0.1."""
    count = float(len(os.sched_getaffinity(0)))
    for limit in _cgroup_values("cpu.max"):
        quota, _, period = limit.partition(" ")
        with suppress(ValueError, ZeroDivisionError, OverflowError):
            count = min(count, int(quota) / int(period))
    return max(round(count, 2), 0.1)


# A figure above these (MiB) is a file system's or the kernel's word for "unknown"; no heartbeat can hold it.
_MEMORY_MAX_MB, _DISK_MAX_MB, _LOAD_MAX = 10**9, 10**15, 1e9


def known(ask: Callable[[], _T]) -> _T | None:
    """The answer; None if it raises. psutil raises IndexError, KeyError, TypeError and more for files of the kernel
    that hold something else than it expects.
    """
    try:
        return ask()
    except Exception:  # noqa: BLE001  a figure that cannot be had is unknown, and never the end of a node
        return None


def memory_mb() -> int | None:
    """Memory in MiB that this process may use: the machine's, or the tightest cgroup v2 limit above it."""
    import psutil

    # sysinfo(2), behind sysconf, answers without /proc.
    total = known(lambda: psutil.virtual_memory().total) or known(
        lambda: os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    )
    sizes = [total, *map(_number, _cgroup_values("memory.max"))]
    return _possible(min((size // MIB for size in sizes if size), default=None), _MEMORY_MAX_MB)


def memory_available_mb() -> int | None:
    """Memory in MiB that could be taken now without swapping, within the cgroup limits above this process."""
    import psutil

    available = known(lambda: psutil.virtual_memory().available)
    room = [] if available is None else [available]
    for limit, used in zip(_cgroup_values("memory.max"), _cgroup_values("memory.current"), strict=False):
        most, now = _number(limit), _number(used)
        if most is not None and now is not None:
            room.append(max(most - now, 0))
    return _possible(min(room) // MIB if room else None, _MEMORY_MAX_MB)


def disk_free_mb(path: str) -> int | None:
    """Room in MiB for an ordinary user where `path` lies. Blocks as the disk does."""
    import psutil

    return _possible(known(lambda: psutil.disk_usage(path).free // MIB), _DISK_MAX_MB)


def load1() -> float | None:
    """Processes that ran or waited for a CPU or a disk, averaged over the last minute."""
    return _possible(known(lambda: os.getloadavg()[0]), _LOAD_MAX)


def gpus() -> int:
    """NVIDIA GPUs that answer: as many as `nvidia-smi -L` names within 2 s; 0 without driver or answer."""
    try:
        listing = subprocess.Popen(
            ["nvidia-smi", "-L"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
    except OSError:
        return 0
    try:
        output, _ = listing.communicate(timeout=_GPU_TIMEOUT)
    except subprocess.TimeoutExpired:
        # A GPU that fell off its bus leaves nvidia-smi in a sleep that no signal ends: wait, but not for ever.
        listing.kill()
        with suppress(subprocess.TimeoutExpired):
            listing.communicate(timeout=_GPU_TIMEOUT)
        return 0
    if listing.returncode != 0:
        return 0
    return sum(line.startswith(b"GPU ") for line in output.splitlines())


def _possible(figure: _Real | None, most: float) -> _Real | None:
    """The figure if a machine can have it, else None."""
    return figure if figure is not None and 0 <= figure <= most else None


def _number(text: str) -> int | None:
    """A whole number that the kernel wrote; None for "max", and for anything else."""
    return int(text) if text.isdecimal() and len(text) <= _DIGITS else None


def _cgroup_values(name: str) -> Iterator[str]:
    """The contents of the file `name` in this process's cgroup (v2) and in each one above it, '' if it has none."""
    path = ""
    with suppress(OSError), open("/proc/self/cgroup", encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            if line.startswith("0::/"):
                path = line[4:].strip()
    parts = path.split("/") if path else []
    for depth in range(len(parts), -1, -1):
        try:
            with open("/".join([_CGROUPS, *parts[:depth], name]), encoding="ascii") as file:
                yield file.read().strip()
        except (OSError, ValueError):
            yield ""


# The machine's power: its battery, and keeping it awake while tasks run.


WHAT = "sleep:idle:handle-lid-switch"
_END_S = 2.0


@dataclass(frozen=True, slots=True)
class Battery:
    """plugged: whether it is on mains; percent: its charge. None if the driver does not say."""

    plugged: bool | None = None
    percent: float | None = None


def battery() -> Battery | None:
    """The battery of this machine; None if it has no readable one."""
    import psutil

    # A driver in mid-change writes anything, and not each system has a reader in psutil.
    found = known(lambda: psutil.sensors_battery())  # noqa: PLW0108  the name itself may be missing
    return None if found is None else Battery(found.power_plugged, found.percent)


class Inhibitor(Protocol):
    """Keeps the machine awake. None of the methods raises."""

    def hold(self) -> None:
        """Keep the machine awake from now on. Cheap enough to be called at every step."""
        ...

    def release(self) -> None:
        """Stop keeping it awake."""
        ...

    @property
    def trouble(self) -> str | None:
        """Why the machine cannot be kept awake; None as far as is known."""
        ...


class SystemInhibitor:
    """A lock of systemd-logind, held by a child that ends with this process, however it ends.

    The child is `systemd-inhibit … cat`, and `cat` reads a pipe that only this process holds open: when the kernel
    closes it, even after SIGKILL, the lock is gone as well. A refusal is final for this process, since it comes from
    a policy that a person has to change.
    """

    def __init__(self, program: str = "systemd-inhibit", why: str = "spoold runs tasks") -> None:
        self._program = program
        self._command = [program, f"--what={WHAT}", "--who=spoold", f"--why={why}", "--mode=block", "cat"]
        self._child: subprocess.Popen[bytes] | None = None
        self._trouble: str | None = None

    @property
    def trouble(self) -> str | None:
        return self._trouble

    def hold(self) -> None:
        if self._child is not None:
            self._look(self._child)
        elif self._trouble is None:
            self._start()

    def release(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            _end(child)

    def _start(self) -> None:
        try:
            # A group of its own, in our session: Ctrl-C is for us, and our own child is not an orphan of a task.
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                process_group=0,
            )
        except OSError as error:
            self._trouble = f"sleep cannot be inhibited: {self._program}: {error.strerror}"

    def _look(self, child: subprocess.Popen[bytes]) -> None:
        """Note the refusal if the child ended by itself; its last words are the reason."""
        if child.poll() is None:
            return
        assert child.stderr is not None
        os.set_blocking(child.stderr.fileno(), False)
        said = (child.stderr.read() or b"").decode(errors="replace").strip().splitlines()
        why = said[-1] if said else f"it ended with status {child.returncode}"
        self._trouble = f"sleep cannot be inhibited: {self._program}: {why}"
        self.release()


def _end(child: subprocess.Popen[bytes]) -> None:
    """Close the pipe and wait for the child's end; kill a child that does not end, so that no lock stays."""
    assert child.stdin is not None
    assert child.stderr is not None
    with suppress(OSError):
        child.stdin.close()
    try:
        child.wait(_END_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stderr.close()
