"""The cost of attempts: the sum over those of one task, and an estimate for one whose worker cannot report it.

Law: no record is counted twice, but of two records of one attempt both count. A figure that no record has stays None.
No sum exceeds the most of an amount, whatever foreign records say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import reduce
from typing import NamedTuple

from spoold.protocol import amount
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, key
from spoold.protocol.result import Result, Total

# A node beats this often, as a fraction of its interval.
BEAT_EVERY = 2 / 3


def total_of(results: Iterable[Result]) -> Total | None:
    """The sum over the records of one task's attempts; None without any. A figure that no record has is null.

    A record with a total covers all attempts before it: those need not be read, and are not counted twice.
    """
    total, spoken = None, 0
    for result in sorted(results, key=lambda one: (one.attempt, one.total is not None), reverse=True):
        if result.attempt < spoken:
            break
        if result.total is not None and not spoken:
            spoken = result.attempt
            own = result.total
        else:
            own = Total(
                attempts=1,
                duration_s=result.duration_s,
                cpu_s=result.cpu_s,
                tokens_used=result.tokens_used,
                cost_usd=result.cost_usd,
            )
        total = own if total is None else plus(total, own)
    return total


def plus(one: Total, other: Total) -> Total:
    """The sum of two. A figure that only one of them has is taken as it is."""
    return Total(
        attempts=amount.plus(one.attempts, other.attempts),
        duration_s=round(amount.plus(one.duration_s, other.duration_s), 6),
        cpu_s=_sum(one.cpu_s, other.cpu_s),
        tokens_used=_sum(one.tokens_used, other.tokens_used),
        cost_usd=_sum(one.cost_usd, other.cost_usd),
    )


class Tree(NamedTuple):
    """What a task and all below it came to. tasks: how many these are, with the task itself."""

    tasks: int
    tokens_used: float | None
    cost_usd: float | None


def tree_of(own: Tree, children: Iterable[Tree]) -> Tree:
    """Return the sum of a task and of what its children came to, each with all below it."""
    every = (own, *children)
    return Tree(
        reduce(amount.plus, (one.tasks for one in every)),
        reduce(_sum, (one.tokens_used for one in every)),
        reduce(_sum, (one.cost_usd for one in every)),
    )


def trees(own: Mapping[str, Tree], parents: Mapping[str, str]) -> dict[str, Tree]:
    """Return what each task that has children among these came to, with all below it. own: by the key of a task;
    parents: the key of the parent of each that has one.
    """
    below: dict[str, list[str]] = {}
    for child, parent in parents.items():
        if parent in own and child in own:
            below.setdefault(parent, []).append(child)
    return {root: tree_of(Tree(0, None, None), (own[one] for one in _members(root, below))) for root in below}


def _members(root: str, below: Mapping[str, list[str]]) -> list[str]:
    """All of a tree; tasks that name each other as parents are no reason to go round in a circle."""
    met: dict[str, None] = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if one not in met:
            met[one] = None
            todo += below.get(one, ())
    return list(met)


def spent_by(workers: Iterable[Heartbeat]) -> Total | None:
    """The sum over the commits of these workers since each of them started; None if none reports it."""
    said = [worker.spent for worker in workers if worker.spent is not None]
    return reduce(plus, said) if said else None


def _sum(one: float | None, other: float | None) -> float | None:
    if one is None or other is None:
        return other if one is None else one
    both = amount.plus(one, other)
    return both if isinstance(both, int) else round(both, 9)


class Ran(NamedTuple):
    """An attempt as last seen: since when (RFC 3339), for how long (s) it ran and was frozen at least."""

    since: str
    ran_s: float
    frozen_s: float = 0.0


def last_seen(beat: Heartbeat, name: BeatName, task_id: str, attempt: int) -> Ran | None:
    """The least progress of an attempt, as its worker's last beat shows it.

    None if the beat does not show it. Both stamps are of one clock; beats renewed since then count, too.
    """
    for run in beat.running:
        if key(run.id) == key(task_id) and run.attempt == attempt:
            try:
                ran_s = (datetime.fromisoformat(beat.at) - datetime.fromisoformat(run.since)).total_seconds()
            except (ValueError, TypeError):
                return None
            ran_s = max(0.0, ran_s - run.frozen_s) + (name.beat - name.content) * beat.interval_s * BEAT_EVERY
            return Ran(run.since, min(ran_s, amount.MOST), run.frozen_s)
    return None
