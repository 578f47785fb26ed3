"""The retry rule: an outcome becomes another attempt, which may ask for more memory, or the end.

Law: failures and crashes have separate budgets: a task that kills its workers is stopped by the crash limit even if
it may fail often, and a laptop that is closed costs a task no failures. The counts are in the task's name, so no node
needs to remember any.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from spoold.protocol.amount import amount
from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import DELAY_MAX_MS, TaskName, key
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.task import Task
from spoold.rules.attempts.attempt_outcome import Charge, Outcome
from spoold.rules.attempts.task_policy import RetryPolicy


@dataclass(frozen=True, slots=True)
class Again:
    """Another attempt, under this name; error says why the last one did not count."""

    name: TaskName
    error: Error | None


@dataclass(frozen=True, slots=True)
class End:
    """The task ends in this state."""

    state: State
    error: Error | None


def decide(name: TaskName, outcome: Outcome, policy: RetryPolicy) -> Again | End:
    """The next step for a task whose attempt `name` ended as `outcome`."""
    if outcome.status is Status.SUCCESS:
        return End(State.COMPLETED, None)
    code = outcome.code or Code.EXIT_NONZERO
    error = Error(code=code, message=f"{outcome.message}{_shortened(outcome, policy)}")
    if outcome.final:
        return End(State.FAILED, error)
    if outcome.charge is Charge.FAILURE:
        if name.failures >= policy.max:
            return End(State.FAILED, _spent(error, name, policy))
        return Again(name.again(failures=1, delay_ms=_delay(name, name.failures + 1, outcome, policy)), error)
    if outcome.charge is Charge.CRASH:
        if name.crashes + 1 >= policy.crash_limit:
            message = f"{outcome.message}; attempt {name.attempt} was crash {name.crashes + 1} of at most "
            return End(State.FAILED, Error(code=code, message=f"{message}{policy.crash_limit} (retry.crash_limit)"))
        return Again(name.again(crashes=1, delay_ms=_delay(name, name.crashes + 1, outcome, policy)), error)
    if outcome.rests:
        # At least one: a task may begin with earlier failures (retry_count).
        free = max(1, name.attempt - name.failures - name.crashes)
        if code is Code.TRY_LATER and free > policy.max_later:
            tried = f"{amount(free, 'attempt')} charged nothing, {policy.max_later} may (retry.max_later)"
            return End(State.FAILED, Error(code=code, message=f"{error.message}; {tried}"))
        return Again(name.again(delay_ms=_delay(name, free, outcome, policy)), error)
    return Again(name.again(), error)


def pardoned(name: TaskName, outlived: int, policy: RetryPolicy) -> int:
    """How many crashes that were charged to the task are taken off again, before another one is.

    outlived: how many of its earlier attempts were lost with a worker that was only silent, since its process beats
    again. An attempt that charges nothing may have been pardoned already. At most crash_limit are, so that a task
    that silences each worker also comes to an end.
    """
    free = max(0, name.attempt - 1 - name.failures - name.crashes)
    return max(0, min(name.crashes, outlived - free, policy.crash_limit - free))


def delay_s(task_id: str, attempt: int, count: int, policy: RetryPolicy) -> float:
    """Seconds of backoff before the attempt after `attempt`, the count-th of its kind: exponential, ± jitter.

    The jitter comes from a hash of id and attempt: it spreads a crowd, and needs no stored state.
    """
    # Past 64 doublings any backoff is at its ceiling, and a float power would overflow.
    base = min(policy.backoff_s * policy.factor ** min(count - 1, 64), policy.max_backoff_s)
    return base * (1 + policy.jitter * spread(f"{key(task_id)}.{attempt}"))


def spread(text: str) -> float:
    """A number from -1 to 1, by a hash of the text: the same on all machines, and another for each text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big") / 0xFFFFFFFF * 2 - 1


def _delay(name: TaskName, count: int, outcome: Outcome, policy: RetryPolicy) -> int:
    own = delay_s(name.id, name.attempt, count, policy)
    asked = None if outcome.retry_after_s is None else min(outcome.retry_after_s, policy.max_retry_after_s)
    # A delay that does not fit the name's grammar would hide the task from all nodes.
    return round(min(1000 * (own if asked is None else max(0.0, asked)), DELAY_MAX_MS))


def _shortened(outcome: Outcome, policy: RetryPolicy) -> str:
    """The note for an attempt that asked for a longer backoff than it may get."""
    asked, most = outcome.retry_after_s, policy.max_retry_after_s
    if asked is None or asked <= most:
        return ""
    return f"; it asked for {asked:g} s of rest and gets {most:g} (retry.max_retry_after_s)"


def _spent(error: Error, name: TaskName, policy: RetryPolicy) -> Error:
    if not policy.max:
        return error
    message = (
        f"{error.message}; failed {amount(name.failures + 1, 'time')}, {amount(policy.max, 'retry', 'retries')} spent"
    )
    return Error(code=Code.MAX_RETRIES, message=message, cause=error.code)


# The memory that an attempt asks for, after attempts that ran out of it.
# Law: the demand of the next attempt follows from the task's content, the charges in its name and the records of
# its earlier attempts, so that every node computes the same, even after a crash. The lane states it to workers.


# The most memory that a lane's name can state (MiB).
MOST_MB = 999_999_999


def may_be_raised(task: Task, name: TaskName, policy: RetryPolicy) -> bool:
    """Whether earlier attempts may have raised the demand of this one, so that their records are worth a look."""
    return policy.memory_factor > 1 and task.requires.mem_mb > 0 and name.failures > task.retry_count


def raised(task: Task, name: TaskName, policy: RetryPolicy, records: Iterable[Result]) -> Lane:
    """The demand of this attempt. records: those of the attempts before it.

    Each attempt that ran out of memory multiplies it by `memory_factor`. Attempts before a `spool retry` do not
    count, since with it the charges begin anew.
    """
    if not may_be_raised(task, name, policy):
        return task.lane
    more = policy.memory_factor ** min(ran_out(records), name.failures - task.retry_count)
    return replace(task.lane, mem_mb=min(math.ceil(task.requires.mem_mb * more), MOST_MB))


def is_raised(lane: str, base: str) -> bool:
    """Whether a lane is another one with more memory."""
    found, asked = parse_lane(lane), parse_lane(base)
    if found is None or asked is None:
        return False
    return found.mem_mb >= asked.mem_mb > 0 and replace(found, mem_mb=asked.mem_mb) == asked


def ran_out(records: Iterable[Result]) -> int:
    """How many attempts ran out of memory."""
    return len({r.attempt for r in records if r.error and Code.OOM_KILLED in (r.error.code, r.error.cause)})


def in_vain(task: Task, name: TaskName, policy: RetryPolicy, outcome: Outcome, records: Iterable[Result]) -> Outcome:
    """The outcome of an attempt, made final if it ran out of memory as an earlier one did, with no more memory.

    A single time may have been chance: another program on the machine, or an input that is read in another order.
    """
    if outcome.code is not Code.OOM_KILLED or name.failures <= task.retry_count:
        return outcome
    if policy.memory_factor > 1 and task.requires.mem_mb:
        return outcome
    if not ran_out(records):
        return outcome
    fix = 'raise "requires": {"mem": …}, or add "retry": {"memory_factor": 2}'
    if not task.requires.mem_mb:
        fix = 'say how much it needs, "requires": {"mem": …}, and add "retry": {"memory_factor": 2}'
    why = f"an earlier attempt ran out of memory, too, and a next one would get no more: {fix}"
    return replace(outcome, message="; ".join(filter(None, (outcome.message, why))), final=True)
