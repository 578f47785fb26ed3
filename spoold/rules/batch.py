"""A .jsonl drop as tasks: all of its lines, or none of them.

Law: what a line becomes depends on the batch's own name and content alone, so that a leader that takes over a
half-expanded batch comes to the very same names. Two passes over the text, so that a huge batch is never held as
objects: `check` judges the whole, `lines` gives one line after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.protocol.order import encode_order, order_micros
from spoold.protocol.settings import Settings
from spoold.rules.admission import Admit, Reject, Young, admit
from spoold.rules.graph import Graph

NEWLINE = b"\n"


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
    for number, raw in enumerate(data.removeprefix(codec.BOM).split(NEWLINE), 1):
        if not raw.strip():
            continue
        where = f"{file} line {number}"
        task = codec.load_task(raw, where)
        mine = encode_order(micros + number, epoch)
        yield Line(number, admit(task, mine, f"{prefix}-{number}", settings, where), raw.strip())


def check(data: bytes, file: str, order: str, prefix: str, settings: Settings) -> Accepted | Reject | Young:
    """The verdict on a whole batch: every line valid, no id twice, no cycle among its own tasks."""
    if not data.removeprefix(codec.BOM).strip():
        return Young(BadFile(file, "", "is empty.", "write one task {…} a line, then drop it again."))
    named: dict[str, int] = {}
    graph = Graph()
    count = 0
    try:
        for line in lines(data, file, order, prefix, settings):
            count += 1
            if line.admit.task.id is not None:
                _once(named, line, file)
            parents = (*line.admit.task.dependencies, *line.admit.task.after_any)
            if parents:
                _acyclic(graph, line, [key(p) for p in parents], file)
    except BadFile as error:
        # Behind a final newline there is an empty line, so only a line that was not ended can be the last here.
        cut = error.file.endswith(f" line {data.count(NEWLINE) + 1}")
        return Young(error) if cut else Reject(error)
    return Accepted(count, named)


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
