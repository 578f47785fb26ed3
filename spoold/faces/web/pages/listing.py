"""The list of tasks: facets that combine, search, order, pages; and what can be done with all that fit.

Law: all of it is in the URL. Counts are exact, of all pages: `N of M`.
"""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from spoold.client.view import Query
from spoold.faces.web import address
from spoold.faces.web.address import Address
from spoold.faces.web.site import Shown, Site
from spoold.protocol.names import is_id

PAGE = 100
# So many values of a facet are shown at first.
VALUES = 8
COLUMNS = (
    ("id", "Task"),
    ("state", "State"),
    ("type", "Type"),
    ("batch", "Batch"),
    ("attempt", "Attempt"),
    ("worker", "Worker"),
    ("code", "Code"),
    ("admitted", "Admitted"),
    ("since", "In this state for"),
)
_NAMES = {"state": "State", "type": "Type", "batch": "Batch", "worker": "Worker", "code": "Code"}


def show(site: Site, asked: Address) -> Shown:
    """Return the page."""
    query, cursor = address.query_of(asked), asked.one("cursor")
    found = site.view.find(query, cursor=cursor, limit=PAGE)
    values: dict[str, Any] = {
        "query": query,
        "found": found,
        "facets": [_facet(query, name, found.facets.get(name, {}), asked.one("more")) for name in address.FACETS],
        "columns": [_column(query, name, title) for name, title in COLUMNS],
        "chosen": _chosen(query),
        "hidden": [(name, value) for name, value in address.pairs_of(query) if name != "q"],
        "next": address.tasks(query, cursor=found.cursor) if found.cursor else "",
        "first": address.tasks(query) if cursor else "",
        "recent": address.tasks(replace(query, archived=not query.archived)),
        "bulk": [*address.pairs_of(query), *([] if address.selects(query) else [("all", "1")])],
        # A drop that is not admitted yet may be no id; only one that was rejected has a page all the same.
        "nameless": {card.id for card in found.cards if card.state != "rejected" and not is_id(card.id)},
        "done": asked.one("done"),
    }
    return Shown("tasks", "Tasks", values, nav="/tasks")


def _facet(query: Query, name: str, counts: dict[str, int], more: str) -> dict[str, Any]:
    chosen = getattr(query, address.FACETS[name])
    ordered = sorted(counts.items(), key=lambda one: (one[0] not in chosen, -one[1], one[0]))
    most = len(ordered) if more == name else max(VALUES, len(chosen))
    return {
        "name": name,
        "title": _NAMES[name],
        "values": [
            (value, count, value in chosen, address.tasks(address.toggled(query, name, value)))
            for value, count in ordered[:most]
        ],
        "more": address.tasks(query, more=name) if len(ordered) > most else "",
        "left": len(ordered) - most,
    }


def _column(query: Query, name: str, title: str) -> dict[str, str]:
    """A heading that orders by its column: first downwards for moments, upwards for words, then the other way."""
    down = f"-{name}"
    if query.sort in (name, down):
        sort, order = (name if query.sort == down else down), "descending" if query.sort == down else "ascending"
    else:
        sort, order = (down if name in ("admitted", "since", "attempt") else name), ""
    return {"title": title, "name": name, "order": order, "link": address.tasks(replace(query, sort=sort))}


def _chosen(query: Query) -> list[tuple[str, str, str]]:
    """What narrows the list, each with the address of the list without it."""
    found = [
        (_NAMES[name], value, address.tasks(address.toggled(query, name, value)))
        for name, field in address.FACETS.items()
        for value in getattr(query, field)
    ]
    if query.admitted is not None:
        begin, end = query.admitted
        bounds = (("after", begin), ("up to", end))
        said = " ".join(f"{word} {_moment(at)}" for word, at in bounds if not math.isinf(at))
        found.append(("Admitted", said, address.tasks(replace(query, admitted=None))))
    if query.text:
        found.append(("Search", query.text, address.tasks(replace(query, text=""))))
    return found


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S}"
