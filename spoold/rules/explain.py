"""Why a task is not running, in words, and what would change it.

Law: the gates and the matching that leaders and workers decide by are asked here too, so that what is explained is
what will be done. Every reason names its gate and its mend; the first one is the verdict.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code
from spoold.rules.case import Case, Explanation, Reason
from spoold.rules.gates import (
    Conditions,
    Facts,
    LaneFacts,
    Parent,
    Pass,
    Refuse,
    Verdict,
    Wait,
    deadline,
    judge,
    judge_type,
)
from spoold.rules.takers import NAMED, room_now, some, suitable

_SHOWN_AS = {State.RETURNED: State.WAITING}


def explain(case: Case) -> Explanation:
    """Why the task is where it is."""
    answers = {
        State.PENDING: _pending,
        State.WAITING: _waiting,
        State.RETURNED: _waiting,
        State.READY: _ready,
        State.CLAIMED: _claimed,
        State.COMPLETED: _completed,
        State.FAILED: _failed,
        State.REJECTED: _rejected,
    }
    verdict, reasons = answers[case.state](case)
    return Explanation(case.id, _SHOWN_AS.get(case.state, case.state).value, case.attempt, verdict, tuple(reasons))


Answer = tuple[str, list[Reason]]


def _pending(case: Case) -> Answer:
    reasons = list(_leadership(case))
    if case.problem is not None:
        where = f"{case.problem.field}: " if case.problem.field else ""
        wrong = f"the drop {where}{case.problem.problem}"
        if case.young:
            wrong = f"it may still be on its way; so far {wrong}"
            change = f"{case.problem.mend} It is rejected once it has been still for {case.grace_s:g} s."
            reasons.append(Reason("young", wrong, change))
        else:
            reasons.append(Reason("drop", f"it will be rejected: {wrong}", case.problem.mend))
    return _first(reasons, f"nothing stands in its way: {case.leader} admits it within moments"), reasons


def _waiting(case: Case) -> Answer:
    reasons = list(_task_gates(case))
    reasons += _type_gates(case, case.type)
    reasons += _leadership(case)
    if case.standing >= case.window:
        text = f"its lane is full: {case.standing} stand ready there, {case.ahead} wait before it"
        reasons.append(Reason("window", text, "it moves up as they are taken; more workers or slots make it faster"))
    reasons += suitable(case)[1]
    return _first(reasons, f"nothing stands in its way: {case.leader} moves it to ready/ within moments"), reasons


def _ready(case: Case) -> Answer:
    late = deadline(case.conditions, Facts(case.now, case.parents.__getitem__))
    reasons = [] if isinstance(late, Pass) else [_reason(case, late)]
    # A ready task has passed its type's limit already; only a pause or a halt takes it back.
    reasons += _type_gates(case, replace(case.type, limit=None))
    able, hindrances = suitable(case)
    reasons += hindrances
    reasons += room_now(case, able) if able else []
    return _first(reasons, "it is ready: a worker takes it within moments"), reasons


def _claimed(case: Case) -> Answer:
    claim = case.claim
    if claim is None:
        return "it runs", []
    since = f" since {claim.since}" if claim.since else ""
    reasons = []
    if claim.progress is not None:
        text = f"it last reported: {claim.progress}"
        reasons.append(Reason("progress", text, f"`spool logs -f {case.id}` follows what it prints"))
    if claim.cancel:
        text = f"somebody asked to cancel it, and {claim.worker} has not stopped it yet"
        reasons.append(Reason("cancel", text, "its worker stops it within a beat"))
    if claim.alive:
        return f"it runs on {claim.worker}{since}, attempt {case.attempt}", reasons
    text = f"worker {claim.worker} holds it{since} and has not been heard of lately"
    change = f"the leader takes it back after {case.dead_after_s:g} s of silence, and it runs again elsewhere"
    return text, [Reason("silent", text, change), *_leadership(case), *reasons]


def _completed(case: Case) -> Answer:
    return f"it completed{_by(case)}, attempt {case.attempt}", []


def _failed(case: Case) -> Answer:
    last = case.last
    if last is None:
        text = "it failed, and its result cannot be read"
        return text, [Reason("failed", text, "`spool fsck` says more")]
    change = f"`spool retry {case.id}` gives it a fresh budget"
    if last.code == Code.DEPENDENCY_FAILED:
        failed = [p for p in case.conditions.needs if case.parents.get(p) is Parent.FAILED]
        first = "; ".join(f"`spool retry {p}`" for p in failed[:NAMED]) or "mend what it depends on"
        change = f"{first}, then `spool retry {case.id}`"
    text = f"it failed{_by(case)}, attempt {case.attempt}: {last.ending}"
    return text, [Reason("failed", text, change)]


def _rejected(case: Case) -> Answer:
    if case.problem is None:
        text = "it was rejected, and no reason is beside it"
        return text, [Reason("rejected", text, "put it into pending/ again and it is judged anew")]
    where = f"{case.problem.field}: " if case.problem.field else ""
    text = f"it was rejected: {where}{case.problem.problem}"
    return text, [Reason("rejected", text, case.problem.mend)]


def _by(case: Case) -> str:
    if case.last is None:
        return ""
    return f" on {case.last.by}" + (f" at {case.last.at}" if case.last.at else "")


def _first(reasons: list[Reason], otherwise: str) -> str:
    return reasons[0].reason if reasons else otherwise


def _leadership(case: Case) -> Iterator[Reason]:
    if case.leader is None:
        text = "nobody leads the spool, so nothing is admitted, retried or taken back"
        yield Reason("leader", text, "start `spool master` or `spool up` on any machine that mounts it")


def _task_gates(case: Case) -> Iterator[Reason]:
    """What the leader's own verdict is first, then each part that would still hold if that were gone."""
    conditions, parents = case.conditions, case.parents

    def parent(task_id: str) -> Parent:
        return parents.get(task_id, Parent.UNKNOWN)

    facts = Facts(case.now, parent, case.rest_s)
    resting = replace(facts, rest_s=0.0)
    # Which parents a verdict is about; the whole verdict comes first, and its parts say more exactly what of.
    found: dict[Verdict, tuple[str, ...]] = {judge(conditions, facts): ()}
    for kind in (Parent.UNKNOWN, Parent.OPEN):
        needs = tuple(p for p in conditions.needs if parent(p) is kind)
        found[judge(Conditions(needs=needs), resting)] = needs
        ends = tuple(p for p in conditions.needs_ended if parent(p) is kind)
        found[judge(Conditions(needs_ended=ends), resting)] = ends
    found[judge(Conditions(not_before=conditions.not_before), resting)] = ()
    found[judge(Conditions(), facts)] = ()
    for verdict, about in found.items():
        if not isinstance(verdict, Pass):
            yield _reason(case, verdict, about)


def _type_gates(case: Case, facts: LaneFacts) -> Iterator[Reason]:
    if case.lane is not None:
        verdict = judge_type(case.lane.type, facts)
        if not isinstance(verdict, Pass):
            yield _reason(case, verdict)


def _reason(case: Case, verdict: Wait | Refuse, about: tuple[str, ...] = ()) -> Reason:
    """A gate's verdict with its mend; about are the parents that it is about."""
    if isinstance(verdict, Refuse):
        change = f"the leader fails it as {verdict.code}; mend the cause, then `spool retry {case.id}`"
        return Reason(verdict.gate, verdict.reason, change)
    text, until = verdict.reason, verdict.until
    if until is not None:
        stamp = datetime.fromtimestamp(until, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        text = f"{text}: {max(until - case.now, 0):.0f} s more, until {stamp}"
    if verdict.gate == "retry_delay" and case.last is not None:
        text = f"{text}; attempt {case.last.number} ended as {case.last.ending}"
    return Reason(verdict.gate, text, _change(case, verdict.gate, about), until)


def _change(case: Case, gate: str, about: tuple[str, ...]) -> str:
    """What a person can do about a gate that says not now."""
    kind = case.lane.type if case.lane is not None else ""
    if gate in ("dependencies", "after_any"):
        return _about_parents(case, about)
    if gate == "pause":
        return f"`spool resume{f' {kind}' if kind in case.type.paused and '+all' not in case.type.paused else ''}`"
    return {
        "not_before": "time; or cancel it and submit it again without not_before",
        "retry_delay": "time; `retry.backoff_s` of the task or [retry] in spool.toml says how long",
        "halt": "`spool resume`",
        "limit": f"it goes on when one of them ends; or raise [types.{kind}] max_concurrent in spool.toml",
    }[gate]


def _about_parents(case: Case, parents: tuple[str, ...]) -> str:
    """What to do about parents that are all unknown, or all still open."""
    if any(case.parents.get(p) is Parent.OPEN for p in parents):
        return some([f"{p} is {case.places.get(p, 'open')} (`spool explain {p}`)" for p in parents])
    named = [f"{p} (it was {case.places[p]})" if p in case.places else p for p in parents]
    return f"submit {some(named)}, or cancel this task and submit it without"
