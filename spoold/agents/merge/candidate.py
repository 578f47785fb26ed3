"""The work that is to land: a commit of each task, as its result says, else its newest reference on the remote.

Law: what a result says counts before what a reference holds, since that is what was accepted. Work of another
repository, or none at all, is refused and never passed over.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spoold.agents.workspace import publishing
from spoold.agents.workspace.addresses import repository, same
from spoold.agents.workspace.git import Git, commit_of
from spoold.protocol import codec
from spoold.protocol.errors import BadFile, WrongValue

_LATEST = 10**9 - 1
# So many of what a result says is not in the work are told, and so much of each (characters).
_SENTENCES, _SENTENCE = 50, 500


@dataclass(frozen=True, slots=True)
class Candidate:
    """The work of a task. ref: where it was pushed; rounds: how many tasks have resolved its conflicts so far;
    left_out, beside: what was made and is not in it, as its result says."""

    task: str
    commit: str
    ref: str = ""
    rounds: int = 0
    left_out: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """Why the work of a task did not land. reason: empty, markers, conflict, tests, fewer_tests, missing, repository,
    remote, lfs, or one of `guarding`."""

    task: str
    reason: str
    detail: str


def read_result(folder: str | None, task: str) -> Mapping[str, Any]:
    """Return what the result of a dependency says of its workspace; {} for nothing. folder: SPOOL_DEPS_DIR."""
    if not folder:
        return {}
    try:
        with open(os.path.join(folder, f"{task}.json"), "rb") as file:
            return workspace_of(codec.load(file.read(), file.name))
    except (OSError, BadFile):
        return {}


def workspace_of(record: Any) -> Mapping[str, Any]:
    """Return what a result says of the workspace; {} where it says nothing."""
    output = record.get("output") if isinstance(record, Mapping) else None
    if not isinstance(output, Mapping):
        return {}
    said = output.get("workspace")
    if isinstance(said, Mapping):
        return said
    # An attempt that ended without a reference has made nothing, if it says so itself.
    return {name: output[name] for name in ("ref", "outcome") if isinstance(output.get(name), str)}


def find(git: Git, repo: str, task: str, said: Mapping[str, Any]) -> Candidate | Refused:
    """Return the work of a task, after a fetch of its references. said: by its result. Errors: GitFailed."""
    if said.get("repo") is not None:
        try:
            other = repository(str(said["repo"]))
        except WrongValue as wrong:
            return Refused(task, "repository", f"the address of its repository is wrong: {wrong}")
        if not same(other, repo):
            return Refused(task, "repository", f"it worked in {other}, and not in {repo}")
    if not said.get("ref") and (said.get("repo") is not None or said.get("outcome") == "no_change"):
        return Refused(task, "empty", "it changed nothing")
    ref, commit = str(said.get("ref") or ""), str(said.get("commit") or "")
    if ref and not commit:
        commit = commit_of(git, [ref]) or ref
    if not commit:
        rows = git("for-each-ref", "--format=%(objectname) %(refname)", publishing.prefix(task)).lines
        there = {name: one for one, _, name in (row.partition(" ") for row in rows)}
        ref, commit = publishing.newest(there, task, _LATEST) or ("", "")
    if not commit:
        return Refused(
            task, "missing", f"no result says what it made, and the remote has no {publishing.prefix(task)}*"
        )
    found = commit_of(git, [commit])
    if found is None:
        return Refused(
            task, "missing", f"its commit {commit} is not on the remote, in {ref or 'any reference of it'}"
        )
    return Candidate(
        task, found, ref, left_out=_sentences(said.get("left_out")), beside=_sentences(said.get("beside"))
    )


def _sentences(said: Any) -> tuple[str, ...]:
    found = [str(one)[:_SENTENCE] for one in said] if isinstance(said, list) else []
    return tuple(found[:_SENTENCES])
