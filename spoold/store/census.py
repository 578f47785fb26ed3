"""How many tasks are where, by names alone: for `spool status` while no node leads.

Law: looks and never touches. A link or file in the place of a directory counts as empty; `obstacles` reports it.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from spoold.protocol import layout
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import TaskName, concerns_us, is_node, is_task, parse_ended, parse_returned, parse_task
from spoold.protocol.snapshot import TaskCounts, no_tasks
from spoold.store.absence import names_in, names_unless_blocked
from spoold.store.archive import list_archived
from spoold.store.door_files import list_standing
from spoold.store.lane_moves import list_lanes
from spoold.store.misnamed import Misnamed
from spoold.system.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Census:
    """How many tasks are where, from names alone; types: type → how many wait and are active, as far as lanes show.

    Claimed tasks stand in no lane. claims: worker → its claims; its heartbeat shows their types. blocked: the
    directories that this user may not list. misnamed: the files among the tasks that count as nothing.
    """

    tasks: TaskCounts
    types: dict[str, dict[str, int]]
    claims: dict[str, tuple[TaskName, ...]]
    blocked: tuple[str, ...] = ()
    misnamed: Misnamed = field(default_factory=Misnamed)


def census(fs: FileSystem) -> Census:
    """Count by listing; no task file is opened. Errors: OSError."""
    number: Counter[str] = Counter()
    types: dict[str, dict[str, int]] = {}
    blocked: set[str] = set()
    misnamed = Misnamed()
    number[State.PENDING] = sum(map(concerns_us, names_unless_blocked(fs, layout.PENDING)))
    with suppress(NotADirectoryError):
        number[State.PENDING] += sum(1 for _ in list_standing(fs, blocked))
    for state in (State.WAITING, State.READY):
        with suppress(NotADirectoryError):
            _count_lanes(fs, state, number, types, blocked, misnamed)
    claims = list_claims(fs, blocked, misnamed)
    number[State.CLAIMED] = sum(map(len, claims.values()))
    returned = names_unless_blocked(fs, layout.RETURNED)
    misnamed.see(State.RETURNED, layout.RETURNED, [name for name in returned if parse_returned(name) is None])
    number[State.WAITING] += sum(parse_returned(name) is not None for name in returned)
    for state in (State.FAILED, State.COMPLETED):
        names = names_unless_blocked(fs, state)
        misnamed.see(state, state.value, [name for name in names if parse_ended(name) is None])
        ended = filter(None, map(parse_ended, names))
        number.update(shown_end(state, skipped=name.skipped) for name in ended)
    with suppress(NotADirectoryError):
        archived = list_archived(fs, blocked=blocked)
        number.update(shown_end(State(kind), skipped=name.skipped) for _, name, kind in archived)
    number[State.REJECTED] = sum(
        not name.endswith(layout.REASON) for name in names_unless_blocked(fs, layout.REJECTED)
    )
    counts = TaskCounts.model_validate({field: number[field] for field in TaskCounts.model_fields})
    return Census(counts, types, claims, tuple(sorted(blocked)), misnamed)


def _count_lanes(
    fs: FileSystem,
    state: State,
    number: Counter[str],
    types: dict[str, dict[str, int]],
    blocked: set[str],
    misnamed: Misnamed,
) -> None:
    others: list[str] = []
    lanes = list_lanes(fs, state, others)
    misnamed.see_branches(state, others)
    for name, lane in lanes.items():
        directory = layout.join(state, name)
        files = names_in(fs, directory, blocked)
        odd = [file for file in files if not is_task(file)]
        misnamed.see(state, directory, odd)
        found = len(files) - len(odd)
        number[state] += found
        if found:
            kind = types.setdefault(lane.type, no_tasks())
            kind[state.value] += found
            kind["active"] += found if state is State.READY else 0


def list_claims(
    fs: FileSystem, blocked: set[str] | None = None, misnamed: Misnamed | None = None
) -> dict[str, tuple[TaskName, ...]]:
    """The claims of every worker, by listing. Errors: OSError. blocked: collects those that may not be listed;
    misnamed: the files there that count as nothing.
    """
    blocked, misnamed = set() if blocked is None else blocked, misnamed or Misnamed()
    branches = names_unless_blocked(fs, layout.CLAIMED)
    misnamed.see_branches(State.CLAIMED, [name for name in branches if not is_node(name)])
    found = {}
    for worker in sorted(filter(is_node, branches)):
        directory = layout.join(layout.CLAIMED, worker)
        files = names_in(fs, directory, blocked)
        parsed = {file: parse_task(file) for file in sorted(files)}
        misnamed.see(State.CLAIMED, directory, [file for file, name in parsed.items() if name is None])
        found[worker] = tuple(name for name in parsed.values() if name is not None)
    return found
