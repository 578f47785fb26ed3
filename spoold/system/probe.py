"""How big this machine is for this process, and how busy.

Law: the container's share counts, not the machine's total: the smallest of hardware, affinity and cgroup limits.
Nothing here raises. An absent limit is none. A file of /proc or /sys that cannot be read, or holds something else (a
dead lxcfs, ProcSubset=pid), makes its figure unknown: None. Touches /proc, /sys, psutil and nvidia-smi.

Touches: files, processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TypeVar

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
