"""The file of a task that has not ended, or of a drop, and what is wrong with it.

It stands apart because it imports the model of a task, which is loaded only for a task that has not ended.

Law: looks and never touches. The file is read as the worker reads it that claims the task, and a drop as the leader
that admits it: what is said of it here is what will happen there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

from spoold.protocol import codec, layout
from spoold.protocol.admission_names import BatchName
from spoold.protocol.errors import BadFile, BadName
from spoold.protocol.lifecycle import State
from spoold.protocol.names import UNIQUE, concerns_us, is_our_batch, is_unique
from spoold.protocol.task import Task
from spoold.rules.answers.task_facts import Case
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Accepted, Admit
from spoold.store.existence import Unreadable, readable
from spoold.store.leader_files import list_standing
from spoold.store.path_conflicts import WAITED_FOR
from spoold.store.store import Store
from spoold.store.task_location import Located
from spoold.system.filesystem import FileSystem

# The states in which a task file is one of spoold's own, which people do not write.
_OURS = frozenset({State.WAITING, State.READY, State.CLAIMED})


def read_task(store: Store, path: str) -> Task:
    """Return the task in a file. Errors: Unreadable; BadFile, also where its demand fits no lane; OSError."""
    with readable(path):
        task = codec.load_task(store.fs.read(path), path)
    try:
        task.lane.encode()
    except BadName as error:
        raise BadFile(path, "", f"fits no lane: {error}.", "submit it again with another demand.") from error
    return task


def fault_in(store: Store, located: Located) -> BadFile | None:
    """Return what is wrong with the file of a task that has not ended; None for nothing, also if it has moved on.

    Errors: OSError.
    """
    if located.state not in _OURS:
        return None
    try:
        read_task(store, located.path)
    except BadFile as error:
        return error
    except FileNotFoundError:
        return None
    return None


# A drop, as the leader judges it.


def with_drop(case: Case, store: Store, located: Located, warnings: Sequence[str]) -> Case:
    """Return the case of a drop with what the leader finds in it. warnings: those of the leader. Errors: OSError."""
    fs, drop = store.fs, located.drop
    if not located.path.startswith(f"{layout.PENDING}/"):
        return replace(case, awaits=told_of(located.path, warnings))
    before = sum(name < drop for name in fs.list(layout.PENDING) if concerns_us(name))
    case = replace(case, disk=store.room(), ahead=before)
    if not (drop.endswith(UNIQUE) or is_our_batch(drop)):
        with contextlib.suppress(OSError):
            case = replace(case, held=fs.has_writer(located.path) is True)
    seen = fs.stat(located.path)
    try:
        verdict = admission.judge_kind(drop, seen.kind, seen.size, store.settings) or _judge(store, located)
    except Unreadable as error:
        return replace(case, hidden=error)
    if isinstance(verdict, admission.Reject | admission.Young):
        return replace(case, problem=verdict.error, young=isinstance(verdict, admission.Young))
    return replace(case, awaits=awaited(fs, drop, verdict, warnings))


def _judge(store: Store, located: Located) -> object:
    """Judge the drop as the leader does. Errors: Unreadable, OSError."""
    settings, path, drop = store.settings, located.path, located.drop
    with readable(path):
        data = store.fs.read(path, settings.drop.max_batch_bytes + 1)
    if drop.lower().endswith(".jsonl"):
        return admission.check(data, drop, settings)
    return admission.judge_content(drop, data, *admission.settle(drop, 0, 0), settings)


def awaited(fs: FileSystem, drop: str, verdict: object, warnings: Iterable[str]) -> str:
    """Return a sentence on the batch in the leader's door that a sound drop waits for; '' where there is none.

    warnings: those of the leader; they name the batch that it cannot read. Errors: OSError.
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
