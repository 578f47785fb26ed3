"""Why a task failed, in words, and the change that would help: the part of `explain` that looks back.

Law: a retry is the first advice only where another attempt may end otherwise. Where the program itself ended badly,
the advice begins with its output, since the cause is there.
"""

from __future__ import annotations

from spoold.protocol.amount import length, some
from spoold.protocol.result import Code
from spoold.rules.answers.case import Case, EndedAttempt, Reason
from spoold.rules.answers.takers import NAMED
from spoold.rules.gates.facts import Parent

# Ends that the task itself causes, so that the same task would only end so again.
SPENT = frozenset((Code.DEADLINE, Code.INVALID_TASK))
# Ends of a program that ran: it or its input is at fault, and its output is the first place to look.
_BY_PROGRAM = frozenset(
    (
        Code.EXIT_NONZERO,
        Code.SIGNALED,
        Code.OOM_KILLED,
        Code.STALLED,
        Code.TIMEOUT,
        Code.MAX_RETRIES,
        Code.OUTPUT_INVALID,
        Code.BUDGET_EXCEEDED,
    )
)
# Wrong programs and directories end so, often after a line of the shell that says which.
_SPEAKING = _BY_PROGRAM | {Code.SPAWN_FAILED}
# Ends that a leader gives to tasks that no worker holds. A dead worker is none: its attempt may have begun unseen.
_UNHELD = frozenset((Code.DEPENDENCY_FAILED, Code.CANCELLED, Code.DEADLINE, Code.INVALID_TASK))


def speaks(code: str) -> bool:
    """Whether the output of an attempt that ended with this code says why it failed, if it wrote any."""
    return code in _SPEAKING


def began(code: str, started_at: str | None) -> bool:
    """Whether an attempt that ended with this code had begun. started_at: the stamp in its result, if it has one."""
    return bool(started_at) or code not in _UNHELD


def never_started(last: EndedAttempt) -> str:
    """The sentence on an attempt that ended before it began."""
    return f"{'it' if last.number <= 1 else f'attempt {last.number}'} never started: {last.ending}"


def failed(case: Case) -> tuple[str, list[Reason]]:
    """The sentence on a failed task, and its reasons."""
    last = case.last
    if last is None:
        text = "it failed, and its result cannot be read"
        return text, [Reason("failed", text, "`spool fsck` says more")]
    text = never_started(last)
    if last.started:
        text = f"it failed{by(case)}, attempt {case.attempt}{frozen(case)}: {last.ending}"
    return text, [Reason("failed", text, _change(case, last))]


def _change(case: Case, last: EndedAttempt) -> str:
    said = f"`spool logs {case.id}` has all it wrote; " if last.wrote and speaks(last.code) else ""
    if last.code == Code.DEPENDENCY_FAILED:
        return _about_origins(case)
    if last.code == Code.TRY_LATER:
        return f"`spool retry {case.id}` grants one more attempt; [retry] max_later in spool.toml says how many"
    if last.code in SPENT:
        return f"{anew(case.id)}, since a retry would fail as well"
    if last.code == Code.SPAWN_FAILED:
        return f"{said}fix the cause, then `spool retry {case.id}`; or {anew(case.id)}"
    if last.code in _BY_PROGRAM:
        return f"{said}fix the cause, then `spool retry {case.id}`"
    return f"`spool retry {case.id}` gives it a fresh budget"


def _about_origins(case: Case) -> str:
    """The fix for a task that failed because others did: first for those with which the failure began."""
    named = dict(list(case.origins.items())[:NAMED])
    first = "; ".join(anew(task) if code in SPENT else f"`spool retry {task}`" for task, code in named.items())
    if any(code in SPENT for code in named.values()):
        return f"{first}; then this one, under another id too, with the new one among its dependencies"
    if not named and (since := _since(case)):
        return since
    between = "" if set(named) <= set(case.conditions.needs) else "the tasks that failed because of it, then "
    return f"{first or 'fix its dependencies'}, then {between}`spool retry {case.id}`"


def _since(case: Case) -> str:
    """The advice where none of its dependencies is failed any more; '' where one is, or is not known."""
    needs = list(case.conditions.needs)
    open_ = [need for need in needs if case.parents.get(need) is Parent.OPEN]
    if not needs or any(case.parents.get(need) not in (Parent.OPEN, Parent.COMPLETED) for need in needs):
        return ""
    if open_:
        verb = "has" if len(open_) == 1 else "have"
        return f"{some(open_, NAMED)} {verb} not ended yet: `spool retry {case.id}`, and it waits for that"
    done = f"{needs[0]} has completed since" if len(needs) == 1 else "all its dependencies have completed"
    return f"{done}: `spool retry {case.id}`"


def anew(task: str) -> str:
    """The advice for a task that no retry helps."""
    return f"submit {task} again, corrected and under another id"


def by(case: Case) -> str:
    """Where and when the last attempt ended."""
    if case.last is None:
        return ""
    return f" on {case.last.by}" + (f" at {case.last.at}" if case.last.at else "")


def frozen(case: Case) -> str:
    """For how long the last attempt was frozen."""
    frozen_s = case.last.frozen_s if case.last is not None else 0.0
    return f" (frozen for {length(frozen_s)} of it, while the share was silent)" if frozen_s else ""
