"""Goal: a battery stops work exactly where its owner said so, and what cannot be told stops nothing."""

from __future__ import annotations

import pytest

from spoold.rules.workers.readiness import Course, RunOnBattery, judge_power

RUN, FINISH, HAND_BACK = Course.RUN, Course.FINISH, Course.HAND_BACK


@pytest.mark.parametrize(
    ("policy", "min_percent", "plugged", "percent", "course"),
    [
        (True, 0, False, 3, RUN),
        ("finish", 0, False, 90, FINISH),
        (False, 0, False, 90, HAND_BACK),
        (False, 50, True, 3, RUN),
        (False, 50, None, None, RUN),
        (True, 20, False, 20, RUN),
        (True, 20, False, 19.5, HAND_BACK),
        ("finish", 20, False, 19.5, HAND_BACK),
        (True, 20, False, None, RUN),
        (False, 20, False, None, HAND_BACK),
    ],
)
def test_the_course(
    policy: RunOnBattery, min_percent: int, plugged: bool | None, percent: float | None, course: Course
) -> None:
    verdict = judge_power(policy, min_percent, plugged=plugged, percent=percent)
    assert verdict.course is course
    assert bool(verdict.why) == (course is not RUN)


@pytest.mark.parametrize(
    ("policy", "percent", "why"),
    [
        ("finish", 34.4, 'on battery at 34 %: nothing new is started (run_on_battery = "finish")'),
        (False, None, "on battery: nothing runs (run_on_battery = false)"),
        (True, 9, "on battery at 9 %: nothing runs below 10 % (min_battery_percent)"),
    ],
)
def test_the_words_name_the_key_that_decides(policy: RunOnBattery, percent: float | None, why: str) -> None:
    assert judge_power(policy, 10, plugged=False, percent=percent).why == why
