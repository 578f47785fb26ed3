"""When tasks will have ended, by the leader's figures of how long tasks of their types take.

Law: for people; a guess that cannot be made is None, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

from spoold.protocol.lifecycle import ENDED
from spoold.rules.attempts.durations import eta_s
from spoold.store import snapshots
from spoold.store.locate import Located
from spoold.store.store import Store

Estimator = Callable[[Iterable[tuple[Located, str]]], tuple[float | None, str]]


def time_left(store: Store, tasks: Iterable[tuple[Located, str]]) -> tuple[float | None, str]:
    """Return in how many seconds these tasks will have ended at the earliest, each with its type; or None, and why.

    Errors: OSError.
    """
    return estimator(store)(tasks)


def estimator(store: Store) -> Estimator:
    """Return `time_left` for many questions; the leader's figures are read once, when they are first needed."""
    latest = cache(lambda: snapshots.latest(store.fs))

    def estimate(tasks: Iterable[tuple[Located, str]]) -> tuple[float | None, str]:
        still = Counter(kind for located, kind in tasks if located.state not in ENDED)
        if not still:
            return 0.0, ""
        if "" in still:
            return None, "a task is not admitted yet"
        found = latest()
        if found is None:
            return None, "no node has led this spool yet"
        slots = sum(node.slots for node in found[1].nodes if node.state in ("idle", "working"))
        return eta_s(still, found[1].durations, slots)

    return estimate
