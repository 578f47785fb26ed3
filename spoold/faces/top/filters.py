"""What a person types after `/` as a question to the view: `state:failed,rejected type:review node-3`.

Law: pure. A word that is no filter is looked for as text; nothing that a person types is an error.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from spoold.protocol.lifecycle import SHOWN

if TYPE_CHECKING:
    from spoold.client.view import Query

NAMES = ("state", "type", "batch", "worker", "code")
SORTS = ("-since", "-admitted", "id", "state", "type", "batch", "-attempt", "worker")
_STATES = {state.value: state.value for state in SHOWN} | {"running": "claimed"}


def query_of(typed: str, sort: str = SORTS[0]) -> Query:
    """Return the question that these words are."""
    from spoold.client.view import Query

    values: dict[str, list[str]] = {name: [] for name in NAMES}
    text: list[str] = []
    for each in typed.split():
        name, colon, said = each.partition(":")
        if colon and name.lower() in values and said:
            values[name.lower()] += [one for one in said.split(",") if one]
        else:
            text.append(each)
    return Query(
        states=tuple(_STATES.get(one.lower(), one) for one in values["state"]),
        types=tuple(values["type"]),
        batches=tuple(values["batch"]),
        workers=tuple(values["worker"]),
        codes=tuple(values["code"]),
        text=" ".join(text),
        sort=sort,
    )


def words_of(query: Query) -> str:
    """Return the words that a person would type for a question."""
    named = zip(NAMES, (query.states, query.types, query.batches, query.workers, query.codes), strict=True)
    parts = [f"{name}:{','.join(values)}" for name, values in named if values]
    return " ".join([*parts, *([query.text] if query.text else [])])


def reversed_of(query: Query) -> Query:
    """Return the same question with the last task first."""
    sort = query.sort.removeprefix("-") if query.sort.startswith("-") else f"-{query.sort}"
    return replace(query, sort=sort)


def next_sort(sort: str) -> str:
    """Return the order after this one."""
    return SORTS[(SORTS.index(sort) + 1) % len(SORTS)] if sort in SORTS else SORTS[0]


def fits(typed: str, text: str) -> bool:
    """Return whether a row of another list has all the words in it."""
    folded = text.casefold()
    return all(each.casefold() in folded for each in typed.split())
