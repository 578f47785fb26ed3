"""Tasks that belong together: a task and all below it, with what each of them waits for; and the progress of one
batch.

Law: a child is found by `parent` in its content, which never changes. So a look lists the whole spool, and reads each
task's file once, however often it is looked again. A later look at a batch reads only the tasks and results that are
new. It looks and never touches, but to cancel.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

from spoold.client.read import long_listing
from spoold.client.read.gate_facts import lent_slots
from spoold.client.read.preconditions import refuses_cancel
from spoold.client.read.selecting import Words, candidates, nothing_fits, select
from spoold.client.read.task_info import text_in
from spoold.client.spool.waiting import Estimator, Pace, estimator, read_result, time_left
from spoold.protocol import codec
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import BadFile, SpoolError, WaitTimeout
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import key
from spoold.protocol.result import Result, Total
from spoold.rules.answers.selection import Selection
from spoold.rules.attempts.attempt_costs import Tree, plus, total_of, tree_of
from spoold.rules.gates.facts import OVER, parent_in
from spoold.rules.gates.registry import conditions_of, parents_of
from spoold.store import task_location
from spoold.store.store import Store, stamp
from spoold.store.task_location import Located, locate, locate_many

# A cancelled task has so long (s) to end, with all below it: its processes have a grace, its worker may be dead.
PATIENCE_S = 120.0
ENDED = (State.COMPLETED, State.FAILED, State.SKIPPED, State.REJECTED)


@dataclass(frozen=True, slots=True)
class Branch:
    """A task, with all below it. attempt: as in `spool ls`; reason: why it waits or failed; sent_back: as in `Row`.

    blocked_on: the tasks that have to end before it goes on: those that it comes after, and, while its slot is lent,
    its own children. est_completion: when (RFC 3339) all of it has probably ended; None where nothing tells.
    tokens_used, cost_usd: of its own attempts that ended; None where none tells.
    """

    id: str
    state: str
    type: str
    attempt: int
    worker: str | None
    reason: str
    blocked_on: tuple[str, ...]
    est_completion: str | None
    children: tuple[Branch, ...] = ()
    sent_back: str = ""
    tokens_used: float | None = None
    cost_usd: float | None = None

    @property
    def tree(self) -> Tree:
        """What it and all below it came to."""
        own = Tree(1, self.tokens_used, self.cost_usd)
        return tree_of(own, (child.tree for child in self.children))

    def walk(self) -> Iterator[Branch]:
        """This task, then all below it, depth first."""
        yield self
        for child in self.children:
            yield from child.walk()


@dataclass(frozen=True, slots=True)
class Step:
    """A task of a tree that is next to act, or on which a person has to: see `actionable`."""

    id: str
    state: str
    reason: str


class Families:
    """Who is whose child. What was read once is remembered for the next look."""

    def __init__(self, store: Store, *, archived: bool = False) -> None:
        self._store, self._archived = store, archived
        self._parents: dict[str, str] = {}

    def below(self, roots: Iterable[Located]) -> dict[str, list[Located]]:
        """Return the children of these tasks and of all below them, by the key of their parent. Errors: OSError."""
        children: dict[str, list[Located]] = {}
        moved: list[str] = []
        for located, content in candidates(self._store, SHOWN, archived=self._archived):
            known = self._parents.get(_name(located))
            if known is None:
                read = content()
                if not read and located.state is not State.REJECTED and not located.archived:
                    moved.append(located.id)
                    continue
                known = self._parents[_name(located)] = key(text_in(read, "parent"))
            if known:
                children.setdefault(known, []).append(located)
        # A task that cannot be read has most likely moved since it was listed.
        for located in locate_many(self._store, moved).values() if moved else ():
            above = self._above(located)
            if above:
                children.setdefault(above, []).append(located)
        return _reachable(children, [key(root.id) for root in roots])

    def _above(self, located: Located) -> str:
        """The key of the parent of a task that has moved; '' where it has none, or cannot be read."""
        try:
            data = self._store.fs.read(located.path)
            return key(text_in(codec.load_object(data, located.path), "parent"))
        except (OSError, BadFile):
            return ""


def _name(located: Located) -> str:
    # A rejected drop is not the task whose id it wanted.
    return located.path if located.state is State.REJECTED else key(located.id)


def _reachable(children: dict[str, list[Located]], roots: list[str]) -> dict[str, list[Located]]:
    found: dict[str, list[Located]] = {}
    todo = list(roots)
    while todo:
        above = todo.pop()
        # Two drops that name each other as parents are no reason to go round in a circle.
        if above not in found and above in children:
            found[above] = children[above]
            todo += [key(one.id) for one in children[above] if one.state is not State.REJECTED]
    return found


def tree(store: Store, ref: str, *, archived: bool = False) -> Branch:
    """Return a task and all below it. archived: also those in the archive. Errors: NotFound, OSError."""
    root = locate(store, ref)
    below = Families(store, archived=archived).below([root])
    tasks = list({_name(one): one for one in (root, *(one for each in below.values() for one in each))}.values())
    rows = dict(zip(map(_name, tasks), long_listing.describe(store, tasks), strict=True))
    return _Growing(store, below, rows, _awaited(store, tasks), lent_slots(store), estimator(store)).branch(
        root, set()
    )


@dataclass(frozen=True, slots=True)
class _Growing:
    """The facts of one tree."""

    store: Store
    below: dict[str, list[Located]]
    rows: dict[str, long_listing.Row]
    awaited: dict[str, tuple[str, ...]]
    lent: set[tuple[str, int]]
    estimate: Estimator

    def branch(self, located: Located, above: set[str]) -> Branch:
        """above: the keys on the way from the root."""
        row, mine = self.rows[_name(located)], key(located.id)
        under = [] if located.state is State.REJECTED or mine in above else self.below.get(mine, [])
        children = tuple(self.branch(child, above | {mine}) for child in sorted(under, key=lambda one: one.id))
        blocked = self.awaited.get(mine, ())
        if (mine, located.attempt) in self.lent and located.state is State.CLAIMED:
            blocked = tuple(child.id for child in children if child.state not in ENDED)
        made = Branch(row.id, row.state, row.type, row.attempt, row.worker, row.reason, blocked, est_completion=None)
        made = replace(made, sent_back=row.sent_back, tokens_used=row.tokens_used, cost_usd=row.cost_usd)
        left = [(one, self.rows[_name(one)].type) for one in self._all(located, set()) if one.state not in ENDED]
        seconds, _ = self.estimate(left)
        ends = stamp(self.store.clock.wall() + seconds) if seconds is not None and left else None
        return replace(made, children=children, est_completion=ends)

    def _all(self, located: Located, met: set[str]) -> Iterator[Located]:
        if _name(located) in met:
            return
        met.add(_name(located))
        yield located
        for child in self.below.get(key(located.id), []) if located.state is not State.REJECTED else ():
            yield from self._all(child, met)


def _awaited(store: Store, tasks: Iterable[Located]) -> dict[str, tuple[str, ...]]:
    """What waiting tasks come after and has not ended, by key; only files whose names say that they wait are read."""
    wanted: dict[str, tuple[str, ...]] = {}
    for one in tasks:
        if one.state is State.WAITING and one.name is not None and one.name.conditional:
            try:
                task = codec.load_task(store.fs.read(one.path), one.path)
            except (OSError, BadFile):
                continue
            wanted[key(one.id)] = tuple(sorted(set(parents_of(conditions_of(task)))))
    every = {need for each in wanted.values() for need in each}
    found = locate_many(store, every) if every else {}
    states = {need: parent_in(where.state) for need, where in found.items()}
    return {task: tuple(need for need in each if states.get(need) not in OVER) for task, each in wanted.items()}


def actionable(root: Branch) -> list[Step]:
    """Return the tasks of a tree that move it on: those that run or may start, those that wait for something that is
    no task, and those that failed or were rejected, which only a person can try again.
    """
    found = []
    for one in root.walk():
        if one.state in {State.COMPLETED, State.SKIPPED} or one.blocked_on:
            continue
        found.append(Step(one.id, one.state, one.reason))
    return found


def cancel_tree(
    store: Store,
    refs: list[Located],
    ask: Callable[[str], object],
    *,
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> list[str]:
    """Cancel these tasks and all below them, and return the ids of which that was asked, once all of them have ended.

    A task that is being cancelled may submit more, until its processes have ended. So it looks again until all that
    it knew before a look had ended, and the look found nothing new. ask: posts the request for one id.
    Errors: WaitTimeout where some have not ended in time; OSError.
    """
    families, asked, pace = Families(store), dict[str, str](), Pace(store.clock, store.settings.poll)
    until, calm = store.clock.monotonic() + patience_s, False
    while True:
        below = families.below(refs)
        roots = locate_many(store, [one.id for one in refs]).values()
        left = [one for one in (*roots, *(one for each in below.values() for one in each)) if _goes_on(one)]
        for one in left:
            if key(one.id) not in asked:
                ask(one.id)
                asked[key(one.id)] = one.id
                pace.something_happened()
        if not left and calm:
            return list(asked.values())
        calm = not left
        if store.clock.monotonic() >= until:
            names = some([one.id for one in left])
            problem = f"{amount(len(left), 'task')} of the tree did not end within {patience_s:g} s: {names}."
            raise WaitTimeout(f"{problem} All known ones are cancelled; run the command again to find new ones.")
        if left:
            sleep(pace.pause_s())


def _goes_on(one: Located) -> bool:
    return one.state not in ENDED and refuses_cancel(one) is None


# The progress of one batch: its tasks by state, the causes of its failures, and its cost so far.


IDS_NAMED = 5
# An archive of more tasks is not looked through unasked: the file of each would be read.
ARCHIVE_READ = 10_000


@dataclass(frozen=True, slots=True)
class Cause:
    """Tasks that failed for one cause: its code, the message of the first task, the count, the first few ids."""

    code: str
    message: str
    count: int
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Progress:
    """One batch. tasks: count by state; ended: completed, failed or rejected; causes: the most frequent first;
    spent: by all attempts of tasks that ended, None where none has. eta_s: in how many seconds all will have ended at
    the earliest, None if unknown; eta_unknown: the reason, in words. archived: how many of them are in the archive;
    unread: how many tasks the archive has, of any batch, if it was not looked through.
    """

    batch: str
    tasks: dict[str, int]
    total: int
    ended: int
    causes: tuple[Cause, ...]
    spent: Total | None
    eta_s: float | None = None
    eta_unknown: str = ""
    archived: int = 0
    unread: int = 0


class Batch:
    """Watches one batch. Its archived tasks are looked for anew only when one that was there before is missing."""

    def __init__(self, store: Store, batch: str, *, archived: bool = False) -> None:
        """archived: count archived tasks also where the archive has more than ARCHIVE_READ."""
        self._store = store
        self._archived = archived
        self._selection = Selection(batches=(batch,))
        self._met = Words()
        self._results: dict[str, Result] = {}
        self._there: set[str] | None = None
        self._in_archive: list[Located] = []
        self._unread = 0

    def look(self) -> Progress:
        """Return the progress now. Errors: NotFound where the batch has no task; OSError."""
        tasks = dict.fromkeys((state.value for state in SHOWN), 0)
        failed: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        spent: list[Total] = []
        kinds: list[tuple[Located, str]] = []
        found = self._members()
        for located in found:
            kinds.append((located, self._met.admitted.get(key(located.id), ("", ""))[0]))
            tasks[located.state.value] += 1
            result = self._result(located)
            if result is not None:
                spent += filter(None, [total_of([result])])
            if located.state in (State.FAILED, State.REJECTED):
                code, message = self._cause(located, result)
                failed[code].append((message, located.id))
        total = sum(tasks.values())
        if not total:
            raise nothing_fits(self._selection, self._met, archived=not self._unread)
        causes = [
            Cause(code, tasks_[0][0], len(tasks_), tuple(task_id for _, task_id in tasks_[:IDS_NAMED]))
            for code, tasks_ in failed.items()
        ]
        causes.sort(key=lambda cause: (-cause.count, cause.code))
        ended = sum(tasks[state.value] for state in ENDED)
        together = reduce(plus, spent) if spent else None
        left = time_left(self._store, kinds)
        archived = sum(located.archived for located in found)
        more = (*left, archived, self._unread)
        return Progress(self._selection.batches[0], tasks, total, ended, tuple(causes), together, *more)

    def _members(self) -> list[Located]:
        """Return the tasks of the batch, those in the archive last. Errors: OSError."""
        found = list(select(self._store, self._selection, met=self._met))
        there = {key(located.id) for located in found}
        if self._there is None or self._there - there:
            self._look_in_archive()
        self._there = there
        return [*found, *(one for one in self._in_archive if key(one.id) not in there)]

    def _look_in_archive(self) -> None:
        size = 0 if self._archived else sum(1 for _ in task_location.iter_archive(self._store))
        self._unread, self._in_archive = (size if size > ARCHIVE_READ else 0), []
        if not self._unread:
            ended = replace(self._selection, states=tuple(ENDED))
            every = select(self._store, ended, archived=True, met=self._met)
            self._in_archive = [located for located in every if located.archived]

    def _result(self, located: Located) -> Result | None:
        """Return the result that counts; None where there is none, or it cannot be read."""
        if located.result is None:
            return None
        if located.path not in self._results:
            try:
                self._results[located.path] = read_result(self._store, located)
            except (SpoolError, OSError):
                return None
        return self._results[located.path]

    def _cause(self, located: Located, result: Result | None) -> tuple[str, str]:
        if located.state is State.REJECTED:
            problem = task_location.problem_in(task_location.reason_of(self._store, located))
            return "rejected", problem.told(located.id) if problem is not None else ""
        if result is None or result.error is None:
            return "unknown", "its result cannot be read"
        return str(result.error.cause or result.error.code), result.error.message
