"""runner/sweep: the last resort: kills the processes that a dead predecessor left on this host.

Law: only processes that carry every given environment variable with exactly the given value, and their
descendants, are touched; never this process or its ancestors. Supervisors and the service manager normally
leave nothing to find. This room may read all of /proc through psutil, and kill.

Touches: processes, the clock.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import psutil

_PATIENCE_S = 5.0


def sweep(marker: Mapping[str, str]) -> int:
    """Kill all processes that were started with this environment, and their descendants; return their number.

    Goes on until a look finds nothing, for at most 5 s. An empty marker would mean every process, so it is a
    ValueError. Skips processes that we may not see or kill.
    """
    if not marker:
        raise ValueError("a sweep needs something to recognise processes by")
    killed: set[psutil.Process] = set()
    until = time.monotonic() + _PATIENCE_S
    while found := _marked(marker):
        for process in found:
            try:
                process.kill()
                killed.add(process)
            except psutil.Error:
                continue
        psutil.wait_procs(found, timeout=0.2)
        if time.monotonic() > until:
            break
    return len(killed)


def _marked(marker: Mapping[str, str]) -> set[psutil.Process]:
    """Return the living processes that carry the marker, and their descendants."""
    own = psutil.Process()
    kin = {own, *own.parents()}
    found: set[psutil.Process] = set()
    for process in psutil.process_iter():
        try:
            if process in kin or process.status() == psutil.STATUS_ZOMBIE:
                continue
            environment = process.environ()
            if all(environment.get(name) == text for name, text in marker.items()):
                found |= {process, *process.children(recursive=True)}
        except psutil.Error:
            continue
    return {process for process in found - kin if process.is_running()}
