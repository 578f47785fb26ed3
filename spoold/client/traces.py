"""The spans of tasks: of a batch, of single tasks, or of all.

Law: looks and never touches. Each directory is listed once, each task and each record is read once, and so are the
journals. Of tasks that others name (what they wait for, and what submitted them) only the ids of attempts are used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.client.histories import Histories
from spoold.client.info import kind_of, read_content, text_in
from spoold.client.scenes import Read, needs_of, tasks_of
from spoold.client.selecting import Words
from spoold.pictures.scene import Bond
from spoold.pictures.traces.laps import Traced
from spoold.pictures.traces.making import attempt_at, open_laps, spans_of
from spoold.pictures.traces.otlp import ordered
from spoold.pictures.traces.span import Link, Span
from spoold.protocol.errors import NotFound, nearest
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key, order_micros
from spoold.rules.answers.selection import Selection
from spoold.store import locate
from spoold.store.journal import Reader
from spoold.store.locate import Located
from spoold.store.store import Store


@dataclass(frozen=True, slots=True)
class Traces:
    """Spans in the order in which they began; tasks: how many they are of; open: attempts that have not ended."""

    spans: tuple[Span, ...]
    tasks: int
    open: int


def traces_of(store: Store, names: Sequence[str] = (), *, archived: bool = False) -> Traces:
    """Return the spans of these tasks and of the tasks of these batches; of all without a name.

    A name that a task has is that task's. archived: without names, also the tasks in the archive. Errors: NotFound
    for a name of no task and no batch; OSError.
    """
    look = _Look(store)
    found = look.tasks(names, archived=archived)
    spans = [span for traced, needs in found for span in look.spans(traced, needs)]
    return Traces(tuple(ordered(spans)), len(found), sum(open_laps(traced) for traced, _ in found))


_Found = tuple[Traced, tuple[str, ...]]


class _Look:
    """One look at a spool."""

    def __init__(self, store: Store) -> None:
        self._store, self._spool_id = store, store.marker.spool_id
        self._histories = Histories(store)
        self._known: dict[str, Traced | None] = {}
        self._events: dict[str, list[Event]] = {}

    def tasks(self, names: Sequence[str], *, archived: bool) -> list[_Found]:
        """Return the tasks that are meant, each with the ids of those that it comes after."""
        read = self._named(names) if names else list(tasks_of(self._store, Selection(), Words(), archived=archived))
        read = [(one, content) for one, content in read if one.state not in (State.PENDING, State.REJECTED)]
        parents = {key(text_in(content, "parent")) for _, content in read} - {""}
        # Of one task, no line of a journal that does not name it is parsed, unless its parent may run.
        about = read[0][0].id if len(read) == 1 and not parents else ""
        wanted = {key(one.id) for one, _ in read} | parents
        for event in Reader(self._store.fs, about=about, tasks=wanted).read() if read else ():
            if event.task is not None:
                self._events.setdefault(key(event.task), []).append(event)
        found = [(self._traced(one, content), _after(content, one)) for one, content in read]
        self._known = {key(traced.id): traced for traced, _ in found}
        others = {key(other) for traced, needs in found for other in (*needs, traced.parent) if other}
        self._meet(others - self._known.keys())
        return found

    def spans(self, traced: Traced, needs: Iterable[str]) -> list[Span]:
        """Return the spans of one of the tasks."""
        sent = traced.sent
        parent = self._known.get(key(traced.parent)) if traced.parent else None
        above = None if parent is None or sent is None else attempt_at(self._spool_id, parent, sent[0])
        waited = (self._known.get(key(need)) for need in needs)
        ends = [attempt_at(self._spool_id, one, None) for one in waited if one is not None]
        return spans_of(self._spool_id, traced, above, [Link(end, Bond.SUCCESS.value) for end in ends if end])

    def _named(self, names: Sequence[str]) -> list[Read]:
        """The tasks of these names, and for each other name those of the batch."""
        found = locate.locate_many(self._store, names)
        read = [(one, read_content(self._store, one)) for one in found.values()]
        batches = tuple(name for name in dict.fromkeys(names) if name not in found)
        met = Words()
        if batches:
            read += tasks_of(self._store, Selection(batches=batches), met, archived=True)
        for batch in batches:
            if not met.has_batch(batch):
                close = nearest(batch, met.batches)
                advice = f"did you mean {close}?" if close else "`spool ls` shows the tasks there are."
                raise NotFound(f"no task and no batch {batch!r} in this spool. Fix: {advice}")
        return list({one.path: (one, content) for one, content in read}.values())

    def _meet(self, others: Iterable[str]) -> None:
        wanted = list(others)
        for name, located in (locate.locate_many(self._store, wanted) if wanted else {}).items():
            if located.state not in (State.PENDING, State.REJECTED):
                self._known[key(name)] = self._traced(located, read_content(self._store, located))

    def _traced(self, located: Located, content: dict[str, Any]) -> Traced:
        records, _ = self._histories.records(located)
        said: Any = content.get("input")
        return Traced(
            located.id,
            kind_of(content),
            text_in(content, "name"),
            text_in(content, "batch"),
            text_in(content, "parent"),
            content.get("meta"),
            (text_in(said, "model") if isinstance(said, dict) else "") or text_in(content, "model"),
            text_in(content, "created_at"),
            None if located.name is None else order_micros(located.name.order) * 1000,
            located.attempt if located.state is State.CLAIMED else 0,
            tuple(records),
            tuple(self._events.get(key(located.id), ())),
        )


def _after(content: dict[str, Any], located: Located) -> tuple[str, ...]:
    return tuple(need.key for need in needs_of(content, located.path) if need.bond is not Bond.BATCH)
