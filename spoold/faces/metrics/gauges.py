"""The leader's snapshot, the heartbeats and the share, as samples.

Law: a figure that nobody reported is left out, and never 0. What another release or a foreign program wrote into a
gate, and cannot be read, is left out as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from spoold.faces.metrics import exposition as f
from spoold.faces.metrics.exposition import Family, Samples, bounded
from spoold.protocol.timestamps import moment
from spoold.protocol.version import __version__

if TYPE_CHECKING:
    from spoold.client.spool.metrics_source import Figures
    from spoold.protocol.heartbeat import Heartbeat
    from spoold.protocol.snapshot import Snapshot

Row = tuple[Family, tuple[str, ...], float]


def samples(figures: Figures) -> Samples:
    """Return everything that one look tells."""
    found: Samples = {f.BUILD: {(__version__,): 1}}
    for family, labels, value in _rows(figures):
        found.setdefault(family, {})[labels] = value
    return found


def _rows(figures: Figures) -> Iterator[Row]:
    if figures.snapshot is not None:
        yield from _of_snapshot(figures.snapshot)
        yield from _of_gates(figures.snapshot.gates)
    yield from _by_name(f.READY_SINCE, bounded(figures.ready_since, f.TYPES_MOST, min))
    for node, beat in sorted(figures.beats.items())[: f.NODES_MOST]:
        yield from _of_node(node, beat)
    if figures.room is not None:
        yield f.SHARE_SIZE, (), figures.room.total_bytes
        yield f.SHARE_FREE, (), figures.room.free_bytes
        if figures.room.free_inodes is not None:
            yield f.SHARE_INODES, (), figures.room.free_inodes


def _of_snapshot(said: Snapshot) -> Iterator[Row]:
    yield from _at(f.SNAPSHOT_AT, (), said.generated_at)
    yield f.EPOCH, (), said.master.epoch
    yield f.STANDBYS, (), len(said.master.standbys)
    for state in ("pending", "waiting", "ready", "claimed", "completed", "failed", "skipped", "rejected"):
        yield f.TASKS, (state,), getattr(said.tasks, state)
    for state in ("idle", "working", "draining", "asleep", "dead"):
        yield f.WORKERS, (state,), getattr(said.workers, state)
    for node in said.nodes[: f.NODES_MOST]:
        yield f.SLOTS, (node.worker,), node.slots
        yield f.BUSY, (node.worker,), node.running
    for state in ("waiting", "ready", "running"):
        counted = bounded({kind: counts.get(state, 0) for kind, counts in said.types.items()}, f.TYPES_MOST)
        yield from ((f.TYPE_TASKS, (kind, state), count) for kind, count in counted.items())
    # A mean of means would be no mean: types beyond the bound are left out.
    for kind, lasted in sorted(said.durations.items())[: f.TYPES_MOST]:
        yield f.TYPE_MEAN, (kind,), lasted.mean_s
        yield f.TYPE_P95, (kind,), lasted.p95_s
    yield from _by_name(f.FAILED_LATELY, bounded(said.recent.failed_attempts, f.CODES_MOST))
    yield f.REJECTED_LATELY, (), sum(said.recent.rejections.values())
    standing = dict.fromkeys(f.ALERT_NAMES, 0)
    for alert in said.alerts:
        standing[alert.name] = standing.get(alert.name, 0) + 1
    yield from _by_name(f.ALERTS, bounded(standing, 2 * len(f.ALERT_NAMES)))
    yield f.PAUSES, (), len(said.paused)
    yield f.HALTED, (), said.halted
    yield f.WARNINGS, (), len(said.warnings)


def _of_gates(gates: Mapping[str, Mapping[str, Any]]) -> Iterator[Row]:
    closed = {name for name, _ in _parts(gates, "quota")}
    for name, said in _parts(gates, "limit"):
        yield from _number(f.LIMIT_USED, (name,), _both(said))
        yield from _number(f.LIMIT_MAX, (name,), said.get("max"))
        yield f.LIMIT_CLOSED, (name,), name in closed
    for name, said in _parts(gates, "rate"):
        yield from _number(f.RATE_USED, (name,), _both(said))
        yield from _number(f.RATE_MAX, (name,), said.get("count"))
    for name, said in _parts(gates, "class"):
        yield from _number(f.CLASS_USED, (name,), said.get("used"))
        yield from _number(f.CLASS_SLOTS, (name,), said.get("slots"))
    opened = {kind: float(bool(said.get("until"))) for kind, said in _parts(gates, "breaker")}
    yield from _by_name(f.BREAKER, bounded(opened, f.TYPES_MOST))
    for name, said in _parts(gates, "budget"):
        yield from _of_budget(name, said)
    for gate in ("hold", "approval"):
        parked = gates.get(gate, {})
        yield f.PARKED, (gate,), _whole(parked.get("waiting"))
        oldest = parked.get("oldest")
        if isinstance(oldest, dict):
            yield from _at(f.PARKED_SINCE, (gate,), oldest.get("admitted_at"))
    yield f.QUESTIONS, (), _whole(gates.get("approval", {}).get("questions"))
    yield f.LOCKS_HELD, (), _whole(gates.get("locks", {}).get("held"))
    yield f.LOCKS_WAITING, (), _whole(gates.get("locks", {}).get("waiting"))
    yield f.UNSERVED, (), sum(_whole(said.get("tasks")) for _, said in _parts(gates, "worker"))


def _of_budget(name: str, said: Mapping[str, Any]) -> Iterator[Row]:
    found = said.get("periods")
    periods = [one for one in found if isinstance(one, dict)] if isinstance(found, list) else []
    yield f.BUDGET_WAITS, (name,), sum(bool(one.get("waits")) for one in periods)
    if said.get("per") == "day":
        periods = sorted(periods, key=lambda one: str(one.get("period")))[-1:]
    limits = said.get("limits")
    for figure, most in limits.items() if isinstance(limits, dict) else ():
        spent = [one["spent"].get(figure) for one in periods if isinstance(one.get("spent"), dict)]
        sums = [amount for amount in spent if _is_number(amount)]
        if _is_number(most) and most > 0:
            yield f.BUDGET, (name, figure), max(sums, default=0) / most


def _of_node(node: str, beat: Heartbeat) -> Iterator[Row]:
    yield f.NODE, (node, beat.host.hostname, beat.role, beat.version), 1
    yield f.NODE_STATE, (node, beat.status), 1
    yield from _at(f.BEAT_AT, (node,), beat.at)
    yield from _number(f.CLOCK, (node,), beat.clock_ahead_s)
    if beat.role != "worker":
        return
    for code, count in bounded(beat.endings, f.CODES_MOST).items():
        yield f.FAILURES, (node, code), count
    spent = beat.spent
    # A worker that has committed nothing yet reports no sums. A series has to begin at 0, or its first step is lost.
    yield f.ATTEMPTS, (node,), spent.attempts if spent is not None else 0
    yield f.RUN, (node,), spent.duration_s if spent is not None else 0
    for family, value in (
        (f.CPU, spent.cpu_s if spent is not None else None),
        (f.TOKENS, spent.tokens_used if spent is not None else None),
        (f.COST, spent.cost_usd if spent is not None else None),
    ):
        yield family, (node,), value or 0


def _by_name(family: Family, rows: Mapping[str, float]) -> Iterator[Row]:
    return ((family, (name,), value) for name, value in rows.items())


def _at(family: Family, labels: tuple[str, ...], stamp: object) -> Iterator[Row]:
    if (at := moment(stamp)) is not None:
        yield family, labels, at


def _number(family: Family, labels: tuple[str, ...], value: object) -> Iterator[Row]:
    if isinstance(value, int | float) and _is_number(value):
        yield family, labels, value


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> int:
    return value if type(value) is int else 0


def _both(said: Mapping[str, Any]) -> int:
    return _whole(said.get("used")) + _whole(said.get("doubtful"))


def _parts(gates: Mapping[str, Mapping[str, Any]], gate: str) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, said) for name, said in sorted(gates.get(gate, {}).items()) if isinstance(said, dict))
