"""The order in which a worker takes what is ready: by urgency and age, but nobody is passed over for ever.

The leader lets shares take turns, so a young task of one may stand in ready/ while older ones of another come there.
By age alone these would go before it, for as long as they come.

Law: of one rank, a worker claims at most `most` tasks that came to ready/ later before one that it could have claimed
instead. Where tasks come in the order of their age, that order is all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

# An offer: the name of the task, and its lane.
Offer = tuple[str, str]


class Passing:
    """When each ready task was first seen, and how many that came later were claimed before it. most: how many may be
    at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._looks = 0
        self._seen: dict[str, int] = {}
        self._passed: Counter[str] = Counter()
        self._late: set[str] = set()

    def order(self, offers: list[Offer]) -> None:
        """Bring a fresh listing into the order in which they are taken."""
        offers.sort()
        self._looks += 1
        self._seen = {file: self._seen.get(file, self._looks) for file, _ in offers}
        self._late.clear()
        rank, earliest = "", self._looks
        for file, _ in reversed(offers):
            seen = self._seen[file]
            if file[:4] != rank:
                rank, earliest = file[:4], seen
            elif seen > earliest:
                self._late.add(file)
            earliest = min(earliest, seen)
        if self._passed:
            self._passed = Counter({file: n for file, n in self._passed.items() if file in self._seen})
            offers.sort(key=lambda offer: (offer[0][:4], self._passed[offer[0]] < self._most, offer[0]))

    def claimed(self, file: str, left: Sequence[Offer]) -> None:
        """Note a claim. left: the offers that were not taken."""
        if file not in self._late:
            return
        seen = self._seen[file]
        for other, _ in left:
            if other > file and other[:4] == file[:4] and self._seen.get(other, seen) < seen:
                self._passed[other] += 1
