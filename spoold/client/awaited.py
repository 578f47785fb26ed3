"""The batch in a leader's door that a drop waits for, as far as a client can see it.

Law: looks and never touches. No file lists the ids that a leader knows of a batch, so the answer is that the batch
may have the drop's id.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable

from spoold.protocol.door import BatchName
from spoold.protocol.drop import is_unique
from spoold.rules.entry.admission import Admit
from spoold.rules.entry.batch import Accepted
from spoold.store.door_files import list_standing
from spoold.store.refusals import WAITED_FOR
from spoold.system.filesystem import FileSystem


def awaited(fs: FileSystem, drop: str, verdict: object, warnings: Iterable[str]) -> str:
    """Return a sentence on the batch that a sound drop waits for; '' where there is none. Errors: OSError.

    warnings: those of the leader; they name the batch that it cannot read.
    """
    if not _names_ids(drop, verdict):
        return ""
    unread = next((said for said in warnings if WAITED_FOR in said), "")
    if unread:
        return unread
    for found in list_standing(fs, set()):
        with contextlib.suppress(FileNotFoundError):
            if isinstance(found.name, BatchName) and fs.stat(found.path).kind == "file":
                return f"{found.path} may have an id that it names, and is not all tasks yet"
    return ""


def told_of(path: str, warnings: Iterable[str]) -> str:
    """Return the leader's warning about a path in its door; '' where it has none."""
    return next((said for said in warnings if path in said), "")


def _names_ids(drop: str, verdict: object) -> bool:
    """Whether the drop names an id that another one may have."""
    if isinstance(verdict, Accepted):
        return bool(verdict.named)
    task_id = verdict.task.id if isinstance(verdict, Admit) else None
    return task_id is not None and not is_unique(drop, task_id)
