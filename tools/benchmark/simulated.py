"""Real workers on a real spool that run nothing: `Worker.step` in a loop, several workers in one process.

python -m tools.benchmark.simulated ROOT PREFIX WORKERS SLOTS   until standard input ends
"""

from __future__ import annotations

import select
import sys

from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Capabilities
from spoold.store.store import open_store
from spoold.system.clock import SystemClock
from spoold.system.host import SystemHost
from spoold.system.posix import PosixFileSystem
from spoold.system.scratch import MemoryScratch
from spoold.worker.handlers.worker_config import WorkerConfig
from spoold.worker.worker import Worker
from tools.benchmark.runner import InstantRunner

REST_S = 0.002


def make_worker(root: str, name: str, slots: int, runner: InstantRunner) -> Worker:
    """A worker that serves every Python callable, registered. Errors: Unavailable, OSError."""
    store = open_store(PosixFileSystem(root), SystemClock(), name, root)
    config = WorkerConfig.model_validate({"python": {"allow": ["*"]}})
    can = Capabilities(cpus=max(8.0, float(slots)), mem_mb=1 << 20, python=("*",))
    worker = Worker(store, SystemHost(), runner, MemoryScratch(), config, can, slots, root=root, environ={})
    worker.register()
    return worker


def main() -> None:
    """Step all of them in turn; rest a little where none was busy."""
    root, prefix, count, slots = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    workers = [make_worker(root, f"{prefix}{number}", slots, InstantRunner()) for number in range(count)]
    print("ready", flush=True)
    leave = False
    while not leave:
        try:
            busy = sum(worker.step().busy for worker in workers) > 0
        except ShutOut as error:
            sys.exit(f"taken for dead: {error}")
        leave = bool(select.select([sys.stdin], [], [], 0.0 if busy else REST_S)[0])
    for worker in workers:
        worker.close()


if __name__ == "__main__":
    main()
