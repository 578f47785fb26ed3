"""runner/boot: how a process becomes a supervisor, and what is left when it has served.

Law: it goes by its worker's orders alone, not by signals that were meant for the worker, and it leaves no control
group. The supervisor loads it: kept small.
"""

from __future__ import annotations

import os
import signal

from spoold.runner import tree
from spoold.runner.freezer import Room
from spoold.runner.supervisor import Supervisor


def main(worker: int, where: str) -> None:
    """Serves the worker with this pid, whose wire is standard input. where: its control group, '' for none."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        # Whoever signals a whole group or unit means the worker, which will tell us what to do.
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    tree.become_subreaper()
    tree.wake_with_parent()
    tree.set_name("task-supervisor")
    control = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    room = Room(where, worker, os.getpid())
    room.open()
    try:
        Supervisor(control, worker, room).serve()
    finally:
        room.clear()
