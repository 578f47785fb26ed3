"""Which tasks may fail because a task that they depend on has failed, where a server may forget it in a power cut.

Law: a task fails only for a failure that nothing can undo any more, since its own cannot be taken back. A power cut
of such a server puts the parent back to its earlier place, and it may complete. But the server's disk keeps the order
of all changes: a failure that a listing shows after a durable write is settled.
"""

from __future__ import annotations

from collections.abc import Iterator

from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.rules.gates.verdicts import Refuse
from spoold.rules.scheduling.backlog import Entry

Refused = list[tuple[Entry, Refuse]]


def certain(desk: Desk, refused: Refused) -> Refused:
    """Return the refused tasks that may fail now; the others are asked about again. Errors: OSError, ShutOut."""
    if not desk.store.fs.forgets:
        return refused
    blamed = {entry.file: set(_failures(desk, entry)) for entry, verdict in refused if _for_a_parent(verdict)}
    settled = desk.learned.settled
    new = {name for names in blamed.values() for name in names} - settled
    if new:
        desk.store.settle(layout.FAILED, {})
        settled &= desk.view.failed.keys()  # the others were archived or retried
        settled |= new.intersection(desk.store.fs.list(layout.FAILED))
        if not new <= settled:
            desk.step.doubt()
    return [
        (entry, verdict)
        for entry, verdict in refused
        if entry.file not in blamed or not blamed[entry.file].isdisjoint(settled) or _archived(desk, entry)
    ]


def _for_a_parent(verdict: Refuse) -> bool:
    return verdict.code is Code.DEPENDENCY_FAILED


def _failures(desk: Desk, entry: Entry) -> Iterator[str]:
    """Yield the names in failed/ of the tasks that it depends on."""
    for parent in entry.conditions.needs:
        place = desk.view.where.get(key(parent))
        if place is not None and place.state is State.FAILED:
            yield place.name


def _archived(desk: Desk, entry: Entry) -> bool:
    """Whether a task that it depends on has failed and was archived, which is long after that was settled."""
    return any(desk.view.archived.state(key(parent)) is State.FAILED for parent in entry.conditions.needs)
