"""What an attempt of an agent ended with: its outcome, its exit code, and what its result says.

    done, no_change   exit code 0
    not_accepted      1: a condition does not hold; the next attempt gets the reasons
    failed            1: it said that it failed, fell silent, or ended without a word
    blocked           65: it cannot go on without people; no attempt more
    refused           77 or 64: its account, or the task, is wrong; no attempt more
    later             75: a quota is used up, it was told to slow down, or remote or model are away; costs nothing

Law: pure. Reported is not accepted: `done` needs an end without trouble, and every condition. A quota costs the task
nothing, and neither does a rate that the agent did not get over by itself. Both name the limit of the profile, so
that no other agent asks in vain.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from spoold.agents.adapters.adapter import Cost, Trouble, Usage
from spoold.agents.process.transcript import Transcript
from spoold.protocol.amount import is_amount, plus

Outcome = Literal["done", "no_change", "not_accepted", "failed", "blocked", "refused", "later"]
EXIT: Mapping[Outcome, int] = {"done": 0, "no_change": 0, "not_accepted": 1, "failed": 1, "blocked": 65, "later": 75}
# The agent's work is accepted.
GOOD = ("done", "no_change")
AUTH, INPUT, STOPPED = 77, 64, 143
# How long (s) to wait where nobody says until when, and at least and at most: few limits last longer than a week.
# A time that is past by more than PAST_S is no reset, but a clock or a date that was misread.
QUOTA_S, RATE_S, LEAST_S, MOST_S, PAST_S = 300.0, 30.0, 5.0, 8 * 86_400.0, 1800.0
# How long (s) it rests after a remote was away for the first time, and at most.
AWAY_S, AWAY_MAX_S = 15.0, 600.0
# Some agents report this as a success.
_API_ERROR = re.compile(r"\s*\[API Error")


@dataclass(frozen=True, slots=True)
class Turn:
    """How a turn of the program ended. code: its exit code, None where it was ended here; why: the reason for that
    ('' for none); errors: the end of its stderr; quiet: it fell silent.
    """

    code: int | None
    why: str = ""
    errors: str = ""


@dataclass(frozen=True, slots=True)
class End:
    """The end of an attempt. reasons: in words, for people and for the next attempt; more: fields of the result."""

    outcome: Outcome
    code: int
    reasons: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)


def trouble_of(heard: Transcript, turn: Turn, ended: Trouble | None) -> Trouble | None:
    """Return what stands in the way of a turn that is over; None where it ended well.

    ended: what the adapter makes of the exit code. What was said comes first: an exit code says less.
    """
    if heard.trouble is not None:
        return heard.trouble
    if turn.why:
        return Trouble("transient", turn.why)
    if ended is not None:
        return ended
    if turn.code:
        return Trouble("transient", f"it ended with exit code {turn.code}: {turn.errors.strip()[-300:] or 'no word'}")
    if _API_ERROR.match(heard.text):
        return Trouble("transient", heard.text.strip()[:300])
    return None


def begins_anew(trouble: Trouble | None) -> bool:
    """Whether a session that was resumed cannot go on, and a new one may: it is gone, torn, or too long. What makes a
    request wrong is its history more often than anything that a new session has, too; and that is tried once.
    """
    return trouble is not None and trouble.fault in ("session", "context", "input")


def end_of_trouble(trouble: Trouble, limit: str, now: float, before: Any = None) -> End:
    """Return the end of an attempt with trouble. limit: of the profile, '' for none; now: epoch, s; before: as for
    `end_of_absence`."""
    why = (f"{trouble.fault}: {trouble.message}"[:2000],)
    match trouble.fault:
        case "quota" | "rate":
            return _later(trouble, limit, now, why)
        case "away":
            return end_of_absence(f"away: its model did not answer: {trouble.message}"[:2000], before)
        case "auth":
            return End("refused", AUTH, why)
        case "input":
            return End("refused", INPUT, why)
        case "context" | "refusal" | "permission":
            return End("blocked", EXIT["blocked"], why)
        case _:
            return End("failed", EXIT["failed"], why)


def _later(trouble: Trouble, limit: str, now: float, why: tuple[str, ...]) -> End:
    rest_s, doubt = _rest(trouble, now)
    why += (doubt,) if doubt else ()
    if not limit:
        return End("later", EXIT["later"], why, {"retry_after_s": round(rest_s, 3)})
    until = datetime.fromtimestamp(now + rest_s, UTC).isoformat(timespec="milliseconds")
    unknown = trouble.fault == "quota" and trouble.until is None
    said: dict[str, Any] = {"limit": limit} if unknown else {"limit": limit, "until": until}
    return End("later", EXIT["later"], why, {"quota": said})


def _rest(trouble: Trouble, now: float) -> tuple[float, str]:
    """Return for how long (s) to wait, and why that is not as long as was said, '' where it is."""
    usual = QUOTA_S if trouble.fault == "quota" else RATE_S
    if trouble.until is None:
        return usual, ""
    # When a program itself would try again says little: it has tried in vain until now.
    least, away = LEAST_S if trouble.final else usual, trouble.until - now
    days = f"{abs(away) / 86_400:,.1f} days"
    if away < -PAST_S:
        return (
            usual,
            f"the time at which it says that its limit opens is past, by {days}: asked again after {usual:g} s",
        )
    if away > MOST_S:
        most = f"{MOST_S / 86_400:g} days"
        return MOST_S, f"it says that its limit opens in {days}: asked again after {most}"
    return max(away, least), ""


def end_of_absence(why: str, before: Any) -> End:
    """Return the end of an attempt whose remote or model is away: later, after a pause that grows with each.

    before: the record of the attempt before this one, None for none.
    """
    output = before.get("output") if isinstance(before, Mapping) else None
    last = output.get("retry_after_s") if isinstance(output, Mapping) and output.get("outcome") == "later" else None
    grown = 2 * float(last) if isinstance(last, int | float) and is_amount(last) else AWAY_S
    return End("later", EXIT["later"], (why,), {"retry_after_s": min(max(grown, AWAY_S), AWAY_MAX_S)})


def end_of_work(heard: Transcript, changed: Sequence[str], reasons: Sequence[str], *, must_change: bool) -> End:
    """Return the end of an attempt without trouble. reasons: why its work is not accepted; changed: paths."""
    if must_change and not changed:
        if heard.permission is not None:
            return end_of_trouble(heard.permission, "", 0.0)
        reasons = ("it changed no file, and it must (must_change)", *reasons)
    if reasons:
        return End("not_accepted", EXIT["not_accepted"], tuple(reasons))
    if changed:
        return End("done", EXIT["done"])
    if heard.permission is not None:
        return end_of_trouble(heard.permission, "", 0.0)
    if not heard.text.strip():
        return End("failed", EXIT["failed"], ("it ended with exit code 0, said nothing and changed nothing",))
    return End("no_change", EXIT["no_change"])


def result_of(
    end: End,
    heard: Transcript,
    changed: Sequence[str],
    checks: Sequence[Mapping[str, Any]],
    place: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the content of SPOOL_RESULT_FILE. checks: the conditions that were tried;
    place: where the work was brought to, which a merge reads."""
    result: dict[str, Any] = {
        "outcome": end.outcome,
        **({"code": "NOT_ACCEPTED"} if end.outcome == "not_accepted" else {}),
        "text": heard.text,
        **({"text_cut": True} if heard.cut else {}),
        "session": heard.session,
        "reasons": list(end.reasons),
        "changed_files": list(changed),
        "tools": heard.tools,
        **({"checks": [dict(check) for check in checks]} if checks else {}),
        **({"workspace": dict(place)} if place else {}),
        **end.more,
    }
    if heard.counting == "last" and heard.of_session is not None:
        result["session_usage"] = plain(heard.of_session)
    return {**result, **figures(heard.usage)}


def figures(used: Usage | None) -> dict[str, Any]:
    """Return what was used as fields of a result. What was cached is not among `tokens_used`: it costs a fraction. A
    cost or a number of tokens that nobody knows is not reported; `usage` has what is known.
    """
    if used is None:
        return {}
    said: dict[str, Any] = {"usage": plain(used)}
    if used.sure:
        said["tokens_used"] = plus(used.tokens_in, used.tokens_out)
    if used.sure and used.cost != "unknown":
        said["cost_usd"] = round(used.cost_usd, 6)
    return said


def plain(used: Usage) -> dict[str, Any]:
    """Return what was used as a plain object."""
    return {
        "tokens_in": used.tokens_in,
        "tokens_out": used.tokens_out,
        "tokens_cached": used.tokens_cached,
        "cost_usd": round(used.cost_usd, 6),
        "cost": used.cost,
        **({} if used.sure else {"tokens": "unknown"}),
    }


def read_usage(said: Any) -> Usage | None:
    """Return what a result, or the record of a workspace, says was used; None where that cannot be read."""
    if not isinstance(said, Mapping):
        return None
    counts = [said.get(name) for name in ("tokens_in", "tokens_out", "tokens_cached")]
    tokens_in, tokens_out, cached = (count if isinstance(count, int) and is_amount(count) else 0 for count in counts)
    cost, kind = said.get("cost_usd"), said.get("cost")
    spent = float(cost) if isinstance(cost, int | float) and is_amount(cost) else 0.0
    known: Cost = "reported" if kind == "reported" else "unknown" if kind == "unknown" else "estimated"
    return Usage(tokens_in, tokens_out, cached, spent, known, said.get("tokens") != "unknown")
