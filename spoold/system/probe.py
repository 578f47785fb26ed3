"""How big this machine is for this process, and how busy.

Law: the container's share counts, not the machine's total: the smallest of hardware, affinity and cgroup limits.
Nothing here raises for a missing file or tool; absent means unlimited, or none. Touches /proc, /sys, psutil and
nvidia-smi.

Touches: files, processes.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress

MIB = 1 << 20
_CGROUPS = "/sys/fs/cgroup"
_GPU_TIMEOUT = 2.0


def cpus() -> float:
    """CPUs that this process may use: affinity, and the tightest cgroup v2 quota above it. At least 0.1."""
    count = float(len(os.sched_getaffinity(0)))
    for limit in _cgroup_values("cpu.max"):
        quota, _, period = limit.partition(" ")
        with suppress(ValueError, ZeroDivisionError):
            count = min(count, int(quota) / int(period))
    return max(round(count, 2), 0.1)


def memory_mb() -> int:
    """Memory in MiB that this process may use: the machine's, or the tightest cgroup v2 limit above it."""
    import psutil

    limits = [int(limit) for limit in _cgroup_values("memory.max") if limit.isdecimal()]
    return int(min([psutil.virtual_memory().total, *limits]) // MIB)


def memory_available_mb() -> int:
    """Memory in MiB that could be taken now without swapping, within the cgroup limits above this process."""
    import psutil

    room = [psutil.virtual_memory().available]
    for limit, used in zip(_cgroup_values("memory.max"), _cgroup_values("memory.current"), strict=False):
        if limit.isdecimal() and used.isdecimal():
            room.append(int(limit) - int(used))
    return int(max(min(room), 0) // MIB)


def disk_free_mb(path: str) -> int:
    """Room in MiB for an ordinary user where `path` lies; 0 if unknown. Blocks as the disk does."""
    try:
        import psutil

        return int(psutil.disk_usage(path).free // MIB)
    except OSError:
        return 0


def load1() -> float:
    """Processes that ran or waited for a CPU or a disk, averaged over the last minute."""
    return os.getloadavg()[0]


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
