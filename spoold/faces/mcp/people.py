"""ask_human, and for operators approve: questions to people, and their answers.

Law: an agent asks and never answers. Within a task the question is the task's, and stands until its attempt is over;
outside of one it is a task of its own, which waits for its approval without a slot.

Touches: the clock.
"""

from __future__ import annotations

import time
from typing import Any

import anyio.to_thread
from pydantic import Field

from spoold.client.read import questions
from spoold.client.read.questions import Answer as Said
from spoold.client.spool.waiting import Pace
from spoold.faces.mcp.delegation import submit
from spoold.faces.mcp.session import Session
from spoold.faces.mcp.tool import Answer, Arguments, Id, Key, Notify, Reason, Texts, Tool, Wait, bounded_s
from spoold.faces.mcp.waits import NO_SLOT, NOTIFY_EVERY_S, SLOT_WITHIN_S
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import ENDED
from spoold.protocol.names import key

NAME_MOST = 100


class AskHuman(Arguments):
    """The arguments of ask_human."""

    question: str = Field(default="", max_length=2000, description="What people are asked.")
    choices: Texts = Field(default=(), description="The answers that may be given; none: any.")
    questionId: str = Field(default="", max_length=NAME_MOST, description="To wait on for a question asked before.")
    timeout: Wait = 45_000
    idempotencyKey: Key | None = None


class Asked(Answer):
    """The answer of a person, or that there is none yet."""

    questionId: str
    answered: bool
    answer: Any = Field(default=None, description="One of the choices, or any value.")
    rejected: bool = Field(default=False, description="The answer is no; reason says why.")
    by: str = ""
    reason: str = ""
    message: str


class Approve(Arguments):
    """The arguments of approve."""

    taskId: Id
    answer: Any = Field(default=None, description="One of the choices, or any value; else the first choice, or true.")
    reject: bool = Field(default=False, description="Answer with no.")
    question: str = Field(default="", max_length=NAME_MOST, description="Which, if a task asks several.")
    seen: str = Field(
        default="",
        max_length=64,
        description="What the call without it returned: approves the task that was shown, and no other.",
    )
    reason: Reason = ""


class Part(Answer):
    """One thing that a task says. lines: each by itself, whole; what is hidden in them stands there as escapes."""

    label: str
    lines: list[str]


class Approved(Answer):
    """A question that was answered, or all that a task says it would run, to be shown to a person first."""

    taskId: str
    approved: bool
    rejected: bool
    message: str
    seen: str = Field(default="", description="For the call that approves what is shown here.")
    runs: list[Part] = Field(
        default=[],
        description="All that the task's file says of what it runs, and last what is read when it runs: no part of "
        "an approval.",
    )


async def ask(session: Session, arguments: AskHuman, notify: Notify) -> Asked:
    """Ask people something, or wait on for their answer. Errors: BadFile, NotFound, SpoolError."""
    name = await anyio.to_thread.run_sync(_asked, session, arguments)
    until, told_at = time.monotonic() + bounded_s(arguments.timeout), 0.0
    pace = Pace(session.spool.store.clock, session.spool.store.settings.poll)
    async with session.slot.lent() as pause:
        while True:
            found = await anyio.to_thread.run_sync(_look, session, name, pace, abandon_on_cancel=True)
            now = time.monotonic()
            if found is not None or now >= until:
                break
            if now - told_at >= NOTIFY_EVERY_S:
                told_at = now
                await notify(0, 1, "nobody has answered yet")
            await pause(min(pace.pause_s(), until - now))
    slot = await session.slot.back(SLOT_WITHIN_S)
    return _told(name, found, slot=slot)


def _told(name: str, found: Said | None, *, slot: bool) -> Asked:
    rest = "" if slot else f" {NO_SLOT}"
    if found is None:
        said = "nobody has answered yet; the question stands, and `spool asks` shows it to people. Call again with "
        return Asked(questionId=name, answered=False, message=f"{said}questionId {name!r}, or go on without.{rest}")
    said = "the answer is no" if found.rejected else "answered"
    return Asked(
        questionId=name,
        answered=True,
        answer=found.answer,
        rejected=found.rejected,
        by=found.by,
        reason=found.reason,
        message=f"{said}, by {found.by or 'an unknown user'}.{rest}",
    )


def _asked(session: Session, arguments: AskHuman) -> str:
    """Return the name of the question, which is put to people if it is new."""
    if arguments.questionId:
        if session.own is None:
            return session.reach.find(arguments.questionId).id
        return arguments.questionId
    if not arguments.question:
        raise BadFile("ask_human", "question", "is missing.", "say what people are asked, or give a questionId.")
    again, asked = arguments.idempotencyKey or arguments.question, (arguments.question, *arguments.choices)
    if again not in session.asked:
        session.asked[again] = asked, _put(session, arguments)
    before, name = session.asked[again]
    # A call that waits on may leave the choices out.
    if asked not in (before, before[:1]):
        which = "idempotencyKey" if arguments.idempotencyKey else "question"
        raise SpoolError(
            f"{which}: it was used for another question, {name}, which differs in its words or its choices. "
            f"Fix: use another {which}, or the same arguments."
        )
    return name


def _put(session: Session, arguments: AskHuman) -> str:
    text, choices = arguments.question, list(arguments.choices)
    if session.own is None:
        approval = {"ask": text, **({"choices": choices} if choices else {})}
        draft = {"command": ["true"], "name": f"question: {text}"[:200], "approval": approval, "max_retries": 0}
        return submit(session, draft, arguments.idempotencyKey)[0]
    # A server that was started again in the same attempt finds its question.
    for one in session.spool.asks():
        if key(one.task) == key(session.own) and (one.ask, one.attempt) == (text, session.attempt):
            return one.question
    return session.spool.ask(text, choices)


def _look(session: Session, name: str, pace: Pace) -> Said | None:
    """Return the answer, None while there is none. Errors: NotFound for a question that is gone."""
    spool = session.spool
    with spool.reaching():
        if session.own is not None:
            own = session.own
            look = pace.forgiving(lambda: questions.look_for(spool.store, own, name), questions.UNSEEN)
            if look.answer is None and not look.asked:
                raise NotFound(f"the question {name!r} is gone, and nobody has answered it. Fix: ask it again.")
            return look.answer
        located = session.reach.find(name)
        found = pace.forgiving(lambda: questions.decided(spool.store, located), None)
        if found is None and located.state in ENDED:
            raise NotFound(f"the question {name!r} has ended without an answer. Fix: ask it again, with another key.")
        return found


def approve(session: Session, arguments: Approve) -> Approved:
    """Answer the question of a task. Errors: NotFound, SpoolError where nothing is asked, or for a wrong answer."""
    spool, task = session.spool, session.reach.find(arguments.taskId).id
    if arguments.reject:
        spool.reject(task, reason=arguments.reason or "rejected by an operator", question=arguments.question)
        return Approved(taskId=task, approved=False, rejected=True, message=f"{task} was rejected.")
    if not arguments.seen:
        shown = spool.shown(task)
        if shown.asks:
            return _shown(shown)
    said = arguments.answer if isinstance(arguments.answer, str) else None
    more = {"reason": arguments.reason, "question": arguments.question, "seen": arguments.seen}
    spool.approve(task, arguments.answer, said=said, **more)
    return Approved(taskId=task, approved=True, rejected=False, message=f"{task} has its answer.")


def _shown(shown: questions.Shown) -> Approved:
    """Return what a task says it would run. Errors: SpoolError where it is not admitted yet."""
    if not shown.seen:
        raise SpoolError(f"task {shown.task} is not admitted yet. Fix: wait a moment, and call again.")
    runs = [Part(label=part.title, lines=list(part.lines)) for part in shown.parts]
    said = "nothing is approved yet. Show a person all of runs, and call again with this seen after a yes."
    return Approved(taskId=shown.task, approved=False, rejected=False, message=said, seen=shown.seen, runs=runs)


ASK_HUMAN = Tool(
    "ask_human",
    "Ask a person",
    "Put a question to the people who watch the pool, and wait for the answer, at most 45 s. If nobody has answered "
    "by then, the question stands: call again with the questionId, or go on without an answer. Asking the same again "
    "asks nothing new.",
    AskHuman,
    Asked,
    ask,
    waits=True,
)
APPROVE = Tool(
    "approve",
    "Answer a question",
    "Answer the question of a task, which then starts or goes on, or reject it. Of a task that has not started, the "
    "first call returns all that its file says it would run, and seen; the call with this seen approves that file, "
    "and no other. What it reads elsewhere when it runs is named there, and is no part of an approval.",
    Approve,
    Approved,
    approve,
    operators_only=True,
)
