"""What the requests that stand say: about one task its holds, the question about its approval, the answers, what its
agent is told and what work is sent back; of types and limits what is paused and closed; and whether a halt stands.

Law: what counts follows from the files that stand, and from nothing else, so that every leader and the worker that
claims the task come to the same answer. A reject goes before an approve; of several approves the first by UNIQUE
counts. An answer that names an ORDER is about the token of that order alone: after `spool retry` it counts no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any

from spoold.protocol.approval import Approval, default_answer, may_answer
from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb


@dataclass(frozen=True, slots=True)
class Requested:
    """One request about a task, with its content; the fields are those of `protocol.request_body`.

    at: as the asker's clock had it, for people; until: when (s since 1970) a question expires, None for never.
    """

    request: Request
    by: str = ""
    at: str = ""
    reason: str = ""
    ask: str = ""
    choices: tuple[str, ...] = ()
    attempt: int | None = None
    order: str = ""
    about: str = ""
    answer: Any = None
    seen: str = ""
    redo: tuple[tuple[str, int], ...] = ()
    tell: str = ""
    until: float | None = None

    @property
    def unique(self) -> str:
        """The UNIQUE of its name: of a question, what an answer is `about`."""
        return self.request.unique

    @property
    def told(self) -> str:
        """Who asked for it, and why."""
        return f"by {self.by or 'an unknown user'}" + (f": {self.reason}" if self.reason else "")


def hold_of(requests: Sequence[Requested]) -> Requested | None:
    """The first hold that stands, None for none."""
    return next(_of(requests, Verb.HOLD), None)


def is_released(requests: Sequence[Requested]) -> bool:
    """Whether a release stands: it lifts the hold that the task was dropped with."""
    return next(_of(requests, Verb.UNHOLD), None) is not None


def decision(requests: Sequence[Requested], approval: Approval, order: str) -> Requested | None:
    """The answer to the question about a task's approval, None while there is none. order: of its token."""
    answers = [one for one in requests if not one.about and one.order in ("", order)]
    rejected = next(_of(answers, Verb.REJECT), None)
    return rejected or next(approvals(answers, approval, order), None)


def approvals(requests: Sequence[Requested], approval: Approval, order: str) -> Iterator[Requested]:
    """The approves that would count, the one that does first. order: of its token."""
    for one in _of(requests, Verb.APPROVE):
        if not one.about and one.order in ("", order) and may_answer(approval.choices, one.answer):
            yield one


def question(requests: Sequence[Requested], order: str) -> Requested | None:
    """The leader's question about the approval of the token of this order; of several the one that expires first."""
    asked = [one for one in _of(requests, Verb.ASK) if one.attempt is None and one.order == order]
    return min(asked, key=lambda one: (one.until or 0.0, one.unique), default=None)


def reply(requests: Sequence[Requested], about: str) -> Requested | None:
    """The answer to a question of a running task, None while there is none. about: the UNIQUE of the question."""
    answers = [one for one in requests if one.about == about]
    return next(_of(answers, Verb.REJECT), None) or next(_of(answers, Verb.APPROVE), None)


def unanswered(requests: Sequence[Requested]) -> list[Requested]:
    """The questions of a running task that nobody has answered, the oldest first."""
    asked = [one for one in _of(requests, Verb.ASK) if one.attempt is not None]
    return [one for one in asked if reply(requests, one.unique) is None]


def open_questions(requests: Sequence[Requested]) -> list[Requested]:
    """The questions about one task that nobody has answered: of its attempts, and the leader's about its approval."""
    found = unanswered(requests)
    asked = [one for one in requests if one.request.verb is Verb.ASK and one.attempt is None]
    for order in dict.fromkeys(one.order for one in asked):
        one = question(requests, order)
        if one is not None and decision(requests, Approval(ask=one.ask or "?", choices=one.choices), order) is None:
            found.append(one)
    return found


def tells(requests: Sequence[Requested]) -> list[Requested]:
    """What the agent of the task is told, the oldest first."""
    return list(_of(requests, Verb.TELL))


def answer_of(given: Requested, choices: Sequence[str]) -> Any:
    """The value of an approve; where it names none, the first choice, or true."""
    return default_answer(choices) if given.answer is None else given.answer


def is_of(given: Requested, file: str) -> bool:
    """Whether an approve is about this content of the task's file, and no other. file: its SHA-256."""
    return given.seen in ("", file)


def record(given: Requested, ask: str, choices: Sequence[str]) -> dict[str, Any]:
    """The fields of a result that say who answered, when and what; a rejection has no answer."""
    answer = None if given.request.verb is Verb.REJECT else answer_of(given, choices)
    said = {"ask": ask, "answer": answer, "by": given.by, "at": given.at, "reason": given.reason}
    return {**said, "rejected": given.request.verb is Verb.REJECT}


def _of(requests: Sequence[Requested], verb: Verb) -> Iterator[Requested]:
    found = [one for one in requests if one.request.verb is verb]
    return iter(sorted(found, key=lambda one: one.unique))


# Work that a person sends back: which tasks run again, in which order, and what the first of them is told.
# Law: what is left to do follows from the attempts that the request names and those that the tasks are at, so that
# the work of a leader that dies is finished by the next one, and nothing runs again twice. A redo is about one
# round, the ORDER of the rejected task's token; once the task has another one, the redo is history and feedback.


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


# What requests close: each pause of a type, each closed limit, and a halt of the whole spool.
# Law: a request stands as long as its file does, and no longer than its own end. Of several, the longest counts.


NO_ENDS: Mapping[Request, float] = {}


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed limit. until: when it opens by itself (s since 1970), None for never; quota: an attempt closed it."""

    until: float | None
    quota: bool


def paused_by(
    requests: Iterable[Request], ends: Mapping[Request, float] = NO_ENDS, now: float = 0.0
) -> dict[str, float | None]:
    """The types that are paused, each with the moment at which its pause ends by itself, if any; +all stands for all.

    ends: the end moments of the requests that name one; now: by the pool's clock. Both in seconds since 1970. If
    several pauses stand for one type, the longest counts.
    """
    return _standing(requests, Verb.PAUSE, ends, now)


def closed_by(
    requests: Iterable[Request], ends: Mapping[Request, float] = NO_ENDS, now: float = 0.0
) -> dict[str, Closed]:
    """The limits that are closed. ends and now as for `paused_by`; a quota outweighs a person who opens earlier."""
    found = {name: Closed(until, quota=False) for name, until in _standing(requests, Verb.CLOSE, ends, now).items()}
    for name, until in _standing(requests, Verb.QUOTA, ends, now).items():
        own = found.get(name)
        if own is None or (own.until is not None and (until is None or until > own.until)):
            found[name] = Closed(until, quota=True)
    return found


def _standing(
    requests: Iterable[Request], verb: Verb, ends: Mapping[Request, float], now: float
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for request in requests:
        end = ends.get(request)
        if request.verb is not verb or (end is not None and end <= now):
            continue
        before = found.get(request.target, end)
        found[request.target] = None if end is None or before is None else max(end, before)
    return found


def halted_by(requests: Iterable[Request]) -> bool:
    """Whether a halt stands."""
    return any(request.verb is Verb.HALT for request in requests)
