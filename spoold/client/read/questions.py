"""The questions that stand, and whether a task can be held, released or answered.

Law: looks and never touches. A question is answered when an answer to it stands, whether a leader has seen it or not.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from spoold.client.read.task_info import list_attempts, read_content, read_file
from spoold.pictures import task_description
from spoold.protocol import codec
from spoold.protocol.amount import some
from spoold.protocol.approval import Approval, may_answer
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import Request, Verb
from spoold.rules.gates.standing_requests import (
    Requested,
    answer_of,
    decision,
    hold_of,
    open_questions,
    unanswered,
)
from spoold.store import control
from spoold.store.approval_answers import replied
from spoold.store.store import Store, stamp
from spoold.store.task_location import Located, locate_many


@dataclass(frozen=True, slots=True)
class Question:
    """A question that nobody has answered. question: its name, for a task that asks several; at, until: RFC 3339.

    attempt: of the running task that asks, None for a task that waits for its approval; by: who asked.
    """

    task: str
    ask: str
    choices: tuple[str, ...]
    at: str
    until: str
    attempt: int | None
    question: str
    by: str


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a question: by whom, when (RFC 3339, for people) and what; a rejection has no answer."""

    answer: Any
    rejected: bool
    by: str
    at: str
    reason: str


@dataclass(frozen=True, slots=True)
class Look:
    """What a look for an answer found. asked: whether the question still stands."""

    asked: bool
    answer: Answer | None = None


@dataclass(frozen=True, slots=True)
class Shown:
    """What a task's file says that it runs, and what decides that, as people are shown it: `parts` of `work`.

    seen: the SHA-256 of its file, which an approve names; '' where it is not admitted yet, so that it has no file of
    its own. asks: whether an approval is asked for before it starts, and it has not started.
    """

    task: str
    seen: str
    parts: tuple[task_description.Part, ...]
    asks: bool = False


_BEFORE = (State.PENDING, State.WAITING, State.READY, State.RETURNED)
UNSEEN = Look(asked=True)


def list_questions(store: Store) -> tuple[Question, ...]:
    """Return the questions that nobody has answered, the oldest first. Errors: OSError."""
    requests = control.list_requests(store.fs)
    targets = dict.fromkeys(key(one.target) for one in requests if one.verb is Verb.ASK)
    about = {task: control.about_task(store.fs, task, requests) for task in targets}
    asked = [one for standing in about.values() for one in open_questions(standing)]
    return tuple(_shown(one) for one in sorted(asked, key=lambda one: (one.at, one.unique)))


def _shown(one: Requested) -> Question:
    until = "" if one.until is None else stamp(one.until)
    return Question(one.request.target, one.ask, one.choices, one.at, until, one.attempt, one.unique, one.by)


def look_for(store: Store, task_id: str, about: str) -> Look:
    """Look for the answer to a question of a running task. Errors: OSError."""
    found = replied(store.fs, task_id, about, None)
    standing = control.about_task(store.fs, task_id)
    asked = next((one for one in standing if one.request.verb is Verb.ASK and one.unique == about), None)
    if found is None:
        return Look(asked is not None)
    rejected = found.request.verb is Verb.REJECT
    value = None if rejected else answer_of(found, asked.choices if asked is not None else ())
    return Look(asked is not None, Answer(value, rejected, found.by, found.at, found.reason))


def decided(store: Store, located: Located) -> Answer | None:
    """Return the answer to the question of a task's `approval`; None while there is none. Errors: OSError."""
    if located.result is not None:
        ended = list_attempts(store, located)
        said = ended[-1].approval if ended else None
        if not isinstance(said, dict):
            return None
        by, at, reason = (str(said.get(name) or "") for name in ("by", "at", "reason"))
        return Answer(said.get("answer"), bool(said.get("rejected")), by, at, reason)
    content = read_content(store, located).get("approval")
    try:
        approval = codec.check(Approval, codec.as_object(content, located.path), located.path)
    except BadFile:
        return None
    order = "" if located.name is None else located.name.order
    given = decision(control.about_task(store.fs, located.id), approval, order)
    if given is None:
        return None
    rejected = given.request.verb is Verb.REJECT
    return Answer(
        None if rejected else answer_of(given, approval.choices), rejected, given.by, given.at, given.reason
    )


def refuses_hold(located: Located) -> SpoolError | None:
    """Return why this task cannot be held; None where it can. Of one that runs, its next attempt is."""
    return _over(located, "held")


def next_attempts(store: Store, ids: Collection[str]) -> dict[str, str]:
    """Return the tasks that run, each with a sentence: a hold counts for their next attempts. Errors: OSError."""
    running = [one for one in locate_many(store, ids).values() if one.state is State.CLAIMED]
    return {one.id: f"its next attempt: attempt {one.attempt} goes on, on {one.node}" for one in running}


def refuses_release(store: Store, located: Located) -> SpoolError | None:
    """Return why this task cannot be released; None where it can. Errors: OSError."""
    if (error := _over(located, "released")) is not None:
        return error
    held = hold_of(control.about_task(store.fs, located.id)) is not None
    if held or read_content(store, located).get("hold") is not None:
        return None
    return SpoolError(f"task {located.id} is not held; `spool explain {located.id}` says what it waits for.")


def refuses_answer(asked: Requested, answer: Any) -> SpoolError | None:
    """Return why this is no answer to the question; None where it is one."""
    if may_answer(asked.choices, answer):
        return None
    return SpoolError(f"the answer {answer!r} is none of the choices. Answer one of: {', '.join(asked.choices)}.")


def question_of(store: Store, located: Located, wanted: str) -> Requested:
    """Return the question that an answer for this task is about; its `about` and `order` are those of the answer.

    wanted: the name of the question, '' where the task asks one. Errors: SpoolError where there is none; OSError.
    """
    if (error := _over(located, "answered")) is not None:
        raise error
    standing = control.about_task(store.fs, located.id)
    if located.state is State.CLAIMED:
        return _asked_by(located, unanswered(standing), wanted)
    data, content = b"", None
    try:
        data = read_file(store, located)
        content = codec.load_object(data, located.path).get("approval")
    except (OSError, BadFile):
        pass  # what cannot be read asks nothing
    if content is None:
        raise SpoolError(f"task {located.id} asks nothing; `spool asks` lists the questions that are open.")
    try:
        approval = codec.check(Approval, codec.as_object(content, located.path), located.path)
    except BadFile as error:
        raise SpoolError(str(error)) from error
    order = "" if located.name is None else located.name.order
    given = decision(standing, approval, order)
    if given is not None:
        raise SpoolError(f"task {located.id} was answered already, {given.told}.")
    request = Request(Verb.ASK, located.id, "new")
    return Requested(request, ask=approval.ask, choices=approval.choices, order=order, seen=_digest(located, data))


def shown_of(store: Store, located: Located) -> Shown:
    """Return what people are to be shown of a task. Errors: BadFile, OSError."""
    data = read_file(store, located)
    content = codec.load_object(data, located.path)
    asks = content.get("approval") is not None and located.state in _BEFORE
    return Shown(located.id, _digest(located, data), task_description.parts_of(content, located.path), asks)


def refuses_seen(asked: Requested, task: str, seen: str) -> SpoolError | None:
    """Return why what was shown is not what would be approved; None where it is. seen: as of `Shown`, '' for none."""
    if seen in ("", asked.seen):
        return None
    now = "it runs already" if asked.about else "its file is another one now"
    return SpoolError(
        f"what was shown of {task} is not what would be approved: {now}. `spool show {task}` shows it as it is."
    )


def _digest(located: Located, data: bytes) -> str:
    return "" if located.state is State.PENDING else hashlib.sha256(data).hexdigest()


def _asked_by(located: Located, asked: list[Requested], wanted: str) -> Requested:
    """Return the question of a running task, as `question_of`. Errors: SpoolError."""
    found = [one for one in asked if wanted in ("", one.unique)]
    if not found:
        what = f"no question {wanted} that is open" if wanted else "no open question"
        raise SpoolError(f"task {located.id} runs and has {what}; `spool asks` lists those there are.")
    if len(found) > 1:
        names = some([f"{one.unique} ({one.ask})" for one in found])
        raise SpoolError(f"task {located.id} asks {len(found)} questions: name one with --question: {names}.")
    one = found[0]
    return Requested(one.request, ask=one.ask, choices=one.choices, about=one.unique)


def _over(located: Located, what: str) -> SpoolError | None:
    if located.state is State.REJECTED:
        return SpoolError(f"rejected/{located.drop} was rejected: there is nothing to be {what}.")
    if located.state in (State.COMPLETED, State.FAILED):
        more = f"; `spool retry {located.id}` runs it again" if located.state is State.FAILED else ""
        return SpoolError(f"task {located.id} has {located.state}: there is nothing to be {what}{more}.")
    return None
