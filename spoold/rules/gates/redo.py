"""Work that a person sends back: which tasks run again, in which order, and what the first of them is told.

Law: what is left to do follows from the attempts that the request names and those that the tasks are at, so that the
work of a leader that dies is finished by the next one, and nothing runs again twice. A redo is about one round, the
ORDER of the rejected task's token; once the task has another one, the redo is history and feedback.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spoold.protocol.names import key
from spoold.protocol.request import Verb
from spoold.rules.gates.requested import Requested


@dataclass(frozen=True, slots=True)
class Seen:
    """Where a named task is: its attempt, and whether that one has ended and is not archived."""

    attempt: int
    ended: bool


def is_redo(one: Requested) -> bool:
    """Whether it sends work back."""
    return one.request.verb is Verb.REJECT and bool(one.redo) and not one.about


def standing(requests: Sequence[Requested], order: str) -> Requested | None:
    """The redo that decides the round of this order; None where there is none, or another rejection counts."""
    rejects = [one for one in requests if one.request.verb is Verb.REJECT and not one.about]
    meant = [one for one in rejects if one.order in ("", order)]
    first = min(meant, key=lambda one: one.unique, default=None)
    return first if first is not None and is_redo(first) else None


def refusal(one: Requested, seen: Mapping[str, Seen | None]) -> str:
    """Why nothing runs again; '' where it may, or has begun to. seen: by the key of each named task."""
    first, ended = one.redo[0]
    if _is_past(seen[key(first)], ended):
        return ""
    for task, attempt in one.redo:
        at = seen[key(task)]
        if at is None:
            return f"{task} cannot run again: it is archived, or there is no such task"
        if not at.ended or at.attempt != attempt:
            return f"{task} cannot run again: its attempt {attempt} is not the one that has ended last"
    return ""


def left(one: Requested, seen: Mapping[str, Seen | None]) -> list[str]:
    """The named tasks that are to run again and have not been moved, those before others first."""
    return [task for task, attempt in one.redo if seen[key(task)] == Seen(attempt, ended=True)]


def is_undone(one: Requested, seen: Seen | None) -> bool:
    """Whether a redo of another round was never carried out. seen: the first task that it names."""
    return seen is not None and not _is_past(seen, one.redo[0][1])


def rounds(requests: Iterable[Requested]) -> list[Requested]:
    """The redos about one task, one for each round, the oldest first."""
    found: dict[str, Requested] = {}
    for one in sorted(filter(is_redo, requests), key=lambda one: (one.order, one.unique)):
        found.setdefault(one.order, one)
    return list(found.values())


def feedback(requests: Iterable[Requested], task_key: str, attempt: int) -> dict[str, Any] | None:
    """What an attempt of a task is told: the newest redo that names it first, and the rounds before; None for none.

    requests: about any tasks; attempt: the one that begins.
    """
    told: list[tuple[str, dict[str, Any]]] = []
    by_task: dict[str, list[Requested]] = {}
    for one in requests:
        by_task.setdefault(key(one.request.target), []).append(one)
    for about in by_task.values():
        asked = rounds(about)
        for number, one in enumerate(asked):
            if key(one.redo[0][0]) == task_key and one.redo[0][1] < attempt:
                earlier = records(asked[:number])
                told.append((one.order, {**_record(number + 1, one), "earlier": earlier}))
    return max(told, key=lambda each: each[0])[1] if told else None


def records(asked: Iterable[Requested]) -> list[dict[str, Any]]:
    """The rounds, as results and feedback say them."""
    return [_record(number, one) for number, one in enumerate(asked, 1)]


def sent_back(requests: Iterable[Requested], task_key: str, order: str, attempt: int) -> str:
    """The last round in which people sent back this task, or work that begins with it; '' for none.

    requests: redos about any tasks; order: of its token, whose own round is not over.
    """
    asked = list(requests)
    mine = rounds(one for one in asked if key(one.request.target) == task_key and one.order != order)
    if mine:
        return f"sent back, round {len(mine)}, {mine[-1].told}"
    told = feedback(asked, task_key, attempt)
    if told is None:
        return ""
    why = f": {told['reason']}" if told["reason"] else ""
    return f"sent back from {told['task']}, round {told['round']}, by {told['by'] or 'an unknown user'}{why}"


def way(upstream: str, task: str, needs: Mapping[str, Sequence[str]]) -> list[str]:
    """The tasks from upstream to the task, which is left out, each after those that it needs; empty where none leads.

    All are keys. needs: what each task comes after, of the task and of all before it.
    """
    try:
        ordered = list(TopologicalSorter(needs).static_order())
    except CycleError:
        return []
    found: dict[str, None] = {}
    for one in ordered:
        if one == upstream or any(parent in found for parent in needs.get(one, ())):
            found[one] = None
    return [one for one in found if one != task] if task in found else []


def _is_past(at: Seen | None, attempt: int) -> bool:
    return at is not None and at.attempt > attempt


def _record(number: int, one: Requested) -> dict[str, Any]:
    said = {"task": one.request.target, "round": number, "redo": one.redo[0][0]}
    return {**said, "reason": one.reason, "by": one.by, "at": one.at}
