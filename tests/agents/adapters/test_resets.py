"""Reset times: from sentences with times of day, zones and waits, from headers and from numbers."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from spoold.agents.adapters import resets

NOON = datetime(2026, 11, 25, 12, 0, tzinfo=UTC)
NOW = NOON.timestamp()


def at(day: int, hour: int, minute: int = 0, *, month: int = 11, year: int = 2026, zone: str = "UTC") -> float:
    """Epoch s of a time."""
    return datetime(year, month, day, hour, minute, tzinfo=ZoneInfo(zone)).timestamp()


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("You've hit your usage limit. Upgrade to Pro, or try again at 12:16 PM.", at(25, 12, 16)),
        ("try again at 11:50 AM", at(25, 11, 50)),  # just passed: now, and not tomorrow
        ("try again at 9:00 AM", at(26, 9)),
        ("You've hit your session limit · resets 12:50am (Europe/Berlin)", at(26, 0, 50, zone="Europe/Berlin")),
        ("weekly limit reached ∙ resets Oct 7 at 3pm", at(7, 15, month=10, year=2027)),
        ("resets Dec 1, 9:30am (America/New_York)", at(1, 9, 30, month=12, zone="America/New_York")),
        ("try again at Feb 3rd, 2027 9:03 PM.", at(3, 21, 3, month=2, year=2027)),
        ("resets at 17:30", at(25, 17, 30)),
        ("resets 3pm (Nowhere/Atall)", at(25, 15)),
        ("limit resets at 2026-11-25T13:00:00Z", at(25, 13)),
        ("your quota will reset after 3h12m9s.", NOW + 3 * 3600 + 12 * 60 + 9),
        ("Please try again in 2 days 3 hours 5 minutes.", NOW + 2 * 86_400 + 3 * 3600 + 300),
        ("Please try again in 1.5s", NOW + 1.5),
        ("Please try again in 350ms", NOW + 0.35),
        ("Suggested retry after 3600s.", NOW + 3600),
        ("Retry-After: 30", NOW + 30),
        ("It will reset in 1 hour and 20 minutes", NOW + 4800),
        ("Try again later.", None),
        ("resets 61", None),
        ("resets at 25:61", None),
        ("resets Feb 31 at 3pm", None),
        ("resets at 2026-99-99T13:00:00Z", None),
        ("at 3pm we met", None),
        ("", None),
    ],
)
def test_a_sentence_names_a_time(text: str, when: float | None) -> None:
    assert resets.said(text, NOW, UTC) == pytest.approx(when)


def test_a_time_of_day_is_of_this_machine_unless_it_says_otherwise() -> None:
    assert resets.said("try again at 3 PM", NOW, ZoneInfo("Asia/Tokyo")) == at(26, 15, zone="Asia/Tokyo")
    assert resets.said("resets 3pm UTC", NOW, ZoneInfo("Asia/Tokyo")) == at(25, 15)
    here = resets.said("resets 3pm", NOW)
    assert here is not None
    assert datetime.fromtimestamp(here, UTC).astimezone().hour == 15


@pytest.mark.parametrize(
    ("value", "when"),
    [
        (1795629000, 1795629000.0),
        (1795629000123, 1795629000.123),
        ("1795629000", 1795629000.0),
        (0, None),
        (True, None),
        ("2026-11-25T12:00:00.000Z", NOW),
        ("soon", None),
        (None, None),
        ({}, None),
    ],
)
def test_a_structured_time(value: object, when: float | None) -> None:
    assert resets.stamp(value) == when


@pytest.mark.parametrize(
    ("value", "when"),
    [("3600", NOW + 3600), (5, NOW + 5), ("Wed, 25 Nov 2026 12:05:00 GMT", NOW + 300), ("soon", None), (None, None)],
)
def test_a_header(value: object, when: float | None) -> None:
    assert resets.header(value, NOW) == when
