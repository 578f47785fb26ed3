"""Why a task failed, in words, and the change that would help: the part of `explain` that looks back.

Law: a retry is the first advice only where another attempt may end otherwise. Where the program itself ended badly,
the advice begins with its output, since the cause is there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from spoold.protocol.amount import length, some
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.rules.answers.task_facts import Case, EndedAttempt, Reason
from spoold.rules.attempts.end_conditions import UNKNOWN_FOR_S
from spoold.rules.gates.facts import Parent

NAMED = 5
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
_UNHELD = frozenset(
    (
        Code.DEPENDENCY_FAILED,
        Code.CANCELLED,
        Code.DEADLINE,
        Code.INVALID_TASK,
        Code.SKIPPED,
        Code.BUDGET_EXCEEDED,
        Code.REJECTED,
    )
)


def speaks(code: str) -> bool:
    """Whether the output of an attempt that ended with this code says why it failed, if it wrote any."""
    return code in _SPEAKING


def began(code: str, started_at: str | None) -> bool:
    """Whether an attempt that ended with this code had begun. started_at: the stamp in its result, if it has one."""
    return bool(started_at) or code not in _UNHELD


def never_started(last: EndedAttempt) -> str:
    """The sentence on an attempt that ended before it began."""
    return f"{'it' if last.number <= 1 else f'attempt {last.number}'} never started: {last.ending}"


def silence(task: str, state: State, last: EndedAttempt | None) -> str:
    """Why a task has no output: a sentence for one that did not begin; '' for any other. last: if it has ended."""
    if state in (State.PENDING, State.WAITING, State.READY):
        return f"{task} has not begun; `spool explain {task}` says why"
    if state in (State.FAILED, State.SKIPPED) and last is not None and not last.started:
        return never_started(last)
    return ""


def failed(case: Case) -> tuple[str, list[Reason]]:
    """The sentence on a failed task, and its reasons."""
    last = case.last
    if last is None:
        text = "it failed, and its result cannot be read"
        return text, [Reason("failed", text, "`spool fsck` says more")]
    text = never_started(last)
    if case.state is State.SKIPPED:
        text = f"it was skipped{by(case)}, which is no failure: {last.message}"
    elif last.started:
        text = f"it failed{by(case)}, attempt {case.attempt}{frozen(case)}: {last.ending}"
    return text, [_retried(case) if case.retried else Reason(str(case.state), text, _change(case, last))]


def _retried(case: Case) -> Reason:
    """A retry that was asked for and was not carried out yet."""
    held = unretried(case.conditions.needs, case.parents)
    if not held:
        return Reason("retry", "a retry was asked for", "the leader carries it out within moments")
    change = f"{_within(held)}, or {case.id} fails again"
    return Reason("retry", f"a retry was asked for, and waits for a retry of {some(held, NAMED)}", change)


def unretried(needs: Iterable[str], parents: Mapping[str, Parent], asked: Collection[str] = ()) -> list[str]:
    """The failed ones of a task's dependencies, without those of which a retry was asked. asked: keys."""
    return [need for need in needs if parents.get(need) is Parent.FAILED and key(need) not in asked]


def still_failed(task: str, held: list[str], origin: str | None = None) -> str:
    """The warning for a task that is retried without its failed dependencies. origin: with which that began."""
    which = f"dependency {held[0]} is" if len(held) == 1 else f"dependencies {some(held, NAMED)} are"
    if origin is not None and key(origin) not in map(key, held):
        also = f"`spool retry {origin} … {_listed(held)}` within {UNKNOWN_FOR_S:g} s, with all between them"
        return f"its {which} still failed, and failed since {origin} did: {also}, or {task} fails again"
    return f"its {which} still failed: {_within(held)}, or {task} fails again"


def _within(held: list[str]) -> str:
    return f"`spool retry {_listed(held)}` within {UNKNOWN_FOR_S:g} s"


def _listed(tasks: list[str]) -> str:
    """Ids for a command line; not more than a person copies."""
    return " ".join([*tasks[:NAMED], *(["…"] if len(tasks) > NAMED else [])])


def _change(case: Case, last: EndedAttempt) -> str:
    said = f"`spool logs {case.id}` has all it wrote; " if last.wrote and speaks(last.code) else ""
    if last.code == Code.DEPENDENCY_FAILED:
        return _about_origins(case)
    if last.code == Code.SKIPPED:
        return f"nothing: it was not needed; once one of them has failed, `spool retry {case.id}` runs it"
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
    if any(code in SPENT for code in named.values()):
        first = "; ".join(anew(task) if code in SPENT else f"`spool retry {task}`" for task, code in named.items())
        return f"{first}; then this one, under another id too, with the new one among its dependencies"
    if not named and (since := _since(case)):
        return since
    if not named:
        return f"fix its dependencies, then `spool retry {case.id}`"
    # By one command: a task that is retried alone fails again when the retry of its dependency comes late.
    causes = ", ".join(f"`spool explain {task}`" for task in named)
    first = f"fix the cause ({causes})"
    if set(named) <= set(case.conditions.needs):
        return f"{first}, then `spool retry {_listed(list(case.origins))} {case.id}`"
    each = f"{some(list(case.origins), NAMED)}, the tasks that failed because of that and {case.id}"
    retry = f"{first}, then retry {each} by one command"
    if case.batch:
        return f"{retry}, if all are of its batch: `spool retry --batch {case.batch} --state failed`"
    command = f"`spool retry {_listed(list(case.origins))} … {case.id}`"
    return f"{retry}: {command}; `spool retry --state failed` retries every failed task"


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
    return f" (frozen for {length(frozen_s)} of it, while its worker had no lease)" if frozen_s else ""
