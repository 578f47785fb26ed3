"""The tasks of a batch, or all, as data: a scene, with what each waits for and all its attempts; and their spans.

Law: looks and never touches. Each directory is listed once, each task and each record is read once, and so are the
heartbeats and the journals, however many tasks there are. What cannot be read is left out. Of tasks that others name
(what they wait for, and what submitted them) the spans use only the ids of attempts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any

from spoold.client.read.attempt_logs import list_logs
from spoold.client.read.histories import Histories
from spoold.client.read.selecting import TRIES, Content, Words, candidates, nothing_fits
from spoold.client.read.task_info import kind_of, read_content, reason_of, text_in
from spoold.pictures.picture_data import UNKNOWN, Bond, Need, Scene, Task, telling
from spoold.pictures.traces.span import Link, Span, ordered
from spoold.pictures.traces.task_spans import Traced, attempt_at, open_laps, spans_of
from spoold.pictures.wording import log_text
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, nearest
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import key, order_micros
from spoold.protocol.result import Result, Total
from spoold.protocol.task import Task as Written
from spoold.protocol.timestamps import moment
from spoold.rules.answers.selection import Selection
from spoold.rules.attempts.attempt_costs import Tree, plus, total_of, trees
from spoold.store import task_location
from spoold.store.journal import Reader
from spoold.store.store import Store
from spoold.store.task_location import Located

# So much of the end of a log is read.
TAIL_BYTES = 4000
EVERYTHING = "all tasks"

Read = tuple[Located, dict[str, Any]]


def scene_of(
    store: Store,
    batch: str | None = None,
    *,
    archived: bool = True,
    tails: int = 0,
    among: Iterable[Located] | None = None,
) -> Scene:
    """Return the tasks of a batch, or of the whole spool, with the ends of the logs of so many that failed.

    archived: also those in the archive; among: only these are read, for those who know where the batch is. Errors:
    NotFound where the batch has no task; OSError.
    """
    met = Words()
    selection = Selection(batches=() if batch is None else (batch,))
    found = list(tasks_of(store, selection, met, archived=archived, among=among))
    if batch is not None and not found:
        raise nothing_fits(selection, met)
    histories = Histories(store)
    tasks, spent, parents = list[Task](), list[Total](), dict[str, str]()
    for located, content in found:
        records, counted = histories.records(located)
        spent += filter(None, [total_of([counted]) if counted is not None else None])
        tasks.append(_task(store, located, content, records, counted, histories))
        if above := key(text_in(content, "parent")):
            parents[tasks[-1].key] = above
    tasks = _with_trees(_with_tails(store, tasks, tails), parents)
    tasks += _outside(store, tasks)
    title = EVERYTHING if batch is None else f"batch {batch}"
    return Scene(title, store.clock.wall(), tuple(tasks), reduce(plus, spent) if spent else None)


def tasks_of(
    store: Store, selection: Selection, met: Words, *, archived: bool, among: Iterable[Located] | None = None
) -> Iterator[Read]:
    """Yield the tasks with their content; one that moved while it was read is looked for again."""
    moved: list[str] = []
    places: Iterable[tuple[Located, Content]] = (
        candidates(store, SHOWN, archived=archived)
        if among is None
        else ((located, partial(read_content, store, located)) for located in among)
    )
    for located, content in places:
        read = content()
        if not read and located.state not in (State.PENDING, State.REJECTED) and not located.archived:
            moved.append(located.id)
        elif _fits(selection, read, met):
            yield located, read
    for _ in range(TRIES):
        again, moved = (task_location.locate_many(store, moved), []) if moved else ({}, [])
        for located in again.values():
            read = read_content(store, located)
            if not read:
                moved.append(located.id)
            elif _fits(selection, read, met):
                yield located, read


def _fits(selection: Selection, content: dict[str, Any], met: Words) -> bool:
    batch = text_in(content, "batch")
    met.batches.add(batch)
    return selection.fits("", batch)


def _task(
    store: Store,
    located: Located,
    content: dict[str, Any],
    records: list[Result],
    counted: Result | None,
    histories: Histories,
) -> Task:
    kind = kind_of(content)
    rejected = located.state is State.REJECTED
    return Task(
        # A rejected drop is not the task whose id it wanted.
        key=located.path if rejected else key(located.id),
        id=located.id,
        state=located.state.value,
        type=kind,
        name=text_in(content, "name"),
        needs=() if rejected else needs_of(content, located.path),
        attempts=histories.attempts(located, content, kind, records),
        since=_since(located, content),
        total=total_of(records),
        reason=reason_of(store, located, records[-1] if records else None),
        cause=_cause(store, located, counted),
        archived=located.archived,
    )


def needs_of(content: dict[str, Any], path: str) -> tuple[Need, ...]:
    """What a task waits for, each once; nothing where it is no task."""
    try:
        written = codec.check(Written, content, path)
    except BadFile:
        return ()
    named = (
        (written.dependencies, Bond.SUCCESS),
        (written.after_any, Bond.END),
        (written.after_failed, Bond.FAILURE),
    )
    needs = {key(one): Need(key(one), bond) for ids, bond in named for one in ids}
    if written.after_batch is not None:
        whole = _batch_key(written.after_batch)
        needs[whole] = Need(whole, Bond.BATCH)
    return tuple(needs.values())


def _batch_key(batch: str) -> str:
    return f"batch {key(batch)}"  # no id has a blank


def _since(located: Located, content: dict[str, Any]) -> float | None:
    """When a task was admitted, which its name says while it lives; else when it was submitted."""
    if located.name is not None:
        return order_micros(located.name.order) / 1e6
    return moment(text_in(content, "created_at"))


def _cause(store: Store, located: Located, counted: Result | None) -> tuple[str, str] | None:
    """The code and the message for which a task failed, as `spool status --batch` says them."""
    if located.state is State.REJECTED:
        problem = task_location.problem_in(task_location.reason_of(store, located))
        return "rejected", problem.told(located.id) if problem is not None else ""
    if located.state is not State.FAILED or counted is None or counted.error is None:
        return None
    return str(counted.error.cause or counted.error.code), counted.error.message


Known = dict[str, Located | None]


def states_known(store: Store) -> Known:
    """Return every task by its key, for a caller that asks for the parents of many: one look at the spool in place of
    one for each. Errors: OSError.
    """
    return {key(one.id): one for one in task_location.iter_tasks(store) if one.state is not State.REJECTED}


def parents_seen(store: Store, content: dict[str, Any], path: str, known: Known) -> list[tuple[Bond, str, str]]:
    """Return what a task waits for or waited for, in the order of its file: the bond, the id or the batch, and the
    state of that task; UNKNOWN where the spool has no such task, '' for a batch.

    known: what was looked for already; what is not in it is added. Errors: OSError.
    """
    needs = needs_of(content, path)
    ids = [need.key for need in needs if need.bond is not Bond.BATCH and need.key not in known]
    found = {key(one.id): one for one in task_location.locate_many(store, ids).values()} if ids else {}
    known |= {one: found.get(one) for one in ids}
    seen: list[tuple[Bond, str, str]] = []
    for need in needs:
        located = known.get(need.key)
        if need.bond is Bond.BATCH:
            seen.append((need.bond, text_in(content, Bond.BATCH.value), ""))
        elif located is None or located.state is State.REJECTED:
            seen.append((need.bond, need.key, UNKNOWN))
        else:
            seen.append((need.bond, located.id, located.state.value))
    return seen


def _with_trees(tasks: list[Task], parents: Mapping[str, str]) -> list[Task]:
    """The tasks, of which those with children have what all of these came to. parents: of a task's key, the key."""
    none = Total(attempts=0)
    own = {one.key: one.total or none for one in tasks}
    found = trees({name: Tree(1, one.tokens_used, one.cost_usd) for name, one in own.items()}, parents)
    return [replace(one, tree=found[one.key]) if one.key in found else one for one in tasks]


def _with_tails(store: Store, tasks: list[Task], most: int) -> list[Task]:
    """The tasks, of which the first so many that failed have the end of their last log."""
    failed = telling(task for task in tasks if task.state == State.FAILED)[:most]
    if not failed:
        return tasks
    logs = list_logs(store, [task.id for task in failed], [task.id for task in failed if task.archived])
    last = {key(name.id): path for name, path in logs}
    wrote = {task.key: _tail(store, last[task.key]) for task in failed if task.key in last}
    return [replace(task, wrote=wrote.get(task.key, "")) for task in tasks]


def _tail(store: Store, path: str) -> str:
    try:
        size = store.fs.stat(path).size
        begin = max(0, size - TAIL_BYTES)
        text = log_text(store.fs.read(path, TAIL_BYTES, offset=begin))
    except OSError:
        return ""
    # The first line is most likely cut off.
    return f"…\n{text.partition(chr(10))[2] or text}" if begin else text


def _outside(store: Store, tasks: Iterable[Task]) -> list[Task]:
    """What the tasks wait for and is not among them, with the state of each task that the spool has."""
    known = {task.key for task in tasks}
    needed = {need.key: need.bond for task in tasks for need in task.needs if need.key not in known}
    ids = [name for name, bond in needed.items() if bond is not Bond.BATCH]
    found = {key(located.id): located for located in task_location.locate_many(store, ids).values()} if ids else {}
    made = []
    for name in needed:
        located = found.get(name)
        state = UNKNOWN if located is None or located.state is State.REJECTED else located.state.value
        made.append(Task(name, name if located is None else located.id, state, outside=True))
    return made


# The spans of tasks: of a batch, of single tasks, or of all.


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
        found = task_location.locate_many(self._store, names)
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
        for name, located in (task_location.locate_many(self._store, wanted) if wanted else {}).items():
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
