"""Which class an error has, and when a quota opens again: from words, fields, headers and status.

Law: pure, and never an error. What is said decides before the status, since providers give 400 and 429 for many
things. What nothing is known about is transient: another attempt costs little, and a wrong "never again" costs the
task.

Nothing is clamped here: `ending` knows the bounds. A field that names a time counts before a sentence, and in a
sentence the first that follows a word for the opening. A time is in the zone that is named with it; a date of Z.ai in
that of Beijing, which it does not name; another date in UTC; and a time of day in the zone of this machine, where the
program ran that said it. Every pattern takes a bounded part of a text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from email.utils import parsedate_to_datetime
from zoneinfo import ZoneInfo

from spoold.agents.adapters.adapter import Fault, Trouble

# A wait longer than this is not slept through in an attempt: a rate that opens later is a quota.
LONG_S = 120.0
MESSAGE_LIMIT = 500
_WORDS: tuple[tuple[Fault, tuple[str, ...]], ...] = (
    (
        "context",
        (
            r"context[ _-]?(length|window)",
            "contextoverflow",
            "maximum context",
            "prompt is too long",
            "input (token count|is too long)",
            "exceeds? the (maximum|limit).{0,40}tokens",
            "reduce the length",
        ),
    ),
    (
        "quota",
        (
            "usage[ _]?limit",
            "insufficient[_ ](quota|balance|credit|funds)",
            "quota (is |was |has been )?(exceeded|exhausted|reached)",
            "exceeded your (current )?quota",
            "(session|weekly|hourly|daily|monthly|[0-9]-hour) limit",
            "(hit|reached) your limit",
            "limit reached.{0,40}resets",
            "out of credits",
            "credit balance",
            "terminalquotaerror",
            "billing details",
            "payment required",
            "free tier limit",
            "spend(ing)? limit",
            "exhausted your (capacity|daily quota)",
            "使用上限|限额",
        ),
    ),
    (
        "budget",
        (r"max(imum)?[ _-]?(number of )?(session[ _-]?)?turns", "max[ _-]?budget", "turn limit", "maximum steps"),
    ),
    (
        "rate",
        ("rate[ _-]?limit", "too many requests", "resource[_ ]exhausted", "throttl", "(tokens|requests) per min"),
    ),
    (
        "auth",
        (
            "api[ _]?key",
            "unauthori[sz]ed",
            "authenticat",
            "invalid (auth|token|credentials)",
            "not logged in",
            "please (log ?in|run /login)",
            "oauth token",
            "login required",
        ),
    ),
    (
        "refusal",
        ("content[ _-]?filter", "content policy", "usage polic", r"\brefus(al|ed to|es to)\b", "prohibited_content"),
    ),
    (
        "permission",
        (
            "permission[ _](denied|rejected|to use)",
            "rejected permission",
            "rejected the tool",
            "user denied",
            "denied by",
            "requires? (approval|permission|confirmation)",
            "(not|n't) (granted|allowed to)",
            "prevents? you from using",
            "not in workspace|outside (of )?the (allowed )?workspace",
        ),
    ),
    (
        "transient",
        (
            "overload",
            "unavailable",
            "timed? ?out",
            "econn|enotfound|eai_again",
            "socket|connection|network|fetch failed",
            "stream (error|disconnected)",
            "internal (server )?error",
            "bad gateway",
            "reconnecting",
        ),
    ),
    (
        "input",
        (
            "model.{0,60}(not (found|exist|supported)|does not exist)",
            "no such model|providermodelnotfound",
            "(unknown|unexpected|invalid)[_ ](model|option|argument|request)",
            "bad request",
        ),
    ),
)
# How providers refuse a history that is not whole, since the program was killed between a call and its answer:
# claude-code #1894, #8484; codex #19661; opencode #5750; goose #2951; the others from the providers' references.
_TORN_WORDS = (
    "tool_use.{0,20}ids? (was|were) found without.{0,20}tool_result",
    "unexpected.{0,5}tool_use_id.{0,5}found in.{0,5}tool_result",
    "tool_calls.{0,5} must be followed by tool messages",
    "role.{0,8}tool.{0,5} must be a response to",
    "tool_call_ids? did not have response",
    "no tool (output|call) found for function call",
    "encrypted_content",
    "without its required (following|preceding) item",
    "signature.{0,5} in.{0,5}thinking",
    "function (call turn|response parts)",
    "roles must alternate",
)
_TORN = re.compile("|".join(_TORN_WORDS), re.IGNORECASE)
_FAULTS = tuple((fault, re.compile("|".join(words), re.IGNORECASE)) for fault, words in _WORDS)
_TRANSIENT = dict(_FAULTS)["transient"]
_STATUSES: dict[int, Fault] = {400: "input", 401: "auth", 402: "quota", 403: "auth", 404: "input", 413: "context"}
_STATUSES |= {422: "input", 429: "rate"}
_STATED = re.compile(r"\b(?:status(?: code)?:?|error:?|code\"?:)\s*(4\d\d|5\d\d)\b", re.IGNORECASE)


def classify(text: str, status: int | None = None) -> Fault:
    """Return the class of an error. status: its HTTP status, where it is known; else it is looked for in the text."""
    for fault, words in _FAULTS:
        if words.search(text):
            return fault
    if status is None:
        found = _STATED.search(text)
        status = int(found[1]) if found else None
    return _STATUSES.get(status or 0, "transient")


def passes(text: str) -> bool:
    """Whether an error is one of the network or of a server by its own words, and so may pass by itself."""
    stated = _STATED.search(text)
    return classify(text) == "transient" and bool(_TRANSIENT.search(text) or (stated and stated[1].startswith("5")))


def torn(text: str) -> bool:
    """Whether an error is about a history that is not whole."""
    return bool(_TORN.search(text))


def trouble(
    text: str, now: float, *, status: int | None = None, until: float | None = None, final: bool = True
) -> Trouble:
    """Return an error, classed, with the time at which it is over: `until`, else what its text says."""
    fault = classify(text, status)
    if fault in ("quota", "rate"):
        until = until if until is not None else said(text, now)
        if fault == "rate" and until is not None and until - now > LONG_S:
            fault = "quota"
    else:
        until = None
    return Trouble(fault, " ".join(text.split())[:MESSAGE_LIMIT], until, final)


def retrying(text: str, now: float, *, status: int | None = None, again: float | None = None) -> Trouble:
    """Return an error after which the program tries again by itself, at `again`, epoch s. It is final where that is
    in vain: a spent quota, or a key or request that stays wrong. A short pause does not say when a quota opens."""
    found = trouble(text, now, status=status, final=False)
    until = found.until
    if until is None and found.fault in ("quota", "rate") and again is not None:
        long = again - now > LONG_S
        until = again if long or found.fault == "rate" else None
    fault: Fault = "quota" if found.fault == "rate" and until is not None and until - now > LONG_S else found.fault
    vain = fault in ("quota", "auth", "input", "context", "budget")
    return Trouble(fault, found.message, until, final=vain)


# When a quota opens again: read from the sentences, fields, headers and numbers in which command lines say it.


# The zone of a time, as people and programs write it: a name of the tz database, an abbreviation, or an offset.


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
_RESET_WORDS = "|".join(sorted((*_OFFSETS, *_PLACES), key=len, reverse=True))
# UTC+8, GMT-3, UTC+05:30, +0100
_OFFSET = r"(?:(?:UTC|GMT)\s?)?[+\-−]\d{1,2}(?::?[0-5]\d)?"
PATTERN = (
    rf"\((?P<named>[A-Za-z][A-Za-z_+\-/0-9]{{1,40}}|{_OFFSET})\)|(?P<bare>{_OFFSET}|{_RESET_WORDS})\b(?:\s+time\b)?"
)
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


# A time of day that has just passed is meant as now, and not as tomorrow: "try again at 12:16" may be read at 12:17.
JUST_PASSED = timedelta(minutes=30)
# So much of a text is read.
READ_MOST = 16 << 10
_BEIJING = timezone(timedelta(hours=8))
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "w": 604_800.0}
_NUMBER = r"\d{1,15}(?:\.\d{1,12})?"
_UNIT = r"(?:milliseconds?|millis|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|hr|h|days?|d|weeks?|wks?|w)"
# "3h12m9s" has no border between an amount and the next, and "1 day, 2 hours and 5 minutes" has words there.
_SPAN = rf"{_NUMBER}\s{{0,3}}{_UNIT}(?:(?:,|\s|and\b){{0,6}}{_NUMBER}\s{{0,3}}{_UNIT}){{0,5}}(?![A-Za-z])"
_CLOCKED = r"\d{1,3}:[0-5]\d:[0-5]\d(?!\s?[ap]\.?m)"
_PART = re.compile(rf"({_NUMBER})\s{{0,3}}({_UNIT})", re.IGNORECASE)
_WAIT = re.compile(
    r"\b(?:in|after|delay(?: of)?|wait(?:ing)?(?: for)?|for)\s{1,3}(?:about\s|approximately\s|another\s|~\s?)?"
    rf"(?:(?P<span>{_SPAN})|(?P<clocked>{_CLOCKED}))",
    re.IGNORECASE,
)
_OPENS = re.compile(
    r"\b(?:resets?|resetting|try again|trying again|again|available|retry(?:ing)?|renews?|refresh(?:es)?|wait"
    r"|regain access|come back|opens|until)\b|将在|将于|重置",
    re.IGNORECASE,
)
_ISO_DATE = (
    r"(?P<iso>\d{4}[-/]\d\d[-/]\d\d)(?:(?P<t>T)|,?\s{1,3}(?:at\s{1,3})?)"
    r"(?P<isotime>\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?)"
)
_YEAR = r"(?:,?\s{1,2}(?:de\s)?(?P<%s>20\d\d))?"
_MONTH = rf"(?:{'|'.join(_MONTHS)})[a-z]{{0,6}}\.?"
_MONTH_DAY = rf"(?P<month>{_MONTH})\s{{1,2}}(?P<day>\d{{1,2}})(?:st|nd|rd|th)?{_YEAR % 'year'}"
_DAY_MONTH = rf"(?P<day2>\d{{1,2}})(?:st|nd|rd|th)?\s{{1,2}}(?:de\s)?(?P<month2>{_MONTH}){_YEAR % 'year2'}"
_WEEKDAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}\b\.?"
_CLOCK = (
    r"(?:(?P<hour>\d{1,2})(?::(?P<minute>\d\d)(?::(?P<second>\d\d))?)?\s?(?P<half>[ap]\.?m\b\.?)?"
    r"|(?P<word>midnight|noon)\b)"
)
_JOIN = r"(?:,?\s{1,3}(?:at\s{1,3})?|\s?[·@]\s?)"
_WHEN = re.compile(
    rf"(?:(?<![\w.:-])(?:{_ISO_DATE}"
    rf"|(?:(?:{_WEEKDAY},?\s{{1,2}})?(?:{_MONTH_DAY}|{_DAY_MONTH}){_JOIN}|(?P<on>{_WEEKDAY}){_JOIN}"
    rf"|(?P<tomorrow>tomorrow){_JOIN})?"
    rf"{_CLOCK}(?![\w:%])))"
    rf"(?:\s?(?:{PATTERN}))?"
    rf"(?:\s{{1,2}}on\s{{1,2}}(?:(?P<day3>\d{{1,2}})\s(?P<month3>{_MONTH})|(?P<month4>{_MONTH})\s(?P<day4>\d{{1,2}}))|\s{{1,2}}(?P<later>tomorrow))?",
    re.IGNORECASE,
)
_ISO = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)
# What a key of JSON, or a header, says: for how long, in s or ms, or at what time.
_FIELD = re.compile(
    r"(?P<key>(?:x-)?(?:[a-z]{1,20}-)?(?:ratelimit|codex)-(?:[a-z]{1,20}-){0,2}reset(?:-(?:at|after-seconds))?"
    r"(?:-[a-z]{1,12})?|resets?_?(?:in|after)(?:_?(?:seconds|secs|sec|s|ms))?|retry[-_]?after(?:[-_]?(?:ms|seconds|s))?"
    r"|retry_?delay(?:_?ms)?|quota_?reset_?delay|(?:quota_?)?reset_?time_?stamp|resets?_?(?:at|time)|next_?reset_?time)"
    r"\\?[\"']?\s{0,3}[:=]\s{0,3}\\?[\"']?"
    rf"(?P<value>[A-Za-z]{{3}},[\w ,:]{{20,30}}GMT|{_ISO.pattern}|{_SPAN}|{_NUMBER})",
    re.IGNORECASE,
)
_BARE_SECONDS = re.compile(rf"\bretry[-_ ]after\s{{1,3}}({_NUMBER})\b(?!\s?[a-z:.])", re.IGNORECASE)
# "Claude AI usage limit reached|1750000000"
_EPOCH = re.compile(r"\|\s?(\d{10}|\d{13})\b")
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def stamp(value: object) -> float | None:
    """Return a structured time as epoch seconds: a number of s or ms since the epoch, or ISO 8601; else None."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return value / 1000 if value > 1e11 else float(value) if value > 1e9 else None
    text = str(value).strip()
    if re.fullmatch(r"\d{10,13}(\.\d{1,9})?", text):
        return stamp(float(text))
    found = _ISO.fullmatch(text)
    return _instant(found[0], UTC) if found else None


def header(value: object, now: float) -> float | None:
    """Return when a `retry-after` header says to come again: it has seconds, or a date."""
    return _valued("retry-after", str(value if value is not None else "").strip(), now)


def headers(found: Mapping[str, object], now: float) -> float | None:
    """Return when the headers of an answer say to come again: what asks for a retry counts before what resets, and of
    several that reset the last."""
    said = {name.lower(): str(value).strip() for name, value in found.items()}
    for name in ("retry-after-ms", "retry-after"):
        when = _valued(name, said.get(name, ""), now)
        if when is not None:
            return when
    times = [
        _valued(name, value, now) for name, value in said.items() if re.search(r"ratelimit-(.{1,40}-)?reset", name)
    ]
    return max((time for time in times if time is not None), default=None)


def said(text: str, now: float, here: tzinfo | None = None) -> float | None:
    """Return the time that a text names, epoch s; None if it names none. now: epoch, s; here: the zone of a time of
    day without one, by default this machine's."""
    text = text[:READ_MOST]
    for found in _FIELD.finditer(text):
        when = _valued(found["key"].lower(), found["value"], now)
        if when is not None:
            return when
    for pattern, base in ((_EPOCH, 0.0), (_BARE_SECONDS, now)):
        if one := pattern.search(text):
            return base + float(one[1]) if base else stamp(int(one[1]))
    opens = _OPENS.search(text)
    wait = _WAIT.search(text, opens.start() if opens else 0) or _WAIT.search(text)
    if opens is not None:
        local = datetime.fromtimestamp(now, UTC).astimezone(here)
        for found in _WHEN.finditer(text, opens.start()):
            if wait is not None and opens.start() <= wait.start() < found.start():
                break
            moment = _moment(found, local, text)
            if moment is not None:
                return moment.timestamp()
    return None if wait is None else now + _span(wait["span"] or wait["clocked"])


def _valued(key: str, value: str, now: float) -> float | None:
    """What a field says: a time, or for how long. A small number is of seconds, or of ms where its key says so."""
    when = stamp(value)
    if when is not None:
        return when
    if re.fullmatch(_NUMBER, value):
        return now + float(value) * (0.001 if re.search(r"ms$|retry_?delay_?ms", key) else 1.0)
    if re.fullmatch(_SPAN, value, re.IGNORECASE):
        return now + _span(value)
    try:
        return parsedate_to_datetime(value).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def _span(text: str) -> float:
    """For how long (s) some amounts are together, or 1:23:45."""
    if ":" in text:
        hours, minutes, seconds = map(int, text.split(":"))
        return float(hours * 3600 + minutes * 60 + seconds)
    return sum(float(number) * _UNITS[_unit(unit)] for number, unit in _PART.findall(text))


def _unit(word: str) -> str:
    word = word.lower()
    return "ms" if word.startswith(("ms", "milli")) else word[0]


def _instant(text: str, zone: tzinfo) -> float | None:
    try:
        moment = datetime.fromisoformat(text.upper())
        return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp()
    except (ValueError, OverflowError):
        return None


def _moment(found: re.Match[str], local: datetime, text: str) -> datetime | None:
    """Return what a time means, seen from a moment. A number without a colon and without am or pm is none."""
    name = found["named"] or found["bare"]
    where = zone(name) if name else None
    try:
        if found["iso"]:
            beijing = not found["t"] and ("limit will reset at" in text or _CHINESE.search(text))
            moment = datetime.fromisoformat(f"{found['iso'].replace('/', '-')}T{found['isotime']}")
            return moment.replace(tzinfo=where or (_BEIJING if beijing else UTC))
        clock = _clock(found)
        if clock is None:
            return None
        local = local.astimezone(where) if where else local
        hour, minute, second = clock
        return _on_day(found, local.replace(hour=hour, minute=minute, second=second, microsecond=0), local)
    except (ValueError, OverflowError):
        return None


def _clock(found: re.Match[str]) -> tuple[int, int, int] | None:
    if found["word"]:
        return (0, 0, 0) if found["word"].lower() == "midnight" else (12, 0, 0)
    half, hour = (found["half"] or "").replace(".", "").lower(), int(found["hour"])
    if not half and found["minute"] is None:
        return None
    if half:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if half == "pm" else 0)
    return hour, int(found["minute"] or 0), int(found["second"] or 0)


def _on_day(found: re.Match[str], moment: datetime, local: datetime) -> datetime:
    """Return a time of day on the day that is named with it, else on the next on which it is not over."""
    month = found["month"] or found["month2"] or found["month3"] or found["month4"]
    if month:
        year = found["year"] or found["year2"]
        moment = moment.replace(
            year=int(year or local.year),
            month=_MONTHS.index(month[:3].lower()) + 1,
            day=int(found["day"] or found["day2"] or found["day3"] or found["day4"]),
        )
        passed = not year and moment < local - timedelta(days=31)
        return moment.replace(year=moment.year + 1) if passed else moment
    weekday = found["on"]
    if weekday:
        moment += timedelta(days=(_DAYS.index(weekday[:3].lower()) - moment.weekday()) % 7)
        return moment if moment >= local - JUST_PASSED else moment + timedelta(days=7)
    if found["tomorrow"] or found["later"]:
        return moment + timedelta(days=1)
    return moment if moment >= local - JUST_PASSED else moment + timedelta(days=1)
