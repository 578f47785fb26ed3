"""The spool in the last listings, kept up to date by differences.

waiting/ is not polled: only leaders move tokens there, and this leader knows its own moves, so the backlog knows the
waiting tasks. A token that is nowhere any more was moved by another leader or removed by a person: the caller lists
waiting/ again, and only then believes that it is gone.

Law: directories are listed in the order in which tokens flow, so that a token that moves meanwhile is seen twice
rather than not at all; the later place counts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from spoold.master.archived import Archived
from spoold.master.changes import EVERYTHING, Changes, Found, Wanted
from spoold.master.place import Place, waiting_place
from spoold.protocol import layout
from spoold.protocol.drop import concerns_us
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    BeatName,
    EndedName,
    TaskName,
    is_node,
    key,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.protocol.request import Request
from spoold.rules.gates.after_batch import batch_in
from spoold.rules.gates.facts import Parent, parent_in
from spoold.rules.scheduling.backlog import Backlog
from spoold.rules.scheduling.members import Members
from spoold.store import beats, control
from spoold.store.absence import names_in, names_unless_blocked
from spoold.store.lane_moves import list_lanes
from spoold.store.misnamed import Misnamed
from spoold.system.filesystem import FileSystem

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
            nodes = beats.list_standing(fs)
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
