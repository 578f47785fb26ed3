"""Attempts are in lanes without overlap, and long idle gaps take little room."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.pictures.picture_data import Attempt
from spoold.pictures.timeline_layout import MARK, TICK_GAP, Axis, clock, lanes_of, peak
from tests.pictures.scenes import big, ran, scene, task

SPANS = st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 10**9)).map(lambda at: (at[0], at[0] + at[1])))


def test_each_bar_is_in_the_first_free_slot_of_its_worker() -> None:
    drawn = scene(
        ran("a", 0, 10), ran("b", 5, 8), ran("c", 8, 12), ran("d", 10, 11), ran("e", 0, 1, worker="w-10"),
        ran("f", 0, 1, worker="w-9"),
    )  # fmt: skip
    found = {(lane.worker, lane.slot): [bar.task.id for bar in lane.bars] for lane in lanes_of(drawn).lanes}
    assert found == {("w-1", 1): ["a", "d"], ("w-1", 2): ["b", "c"], ("w-9", 1): ["f"], ("w-10", 1): ["e"]}
    assert peak(lanes_of(drawn)) == 3


def test_what_runs_ends_now_and_what_did_not_begin_is_counted() -> None:
    never = task("never", state="failed", attempts=(Attempt(1, "m-1", "failure", end=9.0),))
    lanes = lanes_of(scene(ran("runs", 0, None), never, ran("ahead", 5000, None), at=60))
    assert [(bar.task.id, bar.end - bar.begin) for bar in lanes.bars] == [("runs", 60_000_000), ("ahead", 1)]
    assert lanes.unstarted == 1


def test_nothing_overlaps_in_a_lane_and_nothing_is_lost() -> None:
    drawn = big(2000)
    lanes = lanes_of(drawn)
    assert len(lanes.bars) == sum(len(one.attempts) for one in drawn.tasks)
    for lane in lanes.lanes:
        assert all(one.end <= other.begin < other.end for one, other in pairwise(lane.bars))


@given(SPANS)
def test_a_later_moment_is_never_to_the_left(spans: list[tuple[int, int]]) -> None:
    axis = Axis(spans, 1000.0)
    moments = sorted(moment for span in spans for moment in span)
    places = [axis.x(moment) for moment in moments]
    assert all(one <= other + 1e-9 for one, other in pairwise(places))
    assert all(-1e-6 <= place <= 1000 + 1e-6 for place in places)


@given(SPANS)
def test_ticks_are_apart_and_in_order(spans: list[tuple[int, int]]) -> None:
    ticks = Axis(spans, 1000.0).ticks()
    assert all(other.x - one.x >= TICK_GAP * 0.79 for one, other in pairwise(ticks))


def test_a_long_gap_is_folded_and_says_how_long_it_was() -> None:
    second = 1_000_000
    axis = Axis([(0, 100 * second), (3700 * second, 3800 * second), (3805 * second, 3900 * second)], 1000.0)
    (fold,) = axis.folds()
    assert (fold.idle_s, fold.width) == (3600, MARK)
    assert axis.x(3700 * second) - axis.x(100 * second) == pytest.approx(MARK)
    assert axis.x(3900 * second) == pytest.approx(1000)
    assert len({tick.label for tick in axis.ticks()}) >= 4


def test_many_folds_leave_room_for_what_ran() -> None:
    axis = Axis([(number * 10**9, number * 10**9 + 1000) for number in range(300)], 1000.0)
    assert sum(fold.width for fold in axis.folds()) == pytest.approx(300)


def test_nothing_has_no_ticks() -> None:
    axis = Axis([], 1000.0)
    assert (axis.ticks(), axis.folds(), axis.whole, axis.x(5)) == ([], [], (0, 0), 0.0)


def test_a_very_long_time_has_few_ticks() -> None:
    assert 1 <= len(Axis([(0, 4000 * 86_400_000_000)], 1000.0).ticks()) <= 12


def test_a_short_time_has_fractions() -> None:
    assert clock(1_764_000_000_123_000, step=1000) == "16:00:00.123"
