"""How many tasks are where, by names alone: for `spool status` while no node leads.

Law: looks and never touches. A link or file in the place of a directory counts as empty; `obstacles` reports it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass

from spoold.protocol import layout
from spoold.protocol.drop import concerns_us
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.name_parts import is_task
from spoold.protocol.names import TaskName, is_node, parse_ended, parse_returned
from spoold.protocol.snapshot import TaskCounts, no_tasks
from spoold.store.absence import names_in, names_unless_blocked
from spoold.store.archive import list_archived
from spoold.store.door_files import list_standing
from spoold.store.lane_moves import list_lanes, list_tasks
from spoold.system.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Census:
    """How many tasks are where, from names alone; types: type → how many wait and are active, as far as lanes show.

    Claimed tasks stand in no lane. claims: worker → its claims; its heartbeat shows their types. blocked: the
    directories that this user may not list.
    """

    tasks: TaskCounts
    types: dict[str, dict[str, int]]
    claims: dict[str, tuple[TaskName, ...]]
    blocked: tuple[str, ...] = ()


def census(fs: FileSystem) -> Census:
    """Count by listing; no task file is opened. Errors: OSError."""
    number: Counter[str] = Counter()
    types: dict[str, dict[str, int]] = {}
    blocked: set[str] = set()
    number[State.PENDING] = sum(map(concerns_us, names_unless_blocked(fs, layout.PENDING)))
    with suppress(NotADirectoryError):
        number[State.PENDING] += sum(1 for _ in list_standing(fs, blocked))
    for state in (State.WAITING, State.READY):
        with suppress(NotADirectoryError):
            _count_lanes(fs, state, number, types, blocked)
    claims = list_claims(fs, blocked)
    number[State.CLAIMED] = sum(map(len, claims.values()))
    number[State.WAITING] += sum(
        parse_returned(name) is not None for name in names_unless_blocked(fs, layout.RETURNED)
    )
    for state in (State.FAILED, State.COMPLETED):
        ended = filter(None, map(parse_ended, names_unless_blocked(fs, state)))
        number.update(shown_end(state, skipped=name.skipped) for name in ended)
    with suppress(NotADirectoryError):
        archived = list_archived(fs, blocked=blocked)
        number.update(shown_end(State(kind), skipped=name.skipped) for _, name, kind in archived)
    number[State.REJECTED] = sum(
        not name.endswith(layout.REASON) for name in names_unless_blocked(fs, layout.REJECTED)
    )
    counts = TaskCounts.model_validate({field: number[field] for field in TaskCounts.model_fields})
    return Census(counts, types, claims, tuple(sorted(blocked)))


def _count_lanes(
    fs: FileSystem, state: State, number: Counter[str], types: dict[str, dict[str, int]], blocked: set[str]
) -> None:
    for name, lane in list_lanes(fs, state).items():
        found = sum(map(is_task, names_in(fs, layout.join(state, name), blocked)))
        number[state] += found
        if found:
            kind = types.setdefault(lane.type, no_tasks())
            kind[state.value] += found
            kind["active"] += found if state is State.READY else 0


def list_claims(fs: FileSystem, blocked: set[str] | None = None) -> dict[str, tuple[TaskName, ...]]:
    """The claims of every worker, by listing. Errors: OSError. blocked: collects those that may not be listed."""
    blocked = set() if blocked is None else blocked
    workers = sorted(filter(is_node, names_unless_blocked(fs, layout.CLAIMED)))
    found = {worker: list_tasks(fs, layout.join(layout.CLAIMED, worker), blocked) for worker in workers}
    return {worker: tuple(name for _, name in sorted(names.items())) for worker, names in found.items()}
