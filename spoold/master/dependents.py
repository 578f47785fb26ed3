"""Which tasks may fail, be skipped or begin because others have ended, where a server may forget that in a power cut.

Law: a task fails or is skipped only for ends that nothing can undo any more, since its own cannot be taken back. A
task that runs after a failure begins only after one that nothing can undo. A power cut of such a server puts a parent
back to its earlier place, and it may end otherwise. But the server's disk keeps the order of all changes: an end that
a listing shows after a durable write is settled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.result import Code
from spoold.rules.gates import after_failed
from spoold.rules.gates.facts import Parent
from spoold.rules.gates.verdicts import Refuse
from spoold.rules.scheduling.entry import Entry

Refused = list[tuple[Entry, Refuse]]
# The ended tasks, by their paths, that together prove what is decided. Of archived ones that was settled long ago.
Proof = frozenset[str]


def certain(desk: Desk, refused: Refused) -> Refused:
    """Return the refused tasks that may end now; the others are asked about again. Errors: OSError, ShutOut."""
    if not desk.store.fs.forgets:
        return refused
    proofs = {entry.file: list(_proofs(desk, entry, verdict)) for entry, verdict in refused if _for_parents(verdict)}
    settled = _settled(desk, proofs.values())
    return [
        (entry, verdict)
        for entry, verdict in refused
        if entry.file not in proofs or any(proof <= settled for proof in proofs[entry.file])
    ]


def may_begin(desk: Desk, entry: Entry) -> bool:
    """Whether a task that runs after a failure may begin: any other may. Errors: OSError, ShutOut."""
    named = entry.conditions.needs_failed
    if not named or not desk.store.fs.forgets:
        return True
    proofs = list(_each(desk, named, Parent.FAILED))
    settled = _settled(desk, [proofs])
    return any(proof <= settled for proof in proofs)


def _settled(desk: Desk, proofs: Iterable[list[Proof]]) -> set[str]:
    """Return the paths that no power cut takes back, after a durable write if there are new ones to ask about."""
    settled, new = desk.learned.settled, set[str]().union(*(proof for some in proofs for proof in some))
    new -= settled
    if new:
        desk.store.settle(layout.FAILED, {})
        there = {layout.join(layout.FAILED, name) for name in desk.view.failed}
        there |= {layout.join(layout.COMPLETED, name) for name in desk.view.completed}
        settled &= there  # the others were archived or retried
        for state in (layout.COMPLETED, layout.FAILED):
            if any(path.startswith(f"{state}/") for path in new):
                settled |= new.intersection(layout.join(state, name) for name in desk.store.fs.list(state))
        if not new <= settled:
            desk.step.doubt()
    return settled


def _for_parents(verdict: Refuse) -> bool:
    return verdict.code in (Code.DEPENDENCY_FAILED, Code.SKIPPED)


def _proofs(desk: Desk, entry: Entry, verdict: Refuse) -> Iterator[Proof]:
    """Yield what proves that the task ends so: one of its dependencies, or all ends of its `after_failed`."""
    if verdict.gate == after_failed.GATE.name:
        yield Proof().union(*(_proof(desk, parent) for parent in entry.conditions.needs_failed))
    else:
        skipped = verdict.code is Code.SKIPPED
        yield from _each(desk, entry.conditions.needs, Parent.SKIPPED if skipped else Parent.FAILED)


def _each(desk: Desk, parents: Iterable[str], state: Parent) -> Iterator[Proof]:
    """Yield the end of each of these tasks that has ended so."""
    yield from (_proof(desk, parent) for parent in parents if desk.view.parent(parent) is state)


def _proof(desk: Desk, parent: str) -> Proof:
    place = desk.view.where.get(key(parent))
    return Proof() if place is None or place.state not in (State.COMPLETED, State.FAILED) else Proof([place.path])
