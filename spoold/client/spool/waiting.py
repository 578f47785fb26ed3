"""Waiting for tasks: results as they come in, the pauses between two looks, when tasks will have ended, and the
errors of a wait.

Law: one listing of completed/ and failed/ serves any number of tasks, and no name is looked up before a listing
showed it. A task that was rejected, or archived between two looks, is an answer too. A pause is never shorter than
`poll.busy_s`, unless `poll.idle_s` is shorter still, and never longer than `poll.idle_s`. A share that fails is
forgiven until OUTAGE_S after the last good look. A guess of an end that cannot be made is None, with the reason. Each
error here is a SpoolError; a task without a result yet counts as not found. `shell_code` takes the signal from the
words `(signal N)`, with which the runner ends its message.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import TypeVar

from spoold.protocol import codec, layout
from spoold.protocol.amount import amount
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import ENDED, State, shown_end
from spoold.protocol.names import EndedName, key, parse_ended
from spoold.protocol.request import EVERYTHING
from spoold.protocol.result import Code, Error, Result, Status
from spoold.protocol.settings import PollSettings
from spoold.protocol.snapshot import Snapshot
from spoold.rules.attempts.durations import eta_s
from spoold.store import snapshots, task_location
from spoold.store.existence import listed
from spoold.store.lanes_and_archive import list_archived
from spoold.store.store import Store
from spoold.store.task_location import Located, locate_many
from spoold.system.clock import Clock

# A task is archived long after it ended, except by `spool gc`: looking there now and then is enough.
ARCHIVE_EVERY_S = 5.0


class Waiter:
    """Awaits tasks by id. `add` ids at any time, `poll` for results, sleep for `pace`; not thread-safe."""

    def __init__(self, store: Store, ids: Iterable[str] = (), dropped: Mapping[str, str] | None = None) -> None:
        """dropped: the names of this client's drops, by key, for ids that it chose and other tasks may have."""
        self._store = store
        self._dropped = {} if dropped is None else dropped
        self._wanted: dict[str, str] = {}
        self._came: dict[str, Result] = {}
        self._listed: dict[State, set[str]] = {State.COMPLETED: set(), State.FAILED: set()}
        self._ended: dict[str, Located] = {}
        self._reasons: set[str] = set()
        self._rejected: dict[str, str] = {}
        self._archive_at = store.clock.monotonic() + ARCHIVE_EVERY_S
        self.pace = Pace(store.clock, store.settings.poll)
        self.add(ids)

    @property
    def pending(self) -> list[str]:
        """The ids whose results have not come yet."""
        return list(self._wanted.values())

    def add(self, ids: Iterable[str]) -> None:
        """Await these ids too; tasks that ended before are found as well."""
        self._wanted.update((key(task_id), task_id) for task_id in ids)
        self.pace.something_happened()

    def poll(self) -> dict[str, Result]:
        """Return the results since the last poll, by id. Errors: OSError; the next poll has what this one lost."""
        if self._wanted:
            unjudged = self.unjudged()
            self._list_ended()
            self._look_rejected()
            for task_key in (self._wanted.keys() & self._ended.keys()) - unjudged:
                self._take(self._ended[task_key])
            if self._wanted and self._store.clock.monotonic() >= self._archive_at:
                self.look_in_archive()
        came, self._came = self._came, {}
        if came:
            self.pace.something_happened()
        return came

    def unjudged(self) -> set[str]:
        """Return the keys whose drop by this client is still in pending/: a task that has the id may be another one.

        Errors: OSError.
        """
        own = self._wanted.keys() & self._dropped.keys()
        standing = set(self._store.fs.list(layout.PENDING)) if own else ()
        return {task_key for task_key in own if self._dropped[task_key] in standing}

    def refusals(self) -> dict[str, Result]:
        """Return the rejections, by id. Errors: OSError."""
        self._look_rejected()
        came, self._came = self._came, {}
        return came

    def look_elsewhere(self) -> bool:
        """Check that all ids still awaited are in the spool, also in its archive. Always returns True.

        Errors: NotFound that names the missing ids; OSError.
        """
        found = locate_many(self._store, self.pending)
        missing = [task_id for task_id in self.pending if task_id not in found]
        if missing:
            raise NotFound(
                f"no task {', '.join(map(repr, missing[:5]))}{' …' if len(missing) > 5 else ''} in this spool."
            )
        self.look_in_archive()
        return True

    def look_in_archive(self) -> None:
        """Let the next poll return archived results too. Errors: OSError."""
        self._archive_at = self._store.clock.monotonic() + ARCHIVE_EVERY_S
        unjudged = self.unjudged()
        for path, task_id, drop in task_location.list_unexplained(self._store.fs):
            self._rejected |= dict.fromkeys(map(key, (drop, task_id)), path)
        self._look_rejected()  # after `unjudged`: a judged drop has its reason beside it before it is moved
        for path, name, kind in list_archived(self._store.fs, self.pending):
            if key(name.id) in self._wanted.keys() - unjudged:
                state = shown_end(State(kind), skipped=name.skipped)
                self._take(Located(state, path, name.id, name.attempt, name.decider, archived=True))

    def _list_ended(self) -> None:
        """Update the known names of completed/ and failed/; parse only new ones."""
        for state, before in self._listed.items():
            now = set(self._store.fs.list(state))
            for file in before - now:
                name = parse_ended(file)
                if name is not None and self._ended.get(key(name.id)) == _located(state, file, name):
                    del self._ended[key(name.id)]
            for file in now - before:
                name = parse_ended(file)
                if name is not None:
                    self._ended[key(name.id)] = _located(state, file, name)
            self._listed[state] = now

    def _look_rejected(self) -> None:
        for path, task_id, drop in task_location.list_reasons(self._store.fs, self._reasons):
            self._reasons.add(path)
            self._rejected |= dict.fromkeys(map(key, (drop, *self._lines(drop, path), task_id)), path)
            for own in [k for k in self._wanted.keys() & self._dropped.keys() if self._dropped[k] == drop]:
                self._reject(own, path)
        for task_key in self._wanted.keys() & self._rejected.keys():
            path = self._rejected.pop(task_key)
            if not self._lives(self._wanted[task_key]):
                self._reject(task_key, path)

    def _lines(self, drop: str, path: str) -> Iterable[str]:
        """The ids of the lines of a rejected batch: none of them will ever be a task of this drop."""
        if not drop.lower().endswith(".jsonl"):
            return ()
        return task_location.lines_in(task_location.read_reason(self._store.fs, path))

    def _reject(self, task_key: str, path: str) -> None:
        task_id = self._wanted.pop(task_key)
        self._came[task_id] = rejection(task_id, task_location.read_reason(self._store.fs, path))

    def _lives(self, task_id: str) -> bool:
        """Return whether a task has this id: then a second drop with the id was rejected."""
        found = locate_many(self._store, [task_id]).get(task_id)
        return found is not None and found.state is not State.REJECTED

    def _take(self, located: Located) -> None:
        try:
            result = read_result(self._store, located)
        except (NotFound, BadFile) as error:
            if not located.archived and not listed(self._store.fs, located.path):
                return  # it was archived, or retried, between listing and reading
            result = _unreadable(located, error)
        self._came[self._wanted.pop(key(located.id))] = result


def _located(state: State, file: str, name: EndedName) -> Located:
    shown = shown_end(state, skipped=name.skipped)
    return Located(shown, layout.join(state, file), name.id, name.attempt, name.decider)


def read_result(store: Store, located: Located) -> Result:
    """Return the result that counts for an ended task. Errors: NotFound if it moved or is gone; BadFile; OSError."""
    path = located.result
    if path is None:
        raise NotFound(f"task {located.id} is {located.state}; it has no result.")
    try:
        return codec.load_model(Result, store.fs.read(path), path)
    except FileNotFoundError as error:
        raise NotFound(f"{path}: the result of task {located.id} is gone.") from error


def rejection(task_id: str, reason: dict[str, object]) -> Result:
    """Return a rejected drop as a result: no attempt was made, and the error says how to fix it."""
    problem = BadFile(
        str(reason.get("file") or reason.get("drop") or ""),
        str(reason.get("field") or ""),
        str(reason.get("problem") or "has no reason beside it."),
        str(reason.get("mend") or "put it into pending/ again and it is judged anew."),
    )
    return Result(
        task_id=task_id,
        attempt=0,
        worker_id="",
        status=Status.FAILURE,
        completed_at=str(reason.get("at") or ""),
        error=Error(code=Code.INVALID_TASK, message=f"rejected: {problem}"),
    )


def _unreadable(located: Located, error: SpoolError) -> Result:
    """Return a failure for an ended task whose result was deleted or damaged, so that no caller waits for ever."""
    return Result(
        task_id=located.id,
        attempt=located.attempt,
        worker_id=located.node,
        status=Status.FAILURE,
        completed_at="",
        error=Error(
            code=Code.OUTPUT_INVALID, message=f"the task is {located.state}, but its result is lost: {error}"
        ),
    )


# The pauses between two looks, and how long to bear with a share that does not answer.


T = TypeVar("T")

# A pause may take this part of the time waited so far: short tasks are seen at once, and long ones cost little.
PATIENCE = 0.1
# A file server may restart during a wait of hours; only after so long without a good look is that an error.
OUTAGE_S = 60.0


class Pace:
    """Pauses between the spool's `poll.busy_s` and `poll.idle_s`: longer, the longer nothing has happened."""

    def __init__(self, clock: Clock, poll: PollSettings) -> None:
        self._clock = clock
        self._poll = poll
        self._quiet_since = self._good_at = clock.monotonic()

    def something_happened(self) -> None:
        """Look often again."""
        self._quiet_since = self._clock.monotonic()

    def pause_s(self) -> float:
        """Seconds until the next look."""
        quiet_s = self._clock.monotonic() - self._quiet_since
        return min(max(quiet_s * PATIENCE, self._poll.busy_s), self._poll.idle_s)

    def forgiving(self, look: Callable[[], T], otherwise: T) -> T:
        """Return the look's result; `otherwise` if the share failed. Errors: OSError after OUTAGE_S of failures."""
        try:
            found = look()
        except OSError:
            if self._clock.monotonic() - self._good_at > OUTAGE_S:
                raise
            return otherwise
        self._good_at = self._clock.monotonic()
        return found


# Errors for a caller, beyond those in `protocol.errors`.


_SIGNAL = re.compile(r"\(signal (\d{1,3})\)")


def shell_code(result: Result) -> int | None:
    """Return the attempt's exit code as a shell gives it: 128 plus the signal for a killed one; None if unknown."""
    error = result.error
    if result.exit_code is not None or error is None or Code.SIGNALED not in (error.code, error.cause):
        return result.exit_code
    # Only the message names the signal.
    found = _SIGNAL.search(error.message)
    return 128 + int(found[1]) if found else None


class NotFinished(NotFound):
    """The task exists and has no result yet."""


class TaskFailed(SpoolError):
    """A task did not succeed: its id, the error's code and message, its Result, the end of its log."""

    def __init__(self, result: Result, log_tail: str = "") -> None:
        self.id = result.task_id
        self.result = result
        self.code = result.error.code if result.error else Code.EXIT_NONZERO
        self.message = result.error.message if result.error else str(result.status)
        self.log_tail = log_tail
        tail = f"\n{log_tail.rstrip()}" if log_tail.strip() else ""
        super().__init__(f"task {self.id} failed: {self.code}: {self.message}{tail}")


# When tasks will have ended, by the leader's figures of how long tasks of their types take.


Estimator = Callable[[Iterable[tuple[Located, str]]], tuple[float | None, str]]


def time_left(store: Store, tasks: Iterable[tuple[Located, str]]) -> tuple[float | None, str]:
    """Return in how many seconds these tasks will have ended at the earliest, each with its type; or None, and why.

    Errors: OSError.
    """
    return estimator(store)(tasks)


def estimator(store: Store) -> Estimator:
    """Return `time_left` for many questions; the leader's figures are read once, when they are first needed."""
    latest = cache(lambda: snapshots.latest(store.fs))

    def estimate(tasks: Iterable[tuple[Located, str]]) -> tuple[float | None, str]:
        asked = list(tasks)
        still = Counter(kind for located, kind in asked if located.state not in ENDED)
        if not still:
            return 0.0, ""
        if "" in still:
            return None, "a task is not admitted yet"
        found = latest()
        if found is None:
            return None, "no node has led this spool yet"
        if why := _held_up([located for located, _ in asked if located.state not in ENDED], found[1]):
            return None, why
        slots = sum(node.slots for node in found[1].nodes if node.state in ("idle", "working"))
        return eta_s(still, found[1].durations, slots)

    return estimate


def _held_up(still: Sequence[Located], picture: Snapshot) -> str:
    """Return why nobody can say when these tasks will have ended, as the leader sees it; '' where it sees nothing."""
    if picture.halted:
        return "the spool is halted"
    lanes = picture.gates.get("worker", {})
    stuck = sum(located.lane in lanes for located in still)
    if stuck:
        return f"no worker can run {stuck} of {amount(len(still), 'task')}"
    kinds = {lane.own_type for located in still if (lane := parse_lane(located.lane)) is not None}
    if EVERYTHING in picture.paused or kinds.intersection(picture.paused):
        return "tasks are paused"
    return ""
