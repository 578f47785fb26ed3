"""What a stamp says, and what is none."""

import pytest

from spoold.protocol.timestamps import moment


@pytest.mark.parametrize("stamp", ["1970-01-01T00:01:00Z", "1970-01-01T01:01:00.000+01:00"])
def test_a_stamp_is_a_moment(stamp: str) -> None:
    assert moment(stamp) == 60.0


@pytest.mark.parametrize("stamp", ["", "yesterday", None, 12])
def test_anything_else_is_none(stamp: object) -> None:
    assert moment(stamp) is None
