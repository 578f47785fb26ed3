"""Reset times: from sentences with times of day, zones and waits, from headers and from numbers."""

import random
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from spoold.agents.adapters import error_classes
from tests.agents.adapters.reset_sentences import ROWS

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
    assert error_classes.said(text, NOW, UTC) == pytest.approx(when, abs=0.001)


def test_a_time_of_day_is_of_this_machine_unless_it_says_otherwise() -> None:
    assert error_classes.said("try again at 3 PM", NOW, ZoneInfo("Asia/Tokyo")) == at(26, 15, zone="Asia/Tokyo")
    assert error_classes.said("resets 3pm UTC", NOW, ZoneInfo("Asia/Tokyo")) == at(25, 15)
    here = error_classes.said("resets 3pm", NOW)
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
    assert error_classes.stamp(value) == when


@pytest.mark.parametrize(
    ("value", "when"),
    [("3600", NOW + 3600), (5, NOW + 5), ("Wed, 25 Nov 2026 12:05:00 GMT", NOW + 300), ("soon", None), (None, None)],
)
def test_a_header(value: object, when: float | None) -> None:
    assert error_classes.header(value, NOW) == when


@pytest.mark.parametrize(("source", "now", "here", "text", "when"), ROWS)
def test_what_command_lines_and_providers_say_is_understood(
    source: str, now: str, here: str, text: str, when: str
) -> None:
    """G25: 47 of these were misread: parts of a duration, zones, weekdays, epochs, fields and local dates."""
    found = error_classes.said(text, datetime.fromisoformat(now).timestamp(), ZoneInfo(here))
    assert found is not None, source
    assert found == pytest.approx(datetime.fromisoformat(when).timestamp(), abs=0.002), source


def test_the_sentences_are_of_many_sources() -> None:
    assert len({(source, text) for source, _, _, text, _ in ROWS}) >= 120
    assert len({source for source, *_ in ROWS}) >= 50


@pytest.mark.parametrize(
    ("headers", "when"),
    [
        ({"Retry-After-Ms": "1500", "retry-after": "2"}, NOW + 1.5),
        ({"retry-after": "6m0s", "x-ratelimit-reset": "99"}, NOW + 360),
        ({"retry-after": "Wed, 25 Nov 2026 12:05:00 GMT"}, NOW + 300),
        ({"x-ratelimit-reset-requests": "2m59.56s", "x-ratelimit-reset-tokens": "7.66s"}, NOW + 179.56),
        ({"X-RateLimit-Reset": "1795629000000"}, 1795629000.0),
        ({"anthropic-ratelimit-requests-reset": "2026-11-25T12:00:09Z"}, NOW + 9),
        ({"anthropic-ratelimit-unified-reset": "1795629000", "retry-after": "soon"}, 1795629000.0),
        ({"content-length": "300", "x-reset": 5}, None),
        ({}, None),
    ],
)
def test_the_headers_of_an_answer(headers: dict[str, object], when: float | None) -> None:
    assert error_classes.headers(headers, NOW) == pytest.approx(when, abs=0.001)


@pytest.mark.parametrize(
    ("text", "when"),
    [
        ("It resets in 1:23:45.", NOW + 5025),
        ("limit hit. Retrying at 2026-11-26 09:00:00 (UTC+8)", at(26, 1)),
        ("resets at 2026/11/26 09:00 PST", at(26, 17)),
        ("Your limit will reset at 2026-11-26T09:00:00", at(26, 9)),
        ("resets Wed, Nov 25, 4:30 PM EST", at(25, 21, 30)),
        ("resets Mon 9:00", at(30, 9)),
        ("resets Wed 11:45", at(25, 11, 45)),
        ("resets Wed 9:00", at(2, 9, month=12)),
        ("resets noon UTC", NOW),
        ("try again tomorrow at 3pm", at(26, 15)),
        ("resets at 3pm tomorrow", at(26, 15)),
        ("available again at 9:00 UTC+05:30", at(26, 3, 30)),
        ("Resets at 13:37:11 GMT", datetime(2026, 11, 25, 13, 37, 11, tzinfo=UTC).timestamp()),
        ("reset_at = 1795629000123", 1795629000.123),
        ("retry_after_ms: 1500", NOW + 1.5),
        ("retry-after: Wed, 25 Nov 2026 12:05:00 GMT", NOW + 300),
        ("resets_at: 2026-13-45T00:00:00Z, resets_in_seconds: 60", NOW + 60),
        ("reached|1795629000000", 1795629000.0),
        ("You used it up in 5 hours. It resets at 3pm.", at(25, 15)),
        ("resets at 13:00 (UTC+99)", at(25, 13)),
        ("resets at 13pm, or at 2pm", at(25, 14)),
        ("Upgrade, or wait 5 minutes", NOW + 300),
        ("finished in 5 minutes", NOW + 300),
        ("resets in a while", None),
    ],
)
def test_other_spellings(text: str, when: float | None) -> None:
    """G25."""
    assert error_classes.said(text, NOW, UTC) == pytest.approx(when, abs=0.001)


ZONES = ("Asia/Shanghai", "America/New_York", "Europe/London", "Asia/Kolkata", "Pacific/Auckland", "UTC")


def span(seconds: int, chance: random.Random) -> str:
    """A length of time in one of the ways in which it is written."""
    days, hours, minutes, rest = seconds // 86_400, seconds // 3600 % 24, seconds // 60 % 60, seconds % 60
    long = chance.choice(["%d day%s", "%d hour%s", "%d minute%s", "%d second%s"]) and (
        " day",
        " hour",
        " minute",
        " second",
    )
    short = chance.choice([("d", "h", "m", "s"), (" d", " h", " min", " sec"), ("d", "hr", "mins", "secs")])
    units = [
        f"{unit}{'s' if count != 1 else ''}" for unit, count in zip(long, (days, hours, minutes, rest), strict=True)
    ]
    units = units if chance.random() < 0.5 else list(short)
    parts = [f"{count}{unit}" for count, unit in zip((days, hours, minutes, rest), units, strict=True) if count]
    join = chance.choice([" ", ", ", " and "] if " " in units[0] else ["", " "])
    return join.join(parts) or f"0{units[3]}"


def sentence(when: datetime, now: datetime, zone: str, chance: random.Random) -> str:
    """A sentence that says this time, in this zone; it is a whole minute, up to a week away."""
    local, seconds = when.astimezone(ZoneInfo(zone)), int((when - now).total_seconds())
    offset = local.strftime("%z")
    named = chance.choice([f" ({zone})", f" UTC{offset[:3]}:{offset[3:]}", f" (GMT{offset[:3]}:{offset[3:]})"])
    clock = chance.choice(
        [f"{local:%I:%M} {local:%p}", f"{local:%-I:%M%p}".lower(), f"{local:%H:%M}", f"{local:%H:%M:%S}"]
    )
    day = chance.choice(
        [f"{local:%b} {local.day}", f"{local:%B} {local.day}th, {local.year}", f"{local.day} {local:%b}"]
    )
    opens = chance.choice(["resets", "Your limit resets", "try again", "Access is available again"])
    iso = f"{local:%Y-%m-%d}{chance.choice(['T', ' '])}{local:%H:%M:%S}"
    return chance.choice(
        [
            f"{opens} in {span(seconds, chance)}.",
            f"Please wait for {span(seconds, chance)} before trying again",
            f"limit reached|{int(when.timestamp()) * chance.choice([1, 1000])}",
            f'{{"resets_at": {int(when.timestamp())}}}',
            f'{{"retryDelay": "{seconds}.0s"}}',
            f"{opens} {day}, {clock}{named}",
            f"{opens} {day} at {clock}{named}",
            f"{opens} {local:%a}, {day}, {clock}{named}",
            f"{opens} at {iso}{offset[:3]}:{offset[3:]}",
            f"{opens} at {iso}{named}",
            *([f"{opens} {local:%A} at {clock}{named}"] if seconds < 6 * 86_400 else []),
            *([f"{opens} {clock}{named}", f"{opens} at {clock}{named}"] if seconds < 80_000 else []),
        ]
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_sentence_gives_the_time_back_of_which_it_was_made(seed: int) -> None:
    """G25: any time up to a week away, in any zone and spelling, read on a machine of another zone."""
    chance = random.Random(seed)
    for _ in range(150):
        now = datetime(
            2026, chance.randint(1, 12), chance.randint(1, 28), chance.randrange(24), chance.randrange(60), tzinfo=UTC
        )
        when = now + timedelta(minutes=chance.choice([chance.randrange(1, 300), chance.randrange(1, 10_080)]))
        text = sentence(when, now, chance.choice(ZONES), chance)
        found = error_classes.said(text, now.timestamp(), ZoneInfo(chance.choice(ZONES)))
        assert found == when.timestamp(), (text, now)


WORDS = (
    *(
        "resets",
        "try again",
        "in",
        "after",
        "at",
        "9",
        "12",
        "am",
        "pm",
        ":",
        "30",
        "(",
        ")",
        "UTC",
        "+8",
        "Monday",
        "May",
    ),
    *(
        "2026-",
        "13",
        "T",
        "Z",
        ".",
        "|1750000000",
        "retry-after",
        "=",
        '"',
        "h",
        "m",
        "s",
        "\n",
        "é",
        "重置",
        "99999999999",
    ),
)


@pytest.mark.parametrize("seed", range(10))
def test_no_text_at_all_is_an_error(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(300):
        text = "".join(chance.choice(WORDS) + chance.choice(["", " "]) for _ in range(chance.randint(1, 25)))
        found = error_classes.said(text, NOW, UTC)
        assert found is None or isinstance(found, float), text


@pytest.mark.parametrize(
    "part", ["1", "1 h ", "in 1h, ", "resets ", "May ", "9:", "2026-11-", '"retry', "-ratelimit", "a-", " "]
)
def test_a_flood_takes_no_longer_than_its_length(part: str) -> None:
    """What a text is looked through for is bounded: it ends, whatever stands in it."""
    error_classes.said("resets at " + part * 200_000, NOW, UTC)
    error_classes.headers({f"x-ratelimit-{part * 2000}-reset": part * 2000}, NOW)


def test_a_zone_that_nobody_knows_is_none() -> None:
    assert error_classes.zone("Nowhere/Atall") is None
    assert error_classes.zone("UTC+99") is None
    assert error_classes.zone("../../etc/passwd") is None
