"""Polling are frequent after something happened and rare later; an outage is borne with for a minute."""

import pytest

from spoold.client.spool.waiting import OUTAGE_S, Pace
from spoold.protocol.settings import PollSettings
from spoold.system.clock import ManualClock


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def away() -> str:
    raise TimeoutError(110, "Connection timed out")


def test_pauses_grow_with_the_wait_between_the_bounds(clock: ManualClock) -> None:
    pace = Pace(clock, PollSettings(busy_s=0.05, idle_s=0.5))
    pauses = []
    for _ in range(4):
        pauses.append(round(pace.pause_s(), 3))
        clock.advance(2)
    assert pauses == [0.05, 0.2, 0.4, 0.5]
    pace.something_happened()
    assert pace.pause_s() == 0.05


def test_an_outage_is_borne_with_until_it_lasts(clock: ManualClock) -> None:
    pace = Pace(clock, PollSettings())
    clock.advance(OUTAGE_S - 1)
    assert pace.forgiving(away, "nothing") == "nothing"
    assert pace.forgiving(lambda: "found", "nothing") == "found"
    clock.advance(OUTAGE_S - 1)
    assert pace.forgiving(away, "nothing") == "nothing"
    clock.advance(2)
    with pytest.raises(TimeoutError):
        pace.forgiving(away, "nothing")


def test_what_is_no_error_of_the_share_is_not_forgiven(clock: ManualClock) -> None:
    with pytest.raises(ZeroDivisionError):
        Pace(clock, PollSettings()).forgiving(lambda: 1 // 0, 0)
