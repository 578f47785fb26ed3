"""How long attempts take, by type: what a worker says of its last ones, and what the leader makes of that.

An estimate is for people, and for `timeout = "auto"`. So it may forget: a new leader goes on from what the last
snapshot says, until enough attempts of its own time have ended.

Law: of successful attempts alone. No list is longer than its bound, however many types and attempts there are.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

from spoold.protocol.heartbeat import Lasted
from spoold.protocol.snapshot import Durations

# What a worker says: of so many types, its last attempts. What a leader keeps of each type, and of how many.
KINDS, LAST = 50, 20
KEPT_KINDS, KEPT = 1000, 100
# With fewer known durations `timeout = "auto"` is the default; else so much of p95, and at least so long (s).
ENOUGH, FACTOR, LEAST_S = 5, 1.5, 1.0


class Lately:
    """One worker's last durations (s), by type; of the type that ended longest ago none are kept beyond KINDS."""

    def __init__(self) -> None:
        self._kinds: dict[str, tuple[int, deque[float]]] = {}

    def add(self, kind: str, seconds: float) -> None:
        """An attempt of this type has succeeded."""
        count, last = self._kinds.pop(kind, (0, deque[float](maxlen=LAST)))
        last.append(round(seconds, 3))
        self._kinds[kind] = count + 1, last
        if len(self._kinds) > KINDS:
            del self._kinds[next(iter(self._kinds))]

    def said(self) -> dict[str, Lasted]:
        """The same as a heartbeat says it."""
        return {kind: Lasted(n=count, last=tuple(last)) for kind, (count, last) in self._kinds.items()}


class Estimates:
    """The leader's figures, by type: from the beats of workers, and at first from the snapshot before."""

    def __init__(self) -> None:
        self._before: dict[str, Durations] = {}
        self._kinds: dict[str, deque[float]] = {}
        self._told: dict[str, dict[str, int]] = {}

    def begin(self, before: Mapping[str, Durations]) -> None:
        """Go on from the figures of another leader."""
        self._before = dict(before)

    def hear(self, node: str, said: Mapping[str, Lasted]) -> None:
        """Take in what is new in a worker's beat. Its last durations count, also those before this leader led."""
        told = self._told.setdefault(node, {})
        for kind, lasted in said.items():
            count = lasted.n - told.get(kind, 0)
            new = lasted.last[max(0, len(lasted.last) - count) :] if count > 0 else ()
            if new:
                self._kinds.setdefault(kind, deque(maxlen=KEPT)).extend(new)
            told[kind] = lasted.n
        for kind in list(self._kinds)[: max(0, len(self._kinds) - KEPT_KINDS)]:
            del self._kinds[kind]

    def forget(self, node: str) -> None:
        """A node is gone; what it said still counts."""
        self._told.pop(node, None)

    def now(self) -> dict[str, Durations]:
        """The figures. Those of the leader before count as long as more attempts are behind them."""
        found = {kind: figures_of(list(last)) for kind, last in self._kinds.items()}
        for kind, before in self._before.items():
            if kind not in found or found[kind].n < min(before.n, KEPT):
                found[kind] = before
        return dict(sorted(found.items())[:KEPT_KINDS])


def figures_of(durations: list[float]) -> Durations:
    """The mean and p95 (s) of at least one duration."""
    ordered = sorted(durations)
    p95 = ordered[math.ceil(0.95 * len(ordered)) - 1]
    return Durations(n=len(ordered), mean_s=round(math.fsum(ordered) / len(ordered), 3), p95_s=p95)


def auto_s(known: Durations | None) -> float | None:
    """The timeout (s) that `auto` means; None if too few durations are known."""
    if known is None or known.n < ENOUGH:
        return None
    return max(LEAST_S, FACTOR * known.p95_s)


def eta_s(open_by_kind: Mapping[str, int], known: Mapping[str, Durations], slots: int) -> tuple[float | None, str]:
    """When (in s) so many tasks of each type will have ended if all slots work on them, or None and the reason.

    It counts neither what waits before them nor what they wait for: an end before that is not to be expected.
    """
    if not any(open_by_kind.values()):
        return 0.0, ""
    strange = sorted(kind for kind, count in open_by_kind.items() if count and kind not in known)
    if strange:
        return None, f"no task of type {strange[0]} has completed lately"
    if slots <= 0:
        return None, "no worker is awake"
    work_s = sum(count * known[kind].mean_s for kind, count in open_by_kind.items())
    longest_s = max(known[kind].mean_s for kind, count in open_by_kind.items() if count)
    return round(max(work_s / min(slots, sum(open_by_kind.values())), longest_s), 1), ""
