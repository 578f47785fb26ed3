"""The story of one task, from all journals and its results.

Law: looks and never touches. A line of a journal that does not name the task is not parsed.
"""

from __future__ import annotations

from spoold.client.info import list_attempts
from spoold.rules.answers.story import Chapter, tell
from spoold.store import locate
from spoold.store.journal import Reader
from spoold.store.locate import Located
from spoold.store.store import Store

__all__ = ["Chapter", "history"]


def history(store: Store, ref: str) -> tuple[Located, list[Chapter]]:
    """Return a task, and everything that happened to it, in its order. Errors: NotFound; OSError."""
    located = locate.locate(store, ref)
    events = Reader(store.fs, about=located.id).read()
    return located, tell(located.id, events, list_attempts(store, located))
