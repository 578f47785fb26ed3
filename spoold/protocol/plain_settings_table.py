"""All of spool.toml: the values that each setting may have.

It stands apart from `plain_settings`, which loads it only for a file that sets something.

Law: the keys are those of `settings.Settings`, and no limit here is wider than the limit there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.protocol.amount import MOST
from spoold.protocol.lanes import UNITS_MAX
from spoold.protocol.plain_fields import (
    DEPTH_MAX,
    RETRIES,
    Reader,
    Shape,
    Unsure,
    by_name,
    flag,
    listed,
    maybe,
    one_of,
    priority,
    real,
    seconds,
    some_seconds,
    table,
    text,
    whole,
    word,
)


def _uses(value: Any) -> dict[str, int]:
    if type(value) is list:
        value = dict.fromkeys(listed(word)(value), 1) if len(set(map(str, value))) == len(value) else None
    uses: dict[str, int] = by_name(whole(1, UNITS_MAX))(value)
    if len(uses) > 20:
        raise Unsure
    return {word(name): units for name, units in uses.items()}


def _weights(value: Any) -> dict[str, int]:
    weights: dict[str, int] = by_name(whole(1, 1000))(value)
    if len(weights) > 1000:
        raise Unsure
    return {word(name): starts for name, starts in weights.items()}


def _model(value: Any) -> str:
    """A plain name; of others the model has to be asked."""
    found = text(value)
    plain = found.replace("-", "").replace(".", "")
    if not (plain.isascii() and plain.isalnum() and found[0].isalnum() and len(found) <= 200):
        raise Unsure
    return found


_BREAKER = {"failures": whole(1, 1_000_000), "open_s": some_seconds}
_TYPE = {
    "timeout": some_seconds,
    "max_retries": RETRIES,
    "max_concurrent": whole(0, 1_000_000),
    "priority": priority,
    "memory_factor": real(1, 100),
    "lost_share": one_of("freeze", "stop", "continue"),
    "uses": _uses,
    "bulkhead": word,
    "budgets": listed(word),
    "breaker": table(_BREAKER),
    "model": _model,
    "max_tokens": whole(1, 10**9),
    "temperature": real(0, 10),
}
_AMOUNTS = {name: maybe(real(0, MOST)) for name in ("cost_usd", "tokens", "task_s")}
_BUDGET = {
    **_AMOUNTS,
    "per": one_of("total", "day", "batch", "type"),
    "over": one_of("hold", "fail"),
    "unknown": one_of("count_as_zero", "refuse"),
}
_CLASS = {"slots": whole(0, 1_000_000), "borrow": flag}
_LIMIT = {
    "max": whole(0, 1_000_000),
    "per": one_of("pool", "worker"),
    "quota_max_s": some_seconds,
}


def _by_word(each: Shape) -> Reader:
    """A section of named tables."""

    def read(value: Any) -> dict[str, Any]:
        named: dict[str, Any] = by_name(table(each))(value)
        for name in named:
            word(name)
        return named

    return read


SETTINGS: Shape = {
    "timeout": some_seconds,
    "heartbeat": table({"interval_s": real(0.05, 3600), "misses": whole(2, 1000)}),
    "types": _by_word(_TYPE),
    "limits": _by_word(_LIMIT),
    "classes": _by_word(_CLASS),
    "budgets": _by_word(_BUDGET),
    "retry": table(
        {
            "max": RETRIES,
            "backoff_s": seconds,
            "factor": real(1, 100),
            "jitter": real(0, 1),
            "max_backoff_s": seconds,
            "max_retry_after_s": seconds,
            "crash_limit": whole(1, 1000),
            "memory_factor": real(1, 100),
            "max_later": whole(0, 100_000),
        }
    ),
    "fair": table({"by": one_of("batch", "owner", "none"), "weights": _weights}),
    "drop": table(
        {
            "grace_s": seconds,
            "empty_grace_s": seconds,
            "watch_s": seconds,
            "max_bytes": whole(1024, 4 << 30),
            "max_batch_bytes": whole(1024, 64 << 30),
        }
    ),
    "retention": table(
        {
            "completed_s": seconds,
            "failed_s": seconds,
            "keep": whole(0, 10_000_000),
            "archive_s": seconds,
            "events_s": seconds,
            "tmp_s": seconds,
        }
    ),
    "ready": table({"window": whole(1, 100_000)}),
    "children": table({"max_depth": whole(0, DEPTH_MAX), "max_per_task": whole(0, 1_000_000)}),
    "locks": table({"reserve_s": some_seconds, "max_reserve_s": some_seconds}),
    "disk": table({"warn": real(above=0, high=1), "stop": real(above=0, high=1), "enough_free_mb": whole(0)}),
    "alerts": table(
        {
            "failure_rate": maybe(real(above=0, high=1)),
            "memory": maybe(real(above=0, high=1)),
            "queue": maybe(whole(1, 1_000_000_000)),
            "budget": maybe(real(above=0, high=1)),
            "stuck_s": seconds,
            "dead_s": seconds,
            "followers": whole(0, 1_000_000),
            "limits": flag,
            "breakers": flag,
            "disk": flag,
            "after_s": seconds,
            "task": maybe(table({"type": word})),
        }
    ),
    "durability": table({"fsync": flag}),
    "poll": table({"busy_s": real(0.001, 60), "idle_s": real(0.001, 60), "hinted_s": real(0.001, 60)}),
}
_READ_SETTINGS = table(SETTINGS)


def read(found: Mapping[str, Any]) -> dict[str, Any] | None:
    """The values of a table that is surely valid, as the model has them; None if the caller must ask the model."""
    try:
        said: dict[str, Any] = _READ_SETTINGS(found)
    except Unsure:
        return None
    return said
