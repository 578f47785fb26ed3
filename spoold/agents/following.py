"""What follows an attempt whose work was accepted: with `then = "merge"`, the task that merges it.

Law: it is submitted before the attempt says success, under an id that is made of the task's id. So there is one
merge, also if a worker dies in between, and however often the task is tried again. It waits for the task, and merges
what its result says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from spoold.agents.merge.wanted import after
from spoold.agents.profiles import Profile
from spoold.client.spool_client import SpoolClient
from spoold.protocol.task import Task

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")


def branch_of(profile: Profile, said: Mapping[str, Any]) -> str:
    """Return the branch that the work began with, to which it goes back; '' where that is no branch: then the one who
    asked for the work merges it, as a merge does whose conflict it resolves. said: the task's input.
    """
    base = str({**profile.workspace, **(said.get("workspace") or {})}.get("base") or "main")
    name = base.removeprefix("refs/heads/")
    return "" if name.startswith("refs/") or _COMMIT.fullmatch(name) else name


def submit_merge(root: str, task_id: str, task: Task, agent: str, repo: str, branch: str) -> str:
    """Submit the merge of a task's work, and return its id; again it changes nothing. agent: resolves conflicts.

    Errors: SpoolError.
    """
    # It asks no model, so it does not use what the task's own agent uses.
    own: dict[str, Any] = {"uses": {}} if task.uses else {}
    with SpoolClient(root) as spool:
        return spool.submit({**after(task_id, repo, branch, agent=agent), **own})
