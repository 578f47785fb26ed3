"""What the boxes of a graph and the bars of a timeline say, in words.

Law: plain text of any length and content; each format cuts and escapes it by itself.
"""

from __future__ import annotations

from spoold.pictures.cells import Cell
from spoold.pictures.palette import GLYPHS, ORDER, WORST
from spoold.pictures.scene import Attempt, Task
from spoold.protocol.amount import amount, figure, length


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
