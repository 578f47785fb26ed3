"""What a hostile task does to its own processes, and to those that hold it.

Law: no other process gets a signal.

Touches: files, processes, threads, the clock.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import threading
import time

from tools.hostility.leaving import growing
from tools.hostility.world import World, deed, left_behind

CLONE_NEWPID, PR_SET_NAME, PR_SET_CHILD_SUBREAPER, PTRACE_TRACEME, SYS_EXIT = 0x20000000, 15, 36, 0, 60
# What holds a task, by the names of its processes.
HOLDERS = ("task-launcher", "task-supervisor")


@deed
def daemons(world: World) -> None:
    """Leave processes in sessions of their own, that take no signal but the last one."""
    del world

    def stay() -> None:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        time.sleep(600)

    for _ in range(5):
        left_behind(stay)


@deed
def forks(world: World) -> None:
    """Fork on and on, as far as a bound."""
    del world

    def fork_and_stay() -> None:
        for _ in range(6):
            os.fork()
        time.sleep(600)

    left_behind(fork_and_stay)


@deed
def stopped(world: World) -> None:
    """Stop a process of its own, or itself, as a debugger does."""
    if world.chance.random() < 0.5:
        left_behind(lambda: os.kill(os.getpid(), signal.SIGSTOP))
    else:
        left_behind(lambda: signal.raise_signal(signal.SIGTSTP))


@deed
def own_reaper(world: World) -> None:
    """Leave processes below one that adopts them, under names that look like the end of a line of /proc."""
    libc, name = (
        ctypes.CDLL(None),
        world.chance.choice((b") S 1 1 1", b"(((", b"\n) Z 0", b"task-supervisor", b"\xff ")),
    )

    def adopt() -> None:
        libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        libc.prctl(PR_SET_NAME, name, 0, 0, 0)
        for _ in range(3):
            left_behind(lambda: time.sleep(600))
        time.sleep(600)

    left_behind(adopt)
    time.sleep(0.2)


@deed
def leaderless(world: World) -> None:
    """Leave a process whose first thread has ended, while another goes on."""
    del world

    def end_the_first() -> None:
        threading.Thread(target=time.sleep, args=(600,)).start()
        ctypes.CDLL(None).syscall(SYS_EXIT, 0)

    left_behind(end_the_first)


@deed
def own_namespace(world: World) -> None:
    """Leave processes in a namespace in which they have other numbers (for root)."""
    if ctypes.CDLL(None).unshare(CLONE_NEWPID) == 0:
        for _ in range(world.chance.choice((1, 3))):
            left_behind(lambda: time.sleep(600))


@deed
def traced(world: World) -> None:
    """Leave a process that is stopped by its tracer, and children that nobody waits for."""
    del world

    def trace() -> None:
        for number in range(50):
            if os.fork() == 0:
                if number:
                    os._exit(0)
                ctypes.CDLL(None).ptrace(PTRACE_TRACEME, 0, 0, 0)
                signal.raise_signal(signal.SIGSTOP)
        time.sleep(600)

    left_behind(trace)
    time.sleep(0.2)


@deed
def group_signalled(world: World) -> None:
    """Send a signal to all of its own process group."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    left_behind(lambda: time.sleep(600))
    os.killpg(0, world.chance.choice((signal.SIGUSR1, signal.SIGCONT, signal.SIGURG, signal.SIGWINCH)))


@deed
def streams_closed(_: World) -> None:
    """Close its streams and go on."""
    for number in (0, 1, 2):
        with contextlib.suppress(OSError):
            os.close(number)


@deed
def supervisor_killed(world: World) -> None:
    """Kill or stop what holds it, and leave processes."""
    holders, pid = [], os.getppid()
    while (above := _holder(pid)) is not None:
        holders.append(pid)
        pid = above
    number = world.chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM, signal.SIGSTOP))
    for work in world.chance.sample((daemons, forks, growing, stopped, own_reaper), world.chance.choice((0, 1, 2))):
        work(world)
    for holder in world.chance.choice((holders, holders[:1], holders[1:], holders[::-1])):
        os.kill(holder, number)
    time.sleep(world.chance.choice((0, 1)))


def _holder(pid: int) -> int | None:
    """Return the parent of a process that holds the task; None for another process."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        name, _, rest = file.read().partition("(")[2].rpartition(")")
    return int(rest.split()[1]) if name in HOLDERS else None


@deed
def limits_lowered(_: World) -> None:
    """Take from itself what processes need."""
    import resource

    for limit in (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE):
        resource.setrlimit(limit, (8, 8))
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")
