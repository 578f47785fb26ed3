"""A drop as a task, as all tasks of a batch, as a rejection, or not yet.

Law: a half-copied file is not bad, only young. A drop that can never become good (a link, a pipe, a directory, a file
over the limit, JSON that is complete and wrong) is rejected at once; one that may still be growing gets the drop
grace since its last change. Nothing is ever judged by its clock.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from spoold.protocol import codec
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.names import TaskName, base36, encode_order, first_stem, key, order_micros, slug
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.attempts.task_policy import rank
from spoold.rules.entry.references import check_names
from spoold.rules.gates.budget_usage import needs_reading
from spoold.rules.gates.dependency_gates import Graph

_SHORT = re.compile(r"[A-Z0-9_]{1,6}~[A-Z0-9]{1,2}(?:\.[A-Z0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Outline:
    """The part of a task that its lane and name state, beside its id and its age, and its batch. Equal ones are one
    object.
    """

    lane: str
    rank: int
    failures: int
    conditional: bool
    batch: str | None = None

    def name(self, order: str, task_id: str) -> TaskName:
        """The name of a task with this outline."""
        return TaskName(self.rank, order, task_id, failures=self.failures, conditional=self.conditional)


_outline = lru_cache(maxsize=4096)(Outline)


@dataclass(frozen=True, slots=True)
class Admit:
    """The drop is a task: its name and lane, and its content."""

    name: TaskName
    lane: str
    task: Task


@dataclass(frozen=True, slots=True)
class Reject:
    """The drop is not a task: why, and the fix."""

    error: BadFile


@dataclass(frozen=True, slots=True)
class Young:
    """The drop may still be on its way: look again later."""

    error: BadFile


@dataclass(frozen=True, slots=True)
class Known:
    """The very same task is here already: the drop is a no-op."""

    id: str


Judgement = Admit | Reject | Young | Known


def judge_kind(drop: str, kind: str, size: int, settings: Settings) -> Reject | Young | None:
    """The verdict before the drop is opened, by its kind: file, dir, symlink or other; size in bytes.

    A file of another name may be about to get its own: `sed -i` and editors write first, then rename.
    """
    what = {"dir": "a directory", "symlink": "a symbolic link", "other": "a pipe, socket or device"}.get(kind)
    if what:
        return Reject(
            BadFile(drop, "", f"is {what}.", "copy a regular file into pending/ instead; links are never followed.")
        )
    low = drop.lower()
    if _SHORT.fullmatch(drop) is not None:
        return Reject(
            BadFile(
                drop,
                "",
                "is a short name, made up by an SMB server for one that Windows cannot hold (con.json, a:b.json).",
                "give the file a plain name, such as task.json, on the server or where it was dropped.",
            )
        )
    if not low.endswith((".json", ".jsonl")):
        return Young(
            BadFile(drop, "", "is neither .json nor .jsonl.", "name one task NAME.json, many tasks NAME.jsonl.")
        )
    key, limit = ("max_bytes", settings.drop.max_bytes)
    if low.endswith(".jsonl"):
        key, limit = ("max_batch_bytes", settings.drop.max_batch_bytes)
    return Reject(too_large(drop, size, key, limit)) if size > limit else None


def too_large(file: str, size: int | None, key: str, limit: int) -> BadFile:
    """The error of a drop, or a line of one, with more bytes than the setting `key` allows. size: None if they were
    not all counted.
    """
    problem = f"has more than {amount(limit, 'byte')}, which is the limit."
    if size is not None:
        problem = f"has {amount(size, 'byte')}, over the limit of {limit:,}."
    mend = f"put large data beside the spool and its path into the task, or raise [drop] {key} in spool.toml."
    return BadFile(file, "", problem, mend)


def settle(drop: str, micros: int, epoch: int) -> tuple[str, str]:
    """The order and the id (or prefix) of a drop that names none: its stem and a suffix that no other drop gets.

    The suffix is a hash of the order, which this leader gives only once, so the same file may be dropped twice.
    """
    order = encode_order(micros, epoch)
    stem = first_stem(drop.rsplit(".", 1)[0].removesuffix(".whole"))
    digest = int.from_bytes(
        hashlib.blake2b(f"{order}/{drop}".encode(errors="surrogateescape"), digest_size=5).digest()
    )
    return order, f"{slug(stem, 90)}-{base36(digest, 8)}"


def judge_content(drop: str, data: bytes, order: str, made_id: str, settings: Settings) -> Judgement:
    """The verdict on a .json drop that has been read."""
    try:
        value = codec.load(data, drop)
    except BadFile as error:
        return Young(codec.several(error, data, drop))
    try:
        codec.sure(data, value, drop)
        task = codec.check(Task, codec.as_object(value, drop, codec.ONE_TASK), drop)
        check_names(task, settings, drop)
        return admit(task, order, made_id, settings, drop)
    except BadFile as error:
        return Reject(error)


def admit(task: Task, order: str, made_id: str, settings: Settings, file: str) -> Admit:
    """A valid task with its name and lane. Errors: BadFile if its requirements cannot be spelled as a lane."""
    shape = outline(task, settings, file)
    return Admit(shape.name(order, task.id or made_id), shape.lane, task)


def outline(task: Task, settings: Settings, file: str) -> Outline:
    """The outline of a valid task. Errors: BadFile if its requirements cannot be spelled as a lane, or if it is too
    deep below other tasks.
    """
    if task.level > settings.children.max_depth:
        raise too_deep(file, task.level, settings.children.max_depth)
    try:
        needs, batch = needs_reading(task, settings), task.batch
        return _outline(task.lane_name, rank(task, settings), task.retry_count, needs, batch)
    except BadName as error:
        raise BadFile(file, "requires", f"{error}.", "use fewer and shorter labels, and plain names.") from error


def too_deep(file: str, depth: int, most: int) -> BadFile:
    """The rejection of a task with too many tasks above it."""
    problem = f"{depth} is too deep: at most {amount(most, 'generation')} of children may be below a task."
    mend = "let a task further up submit it, or raise [children] max_depth in spool.toml."
    return BadFile(file, "depth", problem, mend)


def too_many(file: str, parent: str, most: int) -> BadFile:
    """The rejection of a child of a parent that has as many children as it may have."""
    problem = f"{parent!r} has {amount(most, 'child', 'children')} already, which is the limit."
    mend = "put more work into each child, let children submit more, or raise [children] max_per_task in spool.toml."
    return BadFile(file, "parent", problem, mend)


def judge_duplicate(drop: str, task_id: str, *, same: bool) -> Known | Reject:
    """A drop whose id is taken: a no-op if the content is the same, else a rejection that says so."""
    return Known(task_id) if same else Reject(taken(drop, task_id))


def taken(drop: str, task_id: str) -> BadFile:
    """The rejection of a drop whose id belongs to a task with other content."""
    problem = f"{task_id!r} is taken by a task with other content (ids that differ by case alone count as one)."
    return BadFile(drop, "id", problem, "choose another id, or leave it out and one is made.")


# A .jsonl drop as tasks: all of its lines, or none of them.
# Law: the task of a line depends on the batch's own name and content alone, so that a leader that takes over a
# half-expanded batch makes the very same names. Two passes over the text, so that a huge batch is never held as
# objects: `Check` judges the whole, `lines` yields one line after the other.


NEWLINE = b"\n"
# The bytes that bytes.strip() keeps.
_SOLID = re.compile(rb"[^ \t\n\r\v\f]")
EACH = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One task of a batch: its number from 1, its name and lane, the bytes of its file.

    task: its content; None for a task without conditions in a batch that was judged before, since it is not needed.
    batch: the batch that its content names.
    """

    number: int
    name: TaskName
    lane: str
    task: Task | None
    data: bytes
    batch: str | None = None


@dataclass(frozen=True, slots=True)
class Accepted:
    """The batch is sound. named: the keys of the ids that it names itself → line.

    ids and outlines: of each task, in the order of the file; None for a task without id. digest: of the bytes.
    born: of each child the key of its id (or its line), its parent, and its depth.
    """

    named: dict[str, int]
    ids: list[str | None]
    outlines: list[Outline]
    digest: bytes
    born: list[tuple[str, str, int]] = field(default_factory=list)


def lines(
    data: bytes,
    file: str,
    order: str,
    prefix: str,
    settings: Settings,
    sound: Accepted | None = None,
    done: int = 0,
    digest: bytes = b"",
) -> Iterator[Line]:
    """The tasks of a batch behind its first `done` bytes. Errors: BadFile that names the line.

    sound: the verdict on the batch. If the file is unchanged since then, nothing is parsed twice without need.
    digest: of the data, where it is known: to make it of a gigabyte takes a second.
    """
    if sound is not None and sound.digest != (digest or _digest(data)):
        sound = None
    micros, epoch = order_micros(order), int(order.partition("-")[2], 36)
    for index, (number, text) in enumerate(_texts(data, done)):
        mine, made_id = encode_order(micros + number, epoch), f"{prefix}-{number}"
        if sound is not None and not sound.outlines[index].conditional:
            shape = sound.outlines[index]
            yield Line(number, shape.name(mine, sound.ids[index] or made_id), shape.lane, None, text, shape.batch)
        else:
            where = f"{file} line {number}"
            admitted = admit(codec.load_task(text, where), mine, made_id, settings, where)
            yield Line(number, admitted.name, admitted.lane, admitted.task, text, admitted.task.batch)


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _texts(data: bytes, done: int) -> Iterator[tuple[int, bytes]]:
    """The lines that hold a task, with their numbers. Lines within the first `done` bytes are tasks already. Of
    those, the last one is returned if text was added to it: no task is the beginning of another, so that is an error.
    """
    for number, start, raw in split_lines(data):
        text = raw.strip()
        old = start < done and data[start : min(done, start + len(raw))].strip()
        if text != old:
            yield number, text


def split_lines(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """The lines that are not blank, one by one: number, where it begins, content.

    All at once would take as much memory again as a huge batch. Blank lines are skipped by searches, since a gigabyte
    of them must not hold up a step.
    """
    number, start = 1, len(codec.BOM) if data.startswith(codec.BOM) else 0
    while (solid := _SOLID.search(data, start)) is not None:
        at = solid.start()
        number += data.count(NEWLINE, start, at)
        start = data.rfind(NEWLINE, start, at) + 1 or start
        end = data.find(NEWLINE, at)
        if end < 0:
            yield number, start, data[start:]
            return
        yield number, start, data[start:end]
        number, start = number + 1, end + 1


class Check:
    """The verdict on a whole batch, some lines at a time: a million of them must not hold up other work.

    Every line has to be valid, no id may stand there twice, and the tasks must not wait for each other in a circle.
    """

    def __init__(self, data: bytes, file: str, settings: Settings, done: int = 0, digest: bytes = b"") -> None:
        """done: how many bytes of the file are tasks already; digest: of the data, where it is known."""
        self._data = data
        self._file = file
        self._settings = settings
        self._texts = _texts(data, done)
        self._found = Accepted({}, [], [], digest or _digest(data))
        self._graph = Graph()

    @property
    def count(self) -> int:
        """How many tasks were read."""
        return len(self._found.ids)

    def go_on(self, most: int) -> Accepted | Reject | Young | None:
        """Judge the next tasks, at most `most`; None while there may be more."""
        wanted, text = self.count + most, b""
        try:
            for number, text in islice(self._texts, most):
                self._judge(number, text)
        except BadFile as error:
            # After a final newline there is an empty line, so only a line that was not ended can be the last here.
            # If an NFS client sends a later part first, the missing part reads as zeros.
            cut = error.file.endswith(f" line {self._data.count(NEWLINE) + 1}") or b"\0" in text
            return Young(error) if cut else Reject(error)
        if self.count == wanted:
            return None
        if not self.count:
            return Young(BadFile(self._file, "", "is empty.", "write one task {…} a line, then drop it again."))
        return self._found

    def _judge(self, number: int, text: bytes) -> None:
        where, limit = f"{self._file} line {number}", self._settings.drop.max_bytes
        if len(text) > limit:
            raise too_large(where, len(text), "max_bytes", limit)
        task = codec.load_sent_task(text, where)
        check_names(task, self._settings, where)
        self._found.outlines.append(outline(task, self._settings, where))
        self._found.ids.append(task.id)
        if task.parent is not None:
            self._found.born.append((key(task.id or where), task.parent, task.level))
        if task.id is None:
            return  # and no task can wait for it
        task_key = key(task.id)
        if task_key in self._found.named:
            problem = f"{task.id!r} stands in line {self._found.named[task_key]} already."
            raise BadFile(where, "id", problem, "give every task of the batch an id of its own.")
        self._found.named[task_key] = number
        parents = (*task.dependencies, *task.after_any, *task.after_failed)
        if parents:
            self._connect(task_key, [key(parent) for parent in parents], where)

    def _connect(self, task_key: str, parents: list[str], where: str) -> None:
        self._graph.add(task_key, parents)
        cycle = self._graph.cycle(task_key)
        if cycle:
            problem = f"the tasks wait for each other: {' → '.join([*cycle, cycle[0]])}."
            raise BadFile(where, "dependencies", problem, "take one dependency out of the cycle.")


def check(data: bytes, file: str, settings: Settings) -> Accepted | Reject | Young:
    """The verdict on a whole batch, all at once."""
    judging = Check(data, file, settings)
    verdict = None
    while verdict is None:
        verdict = judging.go_on(EACH)
    return verdict
