"""spoold's executor: `SpoolExecutor.map` with a chunksize, against a real `spool master` with real `spool worker`s.

Time is counted from when all is submitted until the program has the last result, in order: admission is in it.
Touches: its folder, processes.
"""

from __future__ import annotations

import time
from itertools import repeat

from spoold import SpoolExecutor
from tools.benchmark import ledger
from tools.benchmark.cluster import Cluster
from tools.benchmark.contenders.spoold import costs, used, warm
from tools.benchmark.order import Order, Outcome, serve
from tools.benchmark.workload import noop


def run(order: Order) -> Outcome:
    """All calls as one `map`; a call whose result does not come in its place is lost."""
    names = tuple(f"w{number}" for number in range(order.workers))
    with Cluster(order.folder, names, fsync=order.fsync, slots=order.slots) as cluster, cluster.client() as spool:
        warm(spool, order)
        before = used(cluster)
        began = time.monotonic()
        came = 0
        with SpoolExecutor(spool) as pool:
            folders = repeat(order.ledger, order.tasks)
            results = pool.map(noop, folders, range(order.tasks), timeout=order.bound_s, chunksize=order.chunk)
            since = time.monotonic()
            try:
                came = sum(number == place for place, number in enumerate(results))
                lost = order.tasks - came
            except TimeoutError:
                lost = 0  # it was cut off, and what has not ended is not lost
            seconds = time.monotonic() - since
        done = came or ledger.count(order.ledger)
        more = costs(cluster, before, done // order.chunk)
    doubled = ledger.lost_and_doubled([number for number, _ in ledger.read(order.ledger)], order.tasks)[1]
    return Outcome(done / seconds, done, seconds, order.tasks / (since - began), lost, doubled, more=more)


if __name__ == "__main__":
    serve(run)
