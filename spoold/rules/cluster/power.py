"""The effect of a battery on a worker: go on as always, finish what runs and take nothing new, or hand it back.

Law: a figure that is unknown is no reason to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

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


def judge(
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
