"""How a view is kept up to date: look by look.

Law: looks and never touches. One look costs no more than the allowance of the view, but for the listing of everything
at the beginning, and for one that is made again since the counts of the view and of the leader differ. Such a listing
is made again the more rarely, the longer it took and the less it changed.

Touches: threads.
"""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable, Iterator
from heapq import nlargest
from itertools import islice
from typing import TypeVar

from spoold.client.view.filling import READING_S, Filling
from spoold.client.view.journals import KEPT, Journals
from spoold.client.view.metered import LOOKS_BURST, LOOKS_PER_S, Allowance, through
from spoold.client.view.moves import move_of
from spoold.client.view.pictures import Pictures
from spoold.client.view.quiet import Quiet, Running
from spoold.client.view.relisting import Relisting
from spoold.client.view.table import Sweep, Table
from spoold.protocol.amount import length
from spoold.protocol.errors import SpoolError
from spoold.protocol.event import Event
from spoold.protocol.lifecycle import SHOWN, State
from spoold.protocol.names import key
from spoold.store import locate
from spoold.store.locate import Located
from spoold.store.store import Store
from spoold.system.errnos import advice
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
                yield from locate.iter_state(self._store, state)
        if not {State.COMPLETED, State.FAILED, State.SKIPPED}.isdisjoint(states):
            yield from locate.iter_archive(self._store)

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
