"""Tasks on their way into the spool.

Law: a key that was used before never makes a second task. Used for another task than before, it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from spoold.client.read.selecting import Located, find
from spoold.client.read.task_info import read_content
from spoold.faces.mcp.keys import id_of
from spoold.faces.mcp.session import Session
from spoold.protocol.errors import SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key as folded

# What the client adds to a task is not the caller's, and may differ the next time.
ADDED = frozenset({"id", "parent", "depth", "created_at", "batch", "budgets", "class", "priority"})


def submit(session: Session, draft: Mapping[str, Any], key: str | None) -> tuple[str, bool]:
    """Submit a task; return its id, and whether it is new. Errors: BadFile, SpoolError for a key of another task."""
    if key is None:
        task_id = session.spool.submit_from("the task", draft)
        session.reach.add([task_id])
        return task_id, True
    task_id = id_of(session.scope, key)
    [(_, created)] = submit_all(session, [{**draft, "id": task_id}])
    return task_id, created


def submit_all(session: Session, drafts: Sequence[Mapping[str, Any]]) -> list[tuple[str, bool]]:
    """Submit tasks with ids from keys, all or none; return each id, and whether it is new. Errors: as of `submit`."""
    before = _there(session, [str(draft["id"]) for draft in drafts])
    for draft in drafts:
        if (located := before.get(folded(str(draft["id"])))) is not None:
            _insist_same(session, draft, located)
    new = [draft for draft in drafts if folded(str(draft["id"])) not in before]
    if len(new) == 1:
        session.spool.submit_from("the task", new[0])
    elif new:
        session.spool.submit_many(new)
    made = {folded(str(draft["id"])) for draft in new}
    ids = [str(draft["id"]) for draft in drafts]
    session.reach.add(ids)
    return [(task_id, folded(task_id) in made) for task_id in ids]


def _there(session: Session, ids: list[str]) -> dict[str, Located]:
    """The tasks that have these ids already; a rejected drop may be submitted again."""
    with session.spool.reaching():
        found, _ = find(session.spool.store, ids)
    return {folded(one.id): one for one in found if one.state is not State.REJECTED}


def _insist_same(session: Session, draft: Mapping[str, Any], located: Located) -> None:
    content = read_content(session.spool.store, located)
    names = (draft.keys() | content.keys()) - ADDED
    if content and any(_plain(draft.get(name)) != _plain(content.get(name)) for name in names):
        differs = sorted(name for name in names if _plain(draft.get(name)) != _plain(content.get(name)))
        raise SpoolError(
            f"idempotencyKey: it was used for another task, {located.id}, which differs in {', '.join(differs)}. "
            "Fix: use another key, or the same arguments."
        )


def _plain(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, (list, tuple)) else value
