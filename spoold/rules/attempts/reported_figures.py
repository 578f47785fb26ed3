"""What an attempt may put in its result file beside its output: its cost, the backoff that it wants, a quota that it
found used up, the files that it changed, and whether another worker should try.

    {"quota": {"limit": "anthropic", "until": "2026-02-02T14:05:00Z"}}
    {"quota": {"limit": "anthropic", "retry_after_s": 900}}

spoold reads these names in every result that is an object; they stay part of its output.

Law: a figure is finite, and from 0 to the most of an amount; a `retry_after_s` may be below 0. What is none counts as
missing, and is never passed over in silence: `faults_in` names every field that `figures_in` does not take as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spoold.protocol.amount import MOST, is_amount
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.lanes import as_word
from spoold.protocol.settings import LimitSettings
from spoold.rules.attempts.attempt_outcome import NOT_HERE, NotHere, Outcome

# A quota that an attempt found used up, as it says it in its result beside exit code 75.
# Law: a report that cannot be read closes nothing, and its fault is told; the attempt counts as exit code 75 alone.


# For how long (s) a limit is closed by a report that names no time.
UNSAID_S = 60.0
# For how long (s) at least: a report that names the past would let one task after the other try without a pause.
LEAST_S = 1.0
FORM = '{"quota": {"limit": NAME, "retry_after_s": SECONDS}}'


@dataclass(frozen=True, slots=True)
class Quota:
    """The limit, and until when it is used up: a moment (s since 1970), or so many seconds from now."""

    limit: str
    until: float | None = None
    after_s: float | None = None

    def moment(self, now: float, limit: LimitSettings) -> float:
        """Until when the limit is closed, no longer than it may be. now and the answer in seconds since 1970."""
        until = self.until if self.until is not None else now + (UNSAID_S if self.after_s is None else self.after_s)
        return min(max(until, now + LEAST_S), now + limit.quota_max_s)


def is_served(progress: Any) -> bool:
    """Whether a running attempt says in its progress that the limits it uses serve it."""
    return isinstance(progress, dict) and progress.get("served") is True


def quota_in(result: Any) -> Quota | str | None:
    """The quota that a result reports; as text what is wrong with it; None for no report."""
    said = result.get("quota") if isinstance(result, dict) else None
    if said is None:
        return None
    if not isinstance(said, dict) or not isinstance(said.get("limit"), str):
        return f"its quota names no limit; write {FORM}"
    try:
        limit = as_word(said["limit"])
    except WrongValue:
        return f"its quota names {said['limit']!r}, which cannot be a limit"
    until, after_s = said.get("until"), said.get("retry_after_s")
    if until is not None:
        try:
            moment = datetime.fromisoformat(until)
        except (TypeError, ValueError):
            return f"the until of its quota is not a time: {until!r}; use RFC 3339 with a zone"
        if moment.tzinfo is None:
            return f"the until of its quota has no zone: {until!r}; use RFC 3339 with a zone"
        return Quota(limit, until=moment.timestamp())
    if after_s is None:
        return Quota(limit)
    if not is_amount(after_s, -MOST):
        return f"the retry_after_s of its quota is not a number up to {MOST:,}: {after_s!r}"
    return Quota(limit, after_s=max(0.0, float(after_s)))


def closes(outcome: Outcome, quota: Quota, until: str) -> Outcome:
    """The outcome of an attempt that closed a limit: the gate holds the next one, so it needs no rest of its own."""
    message = f"{outcome.message}; quota of {quota.limit} used up, until {until}"
    return replace(outcome, message=message, rests=False, retry_after_s=None, quota=True)


def at_fault(outcome: Outcome, fault: str) -> Outcome:
    """The outcome of an attempt whose report closes nothing."""
    return replace(outcome, message=f"{outcome.message}; {fault}")


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


# The files that attempts say they changed, and which of them ran at the same time.
# Law: a remark for people: it decides nothing. What is not understood counts as nothing changed, and `wrong_files`
# says what that is.


# The event by which a worker says what an attempt changed.
CHANGED = "FILES_CHANGED"
# So many files of one attempt count, and so many characters of each.
FILES_MAX, LENGTH_MAX = 1000, 500


@dataclass(frozen=True, slots=True)
class Touched:
    """What one attempt changed, and when it began and ended (s since 1970, the pool's clock)."""

    task: str
    attempt: int
    began: float
    ended: float
    files: tuple[str, ...]


def files_in(said: Any) -> tuple[str, ...]:
    """The files that a result lists, each in one spelling; none if it is no list of texts."""
    if not isinstance(said, list):
        return ()
    texts = [text[:LENGTH_MAX] for text in said[:FILES_MAX] if isinstance(text, str)]
    return tuple(dict.fromkeys(filter(None, map(_spelled, texts))))


def wrong_files(said: Any) -> Iterator[tuple[int | None, str, str]]:
    """What `files_in` does not take as it stands: where in the list (None: the list itself), why, and the fix. Of
    several places with one fault the first.
    """
    if not isinstance(said, list):
        yield None, "which is no list, so it counts as empty.", 'write a list of paths, such as ["src/a.py"].'
        return
    counted = said[:FILES_MAX]
    wrong = [at for at, one in enumerate(counted) if not isinstance(one, str) or not _spelled(one)]
    if wrong:
        more = f" So are {len(wrong) - 1:,} others." if wrong[1:] else ""
        yield wrong[0], f"which names no file, and is passed over.{more}", "write each path as a text, in quotes."
    long = [at for at, one in enumerate(counted) if isinstance(one, str) and len(one) > LENGTH_MAX]
    if long:
        yield long[0], f"of which only the first {LENGTH_MAX} characters count.", "name a directory above it."
    if len(said) > FILES_MAX:
        yield None, f"of which only the first {FILES_MAX:,} of {len(said):,} count.", "name directories instead."


def _spelled(path: str) -> str:
    """A path in its one spelling; '' where it names none."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def touched_in(event: Any) -> Touched | None:
    """What a line of a journal says of changed files; None if it is another line."""
    if not isinstance(event, dict) or event.get("event") != CHANGED or not isinstance(event.get("detail"), dict):
        return None
    said = event["detail"]
    task, attempt, began, ended = event.get("task"), event.get("attempt"), said.get("began"), said.get("ended")
    if not (isinstance(task, str) and isinstance(attempt, int)):
        return None
    if not (isinstance(began, int | float) and isinstance(ended, int | float)):
        return None
    return Touched(task, attempt, began, ended, files_in(said.get("files")))


def common(mine: Touched, others: Iterable[Touched]) -> tuple[dict[str, Any], ...]:
    """The attempts of other tasks that ran while mine did and changed a file that mine changed, with these files."""
    files, found = set(mine.files), {}
    for other in others:
        same = sorted(files.intersection(other.files))
        if same and other.task != mine.task and other.began < mine.ended and mine.began < other.ended:
            found[other.task, other.attempt] = {"task": other.task, "attempt": other.attempt, "files": same}
    return tuple(found[key] for key in sorted(found))
