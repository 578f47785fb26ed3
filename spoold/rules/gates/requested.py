"""The requests that stand about one task: its holds, the question about its approval, the answers, and what its agent
is told.

Law: what counts follows from the files that stand, and from nothing else, so that every leader and the worker that
claims the task come to the same answer. A reject goes before an approve; of several approves the first by UNIQUE
counts. An answer that names an ORDER is about the token of that order alone: after `spool retry` it counts no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.protocol.approval import Approval, default_answer, may_answer
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
