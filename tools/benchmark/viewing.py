"""A program that looks at a spool through a view, and says what that costs.

    python -m tools.benchmark.viewing DIRECTORY SECONDS

Law: it runs in a process of its own, so that its memory and its CPU are those of the view. It prints one JSON object.

Touches: the clock, processes.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial

import psutil

from spoold import Spool
from spoold.client.view import Query, Watch

QUESTIONS = {
    "first page of all": Query(),
    "first page of one state": Query(states=("completed",)),
    "search in ids": Query(text="77"),
    "first page by id": Query(sort="id"),
    "two facets": Query(types=("review",), batches=("batch07",)),
}
ROUNDS = 5
MIB = 1 << 20


def main() -> None:
    """Look, and print."""
    root, seconds = sys.argv[1], float(sys.argv[2])
    me = psutil.Process()
    before = me.memory_info().rss
    with Spool(root) as spool:
        view = spool.view()
        began, used = time.monotonic(), time.process_time()
        with Watch(view, alone=True):
            while not (view.complete and view.settled):
                view.wait(view.version, 1.0)
            told = {"first look s": time.monotonic() - began, "first look CPU s": time.process_time() - used}
            told["tasks"] = sum(view.counts().values())
            time.sleep(3 * view.pause_s())
            used, began = time.process_time(), time.monotonic()
            time.sleep(seconds)
            told["at rest %"] = (time.process_time() - used) / (time.monotonic() - began) * 100
            for name, query in QUESTIONS.items():
                # Each page has another length: one that was asked for before is remembered.
                told[name] = _median_ms([partial(view.find, query, limit=100 + turn) for turn in range(ROUNDS)])
            told["reasons"] = _median_ms([view.reasons])
            told["memory MiB"] = me.memory_info().rss / MIB
            told["above a bare client MiB"] = (me.memory_info().rss - before) / MIB
    print(json.dumps(told))


def _median_ms(asks: Sequence[Callable[[], object]]) -> float:
    samples = []
    for ask in asks:
        began = time.monotonic()
        ask()
        samples.append((time.monotonic() - began) * 1000)
    return sorted(samples)[len(samples) // 2]


if __name__ == "__main__":
    main()
