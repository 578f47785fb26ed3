"""runner/sweep: the last resort: kills the processes that a dead predecessor left on this host.

Law: only processes that carry every given environment variable with exactly the given value, and their
descendants, are touched; never this process or its ancestors. Supervisors and the service manager normally
leave nothing to find. This room may read all of /proc, and kill.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from contextlib import suppress

from spoold.runner import tree

# For all looks; between two looks, at most, and between two questions whether the killed are gone.
_PATIENCE_S, _LOOK_S, _PAUSE_S = 5.0, 0.2, 0.002


def sweep(marker: Mapping[str, str]) -> int:
    """Kill all processes that were started with this environment, and their descendants; return their number.

    Goes on until a look finds nothing, for at most 5 s. An empty marker would mean every process, so it is a
    ValueError. Skips processes that we may not see or kill.
    """
    if not marker:
        raise ValueError("a sweep needs something to recognise processes by")
    wanted = {os.fsencode(f"{name}={text}") for name, text in marker.items()}
    killed: set[tuple[int, int]] = set()
    until = time.monotonic() + _PATIENCE_S
    while found := _marked(wanted):
        for seen in filter(_lives, found):
            with suppress(OSError):
                os.kill(seen.pid, signal.SIGKILL)
                killed.add((seen.pid, seen.started))
        again = time.monotonic() + _LOOK_S
        while any(map(_lives, found)) and time.monotonic() < again:
            time.sleep(_PAUSE_S)
        if time.monotonic() > until:
            break
    return len(killed)


def _marked(wanted: set[bytes]) -> list[tree.Seen]:
    """Return the living processes that carry the marks, and their descendants."""
    kin = _kin()
    found: dict[int, tree.Seen] = {}
    for pid in _everybody() - kin:
        seen = tree.look(pid) if wanted <= _environment(pid) else None
        if seen is not None and seen.alive:
            found |= {one.pid: one for one in (seen, *tree.below(pid))}
    return [seen for pid, seen in found.items() if pid not in kin and seen.alive]


def _everybody() -> set[int]:
    try:
        return {int(name) for name in os.listdir("/proc") if name.isdecimal()}
    except OSError:
        return set()


def _kin() -> set[int]:
    """Return this process and all above it."""
    kin, above = {os.getpid()}, os.getppid()
    while above > 0 and above not in kin:
        kin.add(above)
        seen = tree.look(above)
        above = seen.parent if seen is not None else 0
    return kin


def _environment(pid: int) -> set[bytes]:
    """Return the variables that a process was started with; none if they cannot be read."""
    try:
        with open(f"/proc/{pid}/environ", "rb", buffering=0) as file:
            return set(file.readall().split(b"\0"))
    except OSError:
        return set()


def _lives(seen: tree.Seen) -> bool:
    now = tree.look(seen.pid)
    return now is not None and now.alive and now.started == seen.started
