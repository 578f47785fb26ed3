"""Gates that time opens or closes: the task's first moment, its last one, and the backoff between two attempts.

Only `registry` asks these, as it asks the gates of every subject.

Law: a first moment makes a task wait and never refuses it. A task that is in ready/ stays there, even if the clock
goes back.
"""

from __future__ import annotations

from spoold.protocol.amount import has_fix
from spoold.protocol.result import Code
from spoold.rules.attempts.end_conditions import past
from spoold.rules.gates.facts import Conditions, Facts, Held
from spoold.rules.gates.gate import PASS, Refuse, TaskGate, Tasks, Verdict, Wait, Wake


def judge_not_before(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until its moment."""
    if conditions.not_before is not None and facts.now < conditions.not_before:
        return Wait("not_before", "its not_before has not come yet", conditions.not_before)
    return PASS


def _change_of_not_before(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    return "time; or cancel it and submit it again without not_before"


NOT_BEFORE = TaskGate(
    "not_before", "`not_before` has come", frozenset({Wake.TIME}), _change_of_not_before, judge_not_before
)


# The task's own last moment, by the pool's clock.
# Law: from its deadline on a task is refused, also in ready/. `end_conditions.past` says when that is, here and for
# the leader.


def judge_deadline(conditions: Conditions, facts: Facts) -> Verdict:
    """From its moment on the task never runs."""
    if conditions.deadline is not None and past(conditions.deadline, facts.now):
        return Refuse("deadline", Code.DEADLINE, "its deadline is over")
    return PASS


def _moment(conditions: Conditions) -> float | None:
    return conditions.deadline


DEADLINE = TaskGate(
    "deadline",
    "the deadline is not over",
    frozenset({Wake.TIME}),
    None,
    judge_deadline,
    moment=_moment,
    holds_ready=True,
)


# The backoff between two attempts.
# Law: the backoff is a length, counted by the leader on a clock that cannot be set. The moment in the answer only
# says when to ask again.


def judge_retry_delay(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task until its backoff is over."""
    if facts.rest_s > 0:
        return Wait("retry_delay", "it rests before its next attempt", facts.now + facts.rest_s)
    return PASS


def _change_of_retry_delay(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    said = "time; `retry.backoff_s` of the task or [retry] in spool.toml says how long"
    return f"the fix that the error names, where its cause stays; else {said}" if has_fix(held.before) else said


def _detail_of_retry_delay(held: Held, wait: Wait) -> str:
    """How the last attempt ended."""
    return held.before


RETRY_DELAY = TaskGate(
    "retry_delay",
    "the backoff between attempts is over",
    frozenset({Wake.TIME}),
    _change_of_retry_delay,
    judge_retry_delay,
    tasks=Tasks.RESTING,
    detail=_detail_of_retry_delay,
)
