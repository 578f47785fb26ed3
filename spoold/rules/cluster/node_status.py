"""Heartbeats as `spool status` shows them: one line per worker, and the counts by state.

Law: the listing says which tasks a worker has, and all else is the worker's own report, since nothing is decided by
it. Only the caller says that a worker is dead. Whatever a node notes, each face shows a bounded part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from spoold.protocol.amount import amount, clip, some
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.names import TaskName
from spoold.protocol.snapshot import Node, WorkerCounts
from spoold.rules.workers.matching import MODULE

DEAD = "dead"
ASLEEP = "asleep"
# So many notes of one node are shown, and so many characters of each: a picture has those of all nodes.
NOTES_MAX, NOTE_MAX = 20, 1000
# So many error codes of one node are repeated in a picture.
ENDINGS_MAX = 50


def node_of(beat: Heartbeat, claims: Iterable[TaskName], *, dead: bool = False) -> Node:
    """A worker as status shows it: its own report, and its claims by the listing."""
    can = beat.capabilities
    said = {(run.id, run.attempt): run.model_dump(mode="json") for run in beat.running}
    tasks = tuple(said.get((c.id, c.attempt), {"id": c.id, "attempt": c.attempt}) for c in claims)
    told = beat.status if beat.status in ("draining", "halted", ASLEEP) else ("working" if tasks else "idle")
    state = DEAD if dead else told
    return Node(
        worker=beat.node,
        host=beat.host.hostname,
        state=state,
        slots=beat.slots,
        running=len(tasks),
        cpus=can.cpus if can else 0,
        # Older readers need both numbers: 0 of 0 MiB stands for unknown.
        mem_mb=can.mem_mb if can and beat.mem_available_mb is not None else 0,
        mem_available_mb=beat.mem_available_mb or 0,
        load=beat.load,
        labels=can.labels if can else (),
        types=(can.types or can.handlers) if can else (),
        tasks=tasks,
        since=beat.at if state == ASLEEP else "",
        notes=bounded((*beat.left, *beat.notes, *_withheld(can))),
        endings=dict(islice(beat.endings.items(), ENDINGS_MAX)),
        spent=beat.spent,
    )


def bounded(notes: Sequence[str]) -> tuple[str, ...]:
    """As many of a node's notes as are shown, and as much of each."""
    shown = tuple(clip(note, NOTE_MAX) for note in notes[:NOTES_MAX])
    more = len(notes) - len(shown)
    return (*shown, f"{amount(more, 'more note')}, which its heartbeat has") if more else shown


def left_warnings(workers: Iterable[Heartbeat]) -> list[str]:
    """What programs of handlers left on the workers' machines: what several workers say, once."""
    found = dict[str, list[str]]()
    for worker in workers:
        for note in bounded(worker.left):
            found.setdefault(note, []).append(worker.node)
    return [f"{some(nodes)}: {note}" for note, nodes in found.items()]


def _withheld(can: Capabilities | None) -> Iterator[str]:
    """The services that a worker would offer and does not, in words."""
    for kind, why in sorted({**can.lacks, **can.shuns}.items()) if can else ():
        what = f"module {kind.removeprefix(MODULE)}" if kind.startswith(MODULE) else f"type {kind}"
        yield f"takes no tasks of {what}: {why}"


def count_workers(states: Iterable[str]) -> WorkerCounts:
    """How many workers are in which state; a halted one takes nothing new, as a draining one."""
    listed = list(states)
    dead, asleep = listed.count(DEAD), listed.count(ASLEEP)
    return WorkerCounts(
        alive=len(listed) - dead - asleep,
        idle=listed.count("idle"),
        working=listed.count("working"),
        draining=listed.count("draining") + listed.count("halted"),
        asleep=asleep,
        dead=dead,
    )
