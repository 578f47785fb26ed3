"""What happened to tasks: the story of one, from all journals and its results; and the attempts of many.

Law: looks and never touches. A line of a journal that does not name the task is not parsed. For many tasks, results/
is listed once, an archive directory once, the heartbeats are read once. A record is the truth for an attempt that
ended; a heartbeat tells only of one that has no record.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from spoold.client.read.task_info import list_attempts, name_of_record, read_records, text_in
from spoold.pictures.picture_data import RUNNING, Attempt
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.heartbeat import Heartbeat, Running
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key
from spoold.protocol.result import Result, Status, message_of
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_history import Chapter, tell
from spoold.rules.attempts.reported_figures import figures_in
from spoold.store import heartbeats, task_location
from spoold.store.existence import names_shown
from spoold.store.journal import Reader
from spoold.store.store import Store
from spoold.store.task_location import Located

_Records = dict[str, list[tuple[EndedName, str]]]


class Histories:
    """One look at the attempts of some tasks. Errors of its methods: OSError."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._listed: dict[str, _Records] = {}

    def records(self, located: Located) -> tuple[list[Result], Result | None]:
        """Return the records of a task, oldest first, as `spool show` has them; and the one that counts for its end,
        None while it has none, or where that cannot be read.
        """
        if located.state in (State.PENDING, State.REJECTED):
            return [], None
        directory = layout.bucket(located.id) if located.archived else layout.RESULTS
        listed = self._records(directory).get(key(located.id), ())
        found = read_records(self._store, located, listed)
        counted = found[-1][1] if found and found[-1][0] else None
        return [result for _, result in found], counted

    def attempts(
        self, located: Located, content: dict[str, Any], kind: str, records: Sequence[Result]
    ) -> tuple[Attempt, ...]:
        """Return all attempts of a task, also the one that runs. kind: its type; records: as read."""
        ran = [(one, one.type or kind if one.instead_of else kind) for one in records]
        made = [_ended(one, _said_model(one) or self._model(content, own, one.worker_id)) for one, own in ran]
        # A worker may go on with a claim that a leader had begun to take back.
        ended = {(one.attempt, one.worker_id) for one in records if one.status is not Status.WORKER_DIED}
        if located.state is State.CLAIMED and (located.attempt, located.node) not in ended:
            made.append(self._running(located, self._model(content, kind, located.node)))
        return tuple(made)

    def _running(self, located: Located, model: str) -> Attempt:
        beat = self._beats.get(located.node)
        run = _run_in(beat.running if beat is not None else (), located)
        if run is None:
            return Attempt(located.attempt, located.node, RUNNING, model=model)
        figures = figures_in(run.progress)
        return Attempt(
            located.attempt,
            located.node,
            RUNNING,
            begin=moment(run.since),
            tokens=figures.tokens_used,
            cost_usd=figures.cost_usd,
            model=model,
        )

    def _model(self, content: dict[str, Any], kind: str, worker: str) -> str:
        """The model that a task names, else that of the profile of its worker, else that of its type's settings."""
        said: Any = content.get("input")
        own = text_in(said, "model") if isinstance(said, dict) else ""
        beat = self._beats.get(worker)
        about = beat.capabilities.about.get(kind, {}) if beat is not None and beat.capabilities is not None else {}
        agents = "agent" in about or bool(text_in(content, "agent"))
        settings = self._store.settings.of(kind).model or ""
        return own or text_in(content, "model") or about.get("model", "") or (settings if agents else "")

    @cached_property
    def _beats(self) -> dict[str, Heartbeat]:
        return heartbeats.read_all(self._store.fs)

    def _records(self, directory: str) -> _Records:
        if directory not in self._listed:
            found: _Records = {}
            for file in names_shown(self._store.fs, directory):
                name = name_of_record(file)
                if name is not None:
                    found.setdefault(key(name.id), []).append((name, layout.join(directory, file)))
            self._listed[directory] = found
        return self._listed[directory]


def _run_in(running: Iterable[Running], located: Located) -> Running | None:
    return next((run for run in running if key(run.id) == key(located.id) and run.attempt == located.attempt), None)


def _ended(result: Result, model: str) -> Attempt:
    error = result.error
    end = moment(result.completed_at)
    begin = moment(result.started_at or "")
    return Attempt(
        result.attempt,
        result.worker_id,
        str(result.status),
        begin=None if end is None else begin,
        end=end,
        duration_s=result.duration_s,
        code="" if error is None else str(error.cause or error.code),
        message=message_of(result),
        exit_code=result.exit_code,
        tokens=result.tokens_used,
        cost_usd=result.cost_usd,
        model=model,
        estimated=result.estimated,
    )


def _said_model(result: Result) -> str:
    """The model that a record names: in a field of a later release, or in the output."""
    said: Any = getattr(result, "model", None)
    if isinstance(said, str):
        return said
    return text_in(result.output, "model") if isinstance(result.output, dict) else ""


# The story of one task, from all journals and its results.


__all__ = ["Chapter", "History", "history", "vanished"]

VANISHED = "vanished"


class History(NamedTuple):
    """A task, and everything that happened to it, in its order. state: VANISHED for one that is in the spool no more,
    and was not archived; attempt: the next, running or last start.
    """

    id: str
    state: str
    attempt: int
    chapters: list[Chapter]


def history(store: Store, ref: str) -> History:
    """Return the history of a task, also of one that is only in the journals. Errors: NotFound; OSError."""
    try:
        located = task_location.locate(store, ref)
    except NotFound:
        told = tell(ref, Reader(store.fs, about=ref).read(), ())
        if not told:
            raise
        return History(ref, VANISHED, max(chapter.attempt or 0 for chapter in told), told)
    events = Reader(store.fs, about=located.id).read()
    return History(
        located.id, located.state.value, located.attempt, tell(located.id, events, list_attempts(store, located))
    )


def vanished(store: Store, ids: Collection[str]) -> dict[str, str]:
    """Return those of these tasks whose files another program removed, as the leaders noted it: key → the last place.

    ids: of tasks that are not in the spool. Errors: OSError.
    """
    keys = {key(task_id) for task_id in ids}
    last = {key(event.task or ""): event for event in (Reader(store.fs, tasks=keys).read() if keys else [])}
    return {
        task: str(event.detail["where"] or "on its way")
        for task, event in last.items()
        if event.event == "VANISHED" and isinstance(event.detail, dict) and "where" in event.detail
    }
