"""Touching polled directories on NFS, so that a client does not keep an old listing for ever.

An NFS 3 client judges by a directory's times whether its cached listing is still good; so does a version 4 client
whose server has no change counter. Of two changes within one tick of the server's clock (1 to 10 ms) it may miss the
second until the next: seen on real clients, nine times of sixty. New times on the directory show it to every client.

Law: nothing is touched here; this room only says when. A missed change came right after one that was seen, and the
next change shows it too. So on version 3 a directory is touched once its names have stood still for a while, then
ever more rarely, down to once a minute; on version 4 only once a minute.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

SOON_S, AT_LEAST_S = 10.0, 60.0
RARER = 4
DIRECTORIES_MAX = 4096


@dataclass(slots=True)
class _Polled:
    """A directory: when (monotonic, s) it was touched or changed, for how long that counts, a hash of its names."""

    at: float
    every_s: float
    names: int


class Touching:
    """The directories that one process polls. by_times: the client can see changes only by times."""

    def __init__(self, by_times: bool) -> None:
        self._by_times = by_times
        self._polled: dict[str, _Polled] = {}

    def due(self, path: str, now: float) -> bool:
        """Whether to touch the directory now, before it is listed; then it counts as done. now: monotonic, s."""
        polled = self._polled.get(path)
        if polled is None:
            if len(self._polled) >= DIRECTORIES_MAX:
                self._polled.clear()
            polled = self._polled[path] = _Polled(-math.inf, SOON_S if self._by_times else AT_LEAST_S, 0)
        elif now - polled.at >= polled.every_s:
            polled.every_s = min(RARER * polled.every_s, AT_LEAST_S)
        else:
            return False
        polled.at = now
        return True

    def after(self, path: str, now: float, names: Iterable[str]) -> None:
        """Take in that the directory was listed, with these names. now: as before."""
        polled = self._polled.get(path)
        if polled is not None and self._by_times:
            seen = hash(frozenset(names))
            if seen != polled.names:
                polled.names, polled.every_s, polled.at = seen, SOON_S, now
