"""Where spoold stands beside a peer, ahead, level or behind, and what about the peer makes it so.

Law: it is judged by the ratios of runs that stood next to one another, and by nothing else. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence

ABOVE, BELOW = 1.1, 0.9
# By the name of a contender, without what follows a comma. Of what each does for a task, not of how fast that is.
REASONS = {
    "the ceiling": "The bare calls of the protocol: no lease, heartbeat, retry or log, no supervised process.",
    "huey": "No leader, and no retry when a worker dies. Its file queue is listed and sorted anew for each task.",
    "kombu": "Only messages: no leader and no results. Its folder is listed and sorted anew for each message.",
    "celery": "Threads of its workers call the function. Its folder is listed and sorted anew for each message.",
    "dirq": "Only a queue: no admission, no priorities, no results, no retry.",
    "jug": "No leader and no moves: one lock and one result for each task, and the worker itself calls the function.",
    "HyperQueue": "A server keeps all tasks in its memory and sends them over TCP. It leaves no file for each task.",
    "nq": "No leader, no results, no retry, no limits: one fork and one lock for each task.",
}


def position(samples: Sequence[float]) -> str:
    """ahead, level or behind, for the ratios of several rounds. Level also where some are above 1 and some below."""
    middle = statistics.median(samples)
    if middle > ABOVE and min(samples) > 1:
        return "ahead"
    if middle < BELOW and max(samples) < 1:
        return "behind"
    return "level"


def peer(label: str) -> str:
    """The name of a contender by the label of one of its entries: "jug" for "jug, fsync"."""
    return label.partition(",")[0]
