"""The figures that an attempt may put in its result file beside its output: its cost, and the backoff that it wants.

spoold reads these names in every result that is an object; they stay part of its output.

Law: a figure is finite, and from 0 to the most of an amount; a `retry_after_s` may be below 0. What is none counts as
missing, and the fault of a wrong cost is told.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol.quantity import MOST, is_amount
from spoold.rules.attempts.quota import Quota, quota_in
from spoold.rules.locks.touched import files_in

_COUNTS = ("tokens_used", "cost_usd")


@dataclass(frozen=True, slots=True)
class Figures:
    """None for a figure that is missing. retry_after_s in seconds; below 0 means at once.

    quota: the quota that it found used up; as text the fault of that report. changed_files: paths.
    """

    tokens_used: float | None = None
    cost_usd: float | None = None
    retry_after_s: float | None = None
    quota: Quota | str | None = None
    changed_files: tuple[str, ...] = ()


NONE = Figures()


def figures_in(result: Any) -> tuple[Figures, str | None]:
    """The figures in an attempt's result, and the fault of a wrong count among them."""
    if not isinstance(result, dict):
        return NONE, None
    counts = {name: result[name] for name in _COUNTS if result.get(name) is not None}
    wrong = [name for name, value in counts.items() if not is_amount(value)]
    rest = result.get("retry_after_s")
    figures = Figures(
        **{name: value for name, value in counts.items() if name not in wrong},
        retry_after_s=rest if is_amount(rest, -MOST) else None,
        quota=quota_in(result),
        changed_files=files_in(result.get("changed_files")),
    )
    told = f"has a {wrong[0]} that is no number from 0 to {MOST:,}, so it counts as unknown" if wrong else None
    return figures, told


def overspent(budget: Mapping[str, float], progress: Any) -> str | None:
    """The sentence on a progress report that says more than the task's own budget allows; None if it says less."""
    figures, _ = figures_in(progress)
    for name, said, unit in (("cost_usd", figures.cost_usd, "USD"), ("tokens", figures.tokens_used, "tokens")):
        most = budget.get(name)
        if said is not None and most is not None and said > most:
            return f"it reported {said:g} {unit}, and its own budget is {most:g}"
    return None


def filled(figures: Figures, progress: Any) -> Figures:
    """The figures, with the counts of the last progress report where they lack some."""
    last, _ = figures_in(progress)
    return replace(
        figures,
        tokens_used=last.tokens_used if figures.tokens_used is None else figures.tokens_used,
        cost_usd=last.cost_usd if figures.cost_usd is None else figures.cost_usd,
    )
