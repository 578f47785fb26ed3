"""Finds out which batches are over, while a task waits for one, `after_batch`, or what one shared may be removed.

Law: reads, and moves nothing. Without either it costs nothing. With one, it reads a bounded
number of files in a step: of the tasks that this leader did not admit, and, until a task of the batch is known, of
ended tasks. A batch is not over while a task is unread.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Set
from typing import Any

from spoold.master.state.leader_state import Desk
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.rules.gates.dependency_gates import parent_of
from spoold.rules.gates.facts import Parent
from spoold.rules.scheduling.batch_members import Phase
from spoold.store import existence
from spoold.store.existence import regular
from spoold.store.lanes_and_archive import find_archived, list_archived
from spoold.system.errnos import concerns_one_file

# Files that are read in one step, and how often (s) one that could not be read is tried again.
PER_STEP, AGAIN_S = 200, 1.0
_OPEN = (State.WAITING, State.READY, State.CLAIMED, State.RETURNED)


class Membership:
    """The search for tasks of the batches that are waited for. searched: those of which the tree has no task."""

    def __init__(self) -> None:
        self._search: Iterator[str] | None = None
        self._searched: set[str] = set()
        self._refused: set[str] = set()

    def step(self, desk: Desk) -> int:
        """Read on, and wake the tasks whose batch is over, or open again. Returns how much is left for the next step.

        Errors: OSError.
        """
        members = desk.view.members
        for batch in members.watched():
            if not desk.backlog.graph.has_children(parent_of(batch)):
                members.unwatch(batch)
        if not members.watched():
            self._searched.clear()
            return self._read(desk) if members.pressing else 0
        members.gather(lambda: open_tokens(desk))
        left = self._read(desk) + self._look_for(desk)
        for batch in members.watched():
            with desk.faults.handling("members of batch", batch):
                self._advance(desk, batch)
        return left

    def _advance(self, desk: Desk, batch: str) -> None:
        members, parent = desk.view.members, parent_of(batch)
        before = members.state(batch)
        drops = desk.view.pending if desk.step.listed.pending else None
        phase = members.advance(batch, lambda: desk.backlog.graph.behind(parent), drops, lambda: _standing(desk))
        if members.state(batch) is not before:
            desk.backlog.parent_changed(parent, desk.step.now)
            over = members.state(batch) is Parent.COMPLETED
            if over or before is Parent.COMPLETED:
                desk.journal.note("BATCH_OVER" if over else "BATCH_OPEN", batch=batch)
        if phase is Phase.EMPTY:
            desk.step.doubt()  # the next step lists the drops
        elif phase is Phase.SURE:
            desk.step.change()

    def _read(self, desk: Desk) -> int:
        """Read tasks whose batch is not known; return how many are left that can be read at once."""
        members = desk.view.members
        if self._refused and desk.polling.take("members", AGAIN_S, AGAIN_S):
            self._refused.clear()
        unread = [task_key for task_key in members.unread() if task_key not in self._refused]
        for task_key in unread[:PER_STEP]:
            desk.breathe()
            if not self._read_one(desk, task_key):
                self._refused.add(task_key)
        return max(0, len(unread) - PER_STEP)

    def _read_one(self, desk: Desk, task_key: str) -> bool:
        members, place = desk.view.members, desk.view.place(task_key)
        if place is None:
            if task_key not in desk.missing.keys and not desk.step.unsure:
                path = find_archived(desk.store.fs, task_key)
                if path is not None:
                    self._meet(desk, path)
                members.forget(task_key)
            return False
        try:
            with desk.faults.reading("file", place.path, task_key):
                task = desk.read_task(place.path)
        except BadFile:
            members.forget(task_key)  # the node that moves it next fails it
            return True
        except OSError as error:
            desk.tell(place.path, error, "; a task that waits for a batch waits until it can be read, or has ended")
            return False
        if task is None:
            return False  # it moves just now
        if place.state in _OPEN or place.state is State.PENDING:
            members.see(task_key, task.batch)
        else:
            members.forget(task_key)
            if task.batch is not None:
                members.met(task.batch)
        return True

    def _look_for(self, desk: Desk) -> int:
        """Read ended tasks until one of each strange batch is known; return 1 while there are more to read."""
        members = desk.view.members
        if not set(members.strange()) - self._searched or members.unread():
            return 0
        self._search = self._search or _ended(desk)
        for _ in range(PER_STEP):
            path = next(self._search, None)
            if path is None:
                self._searched.update(members.strange())
                self._search = None
                return 0
            desk.breathe()
            self._meet(desk, path)
            if not set(members.strange()) - self._searched:
                return 0
        return 1

    @staticmethod
    def _meet(desk: Desk, path: str) -> None:
        """Note the batch of an ended task, if it can be read."""
        try:
            with desk.faults.reading("file", path), regular(path):
                data = existence.read(desk.store.fs, path)
                task = None if data is None else codec.load_task(data, path)
        except BadFile:
            return
        except OSError as error:
            if not concerns_one_file(error):
                raise
            return
        if task is not None and task.batch is not None:
            desk.view.members.met(task.batch)


def open_tokens(desk: Desk) -> Iterator[tuple[str, str]]:
    """Yield key and file of each task that has not ended."""
    for task_key, entry in desk.backlog.items():
        yield task_key, entry.file
    for task_key, place in desk.view.where.items():
        if place.state in _OPEN:
            yield task_key, place.name


def _ended(desk: Desk) -> Iterator[str]:
    """Yield the paths of ended tasks, as tokens flow: what is archived meanwhile is met twice rather than not."""
    for directory, names in ((layout.COMPLETED, desk.view.completed), (layout.FAILED, desk.view.failed)):
        yield from [layout.join(directory, name) for name in names]
    for path, _, _ in list_archived(desk.store.fs, blocked=desk.view.blocked):
        yield path


def _standing(desk: Desk) -> Set[Hashable]:
    """Return the drops in the leader's own door that are not tasks yet; a batch changes its name on the way."""
    door = desk.door
    return {*door.half, *door.originals, *((name.order, name.prefix) for name in door.batches)}


def numbers(desk: Desk) -> dict[str, Any]:
    """Return, for people, how many tasks of each batch that is waited for are known to be open, and not read yet."""
    members = desk.view.members
    watched = list(members.counts())
    unread = len(members.unread()) if watched else 0
    return {batch: {"open": count, "unread": unread} for batch, count in watched}
