"""runner/supervisor_boot: turns a process into a supervisor, and cleans up when it has served.

Law: a supervisor obeys its worker's orders, not signals that were meant for the worker, and it leaves no control
group. The supervisor loads this file: kept small.

Touches: files, processes.
"""

from __future__ import annotations

import os
import signal

from spoold.runner import process_tree
from spoold.runner.freezer import Room
from spoold.runner.supervisor import Supervisor


def main(worker: int, where: str, python: str) -> None:
    """Serve the worker with this pid, whose wire is standard input. where: its control group, '' for none.
    python: the interpreter of calls."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        # A signal to a whole group or unit is meant for the worker, which then sends its orders.
        signal.signal(number, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    process_tree.conceal()  # a task must not find in here what those before it were given
    process_tree.become_subreaper()
    process_tree.wake_with_parent()
    process_tree.set_name("task-supervisor")
    control = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    room = Room(where, worker, os.getpid())
    room.open()
    try:
        Supervisor(control, worker, room, python).serve()
    finally:
        room.clear()
