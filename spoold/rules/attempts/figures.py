"""The figures that an attempt may put in its result file beside its output: its cost, and the backoff that it wants.

spoold reads these names in every result that is an object; they stay part of its output.

Law: only a finite number becomes a figure, and a count is 0 or more. A wrong count is a fault of the result, and a
wrong `retry_after_s` counts as missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from spoold.rules.attempts.quota import Quota, quota_in

_COUNTS = ("tokens_used", "cost_usd")


@dataclass(frozen=True, slots=True)
class Figures:
    """None for a figure that is missing. retry_after_s in seconds; below 0 means at once.

    quota: the quota that it found used up; as text the fault of that report.
    """

    tokens_used: float | None = None
    cost_usd: float | None = None
    retry_after_s: float | None = None
    quota: Quota | str | None = None


NONE = Figures()


def figures_in(result: Any) -> tuple[Figures, str | None]:
    """The figures in an attempt's result, and the fault of a wrong count among them."""
    if not isinstance(result, dict):
        return NONE, None
    counts = {name: result[name] for name in _COUNTS if result.get(name) is not None}
    wrong = [name for name, value in counts.items() if not _is_count(value)]
    rest = result.get("retry_after_s")
    figures = Figures(
        **{name: value for name, value in counts.items() if name not in wrong},
        retry_after_s=rest if _is_number(rest) else None,
        quota=quota_in(result),
    )
    return figures, f"has {wrong[0]} that is no finite number of 0 or more" if wrong else None


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0
