"""Nodes, and what gates count: limits, classes, breakers, budgets, locks, pauses.

Law: all figures are of the leader's last picture. A gate or a field that another release adds or leaves out is passed
over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spoold.client.view import Query
from spoold.faces.web.address import Address
from spoold.faces.web.site import Shown, Site

# So many rows of locks: the leader reports no more than some.
ROWS = 200
Gates = Mapping[str, Mapping[str, Any]]


def nodes(site: Site, asked: Address) -> Shown:
    """Return the page of all nodes."""
    picture = site.view.picture
    runs: dict[str, list[Any]] = {}
    for run in site.view.running():
        runs.setdefault(run.worker, []).append(run)
    values: dict[str, Any] = {
        "nodes": picture.nodes if picture is not None else (),
        "runs": runs,
        "Query": Query,
        "done": asked.one("done"),
    }
    return Shown("nodes", "Nodes", values)


def gates(site: Site, asked: Address) -> Shown:
    """Return the page of what gates count."""
    picture = site.view.picture
    found: Gates = picture.gates if picture is not None else {}
    values: dict[str, Any] = {
        "limits": _limits(found),
        "classes": rows(found, "class"),
        "breakers": [(name, said) for name, said in rows(found, "breaker") if said.get("until") or "trying" in said],
        "budgets": [line for name, said in rows(found, "budget") for line in _budget(name, said)],
        "locks": _locks(found),
        "parked": [(gate, whole(found.get(gate, {}).get("waiting"))) for gate in ("hold", "approval")],
        "batches": rows(found, "after_batch"),
        "unserved": rows(found, "worker"),
        "types": sorted(picture.types.items()) if picture is not None else [],
        "durations": picture.durations if picture is not None else {},
        "pauses": getattr(picture, "pauses", ()) or (),
        "Query": Query,
        "done": asked.one("done"),
    }
    return Shown("gates", "Limits, budgets, locks", values, nav="/gates")


def rows(found: Gates, gate: str) -> list[tuple[str, dict[str, Any]]]:
    """Return what a gate counts by name."""
    return sorted((name, said) for name, said in found.get(gate, {}).items() if isinstance(said, dict))


def whole(value: Any) -> int:
    """Return a count; 0 for what is none."""
    return value if type(value) is int and value >= 0 else 0


def _limits(found: Gates) -> list[dict[str, Any]]:
    """Each limit: units in use, starts within its rate, and whether it is closed."""
    names = sorted({name for gate in ("limit", "rate", "quota") for name, _ in rows(found, gate)})
    by = {gate: dict(rows(found, gate)) for gate in ("limit", "rate", "quota")}
    made = []
    for name in names:
        limit, rate, quota = by["limit"].get(name, {}), by["rate"].get(name, {}), by["quota"].get(name)
        closed = ""
        if quota is not None:
            closed = f"tried by {quota['trying'] or 'the next task'}" if "trying" in quota else "closed"
        made.append(
            {
                "name": name,
                "used": whole(limit.get("used")),
                "doubtful": whole(limit.get("doubtful")),
                "lent": whole(limit.get("lent")),
                "max": whole(limit.get("max")) if limit else None,
                "rate": rate or None,
                "started": whole(rate.get("used")),
                "closed": closed,
                "until": (quota or {}).get("until") or "",
                "by": (quota or {}).get("by") or "",
            }
        )
    return made


def _budget(name: str, said: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row for each limit of each period."""
    limits = said.get("limits")
    periods = said.get("periods")
    made = []
    for period in periods if isinstance(periods, list) else ():
        for of, limit in limits.items() if isinstance(limits, dict) else ():
            spent, reserved, left = (
                _real((period.get(part) or {}).get(of)) for part in ("spent", "reserved", "left")
            )
            made.append(
                {
                    "name": name,
                    "period": str(period.get("period", "")),
                    "of": {"cost_usd": "USD", "tokens": "tokens", "task_s": "s"}.get(of, of),
                    "limit": _real(limit),
                    "spent": spent,
                    "reserved": reserved,
                    "left": left,
                    "attempts": whole(period.get("attempts")),
                    "waits": str(period.get("waits") or ""),
                    "closed": str(said.get("closed") or ""),
                }
            )
    return made


def _real(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0


def _locks(found: Gates) -> dict[str, Any]:
    """Who holds locks and who waits, as far as the leader reports it."""
    seen = found.get("locks")
    said = seen if isinstance(seen, dict) else {}
    holders, waiters = (
        [row for row in said.get(part) or () if isinstance(row, dict)] for part in ("holders", "waiters")
    )
    return {
        "held": whole(said.get("held")),
        "waiting": whole(said.get("waiting")),
        "holders": [_lock(row) for row in holders[:ROWS]],
        "waiters": [_lock(row) for row in waiters[:ROWS]],
    }


def _lock(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "task": str(row.get("task") or ""),
        "who": str(row.get("reservation") or row.get("task") or row.get("key") or ""),
        "by": str(row.get("by") or row.get("worker") or row.get("state") or ""),
        "since": row.get("since") if isinstance(row.get("since"), str) else None,
        "write": _words(row.get("write")),
        "read": _words(row.get("read")),
        "behind": str(row.get("behind") or ""),
        "position": whole(row.get("position")),
        "tasks": whole(row.get("tasks")),
    }


def _words(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value or "")
