"""What ended in each minute of the last hour, under any leaders: the source of rates, recent failures and curves.

A leader begins with the minutes in its predecessor's snapshot, and counts from what that had counted. So what ended
while nobody led counts in the minute in which the next leader comes.

Law: no result is read for it. Completed and failed tasks are the growth of the counts of the tree; attempts, tokens
and costs the growth of the sums in the workers' beats. So a task that is deleted or retried within the same look
hides another one, and what a worker never told in a beat is missing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spoold.protocol.amount import plus
from spoold.protocol.result import Total
from spoold.protocol.snapshot import History, Minute, Node
from spoold.protocol.timestamps import moment

MINUTE_S, KEPT = 60, 60
# Of each minute so many causes are kept; those of rejected drops are sentences, and kept for so many minutes. Workers
# and members choose the words: within a minute so many different ones are counted.
CAUSES, TOLD, WORDS_MAX = 8, 10, 100


@dataclass(slots=True)
class _Sum:
    """One minute. number: of minutes since 1970."""

    number: int
    completed: int = 0
    failed: int = 0
    rejected: int = 0
    attempts: Counter[str] = field(default_factory=Counter)
    drops: Counter[str] = field(default_factory=Counter)
    tokens: float = 0
    cost_usd: float = 0


class RecentMinutes:
    """The minutes as one leader knows them. wall: seconds since 1970, by the pool's clock."""

    def __init__(self) -> None:
        self._minutes: deque[_Sum] = deque()
        self._since = ""
        self._counted: tuple[int, int] | None = None
        self._spent: dict[str, tuple[float, float]] = {}

    def begin(self, before: History, completed: int, failed: int, nodes: Iterable[Node]) -> None:
        """Go on from a predecessor's snapshot. completed and failed: what it had counted of all time."""
        self._since = before.since
        self._counted = completed, failed
        self._spent = {node.worker: _amounts(node.spent) for node in nodes}
        for said in before.minutes[-KEPT:]:
            at = moment(said.at)
            if at is not None and (not self._minutes or at >= self._minutes[-1].number * MINUTE_S):
                counts = Counter(said.attempts), Counter(said.drops)
                one = _Sum(int(at // MINUTE_S), said.completed, said.failed, said.rejected, *counts)
                one.tokens, one.cost_usd = said.tokens_used, said.cost_usd
                self._minutes.append(one)

    def counted(self, wall: float, completed: int, failed: int) -> None:
        """Take in how many tasks are completed and failed now."""
        before, self._counted = self._counted or (completed, failed), (completed, failed)
        more = max(0, completed - before[0]), max(0, failed - before[1])
        if any(more):
            minute = self._at(wall)
            minute.completed, minute.failed = minute.completed + more[0], minute.failed + more[1]

    def failures(self, wall: float, attempts: Mapping[str, int]) -> None:
        """Take in attempts that failed, by code."""
        if attempts:
            _count(self._at(wall).attempts, attempts)

    def rejections(self, wall: float, drops: Mapping[str, int]) -> None:
        """Take in rejected drops, by problem."""
        if drops:
            minute = self._at(wall)
            minute.rejected = plus(minute.rejected, sum(drops.values()))
            _count(minute.drops, drops)

    def spent(self, wall: float, node: str, beat: int, total: Total | None) -> None:
        """Take in the sum of what a worker has committed since it started.

        What it had committed before a leader first saw it has no known time, unless it has only just begun.
        """
        now = _amounts(total)
        before, self._spent[node] = self._spent.get(node, now if beat else (0, 0)), now
        more = max(0, now[0] - before[0]), max(0, now[1] - before[1])
        if any(more):
            minute = self._at(wall)
            minute.tokens = plus(minute.tokens, more[0])
            minute.cost_usd = round(plus(minute.cost_usd, more[1]), 6)

    def forget(self, node: str) -> None:
        """Forget a node that is gone; what it has spent still counts."""
        self._spent.pop(node, None)

    def said(self, wall: float) -> History:
        """The last hour, as a snapshot has it."""
        self._since = self._since or _stamp(wall)
        oldest = int(wall // MINUTE_S) - KEPT
        while self._minutes and self._minutes[0].number <= oldest:
            self._minutes.popleft()
        told = tuple(_minute(one, oldest + KEPT - TOLD) for one in self._minutes)
        return History(since=self._since, until=_stamp(wall), minutes=told)

    def _at(self, wall: float) -> _Sum:
        """The minute of this moment. A clock that was set back begins no earlier one."""
        number = int(wall // MINUTE_S)
        if not self._minutes or self._minutes[-1].number < number:
            self._minutes.append(_Sum(number))
            if len(self._minutes) > KEPT:
                self._minutes.popleft()
        return self._minutes[-1]


def _minute(one: _Sum, oldest_told: int) -> Minute:
    return Minute(
        at=_stamp(one.number * MINUTE_S),
        completed=one.completed,
        failed=one.failed,
        rejected=one.rejected,
        attempts=dict(one.attempts.most_common(CAUSES)),
        drops=dict(one.drops.most_common(CAUSES)) if one.number > oldest_told else {},
        tokens_used=one.tokens,
        cost_usd=one.cost_usd,
    )


def _amounts(total: Total | None) -> tuple[float, float]:
    return (0, 0) if total is None else (total.tokens_used or 0, total.cost_usd or 0)


def _count(total: Counter[str], counts: Mapping[str, int]) -> None:
    for name, count in counts.items():
        if name in total or len(total) < WORDS_MAX:
            total[name] = plus(total[name], count)


def _stamp(wall: float) -> str:
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
