"""The overview: is it alive, how busy is each node, what waits how long, what fails, why does it wait.

Law: all figures of the pool are of one picture, those of tasks of one view. A count is a link.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from spoold.client.view import AGES, Query
from spoold.faces.web.address import Address
from spoold.faces.web.site import Shown, Site
from spoold.protocol.amount import length
from spoold.protocol.lifecycle import SHOWN

WAITING = ("waiting", "ready")
FAILURES, RUNS, TYPES, REASONS = 8, 40, 30, 30
# From so many hundredths of the largest count on, a cell of the matrix gets the next shade.
_LONGEST_S = 1e9
_SHADES = (1, 10, 30, 60)


def show(site: Site, _: Address) -> Shown:
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
