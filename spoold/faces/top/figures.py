"""Ages, shares and amounts in few columns, which change seldom: over a slow line each change costs bytes.

Law: pure. An age has one unit from a minute on, so that a row of a task that runs changes once a minute.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from spoold.faces.top.lines import Line, Word, word
from spoold.pictures.palette import GLYPHS
from spoold.protocol.amount import amount, figure, precise
from spoold.protocol.lifecycle import SHOWN

if TYPE_CHECKING:
    from spoold.protocol.result import Total

_UNITS = ((86400, "d"), (3600, "h"), (60, "m"))
# A bar as text, so that it can be read without colours.
_FULL, _EMPTY = "█", "░"


def age(seconds: float | None) -> str:
    """Return a length of time in its largest unit: 47s, 12m, 3h, 5d; `-` where nobody knows it."""
    if seconds is None:
        return "-"
    whole = max(0, int(seconds))
    for size, unit in _UNITS:
        if whole >= size:
            return f"{figure(whole // size)}{unit}"
    return f"{whole}s"


def since(moment: float | None, now: float) -> str:
    """Return how long ago a moment was."""
    return age(None if moment is None else now - moment)


def moment(stamp: str) -> float | None:
    """Return the moment (s since 1970) of a stamp; None for one that is no moment, or has no zone."""
    try:
        at = datetime.fromisoformat(stamp)
    except ValueError:
        return None
    return at.timestamp() if at.tzinfo is not None else None


def bar(used: float, most: float, width: int) -> Line:
    """Return how much of something is used as a bar of so many columns; more than all of it fills the bar."""
    part = min(1.0, max(0.0, used / most)) if most > 0 else 0.0
    full = round(part * width)
    if used > 0 and not full:
        full = 1
    style = "alert" if part > 0.9 else "bar"
    return tuple(each for each in (Word(_FULL * full, style), Word(_EMPTY * (width - full), "mute")) if each.text)


def stack(counts: Mapping[str, int], width: int) -> Line:
    """Return how many of each state there are as a bar, a piece for each state, with its sign in it."""
    total = sum(counts.values())
    if not total:
        return (Word(_EMPTY * width, "mute"),)
    found: list[Word] = []
    done, columns = 0, 0
    for name in ("completed", "skipped", "failed", "rejected", "claimed", "ready", "waiting", "pending"):
        count = counts.get(name, 0)
        done += count
        size = round(done / total * width) - columns
        columns += size
        if size:
            found.append(Word(GLYPHS[name] * size, f"state:{name}"))
    return tuple(found)


def counts_line(counts: Mapping[str, int], *, every: bool = False) -> Line:
    """Return how many tasks are in each state, those with none left out unless `every`."""
    found: list[Word] = []
    for one in SHOWN:
        count = counts.get(one.value, 0)
        if count or every:
            style = f"state:{one.value}" if count else "mute"
            found += [Word("  " if found else ""), Word(f"{GLYPHS[one.value]} {figure(count)} {one.value}", style)]
    return tuple(found)


def memory(mebibytes: float) -> str:
    """Return an amount of memory, in GiB."""
    gibibytes = mebibytes / 1024
    return f"{gibibytes:.0f}G" if gibibytes >= 10 else f"{gibibytes:.1f}G"


def short(number: float | None) -> str:
    """Return a number in few columns: 950, 12k, 3.4M; '' for none."""
    if number is None:
        return ""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.1f}{unit}" if number < 10 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0f}"


def money(usd: float | None) -> str:
    """Return an amount in USD; '' for none."""
    return "" if usd is None else f"${usd:.2f}"


def summed(total: Total) -> str:
    """Return the sums of some attempts, as far as they are known."""
    parts = [amount(total.attempts, "attempt"), precise(total.duration_s)]
    if total.tokens_used:
        parts.append(amount(round(total.tokens_used), "token"))
    if total.cost_usd:
        parts.append(money(total.cost_usd))
    return ", ".join(parts)


def progress(value: Any) -> Word:
    """Return what a task says of its progress, on one line: its share, and its words."""
    if isinstance(value, bool) or value is None:
        return Word("")
    if isinstance(value, int | float):
        return Word(f"{100 * value:.0f} %" if 0 <= value <= 1 else f"{value:g}")
    if isinstance(value, str):
        return word(value, most=400)
    if not isinstance(value, Mapping):
        return word(value, most=400)
    said = {str(name): one for name, one in value.items() if name not in ("tokens_used", "cost_usd")}
    parts = [text for name in ("message", "text", "step") if isinstance(text := said.pop(name, None), str)]
    rest = [f"{name}={one}" for name, one in said.items() if not isinstance(one, Mapping | list)]
    return word(" ".join([*parts, *rest]), most=400)
