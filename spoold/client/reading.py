"""A program's questions about a spool: the pool, why a task waits, its tasks in pages, events, and changes.

Law: looks and never touches. Each call looks anew, so a page is as true as the listing behind it: a task that moves
between two pages may come twice or not at all.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from heapq import nsmallest
from typing import TYPE_CHECKING, Generic, TypeVar

import orjson

from spoold.client.connection import Connection
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key

if TYPE_CHECKING:
    from spoold.client.agents import Missing, Offered, Served
    from spoold.client.configuring import Holder, Setting
    from spoold.client.families import Branch
    from spoold.client.listing import Row
    from spoold.client.measuring import Figures
    from spoold.client.status import Roster
    from spoold.client.story import History
    from spoold.pictures.scene import Scene
    from spoold.protocol.event import Event
    from spoold.protocol.snapshot import Snapshot as Status
    from spoold.rules.answers.task_facts import Explanation
    from spoold.store.locate import Located

T = TypeVar("T")

PAGE = 1000
WATCH_EVERY_S = 1.0
EVENTS_EVERY_S = 0.5
_Position = tuple[int, str, int]
_BEGIN: _Position = (-1, "", 0)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of many. cursor: pass it to the next call to go on; '' where there are no more now."""

    items: list[T]
    cursor: str


class Reading(Connection):
    """The questions that a program may ask of a spool, beside those about one task.

    Each method imports its own needs, so a program that only submits pays for none of them.
    """

    def status(self) -> Status:
        """Return the pool now: tasks by state, workers, rates, warnings. Takes up to 3 s where no leader is seen."""
        from spoold.client.status import status
        from spoold.system.host import SystemHost

        with self.reaching():
            return status(self.store, SystemHost(), self.store.clock)

    def picture(self) -> Status:
        """The same for a screen: with the reasons of pauses, and without models, which take long to import."""
        from spoold.client.pauses import with_pauses
        from spoold.client.status import status
        from spoold.system.host import SystemHost

        with self.reaching():
            return with_pauses(self.store, status(self.store, SystemHost(), self.store.clock, plainly=True))

    def measure(self) -> Figures:
        """Return what monitoring measures, as it stands on disk: it never waits to find out who lives."""
        from spoold.client.measuring import measure

        with self.reaching():
            return measure(self.store)

    def roster(self) -> Roster:
        """The nodes, as their own heartbeats show them; silent ones are called dead. Errors: Unavailable."""
        from spoold.client.status import roster
        from spoold.system.host import SystemHost

        with self.reaching():
            return roster(self.store, SystemHost(), self.store.clock)

    def agents(self) -> list[Offered]:
        """Return the agents that live workers offer. Errors: Unavailable."""
        from spoold.client.agents import list_agents
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_agents(self.store, SystemHost(), self.store.clock)

    def served(self) -> Served:
        """Return what live workers can run: agents, types, commands. Errors: Unavailable."""
        from spoold.client.agents import list_served
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_served(self.store, SystemHost(), self.store.clock)

    def missing_agent(self, name: str) -> Missing | None:
        """Return why a task for this agent would wait; None where a live worker has it. Errors: Unavailable."""
        from spoold.client.agents import missing_agent
        from spoold.system.host import SystemHost

        with self.reaching():
            return missing_agent(self.store, SystemHost(), self.store.clock, name)

    def settings(self, key: str | None = None) -> list[Setting]:
        """Return the settings that hold, each with where it comes from. key: only this one, or those below it.

        Errors: BadFile for a key that there is not.
        """
        from spoold.client.configuring import list_settings

        with self.reaching():
            return list_settings(self.store, key)

    def holders(self) -> list[Holder]:
        """Return every node, with the revision of the settings that it goes by."""
        from spoold.client.configuring import list_holders
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_holders(self.store, SystemHost(), self.store.clock)

    def wait_for_holders(self, revision: str) -> tuple[list[Holder], list[Holder]]:
        """Wait until the nodes that live go by a change; returns those that do, and those that do not in time."""
        from spoold.client.configuring import wait_for_holders
        from spoold.system.host import SystemHost

        with self.reaching():
            return wait_for_holders(self.store, SystemHost(), self.store.clock, revision)

    def explain(self, task_id: str) -> Explanation:
        """Return why a task is in its state, and what would change that. Errors: NotFound."""
        from spoold.client.inquiry import explain
        from spoold.system.host import SystemHost

        with self.reaching():
            return explain(self.store, SystemHost(), self.store.clock, task_id)

    def tree(self, task_id: str, *, archived: bool = False) -> Branch:
        """Return a task and all below it, with what each waits for. archived: also those in the archive.

        Reads every task of the spool. Errors: NotFound.
        """
        from spoold.client.families import tree

        with self.reaching():
            return tree(self.store, task_id, archived=archived)

    def scene(self, batch: str | None = None, *, archived: bool = True, tails: int = 0) -> Scene:
        """Return what a picture shows: the tasks of a batch, or all, with what each waits for and all its attempts.

        archived: those in the archive too; tails: of so many tasks that failed the end of the log. Reads every task
        of the spool. Errors: NotFound where the batch has no task.
        """
        from spoold.client.scenes import scene_of

        with self.reaching():
            return scene_of(self.store, batch, archived=archived, tails=tails)

    def tasks(
        self,
        *,
        states: Collection[State | str] = (),
        types: Collection[str] = (),
        batches: Collection[str] = (),
        archived: bool = False,
        cursor: str = "",
        limit: int = PAGE,
    ) -> Page[Row]:
        """Return the tasks that fit all filters, `limit` at a time, ordered by state: pending first.

        archived: those in the archive too. cursor: of the page before. Errors: BadFile for an unknown cursor,
        ValueError for an unknown state.
        """
        from spoold.client import listing, selecting
        from spoold.rules.answers.selection import Selection

        selection = Selection(tuple(State(state) for state in states), tuple(types), tuple(batches))
        begin = _position(cursor)
        with self.reaching():
            found = selecting.select(self.store, selection, archived=archived)
            rest = (one for one in found if _place(one) > begin)
            some = nsmallest(limit + 1, rest, key=_place)
            rows = listing.describe(self.store, some[:limit])
        more = orjson.dumps(_place(some[limit - 1])).decode() if len(some) > limit else ""
        return Page(rows, more)

    def events(self, cursor: str = "", *, writers: Collection[str] | None = None) -> Page[Event]:
        """Return the events since the call that gave the cursor, or all, by the writers' clocks. No new cursor is ''.

        writers: the nodes that may have written since, None for any. Errors: BadFile for an unknown cursor.
        """
        from spoold.store.journal import Reader

        reader = Reader(self.store.fs, _offsets(cursor))
        with self.reaching():
            found = reader.read(writers)
        return Page(found, orjson.dumps(reader.offsets).decode())

    def events_from_now(self) -> str:
        """Return the cursor with which `events` begins at this moment, without reading what was before."""
        from spoold.store.journal import Reader

        reader = Reader(self.store.fs)
        with self.reaching():
            reader.skip()
        return orjson.dumps(reader.offsets).decode()

    def iter_events(
        self,
        *,
        follow: bool = False,
        task: str = "",
        since: datetime | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Event]:
        """Yield all events so far, by their writers' clocks; with follow, then new ones, until `sleep` raises.

        task: only those of the task with this id; since: only those that are not older, as far as their stamps tell.
        """
        from spoold.store.journal import Reader, is_older

        reader = Reader(self.store.fs, about=task)
        while True:
            with self.reaching():
                events = reader.read()
            for event in events:
                if (not task or key(event.task or "") == key(task)) and not (since and is_older(event, since)):
                    yield event
            if not follow:
                return
            sleep(EVENTS_EVERY_S)

    def history(self, task_id: str) -> History:
        """Return a task, and everything that happened to it, in its order. Errors: NotFound."""
        from spoold.client.story import history

        with self.reaching():
            return history(self.store, task_id)

    def watch(
        self, *, every_s: float = WATCH_EVERY_S, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Status]:
        """Yield the pool now, and again after each change, until `sleep` raises; looks every `every_s` seconds."""
        last: Status | None = None
        while True:
            now = self.status()
            if last is None or now != last.model_copy(update={"generated_at": now.generated_at}):
                yield now
            last = now
            sleep(every_s)


def _place(located: Located) -> _Position:
    return _order()[located.state], located.path, located.line


@cache
def _order() -> dict[State, int]:
    from spoold.protocol.lifecycle import SHOWN

    return {state: number for number, state in enumerate(SHOWN)}


def _position(cursor: str) -> _Position:
    if not cursor:
        return _BEGIN
    match _decoded(cursor):
        case [int(order), str(path), int(line)]:
            return order, path, line
    raise _no_cursor(cursor)


def _offsets(cursor: str) -> dict[str, int]:
    if not cursor:
        return {}
    from spoold.protocol.amount import is_amount

    found = _decoded(cursor)
    if isinstance(found, dict) and all(isinstance(offset, int) and is_amount(offset) for offset in found.values()):
        return found
    raise _no_cursor(cursor)


def _decoded(cursor: str) -> object:
    try:
        return codec.load_text(cursor, "cursor")
    except BadFile:
        raise _no_cursor(cursor) from None


def _no_cursor(cursor: str) -> BadFile:
    return BadFile("cursor", "", f"is not from this call: {cursor[:40]!r}.", "begin without one.")
