"""A quota that an attempt found used up, as it says it in its result beside exit code 75.

    {"quota": {"limit": "anthropic", "until": "2026-02-02T14:05:00Z"}}
    {"quota": {"limit": "anthropic", "retry_after_s": 900}}

Law: a report that cannot be read closes nothing, and its fault is told; the attempt counts as exit code 75 alone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from spoold.protocol.errors import WrongValue
from spoold.protocol.lanes import as_word
from spoold.protocol.quantity import MOST, is_amount
from spoold.protocol.settings import LimitSettings
from spoold.rules.attempts.outcome import Outcome

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
