"""What follows an attempt whose work was accepted: with `then = "merge"`, the task that merges it.

Law: it is submitted before the attempt says success, under an id that is made of the task's id. So there is one
merge, also if a worker dies in between, and however often the task is tried again. It waits for the task, and merges
what its result says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spoold.agents.merge.wanted import TYPE, after
from spoold.agents.profiles import Profile
from spoold.client.spool_client import SpoolClient
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.task import Task

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


class IdTaken(SpoolError):
    """The id of the merge is that of another task, so nothing would merge the work."""


def branch_of(profile: Profile, said: Mapping[str, Any]) -> str:
    """Return the branch that the work began with, to which it goes back; '' where that is no branch: then the one who
    asked for the work merges it, as a merge does whose conflict it resolves. said: the task's input.
    """
    base = str({**profile.workspace, **(said.get("workspace") or {})}.get("base") or "main")
    name = base.removeprefix("refs/heads/")
    return "" if name.startswith("refs/") or _COMMIT.fullmatch(name) else name


def submit_merge(root: str, task_id: str, task: Task, agent: str, repo: str, branch: str) -> str:
    """Submit the merge of a task's work, and return its id; again it changes nothing. agent: resolves conflicts.

    Errors: SpoolError, IdTaken.
    """
    wanted = after(task_id, repo, branch, agent=agent)
    # It asks no model, so it does not use what the task's own agent uses.
    own: dict[str, Any] = {"uses": {}} if task.uses else {}
    with SpoolClient(root) as spool:
        _insist_free(spool, wanted["id"], task_id)
        return spool.submit({**wanted, **own})


def _insist_free(spool: SpoolClient, merge: str, task_id: str) -> None:
    """Raise IdTaken if another task has the id of the merge. The merge of an earlier attempt is the same task."""
    try:
        found = spool.show(merge)
    except NotFound:
        return
    said = found.task.get("input")
    same = found.type == TYPE and isinstance(said, Mapping) and said.get("tasks") in ([task_id], task_id)
    if not same and found.state != State.REJECTED.value:
        raise IdTaken(
            f"nothing merges this work: the merge would be the task {merge}, and that is another task, which is "
            f"{found.state}. Fix: submit the work again under another id; what was made is pushed."
        )
