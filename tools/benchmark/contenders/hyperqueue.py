"""HyperQueue, one process for each task: its server and one worker of as many cores as others have workers.

Its wheel has no `hq` program; server and worker are the same Rust code, started through its Python interface.
"""

from __future__ import annotations

import os
import time

from hyperqueue import Job, LocalCluster  # type: ignore[import-not-found, import-untyped, unused-ignore]
from hyperqueue.cluster import WorkerConfig  # type: ignore[import-not-found, import-untyped, unused-ignore]

from tools.benchmark.order import Order, Outcome, serve


def run(order: Order) -> Outcome:
    """One job of many tasks whose output goes nowhere; counted from its submission to the end of its last task.

    Waiting for a job asks once a second; so its last task, by priority, leaves a file instead.
    """
    folder, ended = os.path.join(order.folder, "hq"), os.path.join(order.folder, "ended")
    os.makedirs(folder)
    with LocalCluster(folder, worker_config=WorkerConfig(cores=order.workers)) as cluster:
        client = cluster.client()
        warm = Job()
        _add(warm, "/bin/true")
        client.wait_for_jobs([client.submit(warm)])
        job = Job()
        for _ in range(order.tasks - 1):
            _add(job, "/bin/true")
        _add(job, "/bin/touch", ended, priority=-1)
        began = time.monotonic()
        submitted = client.submit(job)
        filled = time.monotonic()
        while not os.path.exists(ended) and time.monotonic() - began < GIVE_UP_S:
            time.sleep(0.002)
        seconds = time.monotonic() - began
        whole = client.wait_for_jobs([submitted], raise_on_error=False)
    return Outcome(order.tasks / seconds, order.tasks, seconds, order.tasks / (filled - began), 0 if whole else 1)


GIVE_UP_S = 300.0


def _add(job: Job, *command: str, priority: int = 0) -> None:
    job.program(list(command), stdout=None, stderr=None, priority=priority)


if __name__ == "__main__":
    serve(run)
