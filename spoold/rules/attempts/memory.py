"""The memory that an attempt asks for, after attempts that ran out of it.

Law: the demand of the next attempt follows from the task's content, the charges in its name and the records of its
earlier attempts, so that every node computes the same, even after a crash. The lane states it to workers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code, Result
from spoold.protocol.task import Task
from spoold.rules.attempts.outcome import Outcome
from spoold.rules.attempts.policy import RetryPolicy

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
