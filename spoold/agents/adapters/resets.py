"""When a quota opens again: read from the sentences, headers and numbers in which command lines say it.

Law: pure. Nothing is clamped here: the caller knows the bounds. A time of day is in the zone that is named with it,
else in the zone of this machine, where the program ran that said it.
"""

from __future__ import annotations

import contextlib
import re
from datetime import UTC, datetime, timedelta, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

# A time of day that has just passed is meant as now, and not as tomorrow: "try again at 12:16" may be read at 12:17.
JUST_PASSED = timedelta(minutes=30)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_AMOUNT = r"\d+(?:\.\d+)?\s*(?:milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)\b"
_WAIT = re.compile(
    rf"(?:\bin|\bafter|\bdelay(?: of)?|\bwait)\s+(?:about\s+)?((?:{_AMOUNT}(?:,|\s|and)*)+)", re.IGNORECASE
)
# "3h12m9s" has no border between an amount and the next.
_PACKED = re.compile(r"(?:\bin|\bafter)\s+((?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+)\b", re.IGNORECASE)
_PART = re.compile(r"(\d+(?:\.\d+)?)\s*(milliseconds?|ms|[smhd])", re.IGNORECASE)
_BARE_SECONDS = re.compile(r"\bretry[-_ ]after[\"']?\s*[:=]?\s*[\"']?(\d+(?:\.\d+)?)\b(?!\s*[a-z])", re.IGNORECASE)
_ISO = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
_OPENS = re.compile(r"\b(?:resets?|try again|available again|retry|renews?)\b", re.IGNORECASE)
_DAY = rf"(?P<month>{'|'.join(_MONTHS)})[a-z]*\.?\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?:,?\s+(?P<year>\d{{4}}))?"
_CLOCK = r"(?P<hour>\d{1,2})(?::(?P<minute>\d\d))?\s*(?P<half>[ap]\.?m\.?)?"
_WHEN = re.compile(
    rf"(?:{_DAY}(?:,?\s+(?:at\s+)?|\s*[·@]\s*))?{_CLOCK}(?:\s*\((?P<named>[A-Za-z_+\-/0-9]+)\)|\s+(?P<utc>UTC|GMT|Z)\b)?",
    re.IGNORECASE,
)


def stamp(value: object) -> float | None:
    """Return a structured time as epoch seconds: a number of s or ms since the epoch, or ISO 8601; else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value) if value > 1e9 else None
    text = str(value).strip()
    if re.fullmatch(r"\d{10,13}(\.\d+)?", text):
        return stamp(float(text))
    found = _ISO.fullmatch(text)
    return _instant(found[0]) if found else None


def header(value: object, now: float) -> float | None:
    """Return when a `retry-after` header says to come again: it has seconds, or a date."""
    text = str(value if value is not None else "").strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        return now + float(text)
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError):
        return None


def said(text: str, now: float, here: tzinfo | None = None) -> float | None:
    """Return the time that a sentence names, epoch s; None if it names none. now: epoch, s; here: the zone of a time
    of day without one, by default this machine's."""
    for pattern in (_PACKED, _WAIT):
        for found in pattern.finditer(text):
            return now + sum(float(number) * _UNITS[_unit(unit)] for number, unit in _PART.findall(found[1]))
    bare = _BARE_SECONDS.search(text)
    if bare:
        return now + float(bare[1])
    opens = _OPENS.search(text)
    if not opens:
        return None
    rest = text[opens.start() :]
    iso = _ISO.search(rest)
    if iso:
        return _instant(iso[0])
    local = datetime.fromtimestamp(now, UTC).astimezone(here)
    for found in _WHEN.finditer(rest):
        moment = _moment(found, local)
        if moment is not None:
            return moment.timestamp()
    return None


def _unit(word: str) -> str:
    word = word.lower()
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _instant(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _moment(found: re.Match[str], local: datetime) -> datetime | None:
    """Return what a time of day means, seen from a moment. A number without a colon and without am or pm is none."""
    half, minute = (found["half"] or "").replace(".", "").lower(), found["minute"]
    if not half and minute is None:
        return None
    hour = int(found["hour"])
    if half:
        hour = hour % 12 + (12 if half == "pm" else 0)
    if hour > 23 or int(minute or 0) > 59:
        return None
    if found["named"]:
        # for a zone that this machine does not know, its own is the best guess
        with contextlib.suppress(OSError, ValueError, KeyError):
            local = local.astimezone(ZoneInfo(found["named"]))
    elif found["utc"]:
        local = local.astimezone(UTC)
    moment = local.replace(hour=hour, minute=int(minute or 0), second=0, microsecond=0)
    if not found["month"]:
        return moment if moment >= local - JUST_PASSED else moment + timedelta(days=1)
    try:
        moment = moment.replace(
            year=int(found["year"] or local.year),
            month=_MONTHS.index(found["month"][:3].lower()) + 1,
            day=int(found["day"]),
        )
        passed = not found["year"] and moment < local - timedelta(days=31)
        return moment.replace(year=moment.year + 1) if passed else moment
    except ValueError:
        return None
