"""What a page shows, as the part of its URL behind the `?`: all of it is there, so a URL can be kept and sent.

Law: pure. An unknown parameter is ignored and a wrong value is an error that names it; the number of both is bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from spoold.client.view import Query
from spoold.protocol.errors import BadFile

# Parameter → field of a query.
FACETS = {"state": "states", "type": "types", "batch": "batches", "worker": "workers", "code": "codes"}
_SPAN = re.compile(r"([0-9]{1,11}(?:\.[0-9]{1,6})?)?\.\.([0-9]{1,11}(?:\.[0-9]{1,6})?)?", re.ASCII)
FIELDS_MOST, VALUE_MOST = 100, 500


@dataclass(frozen=True, slots=True)
class Address:
    """The parameters of a URL, in their order."""

    pairs: tuple[tuple[str, str], ...] = ()

    def one(self, name: str, default: str = "") -> str:
        """Return the last value of a parameter."""
        return next((value for key, value in reversed(self.pairs) if key == name), default)

    def all(self, name: str) -> tuple[str, ...]:
        """Return all values of a parameter, each once."""
        return tuple(dict.fromkeys(value for key, value in self.pairs if key == name and value))

    def number(self, name: str, default: int = 0) -> int:
        """Return a parameter as a whole number. Errors: BadFile."""
        text = self.one(name)
        if not text:
            return default
        if not text.removeprefix("-").isdecimal() or not text.isascii() or len(text) > 15:
            raise BadFile("the URL", name, "is no whole number.", "leave it out.")
        return int(text)


def read(query_string: str | bytes) -> Address:
    """Return the parameters. Errors: BadFile where there are too many, or a value is too long."""
    text = query_string.decode("latin-1") if isinstance(query_string, bytes) else query_string
    try:
        pairs = parse_qsl(text, keep_blank_values=True, errors="replace", max_num_fields=FIELDS_MOST)
    except ValueError:
        raise BadFile("the URL", "", f"has more than {FIELDS_MOST} parameters.", "leave some out.") from None
    for name, value in pairs:
        if len(value) > VALUE_MOST:
            raise BadFile("the URL", name[:40], f"is longer than {VALUE_MOST} characters.", "shorten it.")
    return Address(tuple(pairs))


def query_of(address: Address) -> Query:
    """Return which tasks an address means."""
    chosen: dict[str, Any] = {field: address.all(name) for name, field in FACETS.items()}
    return Query(
        **chosen,
        text=address.one("q").strip(),
        sort=address.one("sort") or "-since",
        archived=address.one("archived", "1") != "0",
        admitted=_span(address.one("admitted")),
    )


def selects(query: Query) -> bool:
    """Return whether a query narrows the list; an order alone, or leaving out the archive, names no tasks."""
    facets = any(getattr(query, field) for field in FACETS.values())
    return facets or bool(query.text) or query.admitted is not None


def _span(text: str) -> tuple[float, float] | None:
    """Two moments in seconds since 1970, as `FROM..TO`; one that is left out has no bound. Errors: BadFile."""
    if not text:
        return None
    found = _SPAN.fullmatch(text)
    if found is None:
        raise BadFile("the URL", "admitted", "is no span of time.", "write FROM..TO, in seconds since 1970.")
    return float(found[1] or "-inf"), float(found[2] or "inf")


def pairs_of(query: Query) -> list[tuple[str, str]]:
    """Return the parameters that mean these tasks; none for those that are so anyway."""
    pairs = [(name, value) for name, field in FACETS.items() for value in getattr(query, field)]
    if query.text:
        pairs.append(("q", query.text))
    if query.sort != "-since":
        pairs.append(("sort", query.sort))
    if not query.archived:
        pairs.append(("archived", "0"))
    if query.admitted is not None:
        pairs.append(("admitted", "..".join("" if math.isinf(at) else f"{at:.3f}" for at in query.admitted)))
    return pairs


def link(path: str, pairs: Iterable[tuple[str, object]] | Mapping[str, object] = ()) -> str:
    """Return an address below this server; parameters that are None or empty are left out."""
    items = pairs.items() if isinstance(pairs, Mapping) else pairs
    said = urlencode([(name, str(value)) for name, value in items if value not in (None, "")])
    return f"{path}?{said}" if said else path


def tasks(query: Query, **more: object) -> str:
    """Return the address of the list of these tasks."""
    return link("/tasks", [*pairs_of(query), *more.items()])


def task(task_id: str, *below: str) -> str:
    """Return the address of a task, or of something below it."""
    return "/".join(("/tasks", *(quote(part, safe="") for part in (task_id, *below))))


def batch(name: str, page: str = "") -> str:
    """Return the address of a batch, or of one of its pictures: a name may hold anything, so it is a parameter."""
    return link(f"/batch{page}", {"name": name})


def toggled(query: Query, facet: str, value: str) -> Query:
    """Return the query with this value of a facet added, or without it if it is there."""
    field = FACETS[facet]
    there: Sequence[str] = getattr(query, field)
    values = tuple(one for one in there if one != value) if value in there else (*there, value)
    changes: dict[str, Any] = {field: values}
    return replace(query, **changes)
