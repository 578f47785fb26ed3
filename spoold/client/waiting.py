"""Results as they come in, found by listing: one listing of completed/ and failed/ serves however many are awaited.

Law: no name is looked up before a listing showed it. A task that was rejected, or archived while nobody looked, is
an answer too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spoold.client.pace import Pace
from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended
from spoold.protocol.result import Code, Error, Result, Status
from spoold.store import drop_search
from spoold.store.absence import listed
from spoold.store.archive import list_archived
from spoold.store.locate import Located, locate_many
from spoold.store.store import Store

# A task is archived long after it ended, unless somebody runs `spool gc`: looking there now and then is enough.
ARCHIVE_EVERY_S = 5.0


class Waiter:
    """Awaits tasks by id. `add` ids at any time, `poll` for results, rest for `pace`; not for several threads."""

    def __init__(self, store: Store, ids: Iterable[str] = (), dropped: Mapping[str, str] | None = None) -> None:
        """dropped: under which name this client dropped a task, by key of ids that it chose and others may have."""
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
        """Await these ids too; what ended before is found as well."""
        self._wanted.update((key(task_id), task_id) for task_id in ids)
        self.pace.something_happened()

    def poll(self) -> dict[str, Result]:
        """The results that came since the last poll, by id. Errors: OSError; the next poll has what this one lost."""
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
        """The keys whose drop by this client still stands in pending/: a task that has the id may be another one.

        Errors: OSError.
        """
        own = self._wanted.keys() & self._dropped.keys()
        standing = set(self._store.fs.list(layout.PENDING)) if own else ()
        return {task_key for task_key in own if self._dropped[task_key] in standing}

    def refusals(self) -> dict[str, Result]:
        """Those that were rejected, by id. Errors: OSError."""
        self._look_rejected()
        came, self._came = self._came, {}
        return came

    def look_elsewhere(self) -> bool:
        """Make sure that all ids still awaited are in the spool, and look in its archive, too. Always True.

        Errors: NotFound that names those that are nowhere; OSError.
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
        """Have the next poll tell of what has been archived. Errors: OSError."""
        self._archive_at = self._store.clock.monotonic() + ARCHIVE_EVERY_S
        unjudged = self.unjudged()
        self._look_rejected()  # after that: a drop that is judged has its reason beside it before it is moved
        for path, name, kind in list_archived(self._store.fs, self.pending):
            if key(name.id) in self._wanted.keys() - unjudged:
                self._take(Located(State(kind), path, name.id, name.attempt, name.decider, archived=True))

    def _list_ended(self) -> None:
        """Bring what is known of completed/ and failed/ up to date, parsing only names that are new."""
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
        for path, task_id, drop in drop_search.list_reasons(self._store.fs, self._reasons):
            self._reasons.add(path)
            self._rejected[key(task_id)] = path
            for own in [k for k in self._wanted.keys() & self._dropped.keys() if self._dropped[k] == drop]:
                self._reject(own, path)
        for task_key in self._wanted.keys() & self._rejected.keys():
            path = self._rejected.pop(task_key)
            if not self._lives(self._wanted[task_key]):
                self._reject(task_key, path)

    def _reject(self, task_key: str, path: str) -> None:
        task_id = self._wanted.pop(task_key)
        self._came[task_id] = rejection(task_id, drop_search.read_reason(self._store.fs, path))

    def _lives(self, task_id: str) -> bool:
        """Whether a task has this id: then it was a second drop of the id that was rejected."""
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
    return Located(state, layout.join(state, file), name.id, name.attempt, name.decider)


def read_result(store: Store, located: Located) -> Result:
    """The result that counts for a task that ended. Errors: NotFound when it moved or is gone; BadFile; OSError."""
    path = located.result
    if path is None:
        raise NotFound(f"task {located.id} is {located.state}; it has no result.")
    try:
        return codec.load_model(Result, store.fs.read(path), path)
    except FileNotFoundError as error:
        raise NotFound(f"{path}: the result of task {located.id} is gone.") from error


def rejection(task_id: str, reason: dict[str, object]) -> Result:
    """A rejected drop as a result: no attempt was made, and the error says what to mend."""
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
    """A task that ended, and whose result somebody deleted or damaged: nobody may wait for ever for that."""
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
