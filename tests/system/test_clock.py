"""Clocks: the manual one keeps the relations that the real ones have."""

from __future__ import annotations

import time

import pytest

from spoold.system.clock import Clock, ManualClock, SystemClock


def test_the_system_clock_goes_on() -> None:
    clock: Clock = SystemClock()
    before = clock.monotonic(), clock.boottime()
    assert clock.monotonic() >= before[0]
    assert clock.boottime() >= before[1]
    assert clock.boottime() >= clock.monotonic() - 1
    assert abs(clock.wall() - time.time()) < 60


def test_a_manual_clock_moves_only_when_told() -> None:
    clock: Clock = ManualClock(monotonic=1, boottime=2, wall=3)
    assert (clock.monotonic(), clock.boottime(), clock.wall()) == (1, 2, 3)


def test_the_monotonic_clock_stands_still_in_suspend() -> None:
    clock = ManualClock(monotonic=1, boottime=2, wall=3)
    clock.advance(10)
    clock.suspend(100)
    assert (clock.monotonic(), clock.boottime(), clock.wall()) == (11, 112, 113)


def test_setting_the_date_moves_nothing_else() -> None:
    clock = ManualClock(monotonic=1, boottime=2, wall=3)
    clock.set_wall(-50)
    assert (clock.monotonic(), clock.boottime(), clock.wall()) == (1, 2, -50)


def test_no_clock_goes_back() -> None:
    clock = ManualClock()
    with pytest.raises(ValueError, match="back"):
        clock.advance(-1)
    with pytest.raises(ValueError, match="back"):
        clock.suspend(-1)
