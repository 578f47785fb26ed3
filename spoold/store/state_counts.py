"""How many tasks are where, by names alone; and the files whose names are of no task and no request.

Law: looks and never touches. The name alone decides: a file is never opened and never moved. A link or file in the
place of a directory counts as empty; `path_conflicts` reports it. A wrong name is a warning for as long as the last
listing shows the file. Only what is shown is explained, since anybody may put any number of files there. What is no
lane in waiting/ or ready/, and no worker's directory in claimed/, counts as such a file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from spoold.protocol import layout, wrong_names
from spoold.protocol.amount import amount
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import (
    TaskName,
    concerns_us,
    is_node,
    is_task,
    key,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.protocol.snapshot import TaskCounts, no_tasks
from spoold.protocol.wrong_names import belongs_to_others, fault, of_branch
from spoold.store.existence import names_in, names_shown, names_unless_blocked
from spoold.store.lanes_and_archive import list_archived, list_lanes
from spoold.store.leader_files import list_standing
from spoold.system.filesystem import FileSystem

# Files among the tasks and the requests whose names are of neither: they are ignored, with a warning.


TOLD = 5
_BRANCHED = (State.WAITING, State.READY, State.CLAIMED)
_FLAT = (State.RETURNED, State.COMPLETED, State.FAILED)
MEND = "it is passed over: rename it, or move it away"


@dataclass(slots=True)
class Misnamed:
    """Directory → the names there that count as nothing, as last listed, and what explains one."""

    found: dict[str, tuple[list[str], Callable[[str], str | None]]] = field(default_factory=dict)

    def see(self, state: State, directory: str, names: Collection[str]) -> None:
        """Note the names in a listed directory that did not parse."""
        self._note(directory, [name for name in names if not belongs_to_others(name)], partial(fault, state))

    def see_branches(self, state: State, names: Collection[str]) -> None:
        """Note the names in waiting/ and ready/ that are no lanes, and those in claimed/ that are no workers."""
        self._note(state.value, [name for name in names if not name.startswith(".")], partial(of_branch, state))

    def see_requests(self, names: Collection[str]) -> None:
        """Note the names in control/ that did not parse."""
        self._note(layout.CONTROL, [name for name in names if not name.startswith(".")], wrong_names.of_request)

    def _note(self, directory: str, names: list[str], explain: Callable[[str], str | None]) -> None:
        self.found.pop(directory, None)
        if names:
            self.found[directory] = sorted(names), explain

    def see_waiting(self, directory: str, lanes: Iterable[tuple[str, str]]) -> None:
        """Note lane and name of each file that did not parse in a listing of all of waiting/."""
        by_lane: dict[str, list[str]] = {}
        for lane, name in lanes:
            by_lane.setdefault(f"{directory}/{lane}", []).append(name)
        for gone in [known for known in self.found if known.startswith(f"{directory}/") and known not in by_lane]:
            del self.found[gone]
        for lane, names in by_lane.items():
            self.see(State.WAITING, lane, names)

    def warnings(self) -> list[str]:
        """Return the warnings: the first few, and how many more there are."""
        listed = ((place, name, explain) for place, (names, explain) in sorted(self.found.items()) for name in names)
        shown = [f"{place}/{legible(name)} {explain(name)}; {MEND}" for place, name, explain in islice(listed, TOLD)]
        more = sum(len(names) for names, _ in self.found.values()) - TOLD
        rest = [f"{amount(more, 'more file')} with a wrong name; `spool fsck` shows them"] if more > 0 else []
        return [*shown, *rest]


def said_of(fs: FileSystem, task_id: str) -> str:
    """The sentence about a file of this id that counts as nothing; '' for none. Errors: OSError.

    A person who looks for a task by the id in its file's name is told where the file is, and what is wrong with it.
    """
    wanted = f".{key(task_id)}."
    for directory, name, explain in _entries(fs):
        if wanted in f".{key(name)}." and (why := explain(name)) is not None:
            return f"{directory}/{legible(name)} {why}; {MEND}"
    return ""


def _entries(fs: FileSystem) -> Iterator[tuple[str, str, Callable[[str], str | None]]]:
    """Every name where task files are: its directory, the name, and what explains it."""
    for state in _FLAT:
        yield from ((state.value, name, partial(fault, state)) for name in names_shown(fs, state))
    for state in _BRANCHED:
        for branch in names_shown(fs, state):
            yield state.value, branch, partial(of_branch, state)
            directory = layout.join(state, branch)
            strange = of_branch(state, branch)
            explain = partial(fault, state) if strange is None else partial(_inside, directory, strange)
            yield from ((directory, name, explain) for name in names_shown(fs, directory))


def _inside(directory: str, strange: str, name: str) -> str | None:
    """What is wrong with a task file below a directory that counts as nothing."""
    return None if belongs_to_others(name) else f"counts as nothing, since {directory} {strange}"


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
