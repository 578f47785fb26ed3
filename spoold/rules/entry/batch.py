"""A .jsonl drop as tasks: all of its lines, or none of them.

Law: the task of a line depends on the batch's own name and content alone, so that a leader that takes over a
half-expanded batch makes the very same names. Two passes over the text, so that a huge batch is never held as
objects: `Check` judges the whole, `lines` yields one line after the other.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import TaskName, key
from spoold.protocol.order import encode_order, order_micros
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.entry.admission import Outline, Reject, Young, admit, outline, too_large
from spoold.rules.entry.naming import check_names
from spoold.rules.scheduling.graph import Graph

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
