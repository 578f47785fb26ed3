"""What the last listings showed, kept up to date by differences.

Directories are listed in the order in which tokens flow, so that a token that moves meanwhile is seen twice rather
than not at all; the later place counts. waiting/ is not polled: only leaders move there, and this one knows its own
moves. A token that is nowhere any more was moved by another leader or removed by a person: the caller lists waiting/
again, and only then believes that it is gone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import (
    BeatName,
    EndedName,
    TaskName,
    key,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.protocol.request import Request
from spoold.rules.gates import Parent
from spoold.store import beats, control
from spoold.store.lanes import list_lanes
from spoold.system.filesystem import FileSystem

N = TypeVar("N", TaskName, EndedName)
_ENDS = (State.RETURNED, State.COMPLETED, State.FAILED)
_PARENT = {State.COMPLETED: Parent.COMPLETED, State.FAILED: Parent.FAILED}


@dataclass(frozen=True, slots=True)
class Place:
    """Where a token is: its state, its directory and its file name."""

    state: State
    directory: str
    name: str

    @property
    def path(self) -> str:
        """The token's path."""
        return f"{self.directory}/{self.name}"


@dataclass(slots=True)
class Changes:
    """What a refresh found: keys that came to a new place, those of them that ended, keys that are nowhere."""

    came: list[str] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    any: bool = False


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which directories a refresh lists. What lies behind a token that has moved on always is."""

    pending: bool = True
    ready: bool = True
    ended: bool = True
    requests: bool = True
    beats: bool = True
    everything: bool = True


EVERYTHING = Wanted()
# No node is called so.
SOMEBODY = "?"


@dataclass(slots=True)
class _Found:
    """A refresh under way."""

    changes: Changes = field(default_factory=Changes)
    gone: dict[str, Place] = field(default_factory=dict)


@dataclass(slots=True)
class View:
    """The spool as this leader last saw it. Directory → file name → the name's fields."""

    pending: list[str] = field(default_factory=list)
    ready: dict[str, dict[str, TaskName]] = field(default_factory=dict)
    claimed: dict[str, dict[str, TaskName]] = field(default_factory=dict)
    returned: dict[str, TaskName] = field(default_factory=dict)
    completed: dict[str, EndedName] = field(default_factory=dict)
    failed: dict[str, EndedName] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    beats: dict[str, BeatName] = field(default_factory=dict)
    where: dict[str, Place] = field(default_factory=dict)
    archived: dict[str, State] = field(default_factory=dict)
    archived_counts: Counter[State] = field(default_factory=Counter)
    _unfinished: _Found | None = None

    def parent(self, task_id: str) -> Parent:
        """What is known of a task that others wait for."""
        task_key = key(task_id)
        place = self.where.get(task_key)
        if place is not None:
            return _PARENT.get(place.state, Parent.OPEN)
        ended = self.archived.get(task_key)
        return Parent.UNKNOWN if ended is None else _PARENT[ended]

    def known(self, task_id: str) -> bool:
        """Whether the id is taken."""
        task_key = key(task_id)
        return task_key in self.where or task_key in self.archived

    def refresh(self, fs: FileSystem, wanted: Wanted = EVERYTHING) -> Changes:
        """List what is wanted. Errors: OSError; what was found until then is told by the next refresh.

        Only leaders move tokens into ready/, and only out of it into claimed/, and only out of that to an end: so
        where nothing was and nothing has left the place before, nothing need be listed.
        """
        found = self._unfinished = self._unfinished or _Found()
        if wanted.pending:
            drops = sorted(fs.list(layout.PENDING))
            found.changes.any |= drops != self.pending
            self.pending = drops
        if wanted.everything:
            self._refresh_branches(fs, State.READY, self.ready, list(list_lanes(fs, layout.READY)), found)
        elif wanted.ready:
            self._refresh_branches(fs, State.READY, self.ready, list(self.ready), found)
            self._entrust(found)
        if wanted.everything or self._missing(found):
            self._refresh_branches(fs, State.CLAIMED, self.claimed, fs.list(layout.CLAIMED), found)
        if wanted.ended or self._missing(found):
            self._refresh_ended(fs, found)
            self._release()
        if wanted.requests:
            requests = control.list_requests(fs)
            found.changes.any |= requests != self.requests
            self.requests = requests
        if wanted.beats:
            nodes = beats.list_beats(fs)
            found.changes.any |= nodes.keys() != self.beats.keys()
            self.beats = nodes
        found.changes.missing = self._missing(found)
        self._unfinished = None
        return found.changes

    def _entrust(self, found: _Found) -> None:
        """What has left ready/ is somebody's, until all is listed and tells whose."""
        for task_key, place in list(found.gone.items()):
            task = parse_task(place.name) if place.state is State.READY else None
            if task is not None and self.where.get(task_key) == place:
                self.claimed.setdefault(SOMEBODY, {})[place.name] = task
                self.where[task_key] = Place(State.CLAIMED, layout.join(layout.CLAIMED, SOMEBODY), place.name)
                found.changes.any = True
            if place.state is State.READY:
                del found.gone[task_key]

    def _release(self) -> None:
        """A claim that was seen at its end is no longer claimed, though claimed/ was not listed."""
        for names in self.claimed.values():
            places = {name: self.where.get(key(task.id)) for name, task in names.items()}
            for name in [name for name, place in places.items() if place is not None and place.state in _ENDS]:
                del names[name]

    def _missing(self, found: _Found) -> list[str]:
        """What has left its place, and was not seen at another yet."""
        return [task_key for task_key, place in found.gone.items() if self.where.get(task_key) == place]

    def _refresh_ended(self, fs: FileSystem, found: _Found) -> None:
        self._differ(State.RETURNED, layout.RETURNED, self.returned, _parse_returned, fs.list(layout.RETURNED), found)
        self._differ(State.COMPLETED, layout.COMPLETED, self.completed, parse_ended, fs.list(layout.COMPLETED), found)
        self._differ(State.FAILED, layout.FAILED, self.failed, parse_ended, fs.list(layout.FAILED), found)

    def settle(self, task_id: str, state: State, directory: str, name: str) -> None:
        """The leader itself has moved a token there: the next refresh is to find nothing new."""
        self.where[key(task_id)] = Place(state, directory, name)
        if state is State.READY:
            task = parse_task(name)
            assert task is not None
            self.ready.setdefault(directory.partition("/")[2], {})[name] = task
        elif state is State.FAILED:
            ended = parse_ended(name)
            assert ended is not None
            self.failed[name] = ended

    def archive(self, task_id: str, state: State) -> None:
        """The task's file is in the archive, as ended in this state."""
        self.unarchive(task_id)
        self.archived[key(task_id)] = state
        self.archived_counts[state] += 1

    def unarchive(self, task_id: str) -> None:
        """The task's file is no longer in the archive, if it was."""
        state = self.archived.pop(key(task_id), None)
        if state is not None:
            self.archived_counts[state] -= 1

    def forget_place(self, place: Place) -> None:
        """The leader itself has moved a token away from there."""
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
        found: _Found,
    ) -> None:
        """The lanes of ready/, or the workers of claimed/: those that are gone, then those that are there."""
        for branch in sorted(set(branches) - set(listed)):
            self._differ(state, layout.join(state, branch), branches[branch], parse_task, (), found)
            del branches[branch]
        for branch in sorted(listed):
            directory = layout.join(state, branch)
            try:
                names = fs.list(directory)
            except FileNotFoundError:
                names = []
            self._differ(state, directory, branches.setdefault(branch, {}), parse_task, names, found)

    def _differ(
        self,
        state: State,
        directory: str,
        known: dict[str, N],
        parse: Callable[[str], N | None],
        names: Iterable[str],
        found: _Found,
    ) -> None:
        """Bring `known` to what was listed; note what came and what went."""
        listed = set(names)
        for name in [name for name in known if name not in listed]:
            found.gone[key(known.pop(name).id)] = Place(state, directory, name)
        for name in sorted(listed - known.keys()):
            task = parse(name)
            if task is None:
                continue
            known[name] = task
            task_key = key(task.id)
            self.where[task_key] = Place(state, directory, name)
            found.changes.came.append(task_key)
            found.changes.any = True
            if state in _PARENT:
                found.changes.ended.append(task_key)


def _parse_returned(name: str) -> TaskName | None:
    parsed = parse_returned(name)
    return parsed[0] if parsed else None
