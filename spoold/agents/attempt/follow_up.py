"""What follows work that was accepted: a task that merges it, or a branch, and a command of the owner.

    then = "merge"      a task of type merge is submitted
    then = "branch"     the branch spool/TASK has the work; people, or their server, do the rest
    then = "command"    that, and then a command that opens a pull request, or whatever the owner wants

It stands alone since an attempt that was killed is taken up here, without the agent.

Law: no part of an agent's words becomes a part of a command: they are in variables and in its input. A merge is
submitted before the attempt says success, under an id that is made of the task's id. So there is one merge, also if a
worker dies in between, and however often the task is tried again. It waits for the task, and merges what its result
says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from spoold.agents.configuration.profiles import Profile
from spoold.agents.merge.merge_request import after
from spoold.agents.process.turns import Scene, run_command
from spoold.agents.workspace.workspace_layout import encoded
from spoold.client.spool_client import SpoolClient
from spoold.protocol.agent_fields import MERGE
from spoold.protocol.amount import length
from spoold.protocol.errors import NotFound, SpoolError
from spoold.protocol.lifecycle import State
from spoold.protocol.task import Task

# How long (s) the owner's command may take, and how much (characters) of its output the result has.
OFFER_S, SAID_MAX = 300.0, 2000
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


def own_branch(task_id: str) -> str:
    """Return the name of the branch of a task."""
    return f"spool/{encoded(task_id)}"


def offer(profile: Profile, about: Mapping[str, str], text: str, scene: Scene) -> tuple[str, str]:
    """Run the owner's command, outside of the sandbox. about: branch, base, repo, commit, title; text: the agent's
    own words, as its input. Returns why it did not do, '' where it did, and what it printed."""
    given = {f"SPOOL_THEN_{name.upper()}": value for name, value in about.items()}
    there, program = f"the work is in {about['branch']}", profile.then_command[0]
    try:
        own = replace(scene, env={**scene.env, **given})
        ran = run_command(profile.then_command, own, OFFER_S, stdin=text, most=SAID_MAX)
    except SpoolError as error:
        return f"then_command: {error}; {there}", ""
    said = ran.output.strip()
    if ran.code is None:
        how = "was stopped" if scene.stopped() else f"took longer than {length(OFFER_S)}, and was ended"
        return f"then_command {program} {how}: {said or 'it had said nothing'}; {there}", said
    why = f"then_command ended with {ran.code}: {said or 'it said nothing'}; {there}"
    return (why if ran.code else ""), said


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
    same = found.type == MERGE and isinstance(said, Mapping) and said.get("tasks") in ([task_id], task_id)
    if not same and found.state != State.REJECTED.value:
        raise IdTaken(
            f"nothing merges this work: the merge would be the task {merge}, and that is another task, which is "
            f"{found.state}. Fix: submit the work again under another id; what was made is pushed."
        )
