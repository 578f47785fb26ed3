"""Who may answer a question about a task: not the user as whom tasks run, where users can be told apart.

Law: an answer is refused only for an owner that was seen. Where one user owns the spool, the tasks and the workers,
no file says whether a person or a task wrote it, and nothing is refused.
"""

from __future__ import annotations

from contextlib import suppress

from spoold.protocol import layout
from spoold.protocol.names import is_node
from spoold.system.filesystem import FileSystem


def may_answer(fs: FileSystem, request: str, token: str | None) -> bool:
    """Whether the owner of a request may answer for a task. request, token: paths; token: None if it is not known.

    The workers' users own the directories in claimed/. If such a user has also made the spool and submitted the task,
    users cannot be told apart. Errors: OSError of the request itself.
    """
    owner = fs.stat(request).owner
    if owner is None or owner not in _users_of_workers(fs):
        return True
    others = [_owner(fs, path) for path in (layout.MARKER, token) if path is not None]
    return all(other in (owner, None) for other in others)


def _users_of_workers(fs: FileSystem) -> set[int]:
    found = (_owner(fs, layout.join(layout.CLAIMED, node)) for node in filter(is_node, fs.list(layout.CLAIMED)))
    return {owner for owner in found if owner is not None}


def _owner(fs: FileSystem, path: str) -> int | None:
    """The owner of what may be gone by now."""
    with suppress(OSError):
        return fs.stat(path).owner
    return None
