"""Every name that is exposed, with its type, meaning and labels; and samples as Prometheus' text format, 0.0.4.

Law: a name that is published keeps its meaning. Base units: seconds, bytes, and ratios from 0 to 1. A name that ends
in `_total` only grows until the process that counts starts anew. Families are written in the order in which they
stand here, rows in the order of their labels, so that two looks at the same spool give the same text. Any member may
choose a label's value: it cannot end a line or a quotation, and the number of values stays bounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

# Types and codes are words that members choose: beyond so many, the rest are one value, which no type can be.
TYPES_MOST, CODES_MOST, NODES_MOST = 100, 30, 1000
OTHER = "+other"
# Up to a day: an agent may work for hours, and a task may wait for the night.
BUCKETS = (0.1, 0.5, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, 14400.0, 43200.0, 86400.0)


@dataclass(frozen=True, slots=True)
class Family:
    """One name. kind: gauge, counter or histogram."""

    name: str
    kind: str
    help: str
    labels: tuple[str, ...] = ()


@dataclass(slots=True)
class Histogram:
    """How many values were at most so large, for each of BUCKETS; their number and their sum."""

    counts: list[int] = field(default_factory=lambda: [0] * len(BUCKETS))
    number: int = 0
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.number += 1
        self.total += value
        for at, edge in enumerate(BUCKETS):
            self.counts[at] += value <= edge


# By family: the values of its labels → its value.
Samples = dict[Family, dict[tuple[str, ...], float | Histogram]]


def _gauge(name: str, meaning: str, *labels: str) -> Family:
    return Family(f"spoold_{name}", "gauge", meaning, labels)


def _counter(name: str, meaning: str, *labels: str) -> Family:
    return Family(f"spoold_{name}_total", "counter", meaning, labels)


BUILD = _gauge("build_info", "1, with the version of the program that made this page.", "version")
SNAPSHOT_AT = _gauge(
    "snapshot_timestamp_seconds",
    "When the leader made the snapshot that all figures below but those of nodes are from.",
)
EPOCH = _gauge("leader_epoch", "The epoch of the leader of the snapshot; each change of leader raises it.")
STANDBYS = _gauge("standbys", "Masters that would lead if the leader died.")
TASKS = _gauge("tasks", "Tasks in each state, archived ones under their last state.", "state")
TYPE_TASKS = _gauge("type_tasks", "Tasks of each type that have not ended.", "type", "state")
READY_SINCE = _gauge(
    "oldest_ready_timestamp_seconds", "When the oldest task that is ready was admitted, by type.", "type"
)
PARKED = _gauge("parked_tasks", "Tasks that wait for a person, by gate.", "gate")
PARKED_SINCE = _gauge(
    "oldest_parked_timestamp_seconds", "When the oldest task that waits for a person was admitted.", "gate"
)
UNSERVED = _gauge("unserved_tasks", "Tasks that no worker that is awake can run.")
TYPE_MEAN = _gauge(
    "type_duration_mean_seconds", "Mean of the last successful attempts of a type, 100 at most.", "type"
)
TYPE_P95 = _gauge("type_duration_p95_seconds", "The same: 95 % of them took at most so long.", "type")
FAILED_LATELY = _gauge("recent_failed_attempts", "Attempts that failed or were lost in the last ten minutes.", "code")
REJECTED_LATELY = _gauge("recent_rejected_drops", "Drops that were rejected in the last ten minutes.")

WORKERS = _gauge("workers", "Workers in each state.", "state")
SLOTS = _gauge("node_slots", "How many tasks a worker runs at once.", "node")
BUSY = _gauge("node_busy_slots", "How many tasks a worker has claimed.", "node")
NODE = _gauge("node_info", "1 for each node that has a heartbeat.", "node", "host", "role", "version")
NODE_STATE = _gauge("node_state", "1 for the state that a node reports of itself.", "node", "state")
BEAT_AT = _gauge(
    "node_heartbeat_timestamp_seconds", "When a node wrote its last heartbeat, by its own clock.", "node"
)
CLOCK = _gauge("node_clock_ahead_seconds", "How far a node's clock is ahead of the file server's.", "node")
ATTEMPTS = _counter("node_attempts", "Attempts that a worker committed since it started.", "node")
FAILURES = _counter("node_failed_attempts", "Those of them that failed or asked for another try.", "node", "code")
RUN = _counter("node_attempt_seconds", "How long they ran.", "node")
CPU = _counter("node_cpu_seconds", "The CPU time of all their processes.", "node")
TOKENS = _counter("node_tokens", "Tokens that they reported.", "node")
COST = _counter("node_cost_usd", "Cost in USD that they reported.", "node")

LIMIT_USED = _gauge("limit_used", "Units of a limit in use, those in doubt counted.", "limit")
LIMIT_MAX = _gauge("limit_max", "Units of a limit that may be in use at once.", "limit")
LIMIT_CLOSED = _gauge("limit_closed", "1 for a limit that a quota or a person has closed.", "limit")
RATE_USED = _gauge("rate_used_starts", "Starts that count against a limit's rate now.", "limit")
RATE_MAX = _gauge("rate_max_starts", "Starts that the rate allows in its period.", "limit")
CLASS_USED = _gauge("class_used_slots", "Slots in use by tasks of a class.", "class")
CLASS_SLOTS = _gauge("class_slots", "Slots that a class has for itself.", "class")
BREAKER = _gauge("breaker_open", "1 for a type of which nothing starts, since its attempts failed.", "type")
BUDGET = _gauge(
    "budget_spent_ratio",
    "Spent part of a budget: of today, of all time, or of the batch or type that spent most.",
    "budget",
    "figure",
)
BUDGET_WAITS = _gauge(
    "budget_waiting_periods", "Periods, batches or types of a budget for which tasks wait.", "budget"
)
LOCKS_HELD = _gauge("locks_held", "Tasks and reservations that hold locks.")
LOCKS_WAITING = _gauge("locks_waiting", "Tasks that wait for locks.")
QUESTIONS = _gauge("questions", "Questions to people that stand.")
PAUSES = _gauge("paused_types", "Types that are paused; a pause of everything counts as one.")
HALTED = _gauge("halted", "1 while the spool is halted.")
ALERTS = _gauge("alerts", "Alerts of spoold itself that stand.", "name")
WARNINGS = _gauge("warnings", "Warnings in the leader's snapshot; `spool status` shows them.")

SHARE_SIZE = _gauge("share_size_bytes", "The size of the share.")
SHARE_FREE = _gauge("share_free_bytes", "Free room on the share, for ordinary users.")
SHARE_INODES = _gauge("share_free_inodes", "Free inodes on the share, where it counts them.")

FINISHED = _counter("finished", "Tasks that ended since this server started, as the journals say.", "result")
WAIT = Family(
    "spoold_task_wait_seconds",
    "histogram",
    "From the admission of a task to the start of its first attempt, of tasks admitted since this server started.",
    ("type",),
)
WAIT_UNSEEN = _counter("task_wait_unseen", "First attempts whose admission this server has not seen.")
RAN = Family(
    "spoold_attempt_run_seconds",
    "histogram",
    "How long attempts ran that ended since this server started, as their workers measured it.",
    ("type",),
)

# Those of docs/spec/alerts.md; others are added as they stand.
ALERT_NAMES = (
    "failure_rate",
    "memory",
    "queue",
    "stuck",
    "node_dead",
    "limit_closed",
    "breaker_open",
    "budget",
    "followers",
    "disk",
    "disk_full",
)


def bounded(rows: Mapping[str, float], most: int, fold: Callable[[Iterable[float]], float] = sum) -> dict[str, float]:
    """Return the first `most` rows by name, and the rest folded into one."""
    names = sorted(rows)
    kept = {name: rows[name] for name in names[:most]}
    return kept if len(names) <= most else {**kept, OTHER: fold(rows[name] for name in names[most:])}


# Samples as text, in Prometheus' format 0.0.4.


CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_ORDER = {one: at for at, one in enumerate(tuple(globals().values())) if isinstance(one, Family)}
# Longer values are cut: a label is for telling series apart.
VALUE_MOST = 200


def text_of(samples: Samples) -> str:
    """Return the page."""
    return "".join(
        line + "\n" for family in sorted(samples, key=_ORDER.__getitem__) for line in _lines(family, samples)
    )


def _lines(family: Family, samples: Samples) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for values, value in sorted(samples[family].items()):
        labels = list(zip(family.labels, values, strict=True))
        if isinstance(value, Histogram):
            edges = [*zip(map(_figure, BUCKETS), value.counts, strict=True), ("+Inf", value.number)]
            for edge, count in edges:
                yield _line(f"{family.name}_bucket", [*labels, ("le", edge)], count)
            yield _line(f"{family.name}_sum", labels, value.total)
            yield _line(f"{family.name}_count", labels, value.number)
        else:
            yield _line(family.name, labels, value)


def _line(name: str, labels: list[tuple[str, str]], value: float) -> str:
    told = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels)
    return f"{name}{{{told}}} {_figure(value)}" if told else f"{name} {_figure(value)}"


def _escaped(text: str) -> str:
    """Return a label's value: without control characters, which no reader of a chart could see."""
    seen = "".join(char if char.isprintable() else " " for char in text[:VALUE_MOST])
    return seen.replace("\\", r"\\").replace('"', r"\"")


def _figure(value: float) -> str:
    """Return a number, exact: a whole one without a fraction."""
    whole = int(value)
    return str(whole) if whole == value and abs(whole) < 1 << 53 else repr(float(value))
