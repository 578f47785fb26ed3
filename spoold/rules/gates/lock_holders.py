"""Locks: what one task locks, the line of those that wait, who holds what and keeps whom back, and its form in the
snapshot.

Law: a holder whose demand is not known holds everything. Nobody keeps himself back. A task is kept back by holders,
and by those before it in line: so a writer among endless readers comes to its turn. But none in line that waits for a
holder which waits for others keeps a task below others back; and once that one has waited for long, it keeps nobody
back. Else all of them might wait for ever.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

from spoold.protocol.lock_patterns import BELOW
from spoold.protocol.names import age_in, is_task, key_in, order_micros, rank_in, rank_of

# What one task locks, and whether two demands conflict.
# Law: two demands conflict if a pattern that one of them writes may overlap with any pattern of the other.


@dataclass(frozen=True, slots=True)
class Demand:
    """The patterns that a task writes, and those that it only reads. child: whether it is one below another task."""

    write: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    child: bool = False

    def __bool__(self) -> bool:
        return bool(self.write or self.read)

    def clash(self, other: Demand) -> tuple[str, str] | None:
        """A pattern of each that overlap, one of them written; None if both may run together."""
        for mine in self.write:
            for theirs in (*other.write, *other.read):
                if overlap(mine, theirs):
                    return mine, theirs
        for mine in self.read:
            for theirs in other.write:
                if overlap(mine, theirs):
                    return mine, theirs
        return None

    def told(self) -> str:
        """In words: `write src/api/**, read docs/**`."""
        kinds = (("write", self.write), ("read", self.read))
        return ", ".join(f"{kind} {pattern}" for kind, patterns in kinds for pattern in patterns)


NO_LOCKS = Demand()


# Can two patterns cover the same thing?


# Two patterns with so many stars that this many steps do not decide count as overlapping.
STEPS_MAX = 20_000
_WILD = re.compile(r"[*?\[]")
_SET = re.compile(r"\[.*\]")


@dataclass(frozen=True, slots=True)
class Parsed:
    """A pattern as its segments; literal: what every name that it covers begins with; plain: it covers one name."""

    segments: tuple[str, ...]
    literal: str
    plain: bool


@lru_cache(maxsize=65_536)
def parsed(pattern: str) -> Parsed:
    """The segments of a pattern, without sets in brackets."""
    segments: list[str] = []
    for part in pattern.split("/"):
        segment = _SET.sub("*", part)
        if "[" in segment:  # a set that is not closed here: it may go on beyond the segment
            segments += [segment.partition("[")[0] + "*", BELOW]
            break
        if BELOW in segment and segment != BELOW:
            segments += [segment.partition(BELOW)[0] + "*", BELOW]
            break
        segments.append(segment)
    text = "/".join(segments)
    wild = _WILD.search(text)
    literal = text if wild is None else text[: wild.start()].removesuffix("/")
    return Parsed(tuple(segments), literal, wild is None)


def overlap(one: str, other: str) -> bool:
    """Whether something may be covered by both patterns."""
    if one == other:
        return True
    left, right = parsed(one), parsed(other)
    if left.plain and right.plain:
        return False
    length = min(len(left.literal), len(right.literal))
    if left.literal[:length] != right.literal[:length]:
        return False
    steps = [STEPS_MAX]
    return _meet(left.segments, right.segments, BELOW, lambda a, b: _touch(a, b, steps))


def _touch(one: str, other: str, steps: list[int]) -> bool:
    """Whether two segments can be the same name. steps: how many are left; without any they count as the same."""
    return _meet(one, other, "*", lambda a, b: a == b or "?" in (a, b), steps)


def _meet(
    one: Sequence[str],
    other: Sequence[str],
    any_number: str,
    same: Callable[[str, str], bool],
    steps: list[int] | None = None,
) -> bool:
    """Whether two rows can be the same: paths of segments, or segments of characters.

    any_number: stands for any number of members, none included; same: whether two others can be the same. Looks at
    each pair of positions at most once; steps: how many of these are left, and without any the rows meet.
    """
    ends, seen, ahead = (len(one), len(other)), {(0, 0)}, [(0, 0)]
    while ahead:
        left, right = here = ahead.pop()
        if steps is not None:
            steps[0] -= 1
        if here == ends or (steps is not None and steps[0] <= 0):
            return True
        a, b = (row[at] if at < len(row) else None for row, at in ((one, left), (other, right)))
        after: list[tuple[int, int]] = []
        if a == any_number:
            after += [(left + 1, right), *([(left, right + 1)] if b is not None else ())]
        if b == any_number:
            after += [(left, right + 1), *([(left + 1, right)] if a is not None else ())]
        if not after and a is not None and b is not None and same(a, b):
            after = [(left + 1, right + 1)]
        for place in after:
            if place not in seen:
                seen.add(place)
                ahead.append(place)
    return False


@dataclass(frozen=True, slots=True)
class Keeper:
    """Who keeps a task back. mine and theirs: the patterns that overlap, '' where that of the holder is not known."""

    key: str
    mine: str
    theirs: str
    holds: bool


@dataclass(slots=True)
class Reserved:
    """What a person or a running task has reserved, until a moment (s since 1970). task: '' for a person; attempt: of
    that task; by, at, reason: for people. granted: nothing that conflicts with it is left. over: its file goes.
    """

    demand: Demand
    until: float
    task: str = ""
    attempt: int | None = None
    by: str = ""
    at: str = ""
    reason: str = ""
    granted: bool = False
    over: bool = False


class Book:
    """The holders by key, each with its demand, None if that is not known; and the line of those that wait.

    reserved: the reservations among the holders, by their keys, which begin with +. told: words on a holder. parents:
    keys of tasks that run and wait for others; idle: those of them that have waited for long. For `explain`, queues:
    how many tasks at most stand with the same locks behind one in line, itself included; waiting: how many in all.
    place: in line, of a file.
    """

    def __init__(self) -> None:
        self.held: dict[str, Demand | None] = {}
        self.line = Line()
        self.reserved: dict[str, Reserved] = {}
        self.told: dict[str, str] = {}
        self.parents: Set[str] = frozenset()
        self.idle: Set[str] = frozenset()
        self.queues: dict[str, int] = {}
        self.waiting = 0
        self.place: Callable[[str], Turn] = turn_of
        self._let_go: set[str] = set()

    def begin(self, held: Mapping[str, Demand | None]) -> set[str]:
        """Take these for the holders from now on; return those that hold no more, or hold something else."""
        gone = {key for key, demand in self.held.items() if key not in held or held[key] != demand}
        gone |= self._let_go - held.keys()
        self._let_go.clear()
        self.held = dict(held)
        return gone

    def hold(self, key: str, demand: Demand) -> None:
        """Count one more holder."""
        self.held[key] = demand
        self._let_go.discard(key)

    def let_go(self, key: str) -> None:
        """Count one holder less. What waits for it may wait for nobody now, as the next `begin` says."""
        self.held.pop(key, None)
        self._let_go.add(key)

    def clashing(self, key: str) -> list[str]:
        """The holders that conflict with this one, as far as both demands are known."""
        mine = self.held.get(key)
        if mine is None:
            return []
        others = [(other, held) for other, held in self.held.items() if other != key and held is not None]
        return [other for other, held in others if mine.clash(held)]

    def grant(self) -> list[str]:
        """Grant each reservation with which nothing older conflicts; return those that were not granted before."""
        found = []
        for name in sorted(self.reserved):
            mine = self.reserved[name]
            if not mine.granted and not mine.over and self.against(name) is None:
                mine.granted = True
                found.append(name)
        return found

    def against(self, name: str) -> Keeper | None:
        """Who keeps a reservation waiting: a task that runs or may run, but its own, or an older reservation."""
        mine = self.reserved[name]
        others = {k: held for k, held in self.held.items() if k != mine.task and not k.startswith("+")}
        before = ((k, one) for k, one in self.reserved.items() if not one.over and (k < name or one.granted))
        others |= {k: one.demand for k, one in before if k != name}
        return _first(mine.demand, others.items())

    def overtakes(self, name: str) -> str | None:
        """A reservation that was granted already, and that this one would come before."""
        mine = self.reserved[name]
        granted = (k for k, one in self.reserved.items() if k > name and one.granted and not one.over)
        return next((k for k in granted if mine.demand.clash(self.reserved[k].demand)), None)

    def keeper(self, key: str, turn: Turn, demand: Demand) -> Keeper | None:
        """Who keeps this task back: a holder, or else the first one before it in line; None if nobody does."""
        keeper = _first(demand, ((other, held) for other, held in self.held.items() if other != key))
        if keeper is not None:
            return keeper
        for other, waiter in self.line.before(turn):
            found = demand.clash(waiter.demand) if other != key else None
            if found is not None and not self._waits_for(self.parents if demand.child else self.idle, waiter.demand):
                return Keeper(other, *found, holds=False)
        return None

    def before(self, file: str, lane: str, demand: Demand, in_line: int) -> int:
        """How many tasks at most that conflict with this one wait before it, as far as a snapshot says. in_line: of
        its own lane, in the order of the line.
        """
        others = own = 0
        for task_key, waiter in self.line.earlier(self.place(file)):
            if demand.clash(waiter.demand) is not None:
                count = self.queues.get(task_key, 1)
                others, own = (others, own + count) if waiter.lane == lane else (others + count, own)
        unseen = self.waiting - sum(self.queues.values())
        return max(0, min(others + min(own, in_line) + unseen, self.waiting - 1))

    def _waits_for(self, holders: Set[str], demand: Demand) -> bool:
        """Whether one of these holds some of this."""
        found = (self.held.get(task_key) for task_key in holders)
        return any(held is not None and held.clash(demand) is not None for held in found)


def _first(demand: Demand, others: Iterable[tuple[str, Demand | None]]) -> Keeper | None:
    """The first of these holders that conflicts."""
    for other, held in others:
        if held is None:
            return Keeper(other, (demand.write or demand.read)[0], "", holds=True)
        found = demand.clash(held)
        if found is not None:
            return Keeper(other, *found, holds=True)
    return None


# The tasks that wait for nothing but locks, in line.
# Law: the older task goes first, and a minute of age weighs as much as one point of priority, an hour at most. So
# an urgent task passes those that came shortly before, and no task is passed for ever.


# A place in line: a moment in microseconds since 1970, then the name, so that no two are equal.
Turn = tuple[int, str]
POINT_MICROS, POINTS_MAX = 60_000_000, 60
# So many of the first in line keep others back. Of those behind, each comes to be one of the first.
KEEPING = 100


def turn_of(file: str) -> Turn:
    """The place in line of a task with this name in waiting/, among those of its share."""
    return order_micros(age_in(file)) - points(file), file


def points(file: str) -> int:
    """By how many microseconds its priority moves a task with this name forward in line."""
    return max(-POINTS_MAX, min(POINTS_MAX, rank_of(0) - rank_in(file))) * POINT_MICROS


def comes_before(file: str, turn: Turn) -> bool:
    """Whether the task with this name comes before a turn: of one rank, the age says so as it stands."""
    same = rank_in(file) == rank_in(turn[1])
    return age_in(file) < age_in(turn[1]) if same else turn_of(file) < turn


@dataclass(frozen=True, slots=True)
class Waiter:
    """One task in line."""

    turn: Turn
    demand: Demand
    lane: str


class Line:
    """All tasks in line, by key. shut: lanes whose tasks wait for something else just now, and keep nobody back.

    firm: the tasks that keep others back even so, since what they wait for besides comes from later tasks.
    """

    def __init__(self) -> None:
        self._waiters: dict[str, Waiter] = {}
        self._order: list[tuple[Turn, str]] = []
        self.shut: Set[str] = frozenset()
        self.firm: set[str] = set()

    def __len__(self) -> int:
        return len(self._waiters)

    def __contains__(self, task_key: str) -> bool:
        return task_key in self._waiters

    def get(self, task_key: str) -> Waiter | None:
        """The task with that key."""
        return self._waiters.get(task_key)

    def first(self) -> list[tuple[str, Waiter]]:
        """Those that keep others back, by key."""
        return [(task_key, self._waiters[task_key]) for _, task_key in self._order[:KEEPING]]

    def lanes(self) -> set[str]:
        """The lanes of those that keep others back."""
        return {waiter.lane for _, waiter in self.first()}

    def join(self, task_key: str, waiter: Waiter) -> None:
        """Put a task in line, or at its new place there."""
        if self._waiters.get(task_key) != waiter:
            self.leave(task_key)
            self._waiters[task_key] = waiter
            insort(self._order, (waiter.turn, task_key))

    def leave(self, task_key: str) -> bool:
        """Take a task out of the line; whether it was there."""
        waiter = self._waiters.pop(task_key, None)
        if waiter is None:
            return False
        del self._order[bisect_left(self._order, (waiter.turn, task_key))]
        return True

    def before(self, turn: Turn) -> Iterator[tuple[str, Waiter]]:
        """Those that keep back a task of this turn, the first one first."""
        for place, task_key in self._order[:KEEPING]:
            if place >= turn:
                return
            waiter = self._waiters[task_key]
            if waiter.lane not in self.shut or task_key in self.firm:
                yield task_key, waiter

    def earlier(self, turn: Turn) -> Iterator[tuple[str, Waiter]]:
        """All that stand before that turn, by key."""
        return ((task_key, self._waiters[task_key]) for place, task_key in self._order if place < turn)

    def position(self, turn: Turn) -> int:
        """How many stand in line before that turn."""
        return bisect_left(self._order, (turn, ""))


# The book of locks as a snapshot shows it, so that `spool explain` asks the gate that the leader asks.
# Law: what is not understood is left out: a later release may say more.


# What a snapshot says of a holder that has waited for others for long.
LONG = "long"


def book_seen(gates: Mapping[str, Any]) -> Book | None:
    """The book of a snapshot's `gates`; None if it says nothing of locks."""
    seen = gates.get("locks")
    if not isinstance(seen, dict):
        return None
    book = Book()
    for row in _rows(seen, "holders"):
        if isinstance(holder := row.get("key"), str):
            book.held[holder] = _demand(row) if row.get("known") else None
            book.told[holder] = told(row)
            book.parents |= {holder} if row.get("waits") else frozenset()
            book.idle |= {holder} if row.get("waits") == LONG else frozenset()
    for row in _rows(seen, "waiters"):
        file = row.get("file")
        if isinstance(file, str) and is_task(file) and (demand := _demand(row)):
            place = row.get("place")
            turn = (place, file) if type(place) is int else turn_of(file)
            book.line.join(key_in(file), Waiter(turn, demand, str(row.get("lane", ""))))
            book.queues[key_in(file)] = max(1, _count(row.get("tasks")))
    book.place = partial(_place_seen, book)
    book.waiting = max(_count(seen.get("waiting")), sum(book.queues.values()))
    return book


def _place_seen(book: Book, file: str) -> Turn:
    waiter = book.line.get(key_in(file))
    return waiter.turn if waiter is not None and waiter.turn[1] == file else turn_of(file)


def _count(value: Any) -> int:
    return value if type(value) is int and value > 0 else 0


def locks_seen(gates: Mapping[str, Any]) -> dict[str, Any]:
    """A snapshot's `gates.locks` with all its parts, and with words: `locks`, and `told` of who holds."""
    seen = gates.get("locks")
    seen = seen if isinstance(seen, dict) else {}
    holders = [{**row, "told": told(row), "locks": _words(row)} for row in _rows(seen, "holders")]
    named = {row.get("key"): row["told"] for row in holders}
    named[""] = "nobody: it lacks something else, which later tasks have"
    waiters = [
        {**row, "locks": _words(row), "told": named.get(row.get("behind"), f"task {row.get('behind')}")}
        for row in _rows(seen, "waiters")
    ]
    return {"held": 0, "waiting": 0, **seen, "holders": holders, "waiters": waiters}


def told(row: Mapping[str, Any]) -> str:
    """A holder in words: `task x on laptop1 since …`, `the reservation of ada@desk`."""
    since = f" since {row['since']}" if row.get("since") else ""
    if "reservation" in row:
        by = f" of {row['by']}" if row.get("by") else ""
        why = f": {row['reason']}" if row.get("reason") else ""
        return f"reservation {row['reservation']}{by}{since}{why}"
    where = f" on {row['worker']}" if row.get("worker") else f" ({row.get('state', 'its place is in doubt')})"
    return f"task {row.get('task', row.get('key', ''))}{where}{since}"


def _words(row: Mapping[str, Any]) -> str:
    return "not known yet" if row.get("known") is False else _demand(row).told()


def _rows(seen: Mapping[str, Any], name: str) -> Iterable[Mapping[str, Any]]:
    rows = seen.get(name)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _demand(row: Mapping[str, Any]) -> Demand:
    write, read = (tuple(map(str, row.get(kind) or ())) for kind in ("write", "read"))
    return Demand(write, read)
