"""One look at one thing that people may be told of, and when it is out of bounds.

Law: between its threshold and the nine tenths of it at which it falls, a figure changes nothing: one that trembles
around its threshold is one alert.
"""

from __future__ import annotations

from dataclasses import dataclass

# An alert falls once its figure is below this part of its threshold.
FALLS_AT = 0.9


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure with its threshold, in the unit of the setting. subject: what it is about, '' for the whole spool.

    over: whether it is out of bounds; None: neither clearly out nor clearly within, or unknown. text: a sentence.
    after_s: how long (s) it must be out of bounds before that is an alert. since: when that began (RFC 3339), where
    every leader finds the same moment; '': when it is first seen.
    """

    name: str
    subject: str
    over: bool | None
    value: float = 0
    threshold: float = 0
    text: str = ""
    after_s: float = 0
    since: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """What makes two readings readings of the same thing."""
        return self.name, self.subject


def above(value: float, threshold: float) -> bool | None:
    """Whether the value is above its threshold; None in between."""
    return True if value > threshold else False if value <= threshold * FALLS_AT else None


def reached(value: float, threshold: float) -> bool | None:
    """Whether the value has reached its threshold; None in between."""
    return True if value >= threshold else above(value, threshold)
