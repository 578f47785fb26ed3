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
from spoold.rules.lease import MISSING, MISSING_MEND
from spoold.rules.takers import NAMED, room_now, some, suitable

# West of Greenwich a task may name a moment that is beyond the years which can be written in UTC.
_LAST = datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()
# What the task itself says ended it, so that the same task can only end so again.
_SPENT = frozenset((Code.DEADLINE, Code.INVALID_TASK))
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
        wrong = f"the drop {case.problem.told(case.id)}"
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
        text = f"it runs on {claim.worker}{since}, attempt {case.attempt}"
        if case.disk.full:
            text = f"{text}, or has ended and cannot say so: {case.disk.value}, so no result can be written"
            reasons.insert(0, Reason("disk", text, f"{case.disk.mend}; its worker tries again until then"))
        return text, reasons
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
    if last.code == Code.DEPENDENCY_FAILED:
        change = _about_origins(case)
    elif last.code in _SPENT:
        change = f"{_anew(case.id)}, since a retry would fail as well"
    else:
        change = f"`spool retry {case.id}` gives it a fresh budget"
    text = f"it failed{_by(case)}, attempt {case.attempt}: {last.ending}"
    return text, [Reason("failed", text, change)]


def _about_origins(case: Case) -> str:
    """What to do about a task that failed since others did: first about those with which it began."""
    named = dict(list(case.origins.items())[:NAMED])
    first = "; ".join(_anew(task) if code in _SPENT else f"`spool retry {task}`" for task, code in named.items())
    if any(code in _SPENT for code in named.values()):
        return f"{first}; then this one, under another id too, with the new one among its dependencies"
    between = "" if set(named) <= set(case.conditions.needs) else "what failed because of it, then "
    return f"{first or 'mend what it depends on'}, then {between}`spool retry {case.id}`"


def _anew(task: str) -> str:
    return f"submit {task} again, corrected and under another id"


def _rejected(case: Case) -> Answer:
    if case.problem is None:
        text = "it was rejected, and no reason is beside it"
        return text, [Reason("rejected", text, "put it into pending/ again and it is judged anew")]
    text = f"it was rejected: {case.problem.told(case.id)}"
    return text, [Reason("rejected", text, case.problem.mend)]


def _by(case: Case) -> str:
    if case.last is None:
        return ""
    return f" on {case.last.by}" + (f" at {case.last.at}" if case.last.at else "")


def _first(reasons: list[Reason], otherwise: str) -> str:
    return reasons[0].reason if reasons else otherwise


def _leadership(case: Case) -> Iterator[Reason]:
    if case.leader is None:
        why, change = "nobody leads the spool, so", "start `spool master` or `spool up` on any machine that mounts it"
        if not case.token:
            why, change = f"{MISSING}, and", MISSING_MEND
        yield Reason("leader", f"{why} nothing is admitted, retried or taken back", change)


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
        then = _anew(case.id) if verdict.code in _SPENT else f"mend the cause, then `spool retry {case.id}`"
        change = f"the leader fails it as {verdict.code}; {then}"
        return Reason(verdict.gate, verdict.reason, change)
    text, until = verdict.reason, verdict.until
    if until is not None:
        stamp = datetime.fromtimestamp(min(until, _LAST), UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
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
