"""What keeps a worker from taking tasks: a drain that is meant for it, its battery, or a machine that can start
nothing.

Law: worker, leader, `spool drain` and `spool explain` all ask here. A drain never means a master.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from spoold.protocol.names import key, own_name
from spoold.protocol.request import EVERYTHING, Request, Verb


def is_meant(target: str, node: str, role: str = "worker") -> bool:
    """Whether the target means this node: by its id, by its own name (the id up to the last `-`), or with all others.

    Never a master: it runs no task, and ends when its process is stopped.
    """
    return role == "worker" and (target == EVERYTHING or key(target) in (node, own_name(node)))


def is_drained(node: str, requests: Iterable[Request]) -> bool:
    """Whether a drain stands for the worker."""
    return any(request.verb is Verb.DRAIN and is_meant(request.target, node) for request in requests)


# The effect of a battery on a worker: go on as always, finish what runs and take nothing new, or hand it back.
# Law: a figure that is unknown is no reason to stop.


RunOnBattery = bool | Literal["finish"]


class Course(Enum):
    """The treatment of tasks."""

    RUN = "run"
    FINISH = "finish"
    HAND_BACK = "hand back"


@dataclass(frozen=True, slots=True)
class PowerVerdict:
    """The course, and the reason in words unless it is to run."""

    course: Course = Course.RUN
    why: str = ""


def judge_power(
    run_on_battery: RunOnBattery, min_percent: int, *, plugged: bool | None, percent: float | None
) -> PowerVerdict:
    """The verdict on a battery that is charged to `percent`.

    None means unknown, and is no reason to stop: a machine without a battery, or one whose driver is silent, works as
    if it were plugged in and full.
    """
    if plugged is not False:
        return PowerVerdict()
    charge = "" if percent is None else f" at {percent:.0f} %"
    if percent is not None and percent < min_percent:
        what = f"nothing runs below {min_percent} % (min_battery_percent)"
        return PowerVerdict(Course.HAND_BACK, f"on battery{charge}: {what}")
    if run_on_battery is True:
        return PowerVerdict()
    if run_on_battery == "finish":
        return PowerVerdict(Course.FINISH, f'on battery{charge}: nothing new is started (run_on_battery = "finish")')
    return PowerVerdict(Course.HAND_BACK, f"on battery{charge}: nothing runs (run_on_battery = false)")


# How long a worker claims nothing when its machine could not start a task.
# Failed starts are the quickest of all, so without a pause the worker would take every task.
# Law: the pause grows with each failure in a row, and never beyond MOST_S: a worker whose machine was repaired
# begins again by itself.


FIRST_S, MOST_S = 1.0, 60.0


def pause_s(failed: int) -> float:
    """Seconds, after so many failed starts in a row: twice as long each time, to a bound."""
    return min(FIRST_S * 2.0 ** min(failed - 1, 64), MOST_S)
