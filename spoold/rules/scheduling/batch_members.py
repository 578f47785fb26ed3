"""Which tasks that have not ended belong to which batch, as far as a leader knows, and which batches are over.

Names do not say the batch of a task. A leader knows it of the tasks that it admits. Of those that it inherits it
reads the files, and only while a task waits for a batch, or what a batch shared may be removed. A drop that was
there when the last known task ended may hold one more. So a batch is over only after a later listing of the drops,
when each drop of that listing has been judged and has become tasks, and when one more step has shown that the
leader still leads.

Law: a batch is never called over while a task or a drop may be of it. No call costs more than the change it handles.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Set
from dataclasses import dataclass
from enum import IntEnum

from spoold.protocol.names import age_in, key, order_micros
from spoold.rules.gates.facts import Parent

# Batches without an open task that are remembered; of others the leader looks for an ended task.
KNOWN_MAX = 10_000
# Tasks that may be doubted before they are looked up, while no task waits for a batch.
UNREAD_MAX = 1000


class Phase(IntEnum):
    """How sure it is that a batch is over."""

    OPEN = 0
    EMPTY = 1  # no known task is open; drops are to be listed after that
    DROPS = 2  # these drops are still to be judged
    DOOR = 3  # these judged ones are still to become tasks
    SURE = 4  # if the next step shows that the leader still leads
    OVER = 5


@dataclass(slots=True)
class _Watch:
    """One batch that a task waits for. awaited: what is still to be judged, or to become tasks."""

    phase: Phase = Phase.OPEN
    dirty: bool = True
    awaited: frozenset[Hashable] = frozenset()


class Members:
    """The open tasks of each batch, by key. Batches are compared by key, too."""

    def __init__(self) -> None:
        self._batch: dict[str, str] = {}
        self._open: dict[str, set[str]] = {}
        self._known: dict[str, None] = {}
        self._alone: set[str] = set()
        self._unread: dict[str, None] = {}
        self._watched: dict[str, _Watch] = {}
        self._own: tuple[int, int] | None = None
        self._gathered = self._sought = False

    def begin(self, epoch: int, last: int) -> None:
        """The epoch begins. last: the latest order (microseconds) of any task before. Younger ones of this epoch were
        admitted by this leader, which notes their batch.
        """
        self._own = epoch, last

    def see(self, task_key: str, batch: str | None) -> None:
        """Note the batch of a task that has not ended; None for none."""
        if task_key in self._unread:
            del self._unread[task_key]
            self._touch()
            if batch is None:
                self._alone.add(task_key)
        if batch is None:
            return
        batch = key(batch)
        self._batch[task_key] = batch
        self._open.setdefault(batch, set()).add(task_key)
        self.met(batch)
        self._touch(batch)

    def met(self, batch: str) -> None:
        """Note that a task of the batch, open or ended, was seen."""
        batch = key(batch)
        if batch not in self._known:
            self._known[batch] = None
            self._touch(batch)
        while len(self._known) > KNOWN_MAX:
            del self._known[next(iter(self._known))]

    def batch_of(self, task_key: str, file: str) -> tuple[bool, str | None]:
        """Whether it is known of which batch an open task is, and the key of that batch; None for none."""
        batch = self._batch.get(task_key)
        return batch is not None or task_key in self._alone or self._is_own(file), batch

    def has_open(self, batch: str) -> bool:
        """Whether a task of this batch is known that has not ended."""
        return key(batch) in self._open

    def surely_over(self, batch: str, tokens: Callable[[], Iterable[tuple[str, str]]]) -> bool:
        """Whether no task is left that may be of this batch. While the batch of any is not known, none is sure, and
        those are to be read. tokens: as for `gather`.
        """
        self.gather(tokens)
        self._sought = bool(self._unread)
        return not (self._sought or self.has_open(batch))

    def left(self, task_key: str) -> None:
        """Note that a task has ended, or is gone."""
        self._alone.discard(task_key)
        batch = self._batch.pop(task_key, None)
        if batch is not None:
            self._open[batch].discard(task_key)
            if not self._open[batch]:
                del self._open[batch]
            self._touch(batch)

    def doubt(self, task_key: str) -> None:
        """The task may be open, and its batch is to be read."""
        self._alone.discard(task_key)
        if task_key not in self._unread:
            self._unread[task_key] = None
            self._touch()

    def came(self, task_key: str, file: str) -> None:
        """A token was seen under this name: if its batch is not known, and any is waited for, it is to be read."""
        if self._gathered and task_key not in self._batch and task_key not in self._alone and not self._is_own(file):
            self.doubt(task_key)

    def gather(self, tokens: Callable[[], Iterable[tuple[str, str]]]) -> None:
        """Find the tasks whose batch is to be read, once, when a batch is first waited for. tokens: key and file of
        each that has not ended.
        """
        if not self._gathered:
            self._gathered = True
            for task_key, file in tokens():
                self.came(task_key, file)

    def forget(self, task_key: str) -> None:
        """A task that was to be read is nowhere, or its batch does not matter any more."""
        if task_key in self._unread:
            del self._unread[task_key]
            self._touch()
        self.left(task_key)

    def unread(self) -> list[str]:
        """The tasks that are to be read."""
        return list(self._unread)

    @property
    def pressing(self) -> bool:
        """Whether those that are to be read should be, though no task waits for a batch: somebody has asked for all,
        or they are too many.
        """
        return self._sought or len(self._unread) > UNREAD_MAX

    def watch(self, batch: str) -> None:
        """A task waits for this batch."""
        self._watched.setdefault(key(batch), _Watch())

    def unwatch(self, batch: str) -> None:
        """No task waits for it any more."""
        self._watched.pop(batch, None)

    def watched(self) -> list[str]:
        """The batches that tasks wait for."""
        return list(self._watched)

    def strange(self) -> list[str]:
        """Those of them of which no task is known."""
        return [batch for batch in self._watched if batch not in self._known]

    def counts(self) -> Iterator[tuple[str, int]]:
        """Each batch that a task waits for, with the number of its tasks that are known to be open."""
        for batch in sorted(self._watched):
            yield batch, len(self._open.get(batch, ()))

    def state(self, batch: str) -> Parent:
        """What a batch is to the tasks that wait for it."""
        if batch not in self._known:
            return Parent.UNKNOWN
        watch = self._watched.get(batch)
        return Parent.COMPLETED if watch is not None and watch.phase is Phase.OVER else Parent.OPEN

    def advance(
        self,
        batch: str,
        behind: Callable[[], Set[str]],
        drops: Collection[str] | None,
        door: Callable[[], Set[Hashable]],
    ) -> Phase:
        """Go on with a batch that is waited for, once in each step.

        behind: the tasks that wait for the batch themselves, however long the way: they do not hold it open. drops:
        those in pending/, None if this step has not listed them; door: those that are judged, and no tasks yet.
        """
        watch = self._watched[batch]
        if watch.dirty:
            watch.dirty = False
            if not self._ended(batch, behind):
                watch.phase = Phase.OPEN
            elif watch.phase is Phase.OPEN:
                watch.phase = Phase.EMPTY
                return watch.phase
        if watch.phase is Phase.EMPTY and drops is not None:
            watch.phase, watch.awaited = Phase.DROPS, frozenset(drops)
        if watch.phase is Phase.DROPS and drops is not None:
            watch.awaited = watch.awaited.intersection(drops)
            if not watch.awaited:
                watch.phase, watch.awaited = Phase.DOOR, frozenset(door())
        if watch.phase is Phase.DOOR:
            watch.awaited = watch.awaited.intersection(door())
            if not watch.awaited:
                watch.phase = Phase.SURE
        elif watch.phase is Phase.SURE:
            watch.phase = Phase.OVER
        return watch.phase

    def _ended(self, batch: str, behind: Callable[[], Set[str]]) -> bool:
        still = self._open.get(batch)
        if self._unread or batch not in self._known:
            return False
        return not still or still <= behind()

    def _is_own(self, file: str) -> bool:
        """Whether this leader admitted the task, and so has noted its batch."""
        order = age_in(file).partition(".")[0]
        return (
            self._own is not None
            and int(order.partition("-")[2], 36) == self._own[0]
            and (order_micros(order) > self._own[1])
        )

    def _touch(self, batch: str | None = None) -> None:
        """A batch has changed, or all may have. One of which a task came, or ended, is looked at from the beginning,
        also if both happened since the last look: a drop that was there when that one ended may hold one more.
        """
        for watch in self._watched.values() if batch is None else filter(None, [self._watched.get(batch)]):
            watch.dirty = True
            if batch is not None:
                watch.phase = Phase.OPEN
