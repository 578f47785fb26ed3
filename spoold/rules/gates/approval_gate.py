"""A question to people that must be answered before the task starts.

Law: it is the last gate of a task to speak, so a task that waits here waits for an answer alone. It opens by a file
that stands in control/, and by nothing else: a question that expires is answered by such a file, too, or refuses.
"""

from __future__ import annotations

from collections.abc import Hashable

from spoold.protocol.amount import length
from spoold.protocol.approval import REJECT, Approval
from spoold.protocol.request import Verb
from spoold.protocol.result import Code
from spoold.protocol.task import Task
from spoold.rules.attempts.end_conditions import past
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import OVER, Conditions, Facts, Held
from spoold.rules.gates.gate import PASS, Refuse, TaskGate, Verdict, Wait, Wake
from spoold.rules.gates.standing_requests import Requested, decision, is_redo, question


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until a person answers; a rejection refuses it, and so may the end of the time to answer."""
    approval = asked_of(conditions)
    if approval is None:
        return PASS
    given = decision(facts.requested, approval, facts.order)
    if given is not None and is_redo(given):
        return Wait("approval", f"{quoted(approval)} was rejected {given.told}; {given.redo[0][0]} is to run again")
    if given is not None and given.request.verb is Verb.REJECT:
        return Refuse("approval", Code.REJECTED, f"{quoted(approval)} was rejected {given.told}")
    if given is not None:
        return PASS
    asked = question(facts.requested, facts.order)
    if expired(asked, facts.now) and approval.on_expire == REJECT:
        within = length(approval.expires_s or 0.0)
        return Refuse("approval", Code.REJECTED, f"nobody answered {quoted(approval)} within {within}")
    return Wait("approval", f"it waits for an answer to {told(approval, asked)}", asked.until if asked else None)


def asked_of(conditions: Conditions) -> Approval | None:
    """The question of a task, None where it has none."""
    approval = conditions.asks("approval")
    assert approval is None or isinstance(approval, Approval)
    return approval


def expired(asked: Requested | None, now: float) -> bool:
    """Whether the time to answer is over. now: in seconds since 1970, by the pool's clock."""
    return asked is not None and asked.until is not None and past(asked.until, now)


def quoted(approval: Approval) -> str:
    """The question, as a sentence quotes it."""
    return f"'{approval.ask}'"


def told(approval: Approval, asked: Requested | None) -> str:
    """The question, its choices, and since when it is asked."""
    choices = f" ({', '.join(approval.choices)})" if approval.choices else ""
    since = f", asked at {asked.at}" if asked is not None and asked.at else ", not asked yet"
    then = "it is rejected" if approval.on_expire == REJECT else f"the answer is {approval.at_the_end!r}"
    end = f"; after {length(approval.expires_s)} of silence {then}" if approval.expires_s is not None else ""
    return f"{quoted(approval)}{choices}{since}{end}"


def _asks(task: Task) -> Hashable | None:
    return task.approval


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    change = f"`spool approve {held.id}`, or `spool reject {held.id} --reason …`"
    ended = [one for one, state in held.parents.items() if state in OVER and batch_in(one) is None]
    if ended:
        change = f"{change}, with `--redo {min(ended)}` to run that again"
    return f"{change}; `spool asks` lists all questions"


GATE = TaskGate(
    "approval",
    "the task's `approval` was given",
    frozenset({Wake.REQUEST, Wake.TIME}),
    _change,
    judge,
    asks=_asks,
)
