"""How an attempt ended, as one of a few classes that the retry rule knows.

Exit codes follow sysexits(3) and the shell: 75 (EX_TEMPFAIL) asks for another try, 64, 65, 77 and 78 say that
another try will not help, 126 and 127 say that this machine cannot run the program, though another may.

Law: an outcome states everything that the retry rule may know of how an attempt ended. It charges at most one of the
two budgets, failures or crashes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, get_args

from spoold.protocol.result import Code, Status

TRY_LATER = 75
PERMANENT = frozenset({64, 65, 77, 78})
CANNOT_RUN = frozenset({126, 127})
# What its worker cannot run now, as an attempt that asks to be tried later says: the task, or any of its type.
NotHere = Literal["task", "type"]
NOT_HERE: tuple[NotHere, ...] = get_args(NotHere)


class Charge(StrEnum):
    """The cost of an attempt to the task's retry budget."""

    NOTHING = "nothing"
    FAILURE = "failure"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Outcome:
    """One ended attempt: final says that another try will not help, whatever the budget holds.

    rests: the next attempt waits for the backoff though this one charges nothing, since at once it might end the same
    way. retry_after_s: the backoff that the attempt itself asked for. elsewhere: this worker cannot run it, another
    may; its charge then holds only if no other could (see `rules.workers.matching`). alike: it cannot run
    any other task of its type or module, either. quota: it closed a limit, which holds the next attempt.
    """

    status: Status
    code: Code | None = None
    message: str = ""
    charge: Charge = Charge.NOTHING
    final: bool = False
    rests: bool = False
    retry_after_s: float | None = None
    elsewhere: bool = False
    alike: bool = False
    quota: bool = False


SUCCESS = Outcome(Status.SUCCESS)


def of_exit(exit_code: int, on: frozenset[int], never: frozenset[int], retry_after_s: float | None = None) -> Outcome:
    """The outcome of a command that ended by itself. on and never: the task's own classes of exit codes."""
    if exit_code == 0:
        return SUCCESS
    if exit_code == TRY_LATER and exit_code not in never:
        message = "exit code 75: asked to be tried later"
        return Outcome(Status.FAILURE, Code.TRY_LATER, message, rests=True, retry_after_s=retry_after_s)
    code = Code.SPAWN_FAILED if exit_code in CANNOT_RUN else Code.EXIT_NONZERO
    final = exit_code in never or (exit_code not in on if on else exit_code in PERMANENT)
    lacks = exit_code in CANNOT_RUN and exit_code not in never
    why = {126: " (not executable)", 127: " (program not found)"}.get(exit_code, "")
    return Outcome(
        Status.FAILURE,
        code,
        f"exit code {exit_code}{why}",
        Charge.FAILURE,
        final,
        retry_after_s=retry_after_s,
        elsewhere=lacks,
        alike=lacks,
    )


def not_here(outcome: Outcome, what: NotHere, why: str) -> Outcome:
    """One that asked to be tried later, by another worker first. what: this worker cannot run now; why: in words."""
    said = "this worker cannot run it" if what == "task" else "this worker can run no task of its type now"
    message = f"exit code {TRY_LATER}: {said}{f': {why}' if why else ''}"
    return replace(outcome, message=message, elsewhere=True, alike=what == "type")


def failure(code: Code, message: str, *, final: bool = False) -> Outcome:
    """An attempt that did not succeed and is charged as a failure."""
    status = Status.TIMEOUT if code is Code.TIMEOUT else Status.FAILURE
    return Outcome(status, code, message, Charge.FAILURE, final)


def refused(message: str) -> Outcome:
    """The task asks for more than the worker's owner allows. Charges nothing, and is final: no other try helps."""
    return Outcome(Status.FAILURE, Code.SPAWN_FAILED, message, final=True)


def unable(message: str) -> Outcome:
    """This worker cannot run it, another may."""
    return Outcome(Status.FAILURE, Code.SPAWN_FAILED, message, Charge.FAILURE, elsewhere=True, alike=True)


def unable_here(message: str) -> Outcome:
    """As `unable`, for a reason of this worker's own: it charges nothing, even if no other worker can run it."""
    return Outcome(Status.HANDED_BACK, Code.HANDED_BACK, message, rests=True, elsewhere=True)


def worker_died(message: str) -> Outcome:
    """The worker, or its task host, vanished under the attempt."""
    return Outcome(Status.WORKER_DIED, Code.WORKER_DIED, message, Charge.CRASH)


def handed_back(message: str) -> Outcome:
    """The task is not at fault: drained, fenced by the worker's own lease, halted. Charges nothing."""
    return Outcome(Status.HANDED_BACK, Code.HANDED_BACK, message)


def not_started(message: str) -> Outcome:
    """The worker, its machine or the share failed before the task began. Charges nothing, and rests."""
    return Outcome(Status.HANDED_BACK, Code.HANDED_BACK, message, rests=True)


def cancelled(told: str) -> Outcome:
    """A user asked for it; told: who, and why."""
    return Outcome(Status.CANCELLED, Code.CANCELLED, f"cancelled while it ran, as {told}", final=True)


def past_deadline(message: str) -> Outcome:
    """The task's deadline is over; no attempt can help."""
    return Outcome(Status.TIMEOUT, Code.DEADLINE, message, final=True)
