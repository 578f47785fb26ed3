"""The boxes of a graph, and what boxes and bars say in words.

A box is a task, or a group where there are too many tasks for a picture. Groups are of tasks that are alike, in
steps, until all of it fits: the same type with the same parents and children; the same type at the same depth; the
same type in a stretch of depths; a stretch alone.

Law: every task is in exactly one cell, and a link always leads to a deeper cell, unless tasks wait for each other in
a circle. A group says how many tasks it holds; nothing is left out. Captions are plain text of any length and
content; each format cuts and escapes it by itself.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass

from spoold.pictures.palette import GLYPHS, ORDER, WORST
from spoold.pictures.picture_data import Attempt, Bond, Scene, Task
from spoold.protocol.amount import amount, figure, length

CELLS_MAX = 200
LINKS_MAX = 1000
# Once it has to be folded, it is folded until a person can take it in.
FOLDED_CELLS, FOLDED_LINKS = 80, 240

Edge = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Cell:
    """A box. rank: how deep it is, from 0."""

    tasks: tuple[Task, ...]
    rank: int

    @property
    def states(self) -> Counter[str]:
        """How many of its tasks are in which state."""
        return Counter(task.state for task in self.tasks)

    @property
    def types(self) -> list[str]:
        """The types of its tasks."""
        return sorted({task.type for task in self.tasks})


@dataclass(frozen=True, slots=True)
class Link:
    """The tasks of one cell wait for tasks of another. Cells by their index; count: how many pairs of tasks."""

    source: int
    target: int
    bond: Bond
    count: int


@dataclass(frozen=True, slots=True)
class Graph:
    """The boxes, and what leads from one to another."""

    cells: tuple[Cell, ...]
    links: tuple[Link, ...]

    @property
    def folded(self) -> int:
        """How many tasks are in groups."""
        return sum(len(cell.tasks) for cell in self.cells if len(cell.tasks) > 1)


def graph_of(scene: Scene, cells_max: int = CELLS_MAX, links_max: int = LINKS_MAX) -> Graph:
    """Return the boxes of a scene: a task each, unless there are more than so many, or more links."""
    tasks = scene.tasks
    index = {task.key: number for number, task in enumerate(tasks)}
    bonds: dict[Edge, Bond] = {}
    for number, task in enumerate(tasks):
        for need in task.needs:
            if need.key in index and index[need.key] != number:
                bonds.setdefault((index[need.key], number), need.bond)
    ranks = ranks_of(len(tasks), list(bonds))
    made = _folded(tasks, ranks, bonds, lambda number: number)
    if len(made.cells) <= cells_max and len(made.links) <= links_max:
        return made
    for like in _likeness(tasks, ranks, bonds):
        made = _folded(tasks, ranks, bonds, like)
        if len(made.cells) <= min(cells_max, FOLDED_CELLS) and len(made.links) <= min(links_max, FOLDED_LINKS):
            break
    return made


def ranks_of(count: int, edges: Sequence[Edge]) -> list[int]:
    """Return how deep each of so many nodes is: below all from which an edge leads to it, and no deeper.

    A node without parents is just above its first child. A circle is broken at its first node.
    """
    above, below = _neighbours(count, edges)
    left = [len(parents) for parents in above]
    ranks, done = [0] * count, [False] * count
    free = [number for number in range(count) if not left[number]]
    first = 0
    for _ in range(count):
        if not free:
            while done[first]:
                first += 1
            free.append(first)
        number = free.pop()
        done[number] = True
        for child in below[number]:
            if not done[child]:
                ranks[child] = max(ranks[child], ranks[number] + 1)
                left[child] -= 1
                if not left[child]:
                    free.append(child)
    for number in range(count):
        if not above[number] and below[number]:
            ranks[number] = max(0, min(ranks[child] for child in below[number]) - 1)
    return ranks


def _neighbours(count: int, edges: Sequence[Edge]) -> tuple[list[list[int]], list[list[int]]]:
    above: list[list[int]] = [[] for _ in range(count)]
    below: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        below[source].append(target)
        above[target].append(source)
    return above, below


def _likeness(
    tasks: Sequence[Task], ranks: Sequence[int], bonds: dict[Edge, Bond]
) -> Iterator[Callable[[int], Hashable]]:
    """Yield ways to say which tasks are alike, each coarser than the one before; by the last all are."""
    above, below = _neighbours(len(tasks), list(bonds))

    def twins(number: int) -> Hashable:
        parents = frozenset((parent, bonds[parent, number]) for parent in above[number])
        return _kind(tasks[number]), ranks[number], parents, frozenset(below[number])

    yield twins
    deepest = max(ranks, default=0)
    stretch = 1
    while stretch <= 2 * deepest + 1:
        yield lambda number, size=stretch: (_kind(tasks[number]), ranks[number] // size)  # type: ignore[misc]
        stretch *= 2
    stretch = 1
    while stretch <= 2 * deepest + 1:
        yield lambda number, size=stretch: ranks[number] // size  # type: ignore[misc]
        stretch *= 2


def _kind(task: Task) -> tuple[str, bool]:
    return task.type, task.outside


def _folded(
    tasks: Sequence[Task], ranks: Sequence[int], bonds: dict[Edge, Bond], like: Callable[[int], Hashable]
) -> Graph:
    groups: dict[Hashable, list[int]] = {}
    for number in range(len(tasks)):
        groups.setdefault(like(number), []).append(number)
    depths = sorted({min(ranks[number] for number in group) for group in groups.values()})
    depth = {rank: place for place, rank in enumerate(depths)}
    cells, cell_of = list[Cell](), dict[int, int]()
    for group in groups.values():
        cell_of |= dict.fromkeys(group, len(cells))
        rank = depth[min(ranks[number] for number in group)]
        cells.append(Cell(tuple(tasks[number] for number in group), rank))
    found: dict[Edge, tuple[Bond, int]] = {}
    for (source, target), bond in bonds.items():
        ends = cell_of[source], cell_of[target]
        if ends[0] != ends[1] and (len(cells) == len(tasks) or cells[ends[0]].rank != cells[ends[1]].rank):
            first, count = found.get(ends, (bond, 0))
            found[ends] = first, count + 1
    return Graph(tuple(cells), tuple(Link(*ends, *said) for ends, said in found.items()))


# What the boxes of a graph and the bars of a timeline say, in words.


def state_of(cell: Cell) -> str:
    """Return the state that a cell shows: of a group, that which people must see first."""
    return next(state for state in WORST if cell.states[state])


def shares(cell: Cell) -> str:
    """Return how many tasks of a cell are in which state."""
    return ", ".join(f"{figure(cell.states[state])} {state}" for state in ORDER if cell.states[state])


def signs(cell: Cell) -> str:
    """Return the same in a few letters: the sign of a state and its number."""
    return " ".join(f"{GLYPHS[state]}{figure(cell.states[state])}" for state in ORDER if cell.states[state])


def types(cell: Cell) -> str:
    """Return the types of the tasks of a cell."""
    return ", ".join(kind for kind in cell.types if kind)


def two_lines(cell: Cell) -> tuple[str, str]:
    """Return the two lines of a box in a text that others draw."""
    if len(cell.tasks) > 1:
        return amount(len(cell.tasks), "task"), f"{types(cell)}: {shares(cell)}" if types(cell) else shares(cell)
    task = cell.tasks[0]
    return called(task), " · ".join(part for part in (task.state, task.type) if part)


def called(task: Task) -> str:
    """Return the name of a task, else its id."""
    return task.name or task.id


def about(task: Task) -> str:
    """Return the second line of a box: its type, how often and how long it ran."""
    if task.outside:
        return "all of its tasks" if " " in task.key else f"outside: {task.state}"
    tries = amount(len(task.attempts), "attempt") if len(task.attempts) > 1 else ""
    return " · ".join(part for part in (task.type, tries, lasted(task.ran_s) if task.ran_s else "") if part)


def whole(task: Task) -> str:
    """Return all of a task, for those who point at it."""
    parts = [task.id, task.name, task.state, about(task), task.reason]
    return "; ".join(dict.fromkeys(part for part in parts if part))


def tried(task: Task, attempt: Attempt, seconds: float) -> str:
    """Return all of an attempt. seconds: how long its bar is."""
    more = {
        "on": attempt.worker,
        "code": attempt.code,
        "exit code": "" if attempt.exit_code in (None, 0) else str(attempt.exit_code),
        "tokens": "" if attempt.tokens is None else figure(attempt.tokens),
        "USD": "" if attempt.cost_usd is None else figure(attempt.cost_usd, 4),
        "model": attempt.model,
    }
    said = "; ".join(f"{name} {value}" for name, value in more.items() if value)
    named = f"{task.id} ({task.name})" if task.name else task.id
    return f"{named}, attempt {attempt.number}: {attempt.status}, {lasted(seconds)}; {said}"


def lasted(seconds: float) -> str:
    """Return a length of time, with a decimal where it is short."""
    return length(seconds) if seconds >= 60 else f"{seconds:.1f} s"
