"""A task of type merge: what its input says, and how one is made.

    {"type": "merge", "input": {"repo": "/srv/git/r.git", "into": "main", "tasks": ["edit-1", "edit-2"]},
     "dependencies": ["edit-1", "edit-2"], "locks": {"write": ["merge:/srv/git/r:main"]}}

Law: two merges into one branch of one repository have the same lock, so that they run one after the other. An id that
is made here is made of the ids of its tasks: submitted again, it is the same task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Annotated, Any
from urllib.parse import quote

from pydantic import BeforeValidator, Field

from spoold.agents.workspace.repository_config import Reference, Repository, repository
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.fields import OptionalWord, Seconds, Strict, TaskId, Whole

ROUNDS, ROUNDS_MAX = 2, 20
ASK_S = 3600.0
_ID_MAX, _LOCK_MAX = 120, 400


def _one_or_many(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


class MergeRequest(Strict):
    """The input of a merge. tasks: whose work; into: the branch; agent: the profile whose tasks resolve conflicts, ''
    for none; rounds: how many such tasks for one piece of work, before people are asked; ask_s: for how long.
    may_be_empty: work that changed nothing is no failure."""

    repo: Repository
    into: Reference = "main"
    tasks: Annotated[tuple[TaskId, ...], BeforeValidator(_one_or_many), Field(min_length=1, max_length=1000)]
    agent: OptionalWord = ""
    rounds: Annotated[Whole, Field(ge=0, le=ROUNDS_MAX)] = ROUNDS
    ask_s: Seconds = ASK_S
    may_be_empty: bool = False


def lock(repo: str, into: str) -> str:
    """Return the name of the lock of a branch. Other spellings of a repository's address are other locks; a push that
    lost the race begins again, so that costs time and no work."""
    name = quote(f"merge:{repository(repo).removesuffix('.git')}:{into}", safe="/:@+=,~_-.")
    name = "/".join(part.replace(".", "%2E") if set(part) == {"."} else part for part in name.split("/"))
    return name if len(name) <= _LOCK_MAX else f"merge:{hashlib.sha256(name.encode()).hexdigest()}"


def merge_task(
    tasks: Sequence[str],
    repo: str,
    into: str = "main",
    *,
    agent: str = "",
    rounds: int = ROUNDS,
    ask_s: float = ASK_S,
    task_id: str | None = None,
    may_be_empty: bool = False,
) -> dict[str, Any]:
    """Return the task that merges the work of others, after they have ended well; to be given to `submit`.

    Errors: pydantic's ValidationError, which is a ValueError, for what no merge can say.
    """
    said = {"repo": repo, "into": into, "tasks": list(tasks), "agent": agent, "rounds": rounds, "ask_s": ask_s}
    said |= {"may_be_empty": may_be_empty}
    wanted = MergeRequest.model_validate(said)
    found = {
        "type": MERGE,
        "name": f"merge {', '.join(tasks)} into {into}"[:200],
        "input": wanted.model_dump(mode="json", exclude_defaults=True) | {"into": into},
        "dependencies": list(dict.fromkeys(tasks)),
        "locks": {"write": [lock(repo, into)]},
    }
    return found if task_id is None else {"id": task_id, **found}


def after(task: str, repo: str, into: str = "main", *, agent: str = "") -> dict[str, Any]:
    """Return the merge that follows a task whose profile says `then = "merge"`; what shall begin only when its work
    has landed names the id of this one. An agent that found nothing to change fails nobody."""
    return merge_task([task], repo, into, agent=agent, task_id=id_after(task), may_be_empty=True)


def id_after(task: str) -> str:
    """Return the id of the merge that follows a task."""
    return child_id(task, "merge")


def child_id(task: str, what: str) -> str:
    """Return an id that is made of a task's id; a long one is cut, with a hash in place of its end."""
    made = f"{task}-{what}"
    if len(made) <= _ID_MAX:
        return made
    end = hashlib.sha256(made.encode()).hexdigest()[:10]
    return f"{task[: _ID_MAX - len(what) - 12].rstrip('.')}-{end}-{what}"
