"""Which batch in a leader's door a drop waits for, as far as whoever asks can see that.

Law: looks and never touches. Which ids a leader knows of a batch is written nowhere, so it is told that one may have
the id of the drop.
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
    """What is known of the batch that a sound drop waits for; '' where there is none. Errors: OSError.

    warnings: those of the leader, who says there which batch it cannot read.
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
    """What a leader says of what stands in its door; '' where it says nothing."""
    return next((said for said in warnings if path in said), "")


def _names_ids(drop: str, verdict: object) -> bool:
    """Whether the drop names an id that another one may have."""
    if isinstance(verdict, Accepted):
        return bool(verdict.named)
    task_id = verdict.task.id if isinstance(verdict, Admit) else None
    return task_id is not None and not is_unique(drop, task_id)
