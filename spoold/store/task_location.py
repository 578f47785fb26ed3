"""Where a task is, for people and programs that know its id: in the tree, or in a drop in pending/ or rejected/.

Law: a task is found by listing, in the order in which tokens flow, so that a token that moves on meanwhile is met
further down. Only a hand-back flows against that order, so a task is called missing only after three misses. The
answer may be out of date at once: it is for showing, never for deciding a move. The file of a stranger is read up to
a bound and never trusted; one that cannot be read is known by its name.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.admission_names import BatchName, OriginalName, parse_batch
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import BadFile, NotFound
from spoold.protocol.lifecycle import SHOWN, State, shown_end
from spoold.protocol.names import (
    EndedName,
    TaskName,
    id_in,
    is_id,
    is_node,
    key,
    key_in,
    parse_ended,
    parse_returned,
    parse_task,
)
from spoold.store import existence
from spoold.store.existence import names_shown
from spoold.store.lanes_and_archive import list_archived, list_lanes, list_tasks
from spoold.store.leader_files import list_standing
from spoold.store.store import Store
from spoold.system.filesystem import FileSystem

PREFIX_MIN = 4
# So many ids are named that begin with a text.
NAMED = 4
PASSES = 3


@dataclass(frozen=True, slots=True)
class Located:
    """One task file. state is one of SHOWN: a returned task waits, an archived one has the state it ended in.

    attempt: the next, running or last start; 0 before admission. node: the worker that holds the task, or its
    decider. name: the fields of the name while the task lives. line: its line in a .jsonl, from 1.
    """

    state: State
    path: str
    id: str
    attempt: int = 0
    node: str = ""
    lane: str = ""
    name: TaskName | None = None
    drop: str = ""
    line: int = 0
    archived: bool = False

    @property
    def result(self) -> str | None:
        """The path of the result that counts; None for a task that has none yet."""
        if self.state not in (State.COMPLETED, State.FAILED, State.SKIPPED):
            return None
        ended = EndedName(self.id, self.attempt, self.node)
        if self.archived:
            return layout.join(layout.bucket(self.id), ended.archived("result"))
        return layout.join(layout.RESULTS, ended.encode())


Look = Callable[[Store], Iterator[Located]]


def iter_tasks(store: Store, states: Collection[State] = SHOWN, *, archived: bool = False) -> Iterator[Located]:
    """Every task in these states, each once, and every rejected drop, in the order of their flow. Errors: OSError.

    Drops that spoold did not name are shown under the id that they hold, else under their file's name. The archive is
    listed only on request.
    """
    seen: set[str] = set()
    for state in SHOWN:
        if state not in states:
            continue
        for found in _LISTERS[state](store):
            # A rejected drop is not the task whose id it wanted: it is known by its own name.
            name = key(found.id) if state is not State.REJECTED else found.path
            if name not in seen:
                seen.add(name)
                yield found
        if archived and state in (State.COMPLETED, State.FAILED, State.SKIPPED):
            yield from (a for a in _archived(store) if a.state is state and key(a.id) not in seen)


def iter_state(store: Store, state: State) -> Iterator[Located]:
    """As `iter_tasks` for one state, without the archive: a token that moves meanwhile may be met in two.

    Errors: OSError.
    """
    return _LISTERS[state](store)


def iter_archive(store: Store) -> Iterator[Located]:
    """Every archived task, under the state it ended in. Errors: OSError."""
    return _archived(store)


def locate(store: Store, ref: str) -> Located:
    """The task with this id, or dropped under this name. Errors: NotFound, which names ids that begin so; OSError.

    The beginning of an id is never enough: after shard-1 was removed, it would be that of shard-11, and a program
    would take the answer for shard-1.
    """
    found, near = _look_for(store, ref)
    if found is not None:
        return found
    if near:
        raise NotFound(f"no task {ref!r} in this spool; {_begin(near)}. Give the whole id.")
    raise _nothing(store, ref)


def complete(store: Store, ref: str) -> Located:
    """As `locate`, or else the only task whose id begins with this text: for a person, who sees the whole id.

    It needs PREFIX_MIN characters. Errors: NotFound; OSError.
    """
    found, near = _look_for(store, ref)
    if found is not None:
        return found
    if near and len(ref) < PREFIX_MIN:
        raise NotFound(
            f"no task {ref!r} in this spool; {_begin(near)}. A prefix needs {PREFIX_MIN} characters: give more of it."
        )
    if len(near) == 1:
        return near[0]
    if near:
        raise NotFound(f"no task {ref!r} in this spool; {_begin(near)}. Give more of it.")
    raise _nothing(store, ref)


def _nothing(store: Store, ref: str) -> NotFound:
    """The error where no id is this one, or begins so: a file of that name may stand where tasks are."""
    from spoold.store.state_counts import said_of

    if found := said_of(store.fs, ref):
        return NotFound(f"no task {ref!r} in this spool, but {found}.")
    return NotFound(f"no task {ref!r} in this spool. `spool ls` shows those there are.")


def _look_for(store: Store, ref: str) -> tuple[Located | None, list[Located]]:
    """The task of this name, and those whose id begins with it; of a short name one at most."""
    short = len(ref) < PREFIX_MIN
    search = _Search({key(ref): ref}, prefix=key(ref) or None, near_max=1 if short else None)
    search.run(store)
    return search.found.get(key(ref)), list(search.near.values())


def _begin(near: list[Located]) -> str:
    """Which ids begin so. Neither those in the archive nor the lines of batches are looked for, and with a short text
    the search ends at the first, so the number is only the least.
    """
    begin = "begins" if len(near) == 1 else "begin"
    return f"at least {amount(len(near), 'id')} {begin} with it: {some(sorted(one.id for one in near), NAMED)}"


def locate_many(store: Store, refs: Collection[str]) -> dict[str, Located]:
    """The places of those ids that are in the spool: ref → place. Errors: OSError."""
    search = _Search({key(ref): ref for ref in refs})
    search.run(store)
    return {search.wanted[found]: where for found, where in search.found.items()}


@dataclass(slots=True)
class _Search:
    """One search of the tree: wanted keys, tasks found, and tasks whose id has the prefix, near_max at most."""

    wanted: dict[str, str]
    prefix: str | None = None
    near_max: int | None = None
    found: dict[str, Located] = field(default_factory=dict)
    near: dict[str, Located] = field(default_factory=dict)

    @property
    def missing(self) -> dict[str, str]:
        return {k: ref for k, ref in self.wanted.items() if k not in self.found}

    def run(self, store: Store) -> None:
        """List everything, at most PASSES times, and stop as soon as nothing is missing.

        The ended states come first as well: an NFS 3 client may show a name in its old place for seconds, and a
        program that saw the task's end must not hear then that it is not admitted yet.
        """
        looks: list[Look] = [
            _LISTERS[State.COMPLETED],
            _ended(State.FAILED),
            _pending,
            self._batches,
            partial(_waiting, sift=self._sift),
            partial(_in_lanes, state=State.READY, sift=self._sift),
            *(_LISTERS[state] for state in (State.CLAIMED, State.COMPLETED)),
            _ended(State.FAILED),
            self._archive,
            _LISTERS[State.REJECTED],
            self._lines,
        ]
        for look in looks * PASSES:
            for found in look(store):
                self._take(found)
            if not self.missing:
                return

    def _sift(self, files: list[str]) -> list[str]:
        """Return the names of tasks that are looked for. Others are not even taken apart: there may be a million."""
        if len(self.wanted) == 1:
            begin = f".{next(iter(self.wanted)) if self.prefix is None else self.prefix}"
            files = [file for file in files if begin in file.lower()]
        return [file for file in files if (found := key_in(file)) in self.wanted or self._is_near(found)]

    def _is_near(self, task_key: str) -> bool:
        room = self.near_max is None or len(self.near) < self.near_max
        return room and self.prefix is not None and task_key.startswith(self.prefix)

    def _take(self, located: Located) -> None:
        task_key = key(located.id)
        for name in (task_key, key(located.drop)):
            if name and name in self.wanted:
                # When a second drop of an id is rejected, it must not hide the task that has the id.
                if located.state is not State.REJECTED or name not in self.found:
                    self.found[name] = _as_asked(located, name)
                return
        if self._is_near(task_key):
            self.near[task_key] = located

    def _batches(self, store: Store) -> Iterator[Located]:
        """Lines of .jsonl files, dropped or being expanded; read only while something is missing."""
        for path, line, task_id in find_lines(store.fs, self.missing):
            yield Located(State.PENDING, path, task_id, drop=path.rpartition("/")[2], line=line)

    def _lines(self, store: Store) -> Iterator[Located]:
        """Lines of rejected batches: none of them is a task, but a search for one shows the reason."""
        for path, task_id, drop in rejected_lines(store.fs, self.missing):
            yield Located(State.REJECTED, path, task_id, drop=drop)

    def _archive(self, store: Store) -> Iterator[Located]:
        yield from _archived(store, self.missing)


def _as_asked(located: Located, name: str) -> Located:
    """A rejected drop that was asked for by its own name is not the task whose id it wanted: another may be that."""
    by_drop = located.state is State.REJECTED and name != key(located.id)
    return replace(located, id=located.drop) if by_drop else located


def _pending(store: Store) -> Iterator[Located]:
    for drop, task_id in list_drops(store.fs):
        yield Located(State.PENDING, layout.join(layout.PENDING, drop), task_id or drop, drop=drop)
    for found in list_standing(store.fs):
        drop = found.path.rpartition("/")[2]
        if isinstance(found.name, TaskName):
            yield Located(State.PENDING, found.path, found.name.id, drop=drop)
        elif isinstance(found.name, OriginalName):
            task_id = id_inside(store.fs, found.path) or found.name.prefix
            yield Located(State.PENDING, found.path, task_id, drop=drop)


def _in_lanes(store: Store, state: State, sift: Callable[[list[str]], list[str]] = list) -> Iterator[Located]:
    """Tasks in lanes; sift: which of the names to return."""
    for lane in list_lanes(store.fs, state):
        for file in sift(names_shown(store.fs, layout.join(state, lane))):
            name = parse_task(file)
            if name is not None:
                yield _living(state, layout.join(state, lane, file), name, lane=lane)


def _waiting(store: Store, sift: Callable[[list[str]], list[str]] = list) -> Iterator[Located]:
    yield from _in_lanes(store, State.WAITING, sift)
    for file in store.fs.list(layout.RETURNED):
        parsed = parse_returned(file)
        if parsed is not None:
            yield _living(State.WAITING, layout.join(layout.RETURNED, file), parsed[0], node=parsed[1])


def _claimed(store: Store) -> Iterator[Located]:
    for worker in filter(is_node, store.fs.list(layout.CLAIMED)):
        for file, name in list_tasks(store.fs, layout.join(layout.CLAIMED, worker), set()).items():
            yield _living(State.CLAIMED, layout.claimed(worker, file), name, node=worker)


def _living(state: State, path: str, name: TaskName, *, node: str = "", lane: str = "") -> Located:
    return Located(state, path, name.id, name.attempt, node, lane, name)


def _ended(state: State) -> Callable[[Store], Iterator[Located]]:
    def look(store: Store) -> Iterator[Located]:
        for file in store.fs.list(state):
            name = parse_ended(file)
            if name is not None:
                shown = shown_end(state, skipped=name.skipped)
                yield Located(shown, layout.join(state, file), name.id, name.attempt, name.decider)

    return look


def _archived(store: Store, ids: Iterable[str] | None = None) -> Iterator[Located]:
    for path, name, kind in list_archived(store.fs, ids):
        state = shown_end(State(kind), skipped=name.skipped)
        yield Located(state, path, name.id, name.attempt, name.decider, archived=True)


def _rejected(store: Store) -> Iterator[Located]:
    for path, task_id, drop in chain(list_reasons(store.fs), list_unexplained(store.fs)):
        yield Located(State.REJECTED, path, task_id, drop=drop)


def reason_of(store: Store, located: Located) -> dict[str, Any]:
    """The leader's reason beside a rejected drop; empty if it cannot be read."""
    return read_reason(store.fs, located.path)


_LISTERS: dict[State, Look] = {
    State.PENDING: _pending,
    State.WAITING: _waiting,
    State.READY: partial(_in_lanes, state=State.READY),
    State.CLAIMED: _claimed,
    State.COMPLETED: _ended(State.COMPLETED),
    State.FAILED: lambda store: (one for one in _ended(State.FAILED)(store) if one.state is State.FAILED),
    State.SKIPPED: lambda store: (one for one in _ended(State.FAILED)(store) if one.state is State.SKIPPED),
    State.REJECTED: _rejected,
}


# Drops as people look for them: the files in pending/ and rejected/, and the ids that they name.


SMALL_BYTES = 256 << 10
IDS_MAX = 1000
BATCH_BYTES = 64 << 20
READS_MAX = 2000


def list_drops(fs: FileSystem) -> Iterator[tuple[str, str | None]]:
    """Every drop in pending/, oldest name first, with the id that it names. Errors: OSError from listing.

    Files not named by spoold are opened for their id, READS_MAX at most: with more drops, the spool needs a leader.
    """
    reads = 0
    for drop in sorted(fs.list(layout.PENDING)):
        if drop.startswith(".") or not drop.lower().endswith((".json", ".jsonl")):
            continue
        found = id_in(drop)
        if found is None and drop.lower().endswith(".json") and reads < READS_MAX:
            reads += 1
            found = id_inside(fs, layout.join(layout.PENDING, drop))
        yield drop, found


def find_lines(fs: FileSystem, wanted: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """Those of the wanted keys that are lines of a .jsonl in pending/ or in a leader's door: path, line from 1, id.

    Errors: OSError from listing. Files are read up to BATCH_BYTES each, and only if there is a key to look for.
    """
    if wanted:
        for path, number, task_id, _ in list_lines(fs):
            if key(task_id) in wanted:
                yield path, number, task_id


def list_lines(fs: FileSystem) -> Iterator[tuple[str, int, str, bytes]]:
    """The lines with an id of every .jsonl in pending/ or in a leader's door: path, line from 1, id, the line.

    A line of a batch in a door may be a task already. Errors: OSError from listing.
    """
    pending = [
        layout.join(layout.PENDING, name) for name in fs.list(layout.PENDING) if name.lower().endswith(".jsonl")
    ]
    batches = [found.path for found in list_standing(fs) if isinstance(found.name, BatchName)]
    for path in sorted(pending) + sorted(batches):
        batch = parse_batch(path.rpartition("/")[2])
        prefix = batch.prefix if batch is not None else None
        for number, raw in enumerate(_read(fs, path, BATCH_BYTES).split(b"\n"), 1):
            task_id = _id_of_line(raw, f"{prefix}-{number}" if prefix else None)
            if task_id is not None:
                yield path, number, task_id, raw


def list_reasons(fs: FileSystem, known: Collection[str] = ()) -> Iterator[tuple[str, str, str]]:
    """Every rejection: the path of the reason, the id that the drop had (or its name), the drop's name.

    Paths in `known` are passed over. A reason is only opened if the drop's name does not show the id. A reason whose
    drop has not followed it into rejected/ is not a rejection yet. Errors: OSError from listing.
    """
    names = set(fs.list(layout.REJECTED))
    for name in sorted(names):
        path, drop = layout.join(layout.REJECTED, name), name.removesuffix(layout.REASON)
        if not name.endswith(layout.REASON) or drop not in names or path in known:
            continue
        found = id_in(drop)
        if found is not None:
            yield path, found, drop
            continue
        reason = read_reason(fs, path)
        yield path, str(reason.get("id") or reason.get("drop") or drop), str(reason.get("drop") or drop)


def list_unexplained(fs: FileSystem) -> Iterator[tuple[str, str, str]]:
    """Every file in rejected/ without a reason beside it: its path, the id in its name (or its name), its name.

    It is counted as rejected, so a search must find it. Errors: OSError from listing.
    """
    names: set[str] = set()
    for look in range(2):  # a listing may show a drop that came during the listing, and not the reason before it
        now = set(fs.list(layout.REJECTED))
        alone = {n for n in now if not n.endswith(layout.REASON) and f"{n}{layout.REASON}" not in now}
        names = alone & names if look else alone
        if not names:
            return
    for drop in sorted(names):
        yield layout.join(layout.REJECTED, drop), id_in(drop) or drop, drop


def read_reason(fs: FileSystem, path: str) -> dict[str, Any]:
    """The leader's reason beside a rejected drop; empty if that cannot be read, or if path is the drop itself."""
    if not path.endswith(layout.REASON):
        return {}
    try:
        return reason_in(fs, path)
    except OSError:
        return {}


def reason_in(fs: FileSystem, path: str) -> dict[str, Any]:
    """As `read_reason`; empty if it is gone or not a reason. Errors: OSError if it is there and cannot be read."""
    try:
        return codec.load_object(existence.read(fs, path, SMALL_BYTES) or b"", path)
    except BadFile:
        return {}


def ids_in(batch: bytes) -> list[str]:
    """The ids that the lines of a batch name, as far as a search of the text shows them; the first thousand."""
    found = dict.fromkeys(match[1].decode(errors="replace") for match in _ID_FIELD.finditer(batch))
    return [task_id for task_id in found if is_id(task_id)][:IDS_MAX]


def rejected_lines(fs: FileSystem, wanted: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Those of the wanted keys that rejected batches name: the path of the reason, the id, the drop's name.

    Errors: OSError from listing.
    """
    names = set(fs.list(layout.REJECTED)) if wanted else set()
    for name in sorted(names):
        if not name.lower().endswith(f".jsonl{layout.REASON}") or name.removesuffix(layout.REASON) not in names:
            continue
        path = layout.join(layout.REJECTED, name)
        reason = read_reason(fs, path)
        for task_id in lines_in(reason):
            if key(task_id) in wanted:
                yield path, task_id, str(reason.get("drop") or name.removesuffix(layout.REASON))


def lines_in(reason: dict[str, Any]) -> list[str]:
    """The ids of its lines that the reason of a rejected batch names."""
    ids = reason.get("ids")
    return [task_id for task_id in ids if isinstance(task_id, str)] if isinstance(ids, list) else []


def problem_in(reason: dict[str, Any]) -> BadFile | None:
    """The error for which a drop was rejected, from its reason; None if the reason has none."""
    if not reason.get("problem"):
        return None
    file, field, problem, mend = (str(reason.get(name) or "") for name in ("file", "field", "problem", "mend"))
    return BadFile(file, field, problem, mend)


_ID_FIELD = re.compile(rb'"id"\s*:\s*"([^"\\]{1,120})"')


def _id_of_line(raw: bytes, made: str | None) -> str | None:
    """The id of a line. A line without the word `id` is not parsed, since a batch may have a million lines."""
    if not raw.strip():
        return None
    if _ID_FIELD.search(raw) is None:
        return made
    return _id_field(raw) or made


def id_inside(fs: FileSystem, path: str) -> str | None:
    """The id that a single drop names; None if it names none, is large or cannot be read."""
    data = _read(fs, path, SMALL_BYTES)
    return _id_field(data) if _ID_FIELD.search(data) else None


def _id_field(data: bytes) -> str | None:
    try:
        found = codec.load_object(data, "").get("id")
    except BadFile:
        return None
    return found if isinstance(found, str) and is_id(found) else None


def _read(fs: FileSystem, path: str, limit: int) -> bytes:
    try:
        return fs.read(path, limit)
    except OSError:
        return b""
