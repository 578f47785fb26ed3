"""May this worker run the tasks in this lane, has it room for one now, and who else could run what it cannot?

Law: workers and `spool explain` ask here. Lanes and the worker's report alone decide. A lane does not show the case
of a module, so a match there is only a promise, and the worker checks the task itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from spoold.protocol.agent_fields import MERGE
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.rules.attempts.attempt_outcome import Charge, Outcome

# No type begins with one of these.
MODULE, LIMIT, TYPE = "py=", "use=", "type="


@dataclass(frozen=True, slots=True)
class Free:
    """A worker's free resources: cores, MiB, devices."""

    cpus: float
    mem_mb: int
    gpus: int

    def without(self, lane: Lane) -> Free:
        """The free resources while a task of this lane runs, too."""
        return Free(self.cpus - lane.cpus, self.mem_mb - lane.mem_mb, self.gpus - lane.gpus)


def unfit(lane: Lane, worker: Capabilities) -> str | None:
    """Why this worker can never serve the lane, and the change that would help; None if it can."""
    reasons = (
        _wrong_kind(lane, worker),
        _wrong_run(lane, worker),
        _too_small(lane, worker),
    )
    return next((reason for reason in reasons if reason), None)


def _wrong_kind(lane: Lane, worker: Capabilities) -> str | None:
    if worker.types and lane.type not in worker.types:
        return f"it takes only types {', '.join(worker.types)} (--types)"
    if lane.pool and lane.pool not in worker.pools:
        return f"it is not in pool {lane.pool} (pools in its configuration)"
    missing = sorted(set(lane.need) - set(worker.labels))
    if missing:
        return f"it has no label {', '.join(missing)} (--labels)"
    return None


def _wrong_run(lane: Lane, worker: Capabilities) -> str | None:
    if lane.run == "command":
        return None if worker.allow_command else "it does not run raw commands (--allow-command)"
    if lane.run == "python":
        if promises(lane.module, worker.python):
            return None
        return f"Python module {lane.module} is not on its list ([python] allow in its configuration)"
    if lane.type in worker.lacks:
        return worker.lacks[lane.type]
    if lane.type in worker.handlers:
        return None
    tables = f"[{MERGE}]" if lane.type == MERGE else f"[handlers.{lane.type}] or [agents.{lane.type}]"
    return f"it has no handler for type {lane.type} ({tables} in its configuration)"


def runs_no_commands(worker: Capabilities) -> str:
    """The remark on a worker that runs neither raw commands nor handlers, and what it takes; '' for any other."""
    if worker.allow_command or worker.handlers:
        return ""
    without = "runs no commands: no --allow-command and no handlers"
    if worker.python:
        return f"{without}; it takes only calls of Python functions in {', '.join(worker.python)}"
    return f"{without}; it takes no task: start it with --allow-command, or with --config FILE that names handlers"


def shuns(lane: Lane, worker: Capabilities) -> str | None:
    """Why this worker leaves the lane to others for a while, though it could serve it; None if it does not."""
    if not worker.shuns:
        return None
    keys = (left_as(lane), f"{TYPE}{lane.type}", *(f"{LIMIT}{name}" for name, _ in lane.uses))
    return next((worker.shuns[key] for key in keys if key in worker.shuns), None)


def left_as(lane: Lane) -> str:
    """The key under which a worker leaves such tasks to others: a handler's type, a module as lanes name it; '' for a
    raw command, since each is another program.
    """
    if lane.run == "python":
        return f"{MODULE}{lane.module.lower()}"
    return lane.type if lane.run == "handler" else ""


def _too_small(lane: Lane, worker: Capabilities) -> str | None:
    for name, wanted, has, unit in (
        ("gpus", lane.gpus, worker.gpus, ""),
        ("cpus", lane.cpus, worker.cpus, ""),
        ("memory", lane.mem_mb, worker.mem_mb, " MiB"),
    ):
        if wanted > has:
            return f"it has {has:g}{unit} {name}, the task requires {wanted:g}{unit}"
    return None


def fits(lane: Lane, free: Free) -> bool:
    """Whether the lane's demand is free at this moment."""
    # Cores are fractions: the rest may differ in the last bits from the demand.
    return lane.cpus <= free.cpus + 1e-6 and lane.mem_mb <= free.mem_mb and lane.gpus <= free.gpus


def free(worker: Capabilities, running: list[Lane]) -> Free:
    """The free resources of a worker after the demands of these lanes."""
    return Free(
        cpus=worker.cpus - sum(lane.cpus for lane in running),
        mem_mb=worker.mem_mb - sum(lane.mem_mb for lane in running),
        gpus=worker.gpus - sum(lane.gpus for lane in running),
    )


def allows(module: str, prefixes: tuple[str, ...]) -> bool:
    """Whether a Python module, exactly as the task spells it, is on a worker's list of prefixes."""
    return any(p == "*" or module == p or module.startswith(f"{p.rstrip('.')}.") for p in prefixes)


def promises(module: str, prefixes: tuple[str, ...]) -> bool:
    """Whether it is on the list but for its case, which no lane shows: only the task itself does."""
    return allows(module.lower(), tuple(prefix.lower() for prefix in prefixes))


# An attempt that its worker cannot run: other workers try first, and only then it is charged.
# Law: such an attempt charges nothing as long as a live worker that could run it has not tried. So no task fails
# for good because of a worker that cannot run it, while one lives that can; and if no machine has the program, the
# task fails after every worker has looked. Decided from names and beats alone: a restarted node gets the same
# answer.


# A worker in one of these states takes nothing new, and may never again.
LEAVING = ("draining", "asleep")
# How long (s) a worker avoids a task that it could not run: after the first time, and at most.
FIRST_S, MOST_S = 5.0, 600.0


def able(me: str, lane: Lane, claiming: Collection[str], beats: Mapping[str, Heartbeat]) -> set[str]:
    """The other live workers that could run the lane, as far as is known.

    claiming: the nodes with a claim directory, which stays while beats come and go; beats: the newest of each node. A
    worker whose beat was missed counts, since nothing is known of it. So does one that only avoids a type for now.
    """
    found = set()
    for node in claiming:
        beat = beats.get(node)
        can = beat.capabilities if beat is not None else None
        leaving = beat is not None and beat.status in LEAVING
        if node != me and not leaving and (can is None or unfit(lane, can) is None):
            found.add(node)
    return found


def surely_untried(name: TaskName, others: Collection[str]) -> bool:
    """Whether the attempt's name alone proves that one of the others has not tried: too few have charged nothing."""
    return name.attempt - 1 - name.failures - name.crashes < len(others)


def passed_on(outcome: Outcome, others: Collection[str]) -> Outcome:
    """The outcome if one of the others is to try: at once, where the attempt itself said that one may."""
    named = ", ".join(sorted(others)[:3])
    found = replace(outcome, charge=Charge.NOTHING, final=False, message=f"{outcome.message}; left to {named}")
    return replace(found, rests=False, retry_after_s=None) if outcome.code is Code.TRY_LATER else found


def pause_s(failed: int) -> float:
    """Seconds to keep away, after so many failures in a row: twice as long each time, to a bound; 0 below 1."""
    return min(FIRST_S * 2.0 ** min(failed - 1, 64), MOST_S) if failed > 0 else 0.0
