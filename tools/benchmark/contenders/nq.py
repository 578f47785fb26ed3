"""nq: each task is a process of its own that waits for the files of those before it. One queue for each worker.

Touches: its folder, and processes that end with the last task.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from tools.benchmark.order import Order, Outcome, serve

# nq looks at every older file of its queue; -c removes those that ended well, so that it stays as fast as it can be.
SUBMIT = 'i=0; while [ "$i" -lt "$1" ]; do nq -c -q /bin/true || exit 1; i=$((i+1)); done; nq -q -w'

# The last file is removed a moment after its lock, which is what `nq -w` waits for.
LINGER_S = 2.0


def _left(queue: Path) -> int:
    """How many of its files are still there: tasks that did not end well, or not yet."""
    return sum(1 for _ in queue.glob(",*"))


def run(order: Order) -> Outcome:
    """Submit and run at once, since it has no workers to hold back; counted from first to last."""
    if shutil.which("nq") is None:
        return Outcome(missing="nq is not installed (Debian's package `nq`)")
    shares = [order.tasks // order.workers + (n < order.tasks % order.workers) for n in range(order.workers)]
    queues = [Path(order.folder, f"queue{number}") for number in range(order.workers)]
    began = time.monotonic()
    submitters = []
    for queue, share in zip(queues, shares, strict=True):
        queue.mkdir()
        environ = {**os.environ, "NQDIR": str(queue)}
        command = ["sh", "-c", SUBMIT, "sh", str(share)]
        submitters.append(subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, start_new_session=True))
    for submitter in submitters:
        submitter.wait()
    seconds = time.monotonic() - began
    while time.monotonic() - began < seconds + LINGER_S and any(_left(queue) for queue in queues):
        time.sleep(0.01)
    ended = order.tasks - sum(map(_left, queues))
    return Outcome(ended / seconds, ended, seconds, lost=order.tasks - ended)


if __name__ == "__main__":
    serve(run)
