"""Why a task is not running, in words, and the change that would help.

Law: leaders and workers decide by the gates and the matching, and the same are asked here, so that the explanation is
what will be done. Every reason names its gate and its fix; the first one is the verdict. `why_waiting` answers for a
task that waits or is ready: it loads the gates, and is loaded for no other.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.protocol.agent_messages import EXCERPT_MAX, names_in, reported
from spoold.protocol.amount import amount, length
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code
from spoold.rules.answers import task_history
from spoold.rules.answers.task_facts import Answer, Case, Claim, Explanation, Reason, first_of, leadership, unread
from spoold.rules.answers.why_failed import by, failed, frozen
from spoold.rules.gates.standing_requests import hold_of, tells, unanswered

# So many drops take longer than moments.
MANY_DROPS = 100
_FROZEN_THERE = "the task is frozen there if its lease is over"
_LIVING = (State.WAITING, State.RETURNED, State.READY, State.CLAIMED)
_SHOWN_AS = {State.RETURNED: State.WAITING}


def explain(case: Case) -> Explanation:
    """The reasons for the task's state."""
    answers = {
        State.PENDING: _pending,
        State.WAITING: _queued,
        State.RETURNED: _queued,
        State.READY: _queued,
        State.CLAIMED: _claimed,
        State.COMPLETED: _completed,
        State.FAILED: _failed,
        State.SKIPPED: _failed,
        State.REJECTED: _rejected,
    }
    verdict, reasons = answers[case.state](case)
    reasons = [*reasons, *_told(case)]
    if case.sent_back:
        reasons = [*reasons, Reason("redo", f"it was {case.sent_back}", "nothing: that is why it runs again")]
    if case.fault:
        fix = "report it as a bug; `spool retry` it with a release that has the fix"
        # The advice for a task that is no valid one is to mend it, and here it is not at fault.
        mended = case.last is not None and case.last.code == Code.INVALID_TASK
        reasons = [*([] if mended else reasons), Reason("fault", case.fault, fix)]
    if case.twin is not None:
        text = f"another drop with this id was rejected: {case.twin.told(case.id)}"
        reasons = [*reasons, Reason("twin", text, case.twin.mend)]
    state = _SHOWN_AS.get(case.state, case.state).value
    last_line = case.last.last_line if case.last is not None and case.state is State.FAILED else ""
    return Explanation(case.id, state, case.attempt, verdict, tuple(reasons), last_line)


def _queued(case: Case) -> Answer:
    from spoold.rules.answers import why_waiting  # with all gates, which no other state needs

    return why_waiting.ready(case) if case.state is State.READY else why_waiting.waiting(case)


def _pending(case: Case) -> Answer:
    reasons = list(leadership(case))
    if case.disk.full:
        reasons.append(Reason("disk", f"{case.disk.value}, so no drop is admitted", case.disk.mend))
    if case.held:
        text = "a program has the file open for writing"
        reasons.append(Reason("writer", text, "it is judged when that program closes the file or ends"))
    if case.hidden is not None:
        text = f"the drop {case.hidden.told(case.id)} So it is not known here whether it is a task"
        reasons.append(Reason("hidden", text, case.hidden.mend))
    if case.problem is not None:
        wrong = f"the drop {case.problem.told(case.id)}"
        if case.young:
            wrong = f"it may still be on its way; so far {wrong}"
            change = f"{case.problem.mend} It is rejected once it has been still for {case.grace_s:g} s."
            if case.held:
                change = case.problem.mend
            reasons.append(Reason("young", wrong, change))
        else:
            reasons.append(Reason("drop", f"it will be rejected: {wrong}", case.problem.mend))
    if case.awaits:
        change = "it is judged once that batch is tasks, or is taken out of the spool"
        reasons.append(Reason("batch", f"it waits for a batch: {case.awaits}", change))
    if not reasons and case.ahead >= MANY_DROPS:
        text = f"before it in pending/: {amount(case.ahead, 'drop')}"
        reasons.append(Reason("drops", text, f"nothing: {case.leader} admits drops in the order of their names"))
    return first_of(reasons, f"nothing stands in its way: {case.leader} admits it within moments"), reasons


def _runs_instead(claim: Claim) -> Iterator[Reason]:
    """Why a task runs as another type."""
    if claim.kind:
        text = f"a limit of its own type was closed when it became ready, so {claim.kind} runs it"
        yield Reason("instead", text, "a later attempt uses its own type again, once no limit of that is closed")


def _told(case: Case) -> Iterator[Reason]:
    """What its agent was told, and was not given yet."""
    if case.state not in _LIVING:
        return
    given = names_in(case.claim.progress) if case.claim is not None else []
    when = task_history.when(
        case.claim.progress if case.claim is not None else None, runs=case.state is State.CLAIMED
    )
    for one in tells(case.requested):
        if one.unique not in given:
            text = f"{one.by or 'an unknown user'} told its agent at {one.at}: {one.tell[:EXCERPT_MAX]}"
            yield Reason("told", text, f"its agent is given that {when}; `spool show {case.id}` has all of it")


def _held_next(case: Case) -> Iterator[Reason]:
    """A hold of a task that runs."""
    if (held := hold_of(case.requested)) is not None:
        text = f"its next attempt is held, if it has one, {held.told}"
        yield Reason("hold", text, f"`spool release {case.id}`; this attempt goes on")


def _lent(case: Case, claim: Claim) -> list[Reason]:
    """Why a task that waits for others, or has waited for them, does not go on."""
    if claim.back:
        text = f"it has waited, wants to go on, and waits for what it lent meanwhile: {'; '.join(claim.back)}"
        change = "the leader gives it all of that before any ready task gets it, once enough tasks have ended or wait"
        return [Reason("lent", text, f"{change}; `spool limits` shows the figures")]
    if not claim.lent:
        return []
    others, ended = "other tasks", "those have ended"
    if unanswered(case.requested):  # what asks may wait for the answer, for children, or for both
        others, ended = "an answer, or for other tasks", "it has the answer, or those have ended,"
    text = f"it waits for {others}, and {claim.worker} has given its slot to others meanwhile"
    change = f"it goes on when {ended} and a slot is free; `spool tree {case.id}` shows its children"
    return [Reason("lent", text, change)]


def _so_far(case: Case, claim: Claim) -> Iterator[Reason]:
    """What an attempt that runs has reported, and how the one before it ended."""
    if claim.progress is not None:
        text = f"it last reported: {reported(claim.progress)}"
        yield Reason("progress", text, f"`spool logs -f {case.id}` follows its output")
    if claim.progress_problem:
        yield Reason("progress", claim.progress_problem, "the next report that counts takes its place")
    if case.last is not None:
        yield Reason("retry", case.before, f"nothing; `spool show {case.id}` lists each attempt before it")


def _claimed(case: Case) -> Answer:
    claim = case.claim
    if claim is None:
        return "it runs", []
    since = f" since {claim.since}" if claim.since else ""
    reasons = [*_runs_instead(claim), *_so_far(case, claim)]
    if claim.frozen_s:
        text = f"it was frozen for {length(claim.frozen_s)}, while its worker had no lease"
        reasons.append(Reason("frozen", text, "its timeouts do not count that time"))
    for asked in unanswered(case.requested):
        choices = f" ({', '.join(asked.choices)})" if asked.choices else ""
        text = f"it asked '{asked.ask}'{choices} at {asked.at}, and nobody has answered"
        reasons.append(Reason("question", text, f"`spool approve {case.id} --answer …`, or `spool reject {case.id}`"))
    reasons += [*_lent(case, claim), *_held_next(case), *unread(case)]
    if claim.cancel:
        text = f"a user asked to cancel it, and {claim.worker} has not stopped it yet"
        reasons.append(Reason("cancel", text, "its worker stops it within a beat"))
    if claim.ranked:
        text = "a user asked for another priority, which no attempt gets that has begun"
        reasons.append(Reason("priority", text, "its next attempt has it, if there is one"))
    if claim.alive and not claim.stuck and claim.silent_s is not None:
        text = f"{claim.worker} holds it{since}, attempt {case.attempt}"
        text = f"{text}, and was last heard of {length(claim.silent_s)} ago; {_FROZEN_THERE}"
        change = f"it goes on as the same attempt once {claim.worker} reaches the share again"
        change = f"{change}; if others reach it before, the leader takes the task back, and it runs again elsewhere"
        return text, [Reason("silent", text, change), *leadership(case), *reasons]
    if claim.alive and not claim.stuck:
        text = f"it runs on {claim.worker}{f' as {claim.kind}' if claim.kind else ''}{since}, attempt {case.attempt}"
        if case.disk.full:
            text = f"{text}, or has ended and cannot say so: {case.disk.value}, so no result can be written"
            reasons.insert(0, Reason("disk", text, f"{case.disk.mend}; its worker tries again until then"))
        if case.blocked:
            text = f"{text}, or has ended and cannot say so: {case.blocked}"
            reasons.insert(0, Reason("blocked", text, "when that is fixed, its worker ends it within moments"))
        return text, reasons
    text = f"worker {claim.worker} holds it{since} and has not been heard of lately"
    if claim.stuck:
        change = "when that is fixed, the leader takes it back within moments, and it runs again elsewhere"
        text = f"{text}; the leader cannot take it back: {claim.stuck}"
        return text, [Reason("denied", text, change), *leadership(case), *reasons]
    text += f"; {_FROZEN_THERE}" if claim.silent_s is not None else ""
    change = f"the leader takes it back after {case.dead_after_s:g} s of silence, and it runs again elsewhere"
    change = f"{change}; if the share was silent for all nodes, the worker has as long again to come back"
    return text, [Reason("silent", text, change), *leadership(case), *reasons]


def _completed(case: Case) -> Answer:
    text = f"it completed{by(case)}, attempt {case.attempt}{frozen(case)}"
    text += f": {case.last.work}" if case.last is not None and case.last.work else ""
    if case.last is None or not case.last.remark:
        return text, []
    problem, _, fix = case.last.remark.partition(" Fix: ")
    return text, [Reason("output", problem, fix.rstrip("."))]


def _failed(case: Case) -> Answer:
    text, reasons = failed(case)
    return text, [*reasons, *(leadership(case) if case.retried else ())]


def _rejected(case: Case) -> Answer:
    if case.problem is None:
        text = "it was rejected, and no reason is beside it"
        return text, [Reason("rejected", text, "put it into pending/ again and it is judged anew")]
    text = f"it was rejected: {case.problem.told(case.id)}"
    reasons = [Reason("rejected", text, case.problem.mend)]
    if case.young:
        change = "if its writer goes on, the leader judges it again once it is whole"
        reasons.append(Reason("unfinished", "it looked unfinished, and nothing was added to it for a while", change))
    return text, reasons
