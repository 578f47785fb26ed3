"""The zone of a time, as people and programs write it: a name of the tz database, an abbreviation, or an offset.

Law: pure. An abbreviation that several zones have is that of the one in which most of its speakers live.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

_OFFSETS = {
    "utc": 0.0,
    "gmt": 0.0,
    "z": 0.0,
    "wet": 0.0,
    "west": 1.0,
    "bst": 1.0,
    "cet": 1.0,
    "cest": 2.0,
    "eet": 2.0,
    "eest": 3.0,
    "msk": 3.0,
    "ist": 5.5,
    "sgt": 8.0,
    "hkt": 8.0,
    "jst": 9.0,
    "kst": 9.0,
    "aest": 10.0,
    "aedt": 11.0,
    "nzst": 12.0,
    "nzdt": 13.0,
    "brt": -3.0,
    "est": -5.0,
    "edt": -4.0,
    "cst": -6.0,
    "cdt": -5.0,
    "mst": -7.0,
    "mdt": -6.0,
    "pst": -8.0,
    "pdt": -7.0,
}
_PLACES = {
    **dict.fromkeys(("pt", "pacific"), "America/Los_Angeles"),
    **dict.fromkeys(("mt", "mountain"), "America/Denver"),
    **dict.fromkeys(("ct", "central"), "America/Chicago"),
    **dict.fromkeys(("et", "eastern"), "America/New_York"),
    **dict.fromkeys(("beijing",), "Asia/Shanghai"),
}
_WORDS = "|".join(sorted((*_OFFSETS, *_PLACES), key=len, reverse=True))
# UTC+8, GMT-3, UTC+05:30, +0100
_OFFSET = r"(?:(?:UTC|GMT)\s?)?[+\-−]\d{1,2}(?::?[0-5]\d)?"
PATTERN = rf"\((?P<named>[A-Za-z][A-Za-z_+\-/0-9]{{1,40}}|{_OFFSET})\)|(?P<bare>{_OFFSET}|{_WORDS})\b(?:\s+time\b)?"
_PARTS = re.compile(r"(?:UTC|GMT)?\s?([+\-−])(\d{1,2}):?([0-5]\d)?", re.IGNORECASE)


def zone(name: str) -> tzinfo | None:
    """Return the zone of such a name; None for one that this machine does not know."""
    word, offset = name.lower(), _PARTS.fullmatch(name)
    if offset:
        size = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
        return timezone(size if offset[1] == "+" else -size) if size < timedelta(hours=24) else None
    if word in _OFFSETS:
        return timezone(timedelta(hours=_OFFSETS[word])) if _OFFSETS[word] else UTC
    try:
        return ZoneInfo(_PLACES.get(word, name))
    except (OSError, ValueError, KeyError):
        return None
