"""The spool in the last listings, kept up to date by differences: where each token is, and which ids are archived.

waiting/ is not polled: only leaders move tokens there, and this leader knows its own moves, so the backlog knows the
waiting tasks. A token that is nowhere any more was moved by another leader or removed by a person: the caller lists
waiting/ again, and only then believes that it is gone.

Law: directories are listed in the order in which tokens flow, so that a token that moves meanwhile is seen twice
rather than not at all; the later place counts. A place is a value: whether a token is there, only a listing says. Of
the archive each task is held once, by how it ended last. An answer is by hash alone, and each pair of ids has one
chance in 2**64 of an equal hash: a caller that cannot bear a wrong answer reads the archive.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from spoold.protocol import layout
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import (
    BeatName,
    EndedName,
    TaskName,
    concerns_us,
    is_node,
    is_skipped,
    key,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.protocol.request import Request
from spoold.rules.gates.dependency_gates import batch_in
from spoold.rules.gates.facts import Parent, parent_in
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.batch_members import Members
from spoold.store import control, heartbeats
from spoold.store.existence import names_in, names_unless_blocked
from spoold.store.lanes_and_archive import find_archived, list_lanes
from spoold.store.state_counts import Misnamed
from spoold.system.filesystem import FileSystem

# Where a token is: its state, its directory and its file name.


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a token."""

    state: State
    directory: str
    name: str

    @property
    def path(self) -> str:
        """The token's path."""
        return f"{self.directory}/{self.name}"

    @property
    def parent(self) -> Parent:
        """What a task there is to those that wait for it."""
        skipped = self.state is State.FAILED and is_skipped(self.name)
        return parent_in(shown_end(self.state, skipped=skipped))


def waiting_place(lane: str, file: str) -> Place:
    """Return the place of a waiting token."""
    return Place(State.WAITING, layout.join(layout.WAITING, lane), file)


# The listings that a leader asks for, and their changes to its view.


@dataclass(slots=True)
class Changes:
    """Result of a refresh: keys that came to a new place, those of them that ended, keys that are nowhere.

    revived: keys that had ended, and are back at their place before that. undone: claims that are back in ready/
    under the very same name, which no move does, and tasks whose success is gone while they are still at their place
    before it.
    """

    came: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    revived: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    undone: int = 0
    any: bool = False


@dataclass(slots=True)
class Found:
    """Findings that the caller does not have yet: of a refresh that failed halfway, or that did not list the ends.

    gone: tokens that have left their place, and were not seen at another.
    """

    changes: Changes = field(default_factory=Changes)
    gone: dict[str, Place] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which directories a refresh lists. `ended` is separate: those listings grow with the recently ended tasks, and
    a token that has left its place may be looked for there a little later.
    """

    pending: bool = True
    ready: bool = True
    ended: bool = True
    requests: bool = True
    beats: bool = True
    everything: bool = True


EVERYTHING = Wanted()


# Which ids are in the archive: eight bytes for each, since there may be millions of them.


_PARTS = 256
_MASK = (1 << 64) - 1
# How a task that is archived has ended, as people are shown it.
ENDS = (State.COMPLETED, State.FAILED, State.SKIPPED)


class Archived:
    """The keys of archived tasks, by how they ended."""

    def __init__(self) -> None:
        self._hashes: dict[State, list[array[int]]] = {state: [array("Q") for _ in range(_PARTS)] for state in ENDS}
        self.counts = dict.fromkeys(ENDS, 0)

    def __contains__(self, task_key: str) -> bool:
        return self.state(task_key) is not None

    def state(self, task_key: str) -> State | None:
        """Return how the archived task with that key ended; None for one that is not archived."""
        for state in [state for state, count in self.counts.items() if count]:
            part, index, found = self._find(state, task_key)
            if index < len(part) and part[index] == found:
                return state
        return None

    def add(self, task_key: str, state: State) -> None:
        """Record that the task's file is in the archive, as ended in this state."""
        self.discard(task_key)
        part, index, found = self._find(state, task_key)
        part.insert(index, found)
        self.counts[state] += 1

    def discard(self, task_key: str) -> None:
        """Record that the task's file is no longer in the archive, if it was."""
        state = self.state(task_key)
        if state is not None:
            part, index, _ = self._find(state, task_key)
            del part[index]
            self.counts[state] -= 1

    def _find(self, state: State, task_key: str) -> tuple[array[int], int, int]:
        """Return where a key's hash is, or would be: the array, the index in it, the hash."""
        found = hash(task_key) & _MASK
        part = self._hashes[state][found % _PARTS]
        return part, bisect_left(part, found), found


def still_archived(fs: FileSystem, task_id: str, blocked: set[str]) -> bool:
    """Whether the archive has a task that a listing saw there. Errors: OSError.

    While this user cannot list the task's directory, the task counts as archived: no other task may take its id.
    blocked: receives that directory, for the warnings.
    """
    closed: set[str] = set()
    found = find_archived(fs, task_id, closed)
    blocked |= closed
    return found is not None or bool(closed)


N = TypeVar("N", TaskName, EndedName)
_ENDS = (State.RETURNED, State.COMPLETED, State.FAILED)
_ENDED = (State.COMPLETED, State.FAILED)
# No node has this name.
SOMEBODY = "?"


@dataclass(slots=True)
class View:
    """The spool as this leader last saw it. Directory → file name → the name's fields.

    pending: the drops that are ours to judge, sorted; blocked: paths that it could not list, empty or move elsewhere.
    """

    pending: list[str] = field(default_factory=list)
    ready: dict[str, dict[str, TaskName]] = field(default_factory=dict)
    claimed: dict[str, dict[str, TaskName]] = field(default_factory=dict)
    returned: dict[str, TaskName] = field(default_factory=dict)
    completed: dict[str, EndedName] = field(default_factory=dict)
    failed: dict[str, EndedName] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    beats: dict[str, BeatName] = field(default_factory=dict)
    standing: dict[str, list[BeatName]] = field(default_factory=dict)
    where: dict[str, Place] = field(default_factory=dict)
    backlog: Backlog = field(init=False)
    archived: Archived = field(default_factory=Archived)
    blocked: set[str] = field(default_factory=set)
    misnamed: Misnamed = field(default_factory=Misnamed)
    members: Members = field(default_factory=Members)
    _found: Found = field(default_factory=Found)

    def __post_init__(self) -> None:
        self.backlog = Backlog(self.parent)

    @property
    def on_the_way(self) -> Mapping[str, Place]:
        """The tokens that left their place, by key, and were not seen since; the ends have not been listed since."""
        return self._found.gone

    def place(self, task_key: str) -> Place | None:
        """Return where a token is that has not been archived; None where that is unknown."""
        entry = self.backlog.get(task_key)
        if entry is None:
            return self.where.get(task_key)
        return waiting_place(entry.lane, entry.file)

    def parent(self, task_id: str) -> Parent:
        """Return the state of a task, or a batch, that others wait for, as far as it is known."""
        if (batch := batch_in(task_id)) is not None:
            return self.members.state(batch)
        task_key = key(task_id)
        place = self.where.get(task_key)
        if place is not None:
            return place.parent
        if task_key in self.backlog:
            return Parent.OPEN
        ended = self.archived.state(task_key)
        return Parent.UNKNOWN if ended is None else parent_in(ended)

    def known(self, task_id: str) -> bool:
        """Whether the id is taken."""
        task_key = key(task_id)
        return task_key in self.where or task_key in self.backlog or task_key in self.archived

    def refresh(self, fs: FileSystem, wanted: Wanted = EVERYTHING) -> Changes:
        """List the wanted directories. Errors: OSError; the next refresh then returns the findings before the error.

        Only leaders move tokens into ready/, and only from there into claimed/, and only from there to an end: so if
        a directory was empty and no token has left the place before it, it need not be listed.
        """
        found, before = self._found, len(self._found.gone)
        if wanted.pending:
            drops = sorted(filter(concerns_us, names_unless_blocked(fs, layout.PENDING)))
            found.changes.any |= drops != self.pending
            self.pending = drops
        if wanted.everything:
            others: list[str] = []
            self._refresh_branches(fs, State.READY, self.ready, list(list_lanes(fs, layout.READY, others)), found)
            self.misnamed.see_branches(State.READY, others)
        elif wanted.ready:
            self._refresh_branches(fs, State.READY, self.ready, list(self.ready), found)
            self._entrust(found)
        if wanted.everything or (found.gone and wanted.ended) or len(found.gone) > before:
            listed = fs.list(layout.CLAIMED)
            workers = list(filter(is_node, listed))
            self._refresh_branches(fs, State.CLAIMED, self.claimed, workers, found)
            self.misnamed.see_branches(State.CLAIMED, [name for name in listed if not is_node(name)])
        if wanted.ended:
            self._refresh_ended(fs, found)
            self._release()
        if wanted.requests:
            requests, others = control.list_control(fs)
            found.changes.any |= requests != self.requests
            self.see_requests(requests)
            self.misnamed.see_requests(others)
        if wanted.beats:
            nodes = heartbeats.list_standing(fs)
            found.changes.any |= nodes.keys() != self.beats.keys()
            self.see_beats(nodes)
        missing = self._missing(found)
        self._found = Found(gone={} if wanted.ended else missing)
        found.changes.missing = list(missing) if wanted.ended else []
        return found.changes

    def _entrust(self, found: Found) -> None:
        """Count tokens that have left ready/ as claimed by an unknown worker, until all is listed and shows which."""
        left = {task_key: place for task_key, place in found.gone.items() if place.state is State.READY}
        for task_key, place in left.items():
            del found.gone[task_key]
            task = parse_task(place.name)
            if task is not None and self.where.get(task_key) == place:
                self.claimed.setdefault(SOMEBODY, {})[place.name] = task
                self.where[task_key] = Place(State.CLAIMED, layout.join(layout.CLAIMED, SOMEBODY), place.name)
                found.changes.any = True

    def _release(self) -> None:
        """A claim that was seen at its end is no longer claimed, though claimed/ was not listed."""
        for names in self.claimed.values():
            places = {name: self.where.get(key(task.id)) for name, task in names.items()}
            for name in [name for name, place in places.items() if place is not None and place.state in _ENDS]:
                del names[name]

    def _missing(self, found: Found) -> dict[str, Place]:
        """Return the tokens that have left their place, and were not seen at another yet."""
        return {task_key: place for task_key, place in found.gone.items() if self.where.get(task_key) == place}

    def _refresh_ended(self, fs: FileSystem, found: Found) -> None:
        self._differ(State.RETURNED, layout.RETURNED, self.returned, _parse_returned, fs.list(layout.RETURNED), found)
        self._differ(State.COMPLETED, layout.COMPLETED, self.completed, parse_ended, fs.list(layout.COMPLETED), found)
        self._unseat(found)
        self._differ(State.FAILED, layout.FAILED, self.failed, parse_ended, fs.list(layout.FAILED), found)

    def _succeeded(self, place: Place) -> bool:
        """Whether a token there has ended for ever: as long as it is there."""
        return place.state is State.COMPLETED and place.name in self.completed

    def _unseat(self, found: Found) -> None:
        """For successes that are gone, as when their server undid the commit, the supposed copy is now the task."""
        gone = {k for k, at in found.gone.items() if at.state is State.COMPLETED and self.where.get(k) == at}
        for task_key, place in self.seen(gone).items():
            self.where[task_key] = place
            found.changes.revived.append(task_key)
            found.changes.undone += 1

    def seen(self, keys: Collection[str]) -> dict[str, Place]:
        """Where the last listings show these tasks before their ends; of two places the later one."""
        return {
            key(task.id): Place(state, directory, name)
            for state, directory, names in (self.moving() if keys else ())
            for name, task in names.items()
            if key(task.id) in keys
        }

    def moving(self) -> Iterator[tuple[State, str, dict[str, TaskName]]]:
        """The last listings of the directories between waiting/ and the ends, as tokens flow: state, path, names."""
        yield from ((State.READY, layout.join(layout.READY, lane), names) for lane, names in self.ready.items())
        yield from ((State.CLAIMED, layout.join(layout.CLAIMED, node), names) for node, names in self.claimed.items())
        yield State.RETURNED, layout.RETURNED, self.returned

    def settle(self, task_id: str, state: State, directory: str, name: str) -> None:
        """Record that the leader itself has moved a token there: the next refresh is to find nothing new."""
        self.where[key(task_id)] = Place(state, directory, name)
        if state is State.FAILED:
            ended = parse_ended(name)
            assert ended is not None
            self.failed[name] = ended

    def stand_ready(self, task: TaskName, name: str, lane: str) -> None:
        """Record that the leader itself has moved a token into a lane of ready/."""
        self.where[key(task.id)] = Place(State.READY, layout.join(layout.READY, lane), name)
        self.ready.setdefault(lane, {})[name] = task

    def stand(self, task_key: str, place: Place) -> None:
        """Record that a token was seen at this place."""
        self.where[task_key] = place

    def unplace(self, task_key: str) -> Place | None:
        """Forget where a token was, as when it waits or is archived; return that place."""
        return self.where.pop(task_key, None)

    def see_requests(self, requests: list[Request]) -> None:
        """Record the requests that stand now."""
        self.requests = requests

    def see_beats(self, nodes: dict[str, list[BeatName]]) -> None:
        """Record the heartbeats that stand now, the highest of each node last."""
        self.standing = nodes
        self.beats = {node: names[-1] for node, names in nodes.items()}

    def forget_place(self, place: Place) -> None:
        """Record that the leader itself has moved a token away from there."""
        branch = place.directory.partition("/")[2]
        if place.state is State.READY:
            self.ready.get(branch, {}).pop(place.name, None)
        elif place.state is State.CLAIMED:
            self.claimed.get(branch, {}).pop(place.name, None)
        elif place.state is State.RETURNED:
            self.returned.pop(place.name, None)
        elif place.state is State.FAILED:
            self.failed.pop(place.name, None)
        elif place.state is State.COMPLETED:
            self.completed.pop(place.name, None)

    def _refresh_branches(
        self,
        fs: FileSystem,
        state: State,
        branches: dict[str, dict[str, TaskName]],
        listed: list[str],
        found: Found,
    ) -> None:
        """List the lanes of ready/, or the workers of claimed/: those that are gone, then those that are there."""
        for branch in sorted(set(branches) - set(listed)):
            self._differ(state, layout.join(state, branch), branches[branch], parse_task, (), found)
            del branches[branch]
            self.blocked.discard(layout.join(state, branch))
        for branch in sorted(listed):
            directory = layout.join(state, branch)
            known = branches.setdefault(branch, {})
            self._differ(state, directory, known, parse_task, names_in(fs, directory, self.blocked, known), found)

    def _differ(
        self,
        state: State,
        directory: str,
        known: dict[str, N],
        parse: Callable[[str], N | None],
        names: Collection[str],
        found: Found,
    ) -> None:
        """Bring `known` to what was listed; note arrivals and departures."""
        new = [name for name in names if name not in known]
        if len(names) - len(new) < len(known):
            there = set(names)
            for name in [name for name in known if name not in there]:
                task_key, left = key(known.pop(name).id), Place(state, directory, name)
                # An earlier attempt that has left its place, too, does not hide that the task has left its own.
                if task_key not in found.gone or self.where.get(task_key) == left:
                    found.gone[task_key] = left
        for name in sorted(new):
            task = parse(name)
            if task is None:
                continue
            known[name] = task
            task_key = key(task.id)
            here, before = Place(state, directory, name), self.where.get(task_key)
            if found.gone.get(task_key) == here:
                del found.gone[task_key]  # a look that failed halfway had missed it, and its server undid the move
            if before is not None and (state, before.state) == (State.READY, State.CLAIMED):
                found.changes.undone += before.name == name
            if before is None or not self._succeeded(before):  # else this is a copy
                self.where[task_key] = here
                if before is not None and before.state in _ENDED and state not in _ENDED:
                    found.changes.revived.append(task_key)
            found.changes.came.append(task_key)
            found.changes.any = True
            if state in _ENDED:
                found.changes.ended.append(task_key)
        self.misnamed.see(state, directory, [name for name in new if name not in known])


def _parse_returned(name: str) -> TaskName | None:
    parsed = parse_returned(name)
    return parsed[0] if parsed else None
