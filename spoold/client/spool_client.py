"""SpoolClient: one object for one spool, everything a program can do with it, and every question it can ask.

Law: a call for several tasks or workers checks all of them before it drops or requests anything. A question looks and
never touches. Each call looks anew, so a page is as true as the listing behind it: a task that moves between two
pages may come twice or not at all.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from heapq import nsmallest
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import orjson

from spoold.client.decisions import Deciding
from spoold.client.spool import submission
from spoold.client.spool.connection import Connection
from spoold.client.spool.standing_requests import Pausing
from spoold.client.spool.submission import mappings
from spoold.protocol import codec
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, WaitTimeout
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.protocol.request import EVERYTHING, Verb

if TYPE_CHECKING:
    from spoold.client.read.attempt_logs import Piece
    from spoold.client.read.graph_data import Traces
    from spoold.client.read.histories import History
    from spoold.client.read.long_listing import Row
    from spoold.client.read.task_groups import Branch
    from spoold.client.read.task_info import TaskInfo
    from spoold.client.spool.capabilities import Missing, Offered, Served
    from spoold.client.spool.configuration import Holder, Setting
    from spoold.client.spool.metrics_source import Figures
    from spoold.client.spool.spool_status import Roster
    from spoold.client.view import View
    from spoold.pictures.picture_data import Scene
    from spoold.protocol.event import Event
    from spoold.protocol.result import Result
    from spoold.protocol.snapshot import Snapshot as Status
    from spoold.rules.answers.task_facts import Explanation
    from spoold.store.task_location import Located


# A program's questions about a spool: the pool, why a task waits, its tasks in pages, events, and changes.


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
        from spoold.client.spool.spool_status import status
        from spoold.system.host import SystemHost

        with self.reaching():
            return status(self.store, SystemHost(), self.store.clock)

    def picture(self) -> Status:
        """The same for a screen: with the reasons of pauses, and without models, which take long to import."""
        from spoold.client.spool.spool_status import status
        from spoold.client.spool.standing_requests import with_pauses
        from spoold.system.host import SystemHost

        with self.reaching():
            return with_pauses(self.store, status(self.store, SystemHost(), self.store.clock, plainly=True))

    def measure(self) -> Figures:
        """Return what monitoring measures, as it stands on disk: it never waits to find out who lives."""
        from spoold.client.spool.metrics_source import measure

        with self.reaching():
            return measure(self.store)

    def roster(self) -> Roster:
        """The nodes, as their own heartbeats show them; silent ones are called dead. Errors: Unavailable."""
        from spoold.client.spool.spool_status import roster
        from spoold.system.host import SystemHost

        with self.reaching():
            return roster(self.store, SystemHost(), self.store.clock)

    def agents(self) -> list[Offered]:
        """Return the agents that live workers offer. Errors: Unavailable."""
        from spoold.client.spool.capabilities import list_agents
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_agents(self.store, SystemHost(), self.store.clock)

    def served(self) -> Served:
        """Return what live workers can run: agents, types, commands. Errors: Unavailable."""
        from spoold.client.spool.capabilities import list_served
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_served(self.store, SystemHost(), self.store.clock)

    def missing_agent(self, name: str) -> Missing | None:
        """Return why a task for this agent would wait; None where a live worker has it. Errors: Unavailable."""
        from spoold.client.spool.capabilities import missing_agent
        from spoold.system.host import SystemHost

        with self.reaching():
            return missing_agent(self.store, SystemHost(), self.store.clock, name)

    def settings(self, key: str | None = None) -> list[Setting]:
        """Return the settings that hold, each with where it comes from. key: only this one, or those below it.

        Errors: BadFile for a key that there is not.
        """
        from spoold.client.spool.configuration import list_settings

        with self.reaching():
            return list_settings(self.store, key)

    def holders(self) -> list[Holder]:
        """Return every node, with the revision of the settings that it goes by."""
        from spoold.client.spool.configuration import list_holders
        from spoold.system.host import SystemHost

        with self.reaching():
            return list_holders(self.store, SystemHost(), self.store.clock)

    def wait_for_holders(self, revision: str) -> tuple[list[Holder], list[Holder]]:
        """Wait until the nodes that live go by a change; returns those that do, and those that do not in time."""
        from spoold.client.spool.configuration import wait_for_holders
        from spoold.system.host import SystemHost

        with self.reaching():
            return wait_for_holders(self.store, SystemHost(), self.store.clock, revision)

    def explain(self, task_id: str) -> Explanation:
        """Return why a task is in its state, and what would change that. Errors: NotFound."""
        from spoold.client.read.explanation import explain
        from spoold.system.host import SystemHost

        with self.reaching():
            return explain(self.store, SystemHost(), self.store.clock, task_id)

    def tree(self, task_id: str, *, archived: bool = False) -> Branch:
        """Return a task and all below it, with what each waits for. archived: also those in the archive.

        Reads every task of the spool. Errors: NotFound.
        """
        from spoold.client.read.task_groups import tree

        with self.reaching():
            return tree(self.store, task_id, archived=archived)

    def scene(self, batch: str | None = None, *, archived: bool = True, tails: int = 0) -> Scene:
        """Return what a picture shows: the tasks of a batch, or all, with what each waits for and all its attempts.

        archived: those in the archive too; tails: of so many tasks that failed the end of the log. Reads every task
        of the spool. Errors: NotFound where the batch has no task.
        """
        from spoold.client.read.graph_data import scene_of

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
        from spoold.client.read import long_listing, selecting
        from spoold.rules.answers.selection import Selection

        selection = Selection(tuple(State(state) for state in states), tuple(types), tuple(batches))
        begin = _position(cursor)
        with self.reaching():
            found = selecting.select(self.store, selection, archived=archived)
            rest = (one for one in found if _place(one) > begin)
            some = nsmallest(limit + 1, rest, key=_place)
            rows = long_listing.describe(self.store, some[:limit])
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
        from spoold.client.read.histories import history

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


# A program's tasks on their way into a spool: checked, then dropped.


class Submitting(Connection):
    """The ways to submit tasks. `drafted` and `drafted_many` only check; `publish` drops what they return."""

    def submit(self, task: Mapping[str, Any] | None = None, /, **fields: Any) -> str:
        """Drop a task, given as a mapping, as fields, or both (fields win); returns its id at once.

        By then the task survives a power cut, if the spool's settings ask for it. Without an `id` one is made;
        with one, submitting the same task again changes nothing. Errors: BadFile, TypeError for a wrong argument.
        """
        return self.submit_from(submission.TASK, {**submission.mapping_of(task, fields), **fields})

    def submit_from(self, file: str, task: Mapping[str, Any], *, stem: str = "") -> str:
        """Submit a task that came from a file; errors name that file. A generated id begins with stem."""
        drop = self.drafted(file, task, stem=stem)
        self.publish([drop])
        return drop.ids[0]

    def submit_many(self, tasks: Iterable[Mapping[str, Any]], *, file: str = submission.TASKS) -> list[str]:
        """Drop many tasks as one file; all are admitted or none. Returns their ids in order.

        Above `[drop] max_batch_bytes` they become several files. Errors: BadFile that names the line; then nothing
        was dropped.
        """
        drops = self.drafted_many(tasks, file=file)
        self.publish(drops)
        return [task_id for drop in drops for task_id in drop.ids]

    def drafted(self, file: str, task: Mapping[str, Any], *, stem: str = "") -> submission.Drop:
        """Return what `submit_from` would drop. Errors: BadFile."""
        from spoold.client.in_task import born

        task = born(task, self.directory)
        micros, stamp = self.micros(), self.store.stamp()
        drop = submission.plain(task, self.store.basics, micros, stamp, file=file, stem=stem)
        if drop is None:
            drop = submission.one(task, self.store.settings, micros, stamp, file=file, stem=stem)
        return drop

    def drafted_many(
        self, tasks: Iterable[Mapping[str, Any]], *, file: str = submission.TASKS
    ) -> list[submission.Drop]:
        """Return what `submit_many` would drop. Errors: BadFile that names the line."""
        from spoold.client.in_task import born

        children = (born(task, self.directory) for task in mappings(tasks))
        drops = submission.many(children, self.store.settings, self.micros(), self.store.stamp(), file=file)
        if len(drops) > 1:
            self.micros(len(drops) - 1)  # the parts took the numbers after the first
        return drops


class SpoolClient(Submitting, Reading, Deciding, Pausing):
    """An open spool: `with Spool("/mnt/spool") as spool: …`. Thread-safe, except `close`. Every method that reaches
    the spool raises Unavailable, with advice, when it cannot be reached."""

    def view(self) -> View:
        """Return a view that can be kept up to date, and answers from memory; it has read nothing yet."""
        from spoold.client.view import View
        from spoold.system.host import SystemHost

        return View(self.store, SystemHost(), self.reaching)

    def locate(self, task_id: str) -> Located:
        """Return where a task is, by its whole id or the name of its drop. Errors: NotFound."""
        from spoold.store import task_location

        with self.reaching():
            return task_location.locate(self.store, task_id)

    def complete(self, beginning: str) -> Located:
        """Return the only task whose id begins so, for a person, who sees the whole id then. Errors: NotFound."""
        from spoold.store import task_location

        with self.reaching():
            return task_location.complete(self.store, beginning)

    def locate_all(self, refs: str | Iterable[str]) -> list[Located]:
        """Locate many tasks in one look; each once. Errors: NotFound for the first that is missing."""
        from spoold.store import task_location

        wanted = [refs] if isinstance(refs, str) else list(dict.fromkeys(refs))
        with self.reaching():
            found = task_location.locate_many(self.store, wanted)
            located = [found.get(ref) or task_location.locate(self.store, ref) for ref in wanted]
        return list({one.path + str(one.line): one for one in located}.values())

    def _locate_exactly(self, refs: str | Iterable[str]) -> list[Located]:
        """Locate tasks by their whole ids. Errors: NotFound."""
        from spoold.client.read import selecting

        wanted = [refs] if isinstance(refs, str) else list(refs)
        with self.reaching():
            found, wrong = selecting.find(self.store, wanted)
        for error in wrong.values():
            raise error
        return found

    def state(self, task_id: str) -> State:
        """Return pending, waiting, ready, claimed, completed, failed or rejected. Errors: NotFound."""
        return self.locate(task_id).state

    def show(self, task_id: str) -> TaskInfo:
        """Return everything that is known of a task. Errors: NotFound."""
        from spoold.client.read import task_info

        with self.reaching():
            return task_info.describe(self.store, task_id)

    def result(self, task_id: str) -> Result:
        """Return the result of a task, a success or not. Errors: NotFinished while it has none, NotFound."""
        from spoold.client.read import task_info
        from spoold.client.spool.waiting import NotFinished
        from spoold.store import task_location

        with self.reaching():
            found = task_info.result_of(self.store, task_id)
            if found is None:
                raise NotFinished(task_info.not_ended(task_location.locate(self.store, task_id)))
            return found

    def wait(
        self,
        ids: str | Iterable[str],
        timeout: float | None = None,
        *,
        progress: Callable[[dict[str, Result]], None] | None = None,
    ) -> dict[str, Result]:
        """Wait until all the tasks have ended; returns their results in the order of the ids.

        A rejected task counts as ended, with an error that says why, also where another task has the id that this
        client chose. Inside a task, its slot is lent meanwhile. timeout: in seconds; progress: called with new
        results. Bears a share that is away for up to a minute. Errors: NotFound for an unknown id, WaitTimeout (the
        tasks go on).
        """
        from spoold.client.in_task import check_wait, lending
        from spoold.client.spool.waiting import Waiter

        wanted = [ids] if isinstance(ids, str) else list(dict.fromkeys(ids))
        check_wait(wanted, self.directory)
        clock = self.store.clock
        give_up_at = None if timeout is None else clock.monotonic() + timeout
        results: dict[str, Result] = {}
        nothing: dict[str, Result] = {}
        waiter = Waiter(self.store, wanted, self.dropped)
        checked = False
        with lending(clock.monotonic, time.sleep) as pause:
            while True:
                with self.reaching():
                    came = waiter.pace.forgiving(waiter.poll, nothing)
                    if waiter.pending and not checked:
                        checked = waiter.pace.forgiving(waiter.look_elsewhere, False)
                        came = {**came, **waiter.pace.forgiving(waiter.poll, nothing)}
                results.update(came)
                if came and progress is not None:
                    progress(came)
                if not waiter.pending:
                    return {task_id: results[task_id] for task_id in wanted if task_id in results}
                left_s = None if give_up_at is None else give_up_at - clock.monotonic()
                if left_s is not None and left_s <= 0:
                    some = ", ".join(waiter.pending[:3]) + (" …" if len(waiter.pending) > 3 else "")
                    open_ = len(waiter.pending)
                    raise WaitTimeout(
                        f"{open_} of {amount(len(wanted), 'task')} {'has' if open_ == 1 else 'have'} "
                        f"not ended after {timeout:g} s: {some}"
                    )
                pause(min(waiter.pace.pause_s(), left_s) if left_s is not None else waiter.pace.pause_s())

    def refusal(self, task_id: str) -> Result | None:
        """Return why this client's last drop with this id was rejected; None when it was not.

        If the caller chose the id, waits until a leader has judged the drop: another task may have the id.
        Errors: Unavailable.
        """
        from spoold.client.spool.waiting import Waiter

        waiter = Waiter(self.store, [task_id], self.dropped)
        while True:
            with self.reaching():
                if not waiter.pace.forgiving(waiter.unjudged, {task_id}):
                    return waiter.refusals().get(task_id)
            time.sleep(waiter.pace.pause_s())

    def cancel(self, ids: str | Iterable[str], *, reason: str = "", tree: bool = False) -> list[str]:
        """Request that tasks end, running or not, by their whole ids; returns these.

        tree: also all that they submitted, and what that submitted; returns once all have ended. Errors: NotFound,
        SpoolError for a drop that was rejected; then nothing is requested. WaitTimeout.
        """
        from spoold.client.read import preconditions, task_groups

        found = self._locate_exactly(ids)
        preconditions.insist(found, preconditions.refuses_cancel)
        if not tree:
            return self._post_each(Verb.CANCEL, found, reason)
        with self.reaching():
            return task_groups.cancel_tree(self.store, found, lambda one: self.post(Verb.CANCEL, one, reason))

    def retry(self, ids: str | Iterable[str], *, reason: str = "") -> list[str]:
        """Request a retry of failed tasks with a fresh budget, by their whole ids; returns these.

        Errors: NotFound, SpoolError for a task that has not failed; then nothing is requested.
        """
        from spoold.client.read import preconditions

        found = self._locate_exactly(ids)
        preconditions.insist(found, preconditions.refuses_retry)
        return self._post_each(Verb.RETRY, found, reason)

    def prioritize(self, ids: str | Iterable[str], priority: int | str, *, reason: str = "") -> list[str]:
        """Request another priority for tasks that wait, are ready or run, by their whole ids; returns these. One that
        runs has it from its next attempt on. priority: an integer, or a word, as in a task.

        Errors: NotFound, SpoolError for a task that has ended, BadFile for no priority; then nothing is requested.
        """
        from spoold.client.read import preconditions

        rank = preconditions.rank_in_words(priority)
        found = self._locate_exactly(ids)
        preconditions.insist(found, preconditions.refuses_priority)
        self.post_priority([located.id for located in found], rank, reason)
        return [located.id for located in found]

    def post_priority(self, ids: Sequence[str], rank: int, reason: str) -> None:
        """Put the requests for a rank, as in names of tasks, into control/."""
        from spoold.protocol.request import priority_unique

        self.post_each(Verb.PRIORITY, ids, reason, mark=partial(priority_unique, rank))

    def traces(self, names: Sequence[str] = (), *, archived: bool = False) -> Traces:
        """Return the spans of these tasks and batches, or of all; archived: also those in the archive. Errors:
        NotFound.
        """
        from spoold.client.read import graph_data

        with self.reaching():
            return graph_data.traces_of(self.store, names, archived=archived)

    def drain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Let a worker (by id, or by the name it was started with), or all, finish their tasks and claim no more.

        Returns the ids of the workers; an empty list for all. Errors: NotFound; SpoolError for a master.
        """
        return self._ask_workers(Verb.DRAIN, worker, reason)

    def undrain(self, worker: str | None = None, *, reason: str = "") -> list[str]:
        """Take back a drain. Errors: NotFound, SpoolError for a master."""
        return self._ask_workers(Verb.UNDRAIN, worker, reason)

    def halt(self, *, reason: str = "") -> None:
        """Stop at once: running tasks are killed and handed back uncharged, and nothing starts until `resume`."""
        self.post(Verb.HALT, EVERYTHING, reason)

    def gc(self) -> None:
        """Apply retention now: ended tasks go to the archive, and old archived tasks are deleted."""
        self.post(Verb.GC, EVERYTHING, "")

    def logs(
        self,
        task_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[bytes]:
        """Yield the task's stdout and stderr: of one attempt, by default the last.

        With follow, goes on until the task has ended, with later attempts too; `sleep` waits between two looks, and
        may raise to end it. Errors: NotFound.
        """
        for piece in self.log_pieces(task_id, follow=follow, attempt=attempt, sleep=sleep):
            yield piece.data

    def log_pieces(
        self,
        task_id: str,
        *,
        follow: bool = False,
        attempt: int | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> Iterator[Piece]:
        """Yield what `logs` yields, with the attempt and the worker of each piece."""
        from spoold.client.read import attempt_logs

        located = self.locate(task_id)
        if follow:
            yield from self.follow_logs([located], attempt=attempt, sleep=sleep)
            return
        with self.reaching():
            yield from attempt_logs.read_log(self.store, located.id, attempt)

    def follow_logs(
        self, tasks: Sequence[Located], *, attempt: int | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> Iterator[Piece]:
        """Yield these tasks' output as it comes, from the named or the present attempt on, until all have ended."""
        from spoold.client.in_task import lending
        from spoold.client.read import attempt_logs
        from spoold.client.spool.waiting import Waiter

        waiter = Waiter(self.store, [one.id for one in tasks if not one.archived])
        waiter.look_in_archive()
        begin = {one.id: one.attempt if attempt is None else attempt for one in tasks}
        follower = attempt_logs.Follower(self.store, begin)

        def ended() -> bool:
            follower.end(waiter.poll())
            return not waiter.pending

        with self.reaching(), lending(self.store.clock.monotonic, sleep) as pause:
            yield from attempt_logs.follow(follower, ended, waiter.pace, pause)

    def _post_each(self, verb: Verb, found: list[Located], reason: str) -> list[str]:
        ids = [located.id for located in found]
        self.post_each(verb, ids, reason)
        return ids

    def _ask_workers(self, verb: Verb, worker: str | None, reason: str) -> list[str]:
        from spoold.client.read import preconditions

        if worker is None:
            self.post(verb, EVERYTHING, reason)
            return []
        with self.reaching():
            meant = preconditions.workers_meant(self.store.fs, worker)
        for node in meant:
            self.post(verb, node, reason)
        return meant
