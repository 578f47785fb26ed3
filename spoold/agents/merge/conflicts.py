"""A conflict becomes a task for an agent, so often as the merge allows it, and then a question to people.

It stands apart from `__main__`, its one user: it asks the spool, which nothing else of a merge does.

Law: the id of such a task is made of the merge, the round and both commits: a merge that runs again finds the same
one, with what it has made. The branch stands still meanwhile, since the merge has its lock. Silence is no yes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Protocol

from spoold.agents.merge.candidates import Candidate, Conflict, Refused, workspace_of
from spoold.agents.merge.merge_request import MergeRequest, child_id
from spoold.protocol.amount import some
from spoold.protocol.errors import NotFound, SpoolError, WaitTimeout
from spoold.protocol.result import Result, Status

AGAIN, LAND, LEAVE = "again", "land", "leave"
_PATHS = 30
Say = Callable[[str], None]


class Spool(Protocol):
    """The part of a client that is used here."""

    def submit(self, task: Any = None, /, **fields: Any) -> str:
        """Submit a task."""
        ...

    def wait(self, ids: list[str], timeout: float | None = None) -> dict[str, Result]:
        """Wait for tasks."""
        ...

    def ask(self, text: str, choices: tuple[str, ...] = (), *, expires_s: float | None = None) -> str:
        """Ask people."""
        ...

    def answer_to(self, question: str, timeout: float | None = None) -> Any:
        """Wait for their answer."""
        ...


class Nobody:
    """Helps with no conflict: for a merge outside of a spool."""

    def resolve(self, conflict: Conflict) -> Candidate | Refused:
        """Leave it out."""
        return Refused(conflict.candidate.task, "conflict", told(conflict))

    def allows(self, one: Candidate, paths: tuple[str, ...]) -> bool:
        """Nobody says yes."""
        return False


class Agents:
    """Has agents resolve conflicts, and asks people when they did not. newest: the newest pushed work of a task."""

    def __init__(
        self,
        spool: Spool,
        merge_id: str,
        wanted: MergeRequest,
        newest: Callable[[str], Candidate | Refused],
        say: Say,
    ) -> None:
        self._spool, self._merge_id, self._wanted, self._newest, self._say = spool, merge_id, wanted, newest, say
        self._allowed: dict[str, int] = {}

    def resolve(self, conflict: Conflict) -> Candidate | Refused:
        """Return the work with its conflict resolved, or why it is left out. Errors: SpoolError."""
        one = conflict.candidate
        why = told(conflict)
        if self._wanted.agent and one.rounds < self._allowed.setdefault(one.task, self._wanted.rounds):
            task = resolving(self._merge_id, self._wanted, conflict)
            self._say(f"{one.task} conflicts: {task['id']} resolves it")
            self._spool.submit(task)
            found = self._spool.wait([task["id"]]).get(task["id"])
            said = workspace_of(found.model_dump() if found is not None else None)
            if found is not None and found.status is Status.SUCCESS and said.get("commit"):
                commit, ref = str(said["commit"]), str(said.get("ref") or "")
                return replace(one, commit=commit, ref=ref, rounds=one.rounds + 1)
            end = found.error.message if found is not None and found.error is not None else "it changed nothing"
            self._say(f"{task['id']} did not resolve it: {end}")
            return self.resolve(replace(conflict, candidate=replace(one, rounds=one.rounds + 1)))
        if not self._again(conflict, why):
            return Refused(one.task, "conflict", why)
        newer = self._newest(one.task)
        if isinstance(newer, Candidate) and newer.commit not in (one.commit, conflict.theirs):
            return replace(newer, rounds=one.rounds)
        if not self._wanted.agent:
            return Refused(one.task, "conflict", f"{why}; nothing newer was pushed, and the merge names no agent")
        self._allowed[one.task] += max(1, self._wanted.rounds)
        return self.resolve(conflict)

    def _again(self, conflict: Conflict, why: str) -> bool:
        """Ask people; whether they say that it is to be tried again."""
        return self._says(f"{why}. Try {AGAIN}, or {LEAVE} {conflict.candidate.task} out?", AGAIN)

    def allows(self, one: Candidate, paths: tuple[str, ...]) -> bool:
        """Ask people whether work may change protected paths."""
        named = some(list(paths), _PATHS)
        if len(paths) > _PATHS:
            named += f" (`spool logs {self._merge_id}` names all)"
        text = (
            f"{one.task} ({one.commit[:12]}) changes what is protected: {named}. Shall it {LAND}, or {LEAVE} it out?"
        )
        return self._says(text, LAND)

    def _says(self, text: str, yes: str) -> bool:
        if not self._wanted.ask_s:
            return False
        try:
            asked = self._spool.ask(
                f"Merge into {self._wanted.into}: {text}", (yes, LEAVE), expires_s=self._wanted.ask_s
            )
            answer = self._spool.answer_to(asked, self._wanted.ask_s)
        except (WaitTimeout, NotFound):
            return False
        except SpoolError as error:
            self._say(f"nobody can be asked: {error}")
            return False
        return not answer.rejected and answer.answer == yes


def told(conflict: Conflict) -> str:
    """Return a conflict as a part of a sentence."""
    where = ", ".join(conflict.paths[:10]) or "its history"
    return f"{conflict.candidate.task} ({conflict.theirs[:12]}) conflicts with {conflict.ours[:12]} in {where}"


def resolving(merge_id: str, wanted: MergeRequest, conflict: Conflict) -> dict[str, Any]:
    """Return the task for an agent that resolves a conflict: it begins with their work, and merges the branch in."""
    one = conflict.candidate
    number = one.rounds + 1
    return {
        "id": child_id(merge_id, f"resolve-{number}-{conflict.theirs[:8]}-{conflict.ours[:8]}"),
        "type": wanted.agent,
        "name": f"resolve the conflict of {one.task} with {wanted.into}"[:200],
        "input": {
            "prompt": prompt(wanted, conflict),
            "workspace": {"repo": wanted.repo, "base": one.ref or one.commit},
            "must_change": True,
            "conflict": {
                "base": conflict.base,
                "ours": conflict.ours,
                "theirs": conflict.theirs,
                "paths": list(conflict.paths),
            },
        },
    }


def prompt(wanted: MergeRequest, conflict: Conflict) -> str:
    """Return what the agent is told."""
    paths = "\n".join(f"- {path}" for path in conflict.paths) or "- (none is named)"
    return f"""Resolve a merge conflict. Your working directory holds the work of the task {conflict.candidate.task},
at commit {conflict.theirs} ("theirs"). The branch {wanted.into} is at commit {conflict.ours} ("ours"), which is
origin/{wanted.into} here. Their common base is {conflict.base}.

Files in conflict:
{paths}

What git says:
{conflict.messages or "(nothing)"}

Do this:
1. Run: git merge {conflict.ours}
2. In each file in conflict, keep what both sides meant. Look at `git diff {conflict.base} {conflict.ours}` and
   `git diff {conflict.base} {conflict.theirs}` for that. Leave no conflict markers. Drop neither side's work.
3. Run the tests of the repository, if there are any.
4. Run: git add -A && git commit --no-edit

Merge, and do not rebase, reset or squash: the result must contain both commits. Change nothing else. Do not push.
"""
