"""The gate of locks: what a task locks, to write or to read, and who holds that.

It stands apart from `lock_holders`, since a command that only shows or reserves locks builds no model of a task.

Law: a task starts only if it gets all its locks at once: a task that waits holds nothing, so there is no deadlock. It
waits for holders that conflict with it, and for those before it in line that do.
"""

from __future__ import annotations

from spoold.protocol.amount import amount, figure
from spoold.protocol.names import parse_task
from spoold.protocol.task import Task
from spoold.rules.gates.facts import Conditions, Facts, Held, Known
from spoold.rules.gates.gate import PASS, TaskGate, Verdict, Wait, Wake
from spoold.rules.gates.lock_holders import Book, Demand, Keeper

NAME = "locks"


def demand_of(task: Task) -> Demand | None:
    """What the task locks; None if it locks nothing."""
    return Demand(task.locks.write, task.locks.read, task.parent is not None) or None


def judge(conditions: Conditions, facts: Facts) -> Verdict:
    """Hold the task while another holds, or waits longer for, something that conflicts with it."""
    demand, book = conditions.asks(NAME), facts.more.get(NAME)
    if not isinstance(demand, Demand) or not isinstance(book, Book) or not facts.file:
        return PASS
    keeper = book.keeper(facts.key, book.place(facts.file), demand)
    return PASS if keeper is None else Wait(NAME, told(demand, keeper, book), behind=keeper.key)


def told(demand: Demand, keeper: Keeper, book: Book) -> str:
    """In words: for which lock a task waits, and who keeps it back."""
    kind = "write" if keeper.mine in demand.write else "read"
    waiter = book.line.get(keeper.key)
    name = None if waiter is None else parse_task(waiter.turn[1])
    who = book.told.get(keeper.key, f"task {keeper.key if name is None else name.id}")
    waits = f"it waits for the lock {kind} {keeper.mine}"
    if not keeper.theirs:
        return f"{waits}; {who} may hold it: its file was not read yet"
    verb = "is held" if keeper.holds else "is waited for longer"
    same = "which" if keeper.theirs == keeper.mine else f"and {keeper.theirs}"
    return f"{waits}, {same} {verb} by {who}"


def _change(held: Held, wait: Wait, about: tuple[str, ...]) -> str:
    if wait.behind in held.above:
        text = f"never, if {wait.behind}, which is above it and waits for tasks below, waits for this one: cancel it"
        return f"{text} and submit it with fewer locks, or let {wait.behind} not lock what tasks below it lock"
    # The reason names the task; here is only its key, which is in lower case.
    reserved = wait.behind.startswith("+")
    end = f"{wait.behind.removeprefix('+')} has ended or is released" if reserved else "that task has ended"
    return f"it goes on when {end}; `spool locks` shows who holds and who waits"


def _detail(held: Held, wait: Wait) -> str:
    """How many stand in line."""
    book, demand = held.type.more.get(NAME), held.conditions.asks(NAME)
    if not isinstance(book, Book) or not book.waiting:
        return ""
    if not isinstance(demand, Demand) or not held.file:
        return f"{amount(book.waiting, 'task')} in line"
    before = book.before(held.file, held.lane, demand, held.in_line)
    which = f"at most {figure(before)} of them" if before else "none of them"
    return f"{amount(book.waiting, 'task')} in line, {which} before it"


def _gather(known: Known) -> Book | None:
    return known.more.get(NAME)


def _group(conditions: Conditions, facts: Facts) -> Demand | None:
    demand = conditions.asks(NAME)
    return demand if isinstance(demand, Demand) else None


def _book(conditions: Conditions, facts: Facts) -> None:
    """A task that goes to ready/ holds its locks from then on."""
    demand, book = conditions.asks(NAME), facts.more.get(NAME)
    if isinstance(demand, Demand) and isinstance(book, Book):
        book.hold(facts.key, demand)


def _unbook(conditions: Conditions, facts: Facts) -> None:
    """A task that makes way holds none any more."""
    book = facts.more.get(NAME)
    if isinstance(conditions.asks(NAME), Demand) and isinstance(book, Book):
        book.let_go(facts.key)


def _holds(conditions: Conditions, facts: Facts, other: Conditions, about: Facts) -> bool:
    """Whether their locks conflict."""
    demand, theirs = conditions.asks(NAME), other.asks(NAME)
    return isinstance(demand, Demand) and isinstance(theirs, Demand) and demand.clash(theirs) is not None


GATE = TaskGate(
    NAME,
    "no task that conflicts with its locks is ready, claimed or before it in line",
    frozenset({Wake.STEP}),
    _change,
    judge,
    detail=_detail,
    asks=demand_of,
    gather=_gather,
    group=_group,
    book=_book,
    unbook=_unbook,
    holds=_holds,
)
