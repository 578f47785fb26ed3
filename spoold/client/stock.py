"""The counted resources as the leader's snapshot shows them, for `explain` and `ls`.

Law: a figure that is missing or cannot be read counts as 0; the leader alone decides by its own count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spoold.protocol.names import parse_task
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.timestamps import moment
from spoold.rules.gates import breaker_gate, budget_gate, limit_gates
from spoold.rules.gates.budget_gate import book_seen
from spoold.rules.gates.facts import Known, LaneFacts
from spoold.rules.gates.registry import gather
from spoold.rules.gates.resources import (
    BREAKER,
    CLASS,
    LIMIT,
    QUOTA,
    RATE,
    TYPE,
    UNKNOWN,
    Capacity,
    KeptUnits,
    Resources,
    shares_of,
    stock_seen,
)


def facts_seen(known: Known, snapshot: Snapshot | None, file: str = "") -> LaneFacts:
    """Return the facts of lanes, with the stock that the last snapshot shows; None: of no snapshot.

    file: the name in waiting/ of the one task that is asked about: what is kept for those before it counts.
    """
    resources = Resources(known.settings)
    types: Mapping[str, Mapping[str, int]] = snapshot.types if snapshot is not None else {}
    gates: Mapping[str, Mapping[str, Any]] = snapshot.gates if snapshot is not None else {}
    used = {f"{TYPE}{kind}" if kind else UNKNOWN: counts.get("active", 0) for kind, counts in types.items()}
    due = {f"{TYPE}{kind}": counts.get("back", 0) for kind, counts in types.items() if kind}
    doubtful: dict[str, int] = {}
    opens: dict[str, float] = {}
    for gate, prefix in (("limit", LIMIT), ("rate", RATE)):
        for name, said in _rows(gates, gate):
            used[f"{prefix}{name}"] = _whole(said.get("used"))
            doubtful[f"{prefix}{name}"] = _whole(said.get("doubtful"))
            due[f"{prefix}{name}"] = _whole(said.get("back"))
            if (opened := moment(said.get("opens"))) is not None:
                opens[f"{prefix}{name}"] = opened
    breakers = breaker_gate.book_seen(gates)
    known = replace(known, more={**known.more, budget_gate.NAME: book_seen(gates), breaker_gate.NAME: breakers})
    capacity = dict(resources.capacity)
    for name, said in _rows(gates, "quota"):
        if "trying" in said:
            capacity[f"{QUOTA}{name}"] = Capacity(1, f"limit {name}", f"[limits.{name}]", most=0)
            used[f"{QUOTA}{name}"] = int(bool(said["trying"]))
    for kind, trying in breakers.trying.items():
        capacity[f"{BREAKER}{kind}"] = Capacity(1, f"type {kind}", f"[types.{kind}] breaker", most=0)
        used[f"{BREAKER}{kind}"] = int(bool(trying))
    classes = _rows(gates, "class")
    used |= {f"{CLASS}{name}": _whole(said.get("used")) for name, said in classes}
    due = {name: units for name, units in due.items() if units}
    due |= {f"{CLASS}{name}": units for name, said in classes if (units := _whole(said.get("back")))}
    nodes = snapshot.nodes if snapshot is not None else ()
    shares = shares_of(known.settings, sum(node.slots for node in nodes if node.state in ("idle", "working")))
    stock = stock_seen(capacity, used, doubtful)
    stock = replace(
        stock, shares=shares if classes else None, wanted=frozenset(due), due=due, kept=_kept(gates, file)
    )
    unserved = {name for name, _ in _rows(gates, limit_gates.WORKER)}
    return LaneFacts(known, resources, stock, gather(known), opens, unserved.__contains__)


def _kept(gates: Mapping[str, Mapping[str, Any]], file: str) -> dict[str, KeptUnits]:
    """Return the units that are kept back for tasks before this one."""
    found: dict[str, KeptUnits] = {}
    for name, said in gates.get("kept", {}).items():
        for row in said if isinstance(said, list | tuple) and file else ():
            waits = parse_task(str(row.get("file"))) if isinstance(row, dict) else None
            if waits is not None and waits.encode() < file:
                before = found.get(name, KeptUnits(0, waits.id))
                found[name] = replace(before, units=before.units + _whole(row.get("units")))
    return found


def _rows(gates: Mapping[str, Mapping[str, Any]], gate: str) -> list[tuple[str, dict[str, Any]]]:
    return [(name, said) for name, said in gates.get(gate, {}).items() if isinstance(said, dict)]


def _whole(value: Any) -> int:
    return value if type(value) is int and value >= 0 else 0
