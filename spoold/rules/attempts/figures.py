"""The figures that an attempt may put in its result file beside its output: its cost, the backoff that it wants, and
whether another worker should try.

spoold reads these names in every result that is an object; they stay part of its output.

Law: a figure is finite, and from 0 to the most of an amount; a `retry_after_s` may be below 0. What is none counts as
missing, and is never passed over in silence: `faults_in` names every field that `figures_in` does not take as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spoold.protocol.errors import BadFile
from spoold.protocol.quantity import MOST, is_amount
from spoold.rules.attempts.outcome import NOT_HERE, NotHere
from spoold.rules.attempts.quota import FORM, Quota, quota_in
from spoold.rules.locks.touched import files_in, wrong_files

COUNTS = ("tokens_used", "cost_usd")
# So many characters of a wrong value are shown.
SHOWN = 60
# Of one field: its place, what is wrong there, and the fix.
Wrong = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Figures:
    """None for a figure that is missing. retry_after_s in seconds; below 0 means at once.

    quota: the quota that it found used up; as text the fault of that report. changed_files: paths. not_here: what its
    worker cannot run now, the task or any of its type; None for neither.
    """

    tokens_used: float | None = None
    cost_usd: float | None = None
    retry_after_s: float | None = None
    quota: Quota | str | None = None
    changed_files: tuple[str, ...] = ()
    not_here: NotHere | None = None


NONE = Figures()


def figures_in(result: Any) -> Figures:
    """The figures in an attempt's result; those that are wrong are missing."""
    if not isinstance(result, dict):
        return NONE
    rest = result.get("retry_after_s")
    return Figures(
        **{name: result[name] for name in COUNTS if is_amount(result.get(name))},
        retry_after_s=rest if is_amount(rest, -MOST) else None,
        quota=quota_in(result),
        changed_files=files_in(result.get("changed_files")),
        not_here=next((one for one in NOT_HERE if one == result.get("not_here")), None),
    )


def faults_in(result: Any, file: str, names: tuple[str, ...] = ()) -> list[BadFile]:
    """What is wrong with the figures in what an attempt wrote. file: its name, for people; names: the fields that
    would have counted, none for all that a result has.
    """
    if not isinstance(result, dict):
        return []
    said = ((name, result.get(name)) for name in names or _RESULT)
    found = [wrong for name, value in said if value is not None for wrong in _FAULTS[name](name, value)]
    return [BadFile(file, place, problem, mend) for place, problem, mend in found]


def _amount(least: int, counts_as: str) -> Callable[[str, Any], Iterator[Wrong]]:
    def wrong(name: str, value: Any) -> Iterator[Wrong]:
        if not is_amount(value, least):
            problem = f"is {_shown(value)}, which is no number from {least:,} to {MOST:,}, so {counts_as}."
            yield name, problem, "write a number in that range, without quotes, or leave it out."

    return wrong


def _quota(name: str, value: Any) -> Iterator[Wrong]:
    if isinstance(fault := quota_in({name: value}), str):
        why = fault.removesuffix(f"; write {FORM}")
        yield name, f"is {_shown(value)}, so it closes nothing: {why}.", f"write {FORM}, or leave it out."


def _files(name: str, value: Any) -> Iterator[Wrong]:
    for index, problem, mend in wrong_files(value):
        at = value if index is None else value[index]
        yield name if index is None else f"{name}[{index}]", f"is {_shown(at)}, {problem}", mend


def _not_here(name: str, value: Any) -> Iterator[Wrong]:
    if value not in NOT_HERE:
        problem = f"is {_shown(value)}, so every worker may try it again."
        yield name, problem, 'write "task" or "type", or leave it out.'


def _flag(name: str, value: Any) -> Iterator[Wrong]:
    if not isinstance(value, bool):
        yield name, f"is {_shown(value)}, so it counts as false.", "write true or false, without quotes."


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


_FAULTS: Mapping[str, Callable[[str, Any], Iterator[Wrong]]] = {
    **dict.fromkeys(COUNTS, _amount(0, "it counts as unknown")),
    "retry_after_s": _amount(-MOST, "the next attempt waits as after any other"),
    "quota": _quota,
    "changed_files": _files,
    "not_here": _not_here,
    "served": _flag,
}
# The fields of a result; `served` belongs to a progress report.
_RESULT = (*COUNTS, "retry_after_s", "quota", "changed_files", "not_here")
PROGRESS = (*COUNTS, "served")


def overspent(budget: Mapping[str, float], progress: Any) -> str | None:
    """The sentence on a progress report that says more than the task's own budget allows; None if it says less."""
    figures = figures_in(progress)
    for name, said, unit in (("cost_usd", figures.cost_usd, "USD"), ("tokens", figures.tokens_used, "tokens")):
        most = budget.get(name)
        if said is not None and most is not None and said > most:
            return f"it reported {said:g} {unit}, and its own budget is {most:g}"
    return None


def filled(figures: Figures, progress: Any) -> Figures:
    """The figures, with the counts of the last progress report where they lack some."""
    last = figures_in(progress)
    return replace(
        figures,
        tokens_used=last.tokens_used if figures.tokens_used is None else figures.tokens_used,
        cost_usd=last.cost_usd if figures.cost_usd is None else figures.cost_usd,
    )
