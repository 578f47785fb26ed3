"""A part of a step that takes long by itself is named in the log, once; calls to the share are not its own time."""

from __future__ import annotations

import logging

import pytest

from spoold.store.step_timing import LONG_S, OwnTime, Slice
from spoold.system.beating_filesystem import Breather, breathing
from spoold.system.clock import ManualClock
from spoold.system.memory_filesystem import MemoryFileSystem


class Slow(MemoryFileSystem):
    """Each listing takes so long (s)."""

    def __init__(self, clock: ManualClock, seconds: float) -> None:
        super().__init__(clock)
        self._moves, self._seconds = clock, seconds

    def list(self, path: str) -> list[str]:
        self._moves.advance(self._seconds)
        return super().list(path)


def test_only_its_own_time_counts_and_each_part_is_named_once(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()
    breather = Breather(clock)
    fs, own = breathing(Slow(clock, 10.0), breather), OwnTime(clock, breather)
    with caplog.at_level(logging.WARNING, logger="spoold"):
        for _ in range(2):
            with breather.during(lambda: None), own.of("drops"):
                fs.list("")
            assert not caplog.records
        for _ in range(2):
            with breather.during(lambda: None), own.of("requests"):
                fs.list("")
                clock.advance(LONG_S + 1)
    (said,) = [record.getMessage() for record in caplog.records]
    assert said.startswith("`requests` took 2.0 s of this node's own time in one step, besides 10.0 s of calls")


def test_a_breath_comes_before_each_call_of_a_step_and_none_within_a_breath() -> None:
    clock, breaths = ManualClock(), list[float]()
    breather = Breather(clock)
    fs = breathing(Slow(clock, 1.0), breather)

    def breathe() -> None:
        breaths.append(clock.monotonic())
        fs.list("")

    fs.list("")
    assert not breaths
    with breather.during(breathe):
        fs.list("")
        fs.list("")
    assert breaths == [1001.0, 1003.0]
    fs.list("")
    assert len(breaths) == 2


def test_a_slice_is_over_when_its_time_is_up() -> None:
    clock = ManualClock()
    time = Slice(clock, 2.0)
    clock.advance(1.9)
    assert not time.over
    clock.advance(0.2)
    assert time.over
