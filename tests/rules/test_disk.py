"""Is there room on the share? A warning first, then no new starts, and never a stop with plenty free."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.settings import DiskSettings
from spoold.rules.share.free_space import FEW_INODES, NO_INODES, Room, is_warning, room, warnings

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
    assert room(total, free, None, SETTINGS) is verdict


@pytest.mark.parametrize(
    ("free", "inodes", "verdict"),
    [
        (GIB, None, Room.ENOUGH),
        (GIB, FEW_INODES, Room.ENOUGH),
        (GIB, FEW_INODES - 1, Room.FEW_FILES),
        (GIB, NO_INODES, Room.FEW_FILES),
        (GIB, NO_INODES - 1, Room.NO_FILES),
        (GIB, 0, Room.NO_FILES),
        (GIB // 3, NO_INODES, Room.LITTLE),
        (GIB // 3, 0, Room.NO_FILES),
        (0, 0, Room.FULL),
    ],
)
def test_no_space_helps_where_no_inode_is_left(free: int, inodes: int | None, verdict: Room) -> None:
    assert room(2 * GIB, free, inodes, SETTINGS) is verdict
    assert verdict.full == (verdict in (Room.FULL, Room.NO_FILES))


def test_people_are_told_what_is_short_and_how_to_mend_it() -> None:
    stops = "; no drop is admitted and no task starts until"
    none = f"the share is out of inodes: 0 inodes left, one for each new file{stops} files are"
    said = [warnings(2 * GIB, free, inodes, SETTINGS) for free in (GIB, GIB // 3, 0) for inodes in (None, 500, 0)]
    assert said == [
        [],
        ["the share is nearly out of inodes: 500 inodes left, one for each new file"],
        [f"{none} removed"],
        ["the share is 84 % full ([disk] in spool.toml)"],
        ["the share is 84 % full ([disk] in spool.toml)"],
        [f"{none} removed"],
        *[[f"the share is 100 % full{stops} space is freed ([disk] in spool.toml)"]] * 3,
    ]
    assert all(is_warning(line) for lines in said for line in lines)
    assert not is_warning("w1: the share is full: nothing new is started")
    assert ("inodes" in Room.NO_FILES.mend, "room" in Room.FULL.mend) == (True, True)


@given(st.integers(1, 1 << 50), st.floats(0, 1), st.floats(0, 1))
def test_less_room_is_never_a_better_verdict(total: int, a: float, b: float) -> None:
    order = [Room.ENOUGH, Room.LITTLE, Room.FULL]
    more, less = max(a, b), min(a, b)
    verdicts = [order.index(room(total, int(total * part), None, SETTINGS)) for part in (more, less)]
    assert verdicts == sorted(verdicts)
