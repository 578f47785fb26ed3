"""An attempt that its worker cannot run: other workers try first, and only then it is charged.

Law: such an attempt charges nothing as long as a live worker that could run it has not tried. So no task fails for
good because of a worker that cannot run it, while one lives that can; and if no machine has the program, the task
fails after every worker has looked. Decided from names and beats alone: a restarted node gets the same answer.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lanes import Lane
from spoold.protocol.names import TaskName
from spoold.protocol.result import Code
from spoold.rules.attempts.outcome import Charge, Outcome
from spoold.rules.scheduling.matching import unfit

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
