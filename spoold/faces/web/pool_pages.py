"""The pages of the pool: the overview; nodes, and what gates count; events, alerts and open questions.

Law: all figures of the pool are of one picture, the leader's last, and those of tasks of one view. A count is a link.
A gate or a field that another release adds or leaves out is passed over. An event's detail is text of its writer; it
is shown as JSON, and cut where it is long.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from spoold.client.view import AGES, Query
from spoold.faces.web.page_address import Address
from spoold.faces.web.site import Shown, Site
from spoold.pictures.wording import clip
from spoold.protocol.amount import length
from spoold.protocol.lifecycle import SHOWN

WAITING = ("waiting", "ready")
FAILURES, RUNS, TYPES, REASONS = 8, 40, 30, 30
# From so many hundredths of the largest count on, a cell of the matrix gets the next shade.
_LONGEST_S = 1e9
_SHADES = (1, 10, 30, 60)


def show_overview(site: Site, _: Address) -> Shown:
    """Return the page."""
    view = site.view
    counts = states(site)
    failures = view.failures(FAILURES)
    codes = view.find(Query(states=("failed",)), limit=1).facets.get("code", {})
    runs = view.running()
    why, again = site.later.reasons(view, failures)
    values: dict[str, Any] = {
        "counts": counts,
        "ages": _ages(site),
        "runs": runs[:RUNS],
        "runs_all": len(runs),
        "codes": codes,
        "failures": failures,
        "failures_why": why,
        "reasons": view.reasons()[:REASONS],
        "waiting": sum(number for state, number in counts if state in WAITING),
        "Query": Query,
    }
    return Shown("overview", "Overview", values, again=again)


def states(site: Site) -> list[tuple[str, int]]:
    """Return how many tasks are in each state, in the order of a task's life."""
    found = site.view.counts()
    return [(state.value, found.get(state.value, 0)) for state in SHOWN]


def _ages(site: Site) -> dict[str, Any]:
    """The matrix of age and type: the bounds in words, and rows of counts with their shades."""
    rows = site.view.ages()
    largest = max((count for row in rows for count in row.counts), default=0)
    base = Query(states=WAITING, sort="admitted")
    spans = _spans(site.wall())
    shown = []
    for row in rows[:TYPES]:
        query = replace(base, types=(row.type,) if row.type else ())
        cells = [
            (count, _shade(count, largest), replace(query, admitted=span))
            for count, span in zip(row.counts, spans, strict=True)
        ]
        shown.append({"type": row.type, "query": query, "cells": cells, "total": row.total})
    sums = [
        (sum(row.counts[place] for row in rows), replace(base, admitted=span)) for place, span in enumerate(spans)
    ]
    return {"bounds": list(_bounds(AGES)), "rows": shown, "more": len(rows) - len(shown), "sums": sums, "all": base}


def _spans(now: float) -> list[tuple[float, float]]:
    """When tasks of each class of age were admitted: after the first moment, and up to the second."""
    edges = [math.inf, *(round(now - bound, 3) for bound in AGES)]
    return [(low, high) for high, low in pairwise(edges)]


def _bounds(ages: Iterable[float]) -> Iterable[str]:
    before = 0.0
    for bound in ages:
        over = f"{length(before)} or more" if bound > _LONGEST_S else f"{length(before)} to {length(bound)}"
        yield over if before else f"under {length(bound)}"
        before = bound


def _shade(count: int, largest: int) -> int:
    return sum(100 * count >= step * largest for step in _SHADES) if count else 0


# Nodes, and what gates count: limits, classes, breakers, budgets, locks, pauses.


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


# Events, alerts, open questions.


EVENTS, LOOKED_AT = 200, 2000
DETAIL, DETAIL_READ = 240, 4000


def events(site: Site, asked: Address) -> Shown:
    """Return the page of the last events, the newest first."""
    task, kinds, text = asked.one("task"), asked.all("event"), asked.one("q").casefold()
    noted = site.view.events(task=task, most=LOOKED_AT)
    names = sorted({one.event for one in noted})
    fitting = [one for one in noted if not kinds or one.event in kinds]
    rows = [(one, _detail(one.detail)) for one in fitting]
    if text:
        rows = [
            (one, detail)
            for one, detail in rows
            if any(text in said.casefold() for said in (one.task, one.writer, one.event, detail))
        ]
    values: dict[str, Any] = {
        "rows": [(one, clip(detail, DETAIL)) for one, detail in rows[: -EVENTS - 1 : -1]],
        "matches": len(rows),
        "total": len(noted),
        "names": names,
        "kinds": kinds,
        "task": task,
        "text": asked.one("q"),
    }
    return Shown("events", "Events", values)


def _detail(detail: dict[str, Any]) -> str:
    try:
        return json.dumps(detail, ensure_ascii=False, default=str)[:DETAIL_READ] if detail else ""
    except RecursionError:
        return "…"


def alerts(site: Site, _: Address) -> Shown:
    """Return the page of the alerts that stand, and the warnings."""
    picture = site.view.picture
    values = {
        "alerts": picture.alerts if picture is not None else (),
        "warnings": picture.warnings if picture is not None else (),
    }
    return Shown("alerts", "Alerts", values)


def asks(site: Site, asked: Address) -> Shown:
    """Return the page of the questions that nobody has answered."""
    values = {"questions": site.view.questions(), "done": asked.one("done")}
    return Shown("asks", "Questions", values)
