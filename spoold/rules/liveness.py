"""Which nodes are dead. Beats are compared, never clocks.

Law: a node is dead when its beat has not changed for `dead_after_s`, counted on the observer's monotonic clock and
only over looks that the observer could trust: each look counts for at most one interval, so an observer that was
itself asleep or cut off has proved nothing about anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(slots=True)
class _Silence:
    beat: int
    seconds: float = 0.0


class Watch:
    """Counts, for every node seen, how long its beat has stood still. Times in seconds."""

    def __init__(self, interval_s: float, dead_after_s: float) -> None:
        self._interval_s = interval_s
        self._dead_after_s = dead_after_s
        self._silent: dict[str, _Silence] = {}
        self._last_look: float | None = None

    def look(self, beats: Mapping[str, int], present: Iterable[str], now: float) -> None:
        """A trusted look at `now` (monotonic): the beat of each node; present are nodes known by other signs.

        A node that left a claim directory but has no heartbeat is watched too, as one whose beat stands still.
        """
        passed = 0.0 if self._last_look is None else min(max(now - self._last_look, 0.0), self._interval_s)
        self._last_look = now
        seen: dict[str, int] = {**dict.fromkeys(present, -1), **beats}
        for node in [n for n in self._silent if n not in seen]:
            del self._silent[node]
        for node, beat in seen.items():
            known = self._silent.get(node)
            if known is None or known.beat != beat:
                self._silent[node] = _Silence(beat)
            else:
                known.seconds += passed

    def untrusted(self) -> None:
        """A look that failed: the time since the last one proves nothing."""
        self._last_look = None

    def silent_s(self, node: str) -> float:
        """Seconds of trusted looking since the node's beat last changed; 0 for one never seen."""
        known = self._silent.get(node)
        return known.seconds if known else 0.0

    def dead(self) -> list[str]:
        """The nodes that are to be reaped."""
        return sorted(n for n, silence in self._silent.items() if silence.seconds >= self._dead_after_s)
