"""Jinja, and how figures, moments and states are written in a page.

Law: everything that a template prints is escaped, and characters that cannot be seen become escapes that can be read.
A name that is missing is an error, and not an empty text. A moment is an element with the exact time in it.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from spoold.faces.web import address
from spoold.pictures.ansi import Span
from spoold.pictures.palette import GLYPHS
from spoold.pictures.wording import clip, visible
from spoold.protocol.amount import amount, figure, length, precise
from spoold.protocol.result import remark_of

_UNKNOWN = "?"
TEXT_MOST = 20_000


@cache
def environment() -> Environment:
    """Return Jinja with the templates of this package."""
    made = Environment(
        loader=PackageLoader("spoold.faces.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        finalize=_finalized,
    )
    made.filters |= {
        "ago": ago,
        "amount": amount,
        "bytes": size,
        "clip": clip,
        "figure": figure,
        "length": length,
        "length_of": len,
        "lines": lines,
        "log": log_lines,
        "moment": moment,
        "number": number,
        "precise": precise,
        "pretty": pretty,
        "remark": remark_of,
        "state": state,
        "usd": usd,
    }
    made.globals |= {"link": address.link, "task_link": address.task, "tasks_link": address.tasks}
    made.globals |= {"batch_link": address.batch, "share_of": share_of}
    return made


def _finalized(value: Any) -> Any:
    """What an expression prints: text on one line, with what is hidden in it as escapes; nothing for None."""
    if value is None:
        return ""
    return visible(value) if type(value) is str else value


def state(name: str) -> Markup:
    """Return a state as its glyph on its colour, and its word."""
    known = name if name in GLYPHS else "unknown"
    glyph = GLYPHS.get(known, _UNKNOWN)
    word = escape(visible(name))
    return Markup(f'<span class="state s-{known}"><i aria-hidden="true">{glyph}</i>{word}</span>')


def moment(value: float | str | None) -> Markup:
    """Return a moment in UTC; `-` for none. value: seconds since 1970, or RFC 3339."""
    return _time(value, "at")


def ago(value: float | str | None) -> Markup:
    """Return how long ago a moment was, which the page counts on; `-` for none."""
    return _time(value, "ago")


def _time(value: float | str | None, how: str) -> Markup:
    at = _moment(value)
    if at is None:
        return Markup('<span class="none">-</span>') if value in (None, "") else escape(visible(str(value)[:60]))
    exact = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = f"{at:%Y-%m-%d %H:%M:%S}"
    if how == "ago":
        shown = length(max(0.0, (datetime.now(UTC) - at).total_seconds()))
    return Markup(f'<time datetime="{exact}" title="{exact}" data-{how}>{shown}</time>')


def _moment(value: float | str | None) -> datetime | None:
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found.astimezone(UTC) if found.tzinfo is not None else None
        return None if value is None else datetime.fromtimestamp(value, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def share_of(progress: Any) -> int | None:
    """Return how many hundredths are done, where a report of progress says it; else None."""
    said = progress.get("percent", progress.get("progress")) if isinstance(progress, dict) else progress
    if isinstance(progress, dict) and said is None and isinstance(progress.get("done"), int | float):
        total = progress.get("total")
        said = 100 * progress["done"] / total if isinstance(total, int | float) and total > 0 else None
    if not isinstance(said, int | float) or isinstance(said, bool):
        return None
    return round(min(100.0, max(0.0, 100 * said if isinstance(said, float) and said <= 1 else said)))


def number(value: float | None) -> str:
    """Return a count; `-` where it is not known."""
    return "-" if value is None else figure(value)


def usd(value: float | None) -> str:
    """Return an amount of USD, with as many decimals as it needs to be seen; `-` where it is not known."""
    if value is None:
        return "-"
    return figure(value, 2 if value >= 1 or value == 0 else 4)


def size(value: float) -> str:
    """Return a number of bytes in its largest unit."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while value >= 1024 and len(units) > 1:
        value /= 1024
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 100 else f"{value:.1f} {units[0]}"


def pretty(value: Any) -> str:
    """Return a JSON value in lines."""
    try:
        return json.dumps(value, ensure_ascii=False, indent=2, default=str)
    except RecursionError:
        return "This value is nested too deeply to be shown."


def lines(text: str) -> Markup:
    """Return a text of several lines as the content of a `pre`, cut where it is very long."""
    more = len(text) - TEXT_MOST
    shown = str(text) if more <= 0 else f"{text[:TEXT_MOST]}\n… and {amount(more, 'character')} more"
    return Markup("\n").join(escape(visible(line.replace("\t", "    "))) for line in shown.split("\n"))


def log_lines(found: list[list[Span]]) -> Markup:
    """Return lines of a log with their colours, as the content of a `pre`."""
    return Markup("").join(Markup('<span class="line">{}</span>\n').format(_line(spans)) for spans in found)


def _line(spans: list[Span]) -> Markup:
    parts = []
    for span in spans:
        words = " ".join(f"a-{word}" for word in span.style.words)
        parts.append(Markup('<span class="{}">{}</span>').format(words, span.text) if words else escape(span.text))
    return Markup("").join(parts)
