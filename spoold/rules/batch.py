"""A .jsonl drop as tasks: all of its lines, or none of them.

Law: what a line becomes depends on the batch's own name and content alone, so that a leader that takes over a
half-expanded batch comes to the very same names. Two passes over the text, so that a huge batch is never held as
objects: `Check` judges the whole, `lines` gives one line after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.order import encode_order, order_micros
from spoold.protocol.settings import Settings
from spoold.rules.admission import Admit, Reject, Young, admit
from spoold.rules.graph import Graph

NEWLINE = b"\n"
EACH = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One task of a batch: its number from 1, what it becomes, and the bytes of its task file."""

    number: int
    admit: Admit
    data: bytes


@dataclass(frozen=True, slots=True)
class Accepted:
    """The batch is sound: how many tasks, and which ids they name themselves (key → line)."""

    count: int
    named: dict[str, int]


def lines(data: bytes, file: str, order: str, prefix: str, settings: Settings) -> Iterator[Line]:
    """The tasks of a batch. Errors: BadFile that names the line."""
    micros, epoch = order_micros(order), int(order.partition("-")[2], 36)
    for number, raw in enumerate(_split(data), 1):
        text = raw.strip()
        if not text:
            continue
        where = f"{file} line {number}"
        task = codec.load_task(text, where)
        mine = encode_order(micros + number, epoch)
        yield Line(number, admit(task, mine, f"{prefix}-{number}", settings, where), text)


def _split(data: bytes) -> Iterator[bytes]:
    """The lines one by one, since all of them at once would be as much again as a huge batch."""
    start = len(codec.BOM) if data.startswith(codec.BOM) else 0
    while (end := data.find(NEWLINE, start)) >= 0:
        yield data[start:end]
        start = end + 1
    yield data[start:]


class Check:
    """The verdict on a whole batch, some lines at a time: a million of them must not hold up all else.

    Every line has to be valid, no id may stand there twice, and the tasks must not wait for each other in a circle.
    """

    def __init__(self, data: bytes, file: str, order: str, prefix: str, settings: Settings) -> None:
        self._data = data
        self._file = file
        self._lines = lines(data, file, order, prefix, settings)
        self._named: dict[str, int] = {}
        self._graph = Graph()
        self.count = 0  # of the lines that were read

    def go_on(self, most: int) -> Accepted | Reject | Young | None:
        """Judge the next lines, at most so many; None while there may be more."""
        if not self.count and not self._data.removeprefix(codec.BOM).strip():
            return Young(BadFile(self._file, "", "is empty.", "write one task {…} a line, then drop it again."))
        before = self.count
        try:
            for line in islice(self._lines, most):
                self._judge(line)
        except BadFile as error:
            # Behind a final newline there is an empty line, so only a line that was not ended can be the last here.
            cut = error.file.endswith(f" line {self._data.count(NEWLINE) + 1}")
            return Young(error) if cut else Reject(error)
        return None if self.count - before == most else Accepted(self.count, self._named)

    def _judge(self, line: Line) -> None:
        self.count += 1
        task = line.admit.task
        if task.id is not None:
            _once(self._named, line, self._file)
        parents = (*task.dependencies, *task.after_any)
        if parents:
            _acyclic(self._graph, line, [key(p) for p in parents], self._file)


def check(data: bytes, file: str, order: str, prefix: str, settings: Settings) -> Accepted | Reject | Young:
    """The verdict on a whole batch, all at once."""
    judging = Check(data, file, order, prefix, settings)
    while (verdict := judging.go_on(EACH)) is None:
        pass
    return verdict


def _once(named: dict[str, int], line: Line, file: str) -> None:
    task_key = key(line.admit.name.id)
    if task_key in named:
        problem = f"{line.admit.name.id!r} stands in line {named[task_key]} already."
        raise BadFile(f"{file} line {line.number}", "id", problem, "give every task of the batch an id of its own.")
    named[task_key] = line.number


def _acyclic(graph: Graph, line: Line, parents: list[str], file: str) -> None:
    task_key = key(line.admit.name.id)
    graph.add(task_key, parents)
    cycle = graph.cycle(task_key)
    if cycle:
        problem = f"the tasks wait for each other: {' → '.join([*cycle, cycle[0]])}."
        raise BadFile(f"{file} line {line.number}", "dependencies", problem, "take one dependency out of the cycle.")
