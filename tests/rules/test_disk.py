"""Is there room on the share? A warning first, then no new starts, and never a stop with plenty free."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.settings import DiskSettings
from spoold.rules.disk import Room, room

SETTINGS = DiskSettings(warn=0.8, stop=0.95, enough_free_mb=1024)
GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "free", "verdict"),
    [
        (10 * GIB, 10 * GIB, Room.ENOUGH),
        (2 * GIB, GIB // 2, Room.ENOUGH),
        (2 * GIB, GIB // 3, Room.LITTLE),
        (20 * GIB, GIB - 1, Room.FULL),
        (20 * GIB, GIB, Room.ENOUGH),
        (2 * GIB, 0, Room.FULL),
        (0, 0, Room.ENOUGH),
    ],
)
def test_the_verdict_goes_by_the_fraction_unless_enough_is_free(total: int, free: int, verdict: Room) -> None:
    assert room(total, free, SETTINGS) is verdict


@given(st.integers(1, 1 << 50), st.floats(0, 1), st.floats(0, 1))
def test_less_room_is_never_a_better_verdict(total: int, a: float, b: float) -> None:
    order = [Room.ENOUGH, Room.LITTLE, Room.FULL]
    more, less = max(a, b), min(a, b)
    verdicts = [order.index(room(total, int(total * part), SETTINGS)) for part in (more, less)]
    assert verdicts == sorted(verdicts)
