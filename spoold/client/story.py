"""The story of one task, from all journals and its results.

Law: looks and never touches. A line of a journal that does not name the task is not parsed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from spoold.client.info import list_attempts
from spoold.protocol.errors import NotFound
from spoold.protocol.names import key
from spoold.rules.answers.task_history import Chapter, tell
from spoold.store import locate
from spoold.store.journal import Reader
from spoold.store.store import Store

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
        located = locate.locate(store, ref)
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
