"""runner/process_tree: finds all processes below a process, and ends them.

Law: a look at /proc is never the whole truth, because processes fork during it; so killing is repeated until two
looks in a row find nothing, or until the kernel itself says that there is no child left.
This room may touch /proc, prctl(2) and signals. It is loaded by the slot supervisor, which has to start in
milliseconds and stay small: hence no psutil, no dataclasses, no typing. Where /proc or prctl is missing (not
Linux) every look is empty, every prctl answers False, and callers fall back to process groups.

Touches: files, processes, the clock.
"""

from __future__ import annotations

import ctypes
import os
import signal
import time
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

AVAILABLE = os.path.exists("/proc/self/stat")
_CHILDREN_LISTED = os.path.exists("/proc/thread-self/children")
_PAGE = os.sysconf("SC_PAGE_SIZE")
_ROLLUP = "/proc/{}/smaps_rollup"

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_NAME = 1, 4, 15
_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
# Looked up once, before any fork: a child between fork and exec should do as little as possible.
_prctl = getattr(ctypes.CDLL(None, use_errno=True), "prctl", None)


def become_subreaper() -> bool:
    """Make this process adopt its orphaned descendants; False where the system cannot do that."""
    return _prctl is not None and _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def is_subreaper() -> bool:
    """Return whether this process, instead of init, adopts its orphaned descendants."""
    answer = ctypes.c_int(0)
    done = _prctl is not None and _prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(answer), 0, 0, 0) == 0
    return done and answer.value == 1


def conceal() -> bool:
    """Keep this user's other processes from reading this process's environment and memory; root still may.

    Also prevents core dumps. Lasts until the next exec. False where the system cannot do that.
    """
    return _prctl is not None and _prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) == 0


def die_with_parent(parent: int) -> None:
    """Ask for SIGKILL when the parent's calling thread ends. Only sound if the parent is single-threaded."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        # The parent died before the request was made, so the signal would never come.
        os._exit(1)


def wake_with_parent() -> None:
    """Ask for SIGCONT when the parent's calling thread ends: a stopped process then sees the end. The signal does no
    harm to a process that runs, or whose parent lives on without that thread."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(signal.SIGCONT), 0, 0, 0)


def watch_parent(parent: int) -> int | None:
    """Return a descriptor that is readable at the parent's death, even if a fork of it holds all its wires open."""
    try:
        descriptor = os.pidfd_open(parent)
    except (AttributeError, OSError):
        return None
    if os.getppid() == parent:
        return descriptor
    os.close(descriptor)  # The parent is gone already, and another process may have its pid.
    return None


def set_name(name: str) -> None:
    """Name this process for `ps` and `top`, with at most 15 bytes."""
    if _prctl is not None:
        _prctl(_PR_SET_NAME, name.encode(), 0, 0, 0)


class Seen:
    """One process as /proc showed it. `alive`: not a zombie; `rss` in bytes, `started` in ticks since boot."""

    __slots__ = ("alive", "group", "parent", "pid", "rss", "session", "started", "state")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.parent = int(fields[1])
        self.group = int(fields[2])
        self.session = int(fields[3])
        self.state = fields[0]
        self.started = int(fields[19])
        # A leader that left its threads running is shown as a zombie, yet the process lives.
        self.alive = fields[0] not in (b"Z", b"X") or int(fields[17]) > 1
        self.rss = int(fields[21]) * _PAGE


def look(pid: int) -> Seen | None:
    """Return the process as it is now, or None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb", buffering=0) as file:
            raw = file.read(2048) or b""
        # The command name may hold blanks and parentheses, so counting starts after the last parenthesis.
        return Seen(pid, raw[raw.rindex(b")") + 2 :].split())
    except (OSError, ValueError, IndexError):
        return None


def share_of(pids: Iterable[int]) -> tuple[int, int]:
    """Return how many bytes these processes hold, with each shared page divided among its processes; and how many of
    them count with their full resident size, since the kernel shows no more.

    The time grows with their size, and the call waits while one of them changes its memory.
    """
    share = unread = 0
    for pid in pids:
        own = _share(pid)
        if own is None:
            seen = look(pid)
            own = seen.rss if seen is not None else 0
            unread += own > 0
        share += own
    return share, unread


def _share(pid: int) -> int | None:
    try:
        with open(_ROLLUP.format(pid), "rb", buffering=0) as file:
            raw = file.read(8192) or b""
        return int(raw[raw.index(b"\nPss:") + 5 :].split(None, 1)[0]) << 10
    except (OSError, ValueError, IndexError):
        return None


def children(pid: int) -> list[Seen]:
    """Return the direct children of a process, zombies included."""
    if not AVAILABLE:
        return []
    if not _CHILDREN_LISTED:
        everybody = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
        return [seen for seen in everybody if seen is not None and seen.parent == pid]
    found: list[Seen] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += [seen for seen in map(look, map(int, file.read().split())) if seen is not None]
    except (OSError, ValueError):
        pass  # It ended during the look; the next look finds its children under its reaper.
    return found


def watch_children() -> int | None:
    """Return a descriptor for `only`, in a process of one thread; None where the system has none."""
    try:
        return os.open("/proc/thread-self/children", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None


def only(watched: int | None, pids: Iterable[int]) -> bool:
    """Return whether exactly these are the children of this process, zombies included. False where unknown."""
    if watched is None:
        return False
    try:
        return sorted(map(int, os.pread(watched, 4096, 0).split())) == sorted(pids)
    except (OSError, ValueError):
        return False


def below(root: int) -> list[Seen]:
    """Return all descendants of a process, parents before children, zombies included."""
    found: dict[int, Seen] = {}
    queue = children(root)
    while queue:
        seen = queue.pop()
        if seen.pid not in found:
            found[seen.pid] = seen
            queue += children(seen.pid)
    return list(found.values())


def orphans(known: Iterable[int]) -> list[Seen]:
    """Return the descendants of this process through children that it adopted and did not start.

    A job and all its processes are outside this process's session; its own helpers stay in it. `known`: the children
    that it started in sessions of their own, which are not orphans.
    """
    adopted = [child for child in children(os.getpid()) if child.session != os.getsid(0)]
    adopted = [child for child in adopted if child.pid not in set(known)]
    return adopted + [seen for child in adopted for seen in below(child.pid)]


class OwnSize:
    """Separates a dead child's peak size from ours: until exec the child has our size, and the kernel counts that.

    Our size is read again when it may have changed. All sizes are in bytes.
    """

    _SLACK = 2 << 20

    def __init__(self) -> None:
        self._bound = 0

    def more(self, peak: int) -> int:
        """Return the peak if it is the child's own, else 0."""
        if peak > self._bound:
            own = look(os.getpid())
            self._bound = self._SLACK + (own.rss if own is not None else 0)
        return peak if peak > self._bound else 0


def send(found: Iterable[Seen], number: int) -> None:
    """Send a signal to each process once; skip those that are gone or that we may not signal."""
    for seen in found:
        with suppress(OSError):
            os.kill(seen.pid, number)


def _strike(found: list[Seen], spared_groups: set[int]) -> None:
    """Kill the processes found, and by process group also those forked since.

    Stops all of them first, so that two processes cannot restart each other.
    """
    groups = {seen.group for seen in found if seen.group > 1} - spared_groups
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for group in groups:
            with suppress(OSError):
                os.killpg(group, number)
        send(found, number)


def end(
    find: Callable[[], list[Seen]],
    reap: Callable[[], bool],
    spare: frozenset[int] = frozenset(),
    patience_s: float | None = None,
) -> list[int]:
    """Kill all processes that `find` finds, except `spare`, repeatedly until nothing is left.

    `reap` collects dead children and returns True if the kernel says that there is no child at all, which ends
    the search. Returns the pids that outlived `patience_s` seconds: a process in an uninterruptible system call, or
    one of another user. Without `patience_s` it never gives up.
    """
    give_up = None if patience_s is None else time.monotonic() + patience_s
    spared = [look(pid) for pid in spare]
    groups = {os.getpgrp()} | {seen.group for seen in spared if seen is not None}
    quiet, pause = 0, 0.0005
    while True:
        if reap():
            return []
        found = [seen for seen in find() if seen.alive and seen.pid not in spare]
        if not found:
            quiet += 1
            if quiet == 2:
                return []
            continue
        quiet = 0
        _strike(found, groups)
        if give_up is not None and time.monotonic() > give_up:
            return [seen.pid for seen in found]
        time.sleep(pause)
        pause = min(pause * 1.5, 0.2)
