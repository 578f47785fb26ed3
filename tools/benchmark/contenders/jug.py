"""jug on its file store: a jugfile with all the tasks, and one `jug execute` for each worker.

Touches: its folder, processes of jug's own command.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time

from tools.benchmark import draining
from tools.benchmark.order import Order, Outcome, serve

# fsync is taken out where nobody waits for the disk, as it is for everybody else. numpy is not installed, and jug
# would look for it in every directory of sys.path, once for each argument of each task.
BEGIN = """
import os, sys
sys.modules.setdefault("numpy", None)
if not {fsync!r}:
    os.fsync = lambda fd: None
"""
JUGFILE = """
from jug import Task
from tools.benchmark.workload import noop
for number in range({tasks}):
    Task(noop, {folder!r}, number)
"""
# Its own way to put many calls into one task.
CHUNKS = """
from jug import mapreduce
from tools.benchmark.workload import noop_of
mapreduce.map(noop_of, [({folder!r}, number) for number in range({tasks})], map_step={chunk})
"""
# Without its own waits: it would rest a while where another process is faster.
OPTIONS = ("--wait-cycle-time=0", "--nr-wait-cycles=1", "--aggressive-unload")


def run(order: Order) -> Outcome:
    """As ordered; there is nothing to fill, since a jugfile is its own backlog."""
    path = os.path.join(order.folder, "jugfile.py")
    with open(path, "w", encoding="utf-8") as file:
        text = BEGIN + (JUGFILE if order.chunk == 1 else CHUNKS)
        file.write(text.format(fsync=order.fsync, tasks=order.tasks, folder=order.ledger, chunk=order.chunk))
    command = [sys.executable, "-P", "-c", "from jug.jug import main; main()", "execute", *OPTIONS]
    command += [f"--jugdir={order.folder}/jugdata", path]
    workers = [_start(order, command) for _ in range(order.workers)]
    began = time.monotonic()
    try:
        draining.watch(order)
    finally:
        draining.stop(workers)
    return draining.told(order, order.tasks / max(time.monotonic() - began, 1e-9))


def _start(order: Order, command: list[str]) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        command, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True, cwd=order.folder
    )


if __name__ == "__main__":
    serve(run)
