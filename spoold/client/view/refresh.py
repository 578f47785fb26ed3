"""How a view is kept up to date, look by look; and the events of all journals: those of before in the background, new
ones from where the last look ended.

Law: looks and never touches. One look costs no more than the allowance of the view, but for the listing of everything
at the beginning, and for one that is made again since the counts of the view and of the leader differ. Such a listing
is made again the more rarely, the longer it took and the less it changed. Of the past no more than PIECE is held at a
time. The last KEPT events are kept for people.

Touches: threads.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from heapq import nlargest
from itertools import cycle, islice
from sys import intern
from typing import Any, TypeVar

from spoold.client.read.task_info import kind_of, read_content, text_in
from spoold.client.spool.spool_status import status
from spoold.client.spool.standing_requests import with_pauses
from spoold.client.view.cards import Card, Sweep, Table, move_of
from spoold.client.view.rate_limit import LOOKS_BURST, LOOKS_PER_S, Allowance, through
from spoold.protocol import codec, layout, plain_status
from spoold.protocol.amount import length
from spoold.protocol.errors import BadFile, BadName, SpoolError
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import EndedName, SnapshotName, key, parse_events
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.rules.gates.facts import NO_CONDITIONS, Conditions
from spoold.rules.gates.registry import conditions_of
from spoold.store import snapshots, task_location
from spoold.store.journal import Reader, parse_lines
from spoold.store.store import Store
from spoold.store.task_location import Located
from spoold.system.errnos import advice, concerns_one_file
from spoold.system.host import Host

T = TypeVar("T")
# Between two looks, where files are local and on a share (s).
LOOK_S, LOOK_SHARE_S = 1.0, 2.0
# Journals of nodes that are not known to live are looked at so often (s).
ALL_JOURNALS_S = 30.0
# A look that takes so long (s) is told: a share may not answer at all.
SILENT_S = 10.0
_AT_ONCE = 500


class Following:
    """What a view knows, and its looks. version rises with each change; as_of: when (s since 1970) a look succeeded
    last; complete: whether everything was listed once.
    """

    def __init__(self, store: Store, host: Host) -> None:
        self._clock = store.clock
        self._store, self._mount = through(store)
        self._allowance = Allowance(self._mount, self._clock, LOOKS_PER_S, LOOKS_BURST)
        self._lock = threading.RLock()
        self._looking = threading.Lock()
        self._news = threading.Condition()
        self._pictures = Pictures(self._store, host)
        self._journals = Journals(self._store)
        self._table = Table()
        self._filling = Filling(self._store, self._table)
        self._quiet = Quiet(self._store)
        self._relisting = Relisting(self._store.clock.monotonic)
        self._all_journals_at = float("-inf")
        self._look_began: float | None = None
        self._problem = ""
        self.version = 0
        self.complete = False
        self.as_of = 0.0

    @property
    def settled(self) -> bool:
        """Whether the view counts what the leader counts."""
        return self.complete and not self._relisting.differing

    @property
    def problem(self) -> str:
        """Why the spool cannot be read now, a sentence; '' where it can."""
        began = self._look_began
        silent_s = self._clock.monotonic() - began if began is not None else 0.0
        if silent_s > SILENT_S and self.complete:
            return f"the share has not answered for {length(silent_s)}"
        return self._problem

    def pause_s(self) -> float:
        """How long to wait before the next look."""
        least = LOOK_SHARE_S if self._mount.remote else LOOK_S
        return max(least, self._allowance.wait_s())

    def wait(self, version: int, timeout_s: float) -> int:
        """Wait until there is something newer than this version; return the present one, also after the timeout."""
        with self._news:
            self._news.wait_for(lambda: self.version != version, timeout_s)
        return self.version

    def look(self) -> None:
        """Bring the view up to date. What cannot be read is told by `problem`, and what is known stays."""
        with self._looking:
            if self._allowance.wait_s() > 0:
                return
            self._look_began = self._clock.monotonic()
            try:
                self._step()
                problem = ""
                self.as_of = self._clock.wall()
            except OSError as error:
                where = f"{error.filename}: " if isinstance(error.filename, str) else ""
                problem = f"{where}{error.strerror or error}. {advice(error)}"
            except SpoolError as error:
                problem = str(error)
            finally:
                self._look_began = None
            if problem != self._problem:
                self._problem = problem
                self._changed()

    def _changed(self) -> None:
        with self._news:
            self.version += 1
            self._news.notify_all()

    def _step(self) -> None:
        before = self._table.changes
        fresh = self._pictures.look()
        if fresh:
            self._changed()
        if not self.complete:
            self._begin()
        else:
            self._follow(fresh)
            self._compare()
        self._fill()
        self._quiet.look(self._running(), self._mount.remote)
        if self._table.changes != before:
            self._changed()

    def _begin(self) -> None:
        """List everything, then read what the journals told before. Errors: OSError."""
        self._journals.begin()
        self._sweep(SHOWN)
        last: list[Event] = []
        for events in _slices(self._journals.history()):
            moves = [move for move in map(move_of, events) if move is not None]
            with self._lock:
                for move in moves:
                    self._table.recall(move)
            last += events
            if len(last) > 3 * KEPT:
                last = nlargest(KEPT, last, key=_age)
        with self._lock:
            self._journals.keep(sorted(last, key=_age)[-KEPT:])
            self._want_all()
        self._allowance.free()
        self.complete = True
        self._changed()

    def _sweep(self, states: Collection[State]) -> None:
        sweep = Sweep(self._table, states)
        for listed in _slices(self._listed(states)):
            with self._lock:
                for located in listed:
                    sweep.meet(located)
        with self._lock:
            sweep.end()

    def _listed(self, states: Collection[State]) -> Iterator[Located]:
        for state in SHOWN:
            if state in states:
                yield from task_location.iter_state(self._store, state)
        if not {State.COMPLETED, State.FAILED, State.SKIPPED}.isdisjoint(states):
            yield from task_location.iter_archive(self._store)

    def _follow(self, fresh: bool) -> None:
        """Take over the news of the journals: of all that may write, now and then of all there are."""
        now, writers = self._clock.monotonic(), self._writers()
        if writers is None or now - self._all_journals_at >= ALL_JOURNALS_S:
            self._all_journals_at, writers = now, None
        elif self._mount.remote and not fresh:
            return  # nothing has happened that the leader knows of
        events = self._journals.news(writers)
        with self._lock:
            for event in events:
                self._take(event)
            self._journals.keep(events)

    def _take(self, event: Event) -> None:
        if event.event == "ARCHIVED" and event.task:
            self._table.archive(event.task)
        elif event.event == "VANISHED" and event.task:
            self._table.drop(key(event.task))
        elif (move := move_of(event)) is not None:
            self._table.follow(move)
            name = key(move.task)
            self._filling.want(name, self._table.cards[name])

    def _writers(self) -> set[str] | None:
        """The nodes that may write, None where that is not known."""
        picture = self._pictures.last
        if picture is None or not self._pictures.led:
            return None
        leader = picture.master.leader
        return {node.worker for node in picture.nodes} | ({leader} if leader is not None else set())

    def _compare(self) -> None:
        """List again what the leader counts otherwise, once that has lasted. Errors: OSError."""
        picture = self._pictures.last
        if picture is None:
            return
        theirs = {state: getattr(picture.tasks, state.value) for state in SHOWN}
        states = self._relisting.due(theirs, self._table.counts(), self._table.changes, self._mount.remote)
        if states:
            began, spent, changes = self._clock.monotonic(), self._mount.spent, self._table.changes
            self._sweep(states)
            took_s, calls = self._clock.monotonic() - began, self._mount.spent - spent
            self._relisting.done(took_s, calls if self._mount.remote else 0, self._table.changes != changes)
            self._allowance.free()
            with self._lock:
                self._want_all()

    def _want_all(self) -> None:
        for name, card in self._table.cards.items():
            self._filling.want(name, card)

    def _fill(self) -> None:
        until = self._clock.monotonic() + READING_S
        while len(self._filling) and self._allowance.wait_s() <= 0:
            for name, card in self._filling.some():
                found = self._filling.read(card)
                with self._lock:
                    self._filling.take(name, card, found)
            if self._mount.remote or self._clock.monotonic() >= until:
                break

    def _running(self) -> Iterable[Running]:
        """The attempts that run, as the last beats tell of them."""
        picture = self._pictures.last
        for node in picture.nodes if picture is not None else ():
            for task in node.tasks:
                if isinstance(task, dict) and isinstance(task.get("attempt"), int):
                    yield str(task.get("id", "")), task["attempt"], node.worker, task.get("progress")


def _age(event: Event) -> tuple[str, str, int]:
    return event.at, event.writer, event.seq


def _slices(items: Iterable[T]) -> Iterator[list[T]]:
    rest = iter(items)
    while some := list(islice(rest, _AT_ONCE)):
        yield some


# What names and events did not tell, read from the files of tasks: type and batch, and the conditions of those that
# wait.


# How long (s) one look may read on a local disk, and how many files it may read on a share.
READING_S, READS = 0.1, 3


class Filling:
    """The tasks whose files are to be read. conditions: of the tasks that wait and were read, by key."""

    def __init__(self, store: Store, table: Table) -> None:
        self._store, self._table = store, table
        self._queue: deque[str] = deque()
        self._queued: set[str] = set()
        self.conditions: dict[str, Conditions] = {}

    def __len__(self) -> int:
        return len(self._queue)

    def want(self, name: str, card: Card) -> None:
        """Read the file of this card some day, if there is something to be read."""
        if card.state != State.WAITING:
            self.conditions.pop(name, None)
        if name not in self._queued and self._lacks(name, card):
            self._queue.append(name)
            self._queued.add(name)

    def _lacks(self, name: str, card: Card) -> bool:
        if card.state == State.WAITING and card.conditional and name not in self.conditions:
            return True
        return not card.read

    def some(self) -> list[tuple[str, Card]]:
        """Take the next cards whose files are to be read now."""
        found: list[tuple[str, Card]] = []
        while self._queue and len(found) < READS:
            name = self._queue.popleft()
            self._queued.discard(name)
            card = self._table.cards.get(name)
            if card is not None and self._lacks(name, card):
                found.append((name, card))
        return found

    def read(self, card: Card) -> tuple[dict[str, object], Conditions] | None:
        """Return the content of its file and its conditions; None where the file has moved on."""
        located = card.located()
        content = read_content(self._store, located) if located is not None else {}
        if not content or located is None:
            return None
        conditions = NO_CONDITIONS
        if card.conditional:
            try:
                conditions = conditions_of(codec.check(Task, content, located.path))
            except (BadFile, BadName):
                conditions = NO_CONDITIONS  # the leader sets it aside
        return content, conditions

    def take(self, name: str, card: Card, found: tuple[dict[str, object], Conditions] | None) -> None:
        """Take over what was read. A file that has moved on is wanted again when an event tells where it is."""
        if found is None:
            return
        card.read = True
        content, conditions = found
        kind, batch = card.type or intern(kind_of(content)), card.batch or intern(text_in(content, "batch"))
        if (kind, batch) != (card.type, card.batch):
            with self._table.changing(card):
                card.type, card.batch = kind, batch
        if card.state == State.WAITING and card.conditional:
            self.conditions[name] = conditions


# The leader's snapshot, as it publishes one after the other; where no leader lives, a picture made by listing.


# A leader publishes every interval, on a share every other one: so many of them without news, and it is asked for.
SILENT, SILENT_SHARE = 2.0, 4.0


class Pictures:
    """The last picture. alike: whether only figures of machines differ from the one before."""

    def __init__(self, store: Store, host: Host) -> None:
        self._store, self._host = store, host
        self._name: SnapshotName | None = None
        self._news_at = float("-inf")
        self._asked_at = float("-inf")
        self.last: Snapshot | None = None

    @property
    def led(self) -> bool:
        """Whether the picture is a leader's."""
        return self.last is not None and self.last.source == "leader"

    def look(self) -> bool:
        """Take up a new snapshot; True if there was one. Errors: OSError."""
        names = snapshots.list_snapshots(self._store.fs)
        now = self._store.clock.monotonic()
        newest = names[0] if names else None
        if newest is not None and (self._name is None or newest > self._name):
            self._name = newest
            if self.last is not None and self._take(newest):
                self._news_at = now
                return True
        intervals = SILENT_SHARE if self._store.fs.remote else SILENT
        patience_s = max(1.0, intervals * self._store.basics.interval_s)
        # What a leader has just published is believed for a while: it is asked for again before long.
        waits = now - self._news_at < patience_s or now - self._asked_at < patience_s / 2
        if waits and self.last is not None:
            return False
        return self._ask()

    def _take(self, name: SnapshotName) -> bool:
        path = layout.join(layout.STATUS, name.encode())
        try:
            found = plain_status.load_snapshot(self._store.fs.read(path), path)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                raise
            return False
        except ValueError:
            return False
        self._show(found)
        return True

    def _ask(self) -> bool:
        """Find out who leads. Takes some seconds where nobody does."""
        before = self.last
        found = status(self._store, self._host, self._store.clock, plainly=True)
        self._asked_at = self._store.clock.monotonic()
        self._show(found)
        return before is None or _told(before) != _told(found)

    def _show(self, found: Snapshot) -> None:
        self.last = with_pauses(self._store, found)


def _told(found: Snapshot) -> tuple[object, ...]:
    return found.source, found.master, found.tasks, found.warnings, found.nodes


# For how long what runs has said nothing: neither has its log grown, nor its own report changed.


# Who asked within so many seconds still wants to know.
WANTED_S = 10.0
# How many logs are looked at in one look on a share.
LOOKS = 2


Running = tuple[str, int, str, Any]


class Quiet:
    """When each log changed last, by the file server's clock, and when each report did, by this machine's."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._wanted_at = float("-inf")
        self._changed: dict[tuple[str, int], float] = {}
        self._reports: dict[tuple[str, int], tuple[Any, float]] = {}
        self._turn = 0

    def want(self) -> None:
        """Somebody asks."""
        self._wanted_at = self._store.clock.monotonic()

    def look(self, running: Iterable[Running], remote: bool) -> None:
        """Look at the logs of these attempts (id, number, worker, report); on a share at a few of them in turn.

        Errors: none.
        """
        now = list(running)
        self._hear(now)
        if self._store.clock.monotonic() - self._wanted_at > WANTED_S:
            return
        names = {(key(task), attempt) for task, attempt, _, _ in now}
        self._changed = {name: at for name, at in self._changed.items() if name in names}
        some = now
        if remote and len(now) > LOOKS:
            some = list(islice(cycle(now), self._turn, self._turn + LOOKS))
            self._turn = (self._turn + LOOKS) % len(now)
        for task, attempt, worker, _ in some:
            try:
                path = layout.join(layout.LOGS, EndedName(task, attempt, worker).log())
                self._changed[key(task), attempt] = self._store.fs.stat(path).mtime_ns / 1e9
            except (OSError, BadName):
                continue  # it has written nothing yet

    def _hear(self, running: Iterable[Running]) -> None:
        """Note whose report has changed. One that is met for the first time says nothing about when."""
        before, now = self._reports, self._store.clock.wall()
        self._reports = {}
        for task, attempt, _, report in running:
            name = (key(task), attempt)
            said, at = before.get(name, (report, float("-inf")))
            self._reports[name] = (report, at if said == report else now)

    def seconds(self) -> dict[tuple[str, int], float]:
        """For how long (s) each has said nothing; those that are not known are left out."""
        now = self._store.clock.wall()
        told = {name: at for name, (_, at) in self._reports.items() if at > float("-inf")}
        names = self._changed.keys() | told.keys()
        return {name: max(0.0, now - max(self._changed.get(name, 0.0), told.get(name, 0.0))) for name in names}


# When what a view counts is listed again, since the leader counts otherwise.


# A difference that stands still for so long (s), or that lasts so long while tasks move, is a fault of the view. On a
# share journals are read every few seconds.
STILL_S, STILL_SHARE_S, LASTING_S = 3.0, 15.0, 60.0
# How much of the time listing may take, how many round trips a second, and the least and the longest rest (s).
PART, CALLS_PER_S, REST_S, REST_MOST_S = 0.01, 0.5, 5.0, 600.0


class Relisting:
    """differing: the states whose counts differ now."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self.differing: frozenset[State] = frozenset()
        self._since = 0.0
        self._still: tuple[object, ...] = ()
        self._still_since = 0.0
        self._not_before = float("-inf")
        self._in_vain = 0

    def due(
        self, theirs: Mapping[State, int], ours: Mapping[str, int], changes: int, remote: bool
    ) -> frozenset[State]:
        """Return the states to be listed now; none in most cases. changes: the count of changes of the view."""
        now = self._monotonic()
        differing = frozenset(state for state, number in theirs.items() if ours.get(state.value, 0) != number)
        if not differing:
            self.differing, self._in_vain = differing, 0
            return differing
        if not self.differing:
            self._since = now
        self.differing = differing
        still = (changes, *sorted(theirs.items()))
        if still != self._still:
            self._still, self._still_since = still, now
        stands = now - self._still_since >= (STILL_SHARE_S if remote else STILL_S)
        if (stands or now - self._since >= LASTING_S) and now >= self._not_before:
            return differing
        return frozenset()

    def done(self, took_s: float, calls: int, changed: bool) -> None:
        """They were listed. calls: what that cost in round trips; changed: whether it changed anything."""
        self._in_vain = 0 if changed else self._in_vain + 1
        rest_s = max(REST_S, took_s / PART, calls / CALLS_PER_S) * 2 ** min(self._in_vain, 10)
        now = self._monotonic()
        self._not_before = now + min(rest_s, REST_MOST_S)
        self._since = self._still_since = now


# The events of all journals: those of before in the background, new ones from where the last look ended.


KEPT, PIECE = 2000, 1 << 20


@dataclass(frozen=True, slots=True)
class Noted:
    """One event, with its number in the order in which the view read it, from 1. at: RFC 3339, the writer's clock."""

    number: int
    at: str
    writer: str
    event: str
    task: str
    attempt: int | None
    detail: dict[str, Any]


class Journals:
    """Follows all journals from the moment of `begin` on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = Reader(store.fs)
        self._ends: dict[str, int] = {}
        self._last: deque[Noted] = deque(maxlen=KEPT)
        self._number = 0

    def begin(self) -> None:
        """What is written so far is history; what comes now is news. Errors: OSError."""
        self._reader.skip()
        self._ends = dict(self._reader.offsets)

    def history(self) -> Iterator[Event]:
        """Yield what was written before `begin`, journal after journal. Errors: OSError."""
        for name, end in sorted(self._ends.items()):
            begin, journal = 0, parse_events(name)
            while begin < end:
                data = self._piece(layout.join(layout.EVENTS, name), begin, end)
                whole = data.rfind(b"\n") + 1
                # A line that is longer than a piece is passed over with the rest of its journal.
                if not whole:
                    break
                yield from parse_lines(data[:whole], writer=journal.writer if journal is not None else "")
                begin += whole
        self._ends.clear()

    def _piece(self, path: str, begin: int, end: int) -> bytes:
        try:
            return self._store.fs.read(path, min(PIECE, end - begin), offset=begin)
        except OSError as error:
            if not isinstance(error, FileNotFoundError) and not concerns_one_file(error):
                raise
            return b""

    def news(self, writers: Collection[str] | None) -> list[Event]:
        """Return the events since the last call. writers: as for `Reader.read`. Errors: OSError."""
        return self._reader.read(writers)

    def keep(self, events: Iterable[Event]) -> None:
        """Keep these for people, in this order: the last of all are kept."""
        for event in events:
            self._number += 1
            said = event.detail if isinstance(event.detail, dict) else {}
            task = event.task or ""
            self._last.append(Noted(self._number, event.at, event.writer, event.event, task, event.attempt, said))

    def last(self, after: int, task: str, most: int) -> list[Noted]:
        """Return at most so many of the last events, oldest first. task: those of this task alone, '' for all."""
        fitting = [
            noted for noted in self._last if noted.number > after and (not task or key(noted.task) == key(task))
        ]
        return fitting[-most:]
