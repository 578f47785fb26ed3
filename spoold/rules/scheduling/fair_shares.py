"""Whose turn it is: of tasks of one priority, the share that has waited longest for a start goes first.

The share of a task is its batch, or the user whose drop it was, as the settings say. A task has waited since it came,
or since the last start of its share, whatever is later: so shares take turns, however many tasks each has, and over
all lanes. A share of weight w has w starts in a turn.

Law: a task waits behind other shares for at most PATIENCE_S after it came to the front of its own, however often its
share starts elsewhere. Where one share waits, its tasks go in the order of their names. Moments are microseconds of
the pool's time, as in an ORDER, so what a snapshot says of turns counts for the next leader. Never more than SHARES
are remembered: one that is forgotten has waited since its task came.
"""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from spoold.protocol.amount import amount, length
from spoold.protocol.names import age_in, key, order_in, order_micros
from spoold.protocol.settings import FairSettings
from spoold.rules.gates.lock_holders import points

# So many shares are remembered, and so many are told of in a snapshot.
SHARES, SHOWN = 10_000, 200
PATIENCE_S = 600.0
# A share that is not known yet: of a task that another leader admitted.
UNREAD = "?"
_MICROS = 1_000_000
# Over so long (s) starts are counted, and for so long what starts is ready in advance; so many tasks at least.
RATE_S, AHEAD_S, LEAST = 5.0, 2.0, 4
# For so long (s) shares count as rivals after the last time at which several wanted to start.
RIVALS_S = 60.0
# Starts of one step have moments of their own, a microsecond apart. What is later than this was stamped by a clock
# that was set back since.
_AHEAD = 60 * _MICROS


def share_of(settings: FairSettings, batch: str | None, owner: int | None) -> str:
    """The share of a task, as `batch NAME` or `user NUMBER`; '' for all tasks that have none."""
    if settings.by == "owner":
        return f"user {owner}" if owner is not None else ""
    return f"batch {key(batch)}" if settings.by == "batch" and batch is not None else ""


def told(share: str) -> str:
    """A share in words."""
    if share == UNREAD:
        return "the tasks whose share the leader has not read yet"
    return share or "the tasks of no batch"


class Turns:
    """The turns of the shares. waiting: how many tasks of each wait. ready: how many are in ready/, as far as that
    was asked for in this step; None before.
    """

    def __init__(self) -> None:
        self.waiting: Counter[str] = Counter()
        self.ready: Counter[str] | None = None
        self.now = 0
        self._rate = 0.0  # tasks that workers took from ready/ in a second
        self._standing = self._put = 0
        self._rivals_at = -math.inf
        self._last: dict[str, int] = {}  # the moment of the last start in a turn, the earliest first
        self._begun: dict[str, int] = {}  # starts of a turn that is not over
        self._places: dict[str, int] = {}
        self._settings = FairSettings()

    def begin(self, now: float, settings: FairSettings, standing: int = 0) -> None:
        """Begin a step. now: the pool's time, s since 1970; standing: how many tasks are in ready/."""
        passed_s, taken = max(0.001, now - self.now / _MICROS), max(0, self._standing + self._put - standing)
        self._rate += (1 - math.exp(-passed_s / RATE_S)) * (taken / passed_s - self._rate)
        self.now, self._settings, self.ready = int(now * _MICROS), settings, None
        self._standing, self._put = standing, 0
        if self._last and next(reversed(self._last.values())) > self.now + _AHEAD:
            self._last = {share: min(last, self.now) for share, last in self._last.items()}

    def restore(self, seen: Mapping[str, int]) -> None:
        """Take over turns that another leader published: by share, the moment of its last start."""
        both = {**seen, **self._last}
        self._last = dict(sorted(both.items(), key=lambda one: one[1])[-SHARES:])

    @property
    def active(self) -> bool:
        """Whether more than one share waits."""
        return len(self.waiting) > 1

    @property
    def settings(self) -> FairSettings:
        """Those of this step."""
        return self._settings

    def rivals(self, ready: Callable[[], Iterable[str]], new: str = UNREAD) -> bool:
        """Whether several shares want to start, or did so within RIVALS_S: then few tasks stand in ready/, since they
        are taken by age. ready: the shares of those there, asked for once in a step at most; new: one more that wants
        to.
        """
        if self._settings.by == "none":
            return False
        known = {*self.waiting, new} - {UNREAD}
        if len(known) < 2:
            self.ready = Counter(ready()) if self.ready is None else self.ready
            known |= self.ready.keys() - {UNREAD}
        if len(known) > 1:
            self._rivals_at = self.now
        return self.now - self._rivals_at < RIVALS_S * _MICROS

    def window(self, slots: int, window: int) -> int:
        """How many tasks of a lane are ready where shares take turns: what starts in AHEAD_S, and enough for half of
        these slots at least; never more than the window.
        """
        return min(window, max(LEAST, (slots + 1) // 2, math.ceil(self._rate * AHEAD_S)))

    def came(self, share: str) -> None:
        """Count a task that waits."""
        self.waiting[share] += 1

    def left(self, share: str, file: str) -> None:
        """Count a task that waits no more."""
        self._places.pop(file, None)
        self.waiting[share] -= 1
        if self.waiting[share] <= 0:
            del self.waiting[share]

    def start(self, share: str) -> None:
        """Note that a task of this share goes to ready/: its turn is over, unless its weight gives it more."""
        self._put += 1
        if self.ready is not None:
            self.ready[share] += 1
        begun = self._begun.get(share, 0) + 1
        if begun < self._settings.weights.get(share.partition(" ")[2], 1):
            self._begun[share] = begun
            return
        self._begun.pop(share, None)
        latest = next(reversed(self._last.values()), 0)
        self._last.pop(share, None)
        self._last[share] = max(self.now, latest + 1)
        if len(self._last) > SHARES:
            self._begun.pop(gone := next(iter(self._last)), None)
            del self._last[gone]

    def goes_back(self) -> None:
        """Note that a task left ready/ and has not started: its share has had its turn all the same."""
        self._put -= 1

    def since(self, share: str, file: str, front: int) -> int:
        """Since when the task of this file has waited for a turn of its share. front: the moment at which it came to
        the front of its own.
        """
        came = order_micros(age_in(file))
        return max(came, min(self._last.get(share, 0), front + int(PATIENCE_S * _MICROS)))

    def place(self, file: str) -> int | None:
        """The place in line (see `lock_holders`) of a task that is or was the first of its share there."""
        return self._places.get(file)

    def give_place(self, share: str, own: tuple[int, str], before: str) -> int:
        """Give a task that came to the front of its share its place in line, once. own: its place among those of its
        share; before: the file of the task that was there, and stands after it now; '' for none.
        """
        file = own[1]
        place = self._places.get(file)
        if place is None:
            place = self.since(share, file, self.now) - points(file) if self.active else own[0]
        # The task behind it stands in line perhaps, and must not keep it back.
        place = self._places[file] = min(place, self._places.get(before, place + 1) - 1)
        return place

    def picture(self) -> dict[str, Any]:
        """The turns, for the snapshot: the shares that wait, in the order of their turns, and the last starts; {} if
        nobody has to wait for a turn.
        """
        if self._settings.by == "none" or (len(self._last) < 2 and not self.active):
            return {}
        waiting = sorted(self.waiting, key=lambda share: (self._last.get(share, 0), share))
        rows = [{"share": s, "tasks": self.waiting[s], "last": self._last.get(s, 0)} for s in waiting[:SHOWN]]
        others = [share for share in reversed(self._last) if share not in self.waiting]
        started = {share: self._last[share] for share in others[: SHOWN - len(rows)]}
        return {"waiting": len(self.waiting), "shares": rows, "started": started}


def runs(files: Iterable[str]) -> list[list[str]]:
    """These tasks of unknown share, by age, in runs whose ORDERs follow each other without a gap: lines of a batch
    have such, so of a long run few files tell the share of all.
    """
    found: list[list[str]] = []
    last = (0, "")
    for file in sorted(files, key=age_in):
        order = order_in(file)
        here = order_micros(order), order.partition("-")[2]
        if found and here == (last[0] + 1, last[1]):
            found[-1].append(file)
        else:
            found.append([file])
        last = here
    return found


def crowding(ready: Iterable[tuple[str, str]], room: int) -> list[str]:
    """The ready tasks of a lane that go back, so that no more than `room` stand there: always the latest of the share
    that has most. ready: each as its file and share.
    """
    shares: dict[str, list[str]] = {}
    for file, share in ready:
        shares.setdefault(share, []).append(file)
    heap = []
    for share, files in shares.items():
        files.sort()
        heap.append((-len(files), share))
    heapq.heapify(heap)
    back: list[str] = []
    for _ in range(sum(map(len, shares.values())) - room):
        count, share = heap[0]
        back.append(shares[share].pop())
        heapq.heapreplace(heap, (count + 1, share))
    return back


# The turns as a snapshot shows them, for the next leader and for people.
# Law: what is not understood is left out: a later release may say more.


def turns_seen(gates: Mapping[str, Any]) -> dict[str, int]:
    """The moments of the last starts that a snapshot's `gates` tell, by share."""
    seen = gates.get("fair")
    if not isinstance(seen, dict):
        return {}
    started = seen.get("started")
    found = dict(started) if isinstance(started, dict) else {}
    found |= {str(row.get("share")): row.get("last") for row in _rows(seen)}
    return {share: last for share, last in found.items() if type(last) is int and 0 < last < 10**16}


def whose_turn(gates: Mapping[str, Any], share: str, now: float) -> str:
    """Whose turn it is, and when that of this share comes, in words; '' where no other share waits. gates: of a
    snapshot; now: the pool's time, s since 1970.
    """
    seen = gates.get("fair")
    rows = _rows(seen) if isinstance(seen, dict) else []
    names = [str(row.get("share")) for row in rows]
    if not isinstance(seen, dict) or not names or {*names} == {share}:
        return ""
    last = turns_seen(gates).get(names[0], 0)
    ago = f"its last start was {length(max(0.0, now - last / _MICROS))} ago" if last else "nothing of it has started"
    count = seen.get("waiting")
    shares = amount(count if type(count) is int else len(names), "share")
    if names[0] == share:
        return f"{shares} take turns, and it is the turn of its own, {told(share)}: {ago}"
    ahead = names.index(share) if share in names else len(names)
    between = f"then of {amount(ahead - 1, 'other')}, " if ahead > 1 else ""
    return f"{shares} take turns: it is the turn of {told(names[0])} ({ago}), {between}then of its own, {told(share)}"


def _rows(seen: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    rows = seen.get("shares")
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
