"""A figure: its samples, what they are summed up to, and what it was meant to be.

Law: the value is the median of the samples and the spread is their least and greatest, for every figure alike.
Nothing is averaged, thrown away or corrected. Pure.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """What a figure should be: at least the limit, or (most) below it, in the figure's unit."""

    limit: float
    most: bool = False

    def holds(self, value: float) -> bool:
        """Whether a value is as it should be."""
        return value < self.limit if self.most else value >= self.limit

    def __str__(self) -> str:
        return f"{'<' if self.most else '≥'} {number(self.limit)}"


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of one part. more: medians of what was seen beside it; note: what a reader has to know.

    key: what it is of, for the chart and docs/benchmarks.md (contender, tier, place, backlog, fsync).
    No samples: it could not be measured, and the note says why.
    """

    part: str
    name: str
    unit: str
    samples: tuple[float, ...]
    target: Target | None = None
    note: str = ""
    more: Mapping[str, float] = field(default_factory=dict)
    key: Mapping[str, Any] = field(default_factory=dict)

    @property
    def value(self) -> float | None:
        """The median; None where nothing was measured."""
        return statistics.median(self.samples) if self.samples else None

    @property
    def holds(self) -> bool | None:
        """Whether it is as it should be; None without a target. What could not be measured does not hold."""
        if self.target is None:
            return None
        return self.value is not None and self.target.holds(self.value)

    def as_json(self) -> dict[str, Any]:
        """Everything about it, every sample included."""
        target = None if self.target is None else {"limit": self.target.limit, "most": self.target.most}
        return {
            "part": self.part,
            "name": self.name,
            "unit": self.unit,
            "value": self.value,
            "samples": list(self.samples),
            "target": target,
            "holds": self.holds,
            "note": self.note,
            "more": dict(self.more),
            "key": dict(self.key),
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> Figure:
        """The figure that `as_json` gave. Errors: KeyError for what is none."""
        target = None if found["target"] is None else Target(**found["target"])
        samples = tuple(found["samples"])
        return cls(
            found["part"], found["name"], found["unit"], samples, target, found["note"], found["more"], found["key"]
        )


def joined(figures: Iterable[Figure]) -> list[Figure]:
    """Those of one name, from several calls, as one with all of their samples; what was lost and doubled adds up.

    The rest of what was seen beside them is the first's, as are its note and its target.
    """
    found: dict[tuple[str, str], Figure] = {}
    for figure in figures:
        name = (figure.part, figure.name)
        if name not in found:
            found[name] = figure
            continue
        first = found[name]
        counts = {what: first.more[what] + figure.more.get(what, 0) for what in LOSSES if what in first.more}
        found[name] = replace(first, samples=first.samples + figure.samples, more={**first.more, **counts})
    return list(found.values())


ALL = "all"
LOSSES = ("lost", "doubled")


def losses(figures: Iterable[Figure], what: str) -> int:
    """How many tasks spoold has `lost` or `doubled` in all rows together."""
    ours = [figure for figure in figures if str(figure.key.get("label", "")).startswith("spoold")]
    return int(sum(figure.more.get(what, 0) for figure in ours))


def summed_up(figures: Sequence[Figure]) -> list[Figure]:
    """The figures, and behind them the two that are of all of them: what was lost, and what was doubled."""
    own = [figure for figure in figures if figure.part != ALL]
    if not any("lost" in figure.more for figure in own):
        return own
    nothing = Target(1, most=True)
    totals = [
        Figure(ALL, f"tasks of spoold that were {what}", "tasks", (float(losses(own, what)),), nothing)
        for what in LOSSES
    ]
    return own + totals


def percentile(samples: Sequence[float], share: float) -> float:
    """The sample below which this share (0 … 1) of them lies: the nearest one, nothing between two is made up."""
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def ratios(ours: Sequence[float], theirs: Sequence[float]) -> tuple[float, ...]:
    """Round by round, ours over theirs: two runs that stood next to one another are compared, and no others."""
    return tuple(mine / other for mine, other in zip(ours, theirs, strict=False) if other > 0)


def number(value: float) -> str:
    """As people read it: three significant digits, thousands apart."""
    if value == 0:
        return "0"
    size = abs(value)
    if size >= 1000:
        digits = len(str(int(size))) - 3
        return f"{round(value, -digits):,.0f}"
    return f"{value:.3g}"


def depth(tasks: int) -> str:
    """A backlog as people say it: 1k, 10k, 100k, 1M."""
    if tasks >= 1_000_000 and tasks % 1_000_000 == 0:
        return f"{tasks // 1_000_000}M"
    return f"{tasks // 1000}k" if tasks >= 1000 and tasks % 1000 == 0 else str(tasks)
