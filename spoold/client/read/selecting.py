"""Selects tasks by their ids, or by state, type and batch.

Law: looks and never touches. A task file is opened only where its name and lane do not answer.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from spoold.client.read.task_info import kind_of, read_content, text_in
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, NotFound, SpoolError, nearest
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import key, key_in
from spoold.rules.answers.selection import Selection, suggestion
from spoold.store import heartbeats, task_location
from spoold.store.lanes_and_archive import list_lanes
from spoold.store.store import Store
from spoold.store.task_location import Located
from spoold.system.filesystem import ReadsTogether

# What callers of this room name beside its functions.
__all__ = [
    "Located",
    "Selection",
    "Words",
    "check_types",
    "each_once",
    "find",
    "find_each",
    "list_batches",
    "list_types",
    "select",
    "select_some",
    "suggestion",
]

# A task that moves on all the time is looked for again so often.
TRIES = 2
# So many unknown ids are checked for being beginnings of others: each check lists the whole spool.
LOOKED_INTO = 3
# So many files of tasks are read at once, where that is possible.
READ_TOGETHER = 1000

Content = Callable[[], dict[str, Any]]


@dataclass(slots=True)
class Words:
    """The types and batches that a look met, to distinguish a misspelt name from one that has no task now."""

    types: set[str] = field(default_factory=set)
    batches: set[str] = field(default_factory=set)
    admitted: dict[str, tuple[str, str]] = field(default_factory=dict)  # type and batch by key, for the next look

    def learn(self, directory: str, files: Mapping[str, bytes]) -> None:
        """Note the types and batches of tasks in a lane, as far as their files, by name, can be understood."""
        for file, data in files.items():
            with suppress(BadFile):
                if content := codec.load_object(data, f"{directory}/{file}"):
                    self.admitted[key_in(file)] = kind_of(content).strip().lower(), text_in(content, "batch")

    def has_batch(self, batch: str) -> bool:
        """Whether a task of the batch was met. Case does not count."""
        return key(batch) in map(key, self.batches)


def select(
    store: Store, selection: Selection, *, archived: bool = False, met: Words | None = None
) -> Iterator[Located]:
    """Yield every task that fits, in the order of `spool ls`; lines of batches that are not admitted yet come last.

    met: receives the types and batches of all tasks that were looked at. Errors: OSError.
    """
    met = Words() if met is None else met
    states = selection.states or SHOWN
    moved = []
    found = candidates(store, states, archived=archived)
    for located, content in _learning(store, found, met) if selection.batches else found:
        fits = _fits(selection, located, content, met)
        if fits is None and not located.archived:
            moved.append(located.id)
        elif fits:
            yield located
    # A task that cannot be read has most likely moved since it was listed, and counts where it is now.
    for _ in range(TRIES):
        again, moved = (task_location.locate_many(store, moved), []) if moved else ({}, [])
        for located in again.values():
            fits = _fits(selection, located, _reading(store, located), met)
            if fits is None:
                moved.append(located.id)
            elif fits and located.state in states:
                yield located


def _learning(
    store: Store, found: Iterator[tuple[Located, Content]], met: Words
) -> Iterator[tuple[Located, Content]]:
    """Yield the same, when the batches of those that wait in lanes are known: their files are read together."""
    while some := list(islice(found, READ_TOGETHER)):
        if isinstance(store.fs, ReadsTogether):
            unread: defaultdict[str, list[str]] = defaultdict(list)
            for located, _ in some:
                if located.lane and key(located.id) not in met.admitted:
                    directory, _, file = located.path.rpartition("/")
                    unread[directory].append(file)
            for directory, files in unread.items():
                with suppress(OSError):  # the lane is gone with its last task
                    met.learn(directory, store.fs.read_together(directory, files))
        yield from some


def _fits(selection: Selection, located: Located, content: Content, met: Words) -> bool | None:
    """Return whether a task fits; None where it cannot be read. A task's content never changes after admission."""
    if not selection.types and not selection.batches:
        return True
    lane = parse_lane(located.lane) if located.lane and not selection.batches else None
    task_key = key(located.id)
    said = (lane.own_type, "") if lane is not None else met.admitted.get(task_key)
    if said is None:
        read = content()
        said = kind_of(read).strip().lower(), text_in(read, "batch")
        if located.state not in (State.PENDING, State.REJECTED):
            if not read:
                return None
            met.admitted[task_key] = said
    kind, batch = said
    met.types.add(kind)
    met.batches.add(batch)
    return selection.fits(kind, batch)


def select_some(store: Store, selection: Selection) -> list[Located]:
    """Return what `select` yields, at least one task.

    Errors: NotFound where none fits; BadFile for a type that is unknown in the spool; OSError.
    """
    met = Words()
    found = list(select(store, selection, met=met))
    check_types(store, selection.types, met.types)
    if not found:
        raise nothing_fits(selection, met)
    return found


def nothing_fits(selection: Selection, met: Words, *, archived: bool | None = None) -> NotFound:
    """Return the error where no task fits, with the batch that may have been meant.

    archived: whether the archive was looked at, too; None where the verb has no --all.
    """
    elsewhere = " With --all, the archive is looked at, too." if archived is False else ""
    wanted = " ".join(selection.words())
    for batch in selection.batches:
        close = nearest(batch, met.batches) if not met.has_batch(batch) else ""
        if close:
            return NotFound(f"no task fits {wanted}. Did you mean --batch {close}?{elsewhere}")
    return NotFound(f"no task fits {wanted}. `spool ls` shows those there are.{elsewhere}")


def find(store: Store, refs: Iterable[str]) -> tuple[list[Located], dict[str, SpoolError]]:
    """Return the tasks of these whole ids, each once, and an error for each other id. Errors: OSError."""
    found, wrong = find_each(store, refs)
    return each_once(found.values()), wrong


def each_once(found: Iterable[Located]) -> list[Located]:
    """Return the tasks, each once, although it was asked for by its id and by its drop's name."""
    return list({f"{one.path}:{one.line}": one for one in found}.values())


def find_each(store: Store, refs: Iterable[str]) -> tuple[dict[str, Located], dict[str, SpoolError]]:
    """As `find`, under the words that were asked. Errors: OSError."""
    wanted = list(dict.fromkeys(refs))
    known = task_location.locate_many(store, wanted)
    found: dict[str, Located] = {}
    wrong: dict[str, SpoolError] = {}
    for ref in wanted:
        try:
            if ref not in known and len(wrong) >= LOOKED_INTO:
                raise NotFound(f"no task {ref!r} in this spool.")
            found[ref] = known.get(ref) or task_location.locate(store, ref)
        except SpoolError as error:
            wrong[ref] = error
    return found, wrong


def list_types(store: Store) -> set[str]:
    """Return the types that lanes, settings and workers name; opens no task file. Errors: OSError."""
    lanes = (parse_lane(name) for state in (State.WAITING, State.READY) for name in list_lanes(store.fs, state))
    types = {lane.own_type for lane in lanes if lane is not None} | set(store.settings.types)
    for beat in heartbeats.read_all(store.fs).values():
        types |= {run.type for run in beat.running}
        if beat.capabilities is not None:
            types |= {*beat.capabilities.types, *beat.capabilities.handlers}
    return types - {""}


def list_batches(store: Store, most: int) -> set[str]:
    """Return the batches of the first `most` tasks, which are read for that. Errors: OSError."""
    return {text_in(content(), "batch") for _, content in islice(candidates(store, SHOWN), most)} - {""}


def check_types(store: Store, types: Collection[str], met: Collection[str]) -> None:
    """Raise BadFile for an unknown type; only before that is every task of the spool read. Errors: OSError.

    met: types of which there are tasks.
    """
    if set(types) <= set(met) or set(types) <= (known := {*met, *list_types(store)}):
        return
    known |= {kind_of(content()).strip().lower() for _, content in candidates(store, SHOWN)} - {""}
    for kind in types:
        if kind not in known:
            raise BadFile(
                "--type", "", f"no task and no worker is of type {kind!r}.", suggestion(kind, sorted(known))
            )


def candidates(
    store: Store, states: Collection[State], *, archived: bool = False
) -> Iterator[tuple[Located, Content]]:
    """Yield every task in these states with its reader; a batch yields its lines, not its file."""
    lines = _lines(store) if State.PENDING in states else {}
    for located in task_location.iter_tasks(store, states, archived=archived):
        if located.state is not State.PENDING or not located.drop.lower().endswith(".jsonl"):
            yield located, _reading(store, located)
    for located, raw in lines.values():
        yield located, _parsing(raw, located.path)


def _lines(store: Store) -> dict[str, tuple[Located, bytes]]:
    """The lines of batches that are no tasks yet, by key."""
    lines = {}
    for path, line, task_id, raw in task_location.list_lines(store.fs):
        located = Located(State.PENDING, path, task_id, drop=path.rpartition("/")[2], line=line)
        lines[key(task_id)] = (located, raw)
    if lines:
        for located in task_location.iter_tasks(store):
            lines.pop(key(located.id), None)
    return lines


def _reading(store: Store, located: Located) -> Content:
    return lambda: read_content(store, located)


def _parsing(raw: bytes, path: str) -> Content:
    def content() -> dict[str, Any]:
        try:
            return codec.load_object(raw, path)
        except BadFile:
            return {}

    return content
