"""The state of what a task waits for: other tasks, and batches.

Law: looks and never touches. A batch costs a read of each of its tasks, and of all other tasks of the spool.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.client.info import read_content, text_in
from spoold.client.selecting import select
from spoold.client.story import vanished
from spoold.protocol.amount import amount, some
from spoold.protocol.lifecycle import ENDED, State
from spoold.protocol.names import key
from spoold.rules.answers.selection import Selection
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import Parent, parent_in
from spoold.store.locate import Located, locate_many
from spoold.store.store import Store

NAMED = 3


def parents_seen(store: Store, wanted: Iterable[str]) -> tuple[dict[str, Parent], dict[str, str]]:
    """Return the state of each of these parents, and its place in words. Errors: OSError."""
    batches = {parent: batch for parent in wanted if (batch := batch_in(parent)) is not None}
    tasks = set(wanted) - batches.keys()
    found = locate_many(store, tasks) if tasks else {}
    parents = {p: parent_in(found[p].state) if p in found else Parent.UNKNOWN for p in tasks}
    places = {p: _place(where) for p, where in found.items()}
    gone = vanished(store, tasks - found.keys())
    places |= {p: f"{gone[key(p)]}, and another program removed its file" for p in tasks if key(p) in gone}
    for parent, batch in batches.items():
        parents[parent], places[parent] = _batch(store, batch)
    return parents, places


def _batch(store: Store, batch: str) -> tuple[Parent, str]:
    """The state of a batch, and how many of its tasks have not ended; without archived tasks if there are others."""
    found = list(select(store, Selection(batches=(batch,)))) or list(
        select(store, Selection(batches=(batch,)), archived=True)
    )
    if not found:
        return Parent.UNKNOWN, ""
    still = [one.id for one in found if one.state not in ENDED and not _waits_itself(store, one, batch)]
    if not still:
        return Parent.COMPLETED, ""
    return Parent.OPEN, f"not ended: {len(still)} of {amount(len(found), 'task')}: {some(still, NAMED)}"


def _waits_itself(store: Store, located: Located, batch: str) -> bool:
    """Whether a task of the batch waits for all others of it."""
    if located.name is None or not located.name.conditional:
        return False
    return key(text_in(read_content(store, located), "after_batch")) == key(batch)


def _place(located: Located) -> str:
    return f"claimed by {located.node}" if located.state is State.CLAIMED else located.state.value
