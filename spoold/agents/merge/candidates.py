"""The work that is to land, and a dry run: one commit of everything that fits together, onto the tip of the branch.

Law: what a result says counts before what a reference holds, since that is what was accepted. Work of another
repository, or none at all, is refused and never passed over.

A dry run writes no file but objects. Its commit has the tip as its first parent and each piece of work as another, so
that each commit in the line of first parents is a tested one. What adds conflict markers, or nothing, is refused.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.agents.workspace import publishing
from spoold.agents.workspace.git import Git, GitFailed, WorkspaceFailed, commit_of, is_ancestor, said
from spoold.agents.workspace.repository_config import repository, same
from spoold.protocol import codec
from spoold.protocol.amount import amount
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
    remote, lfs, or one of `guards`."""

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


# A dry run: one commit of everything that fits together, onto the tip of the branch, and what does not fit.


MERGER = "merge"
_PATHS_MAX, _MESSAGES_MAX = 50, 8000


@dataclass(frozen=True, slots=True)
class Conflict:
    """Work that does not merge. base, ours, theirs: commits; paths: where; messages: of git."""

    candidate: Candidate
    base: str
    ours: str
    theirs: str
    paths: tuple[str, ...]
    messages: str


@dataclass(frozen=True, slots=True)
class Joined:
    """What fits together. commit: the merge, '' where nothing is in it; taken: what is in it; already: what the
    branch has; refused: what never fits; conflicts: with the branch, or with what was taken before; later: what can
    only be judged after what was taken has landed, or not."""

    tip: str
    commit: str
    taken: tuple[Candidate, ...]
    already: tuple[Candidate, ...]
    refused: tuple[Refused, ...]
    conflicts: tuple[Conflict, ...]
    later: tuple[Candidate, ...] = ()


def join(git: Git, tip: str, candidates: Sequence[Candidate], merge_id: str) -> Joined:
    """Merge candidates onto a tip, one after the other. Errors: GitFailed, WorkspaceFailed."""
    taken: list[Candidate] = []
    already: list[Candidate] = []
    later: list[Candidate] = []
    refused: list[Refused] = []
    conflicts: list[Conflict] = []
    head = tip
    for one in candidates:
        if is_ancestor(git, one.commit, tip):
            already.append(one)
            continue
        if git.ask("merge-base", head, one.commit).code:
            refused.append(Refused(one.task, "conflict", "it has no commit in common with the branch"))
            continue
        made = _merged(git, head, one)
        if isinstance(made, Conflict):
            conflicts.append(made)
        elif made == git("rev-parse", f"{head}^{{tree}}").out.strip():
            # Nothing beside what was taken, which may still fail its tests.
            if taken:
                later.append(one)
            else:
                refused.append(Refused(one.task, "empty", "it changes nothing in the branch"))
        elif marked := markers(git, head, made):
            refused.append(Refused(one.task, "markers", f"conflict markers in {', '.join(marked[:10])}"))
        else:
            taken.append(one)
            head = git.by(MERGER)("commit-tree", made, "-p", head, "-p", one.commit, given="step\n").out.strip()
    commit = _commit(git, tip, head, taken, merge_id) if taken else ""
    return Joined(tip, commit, tuple(taken), tuple(already), tuple(refused), tuple(conflicts), tuple(later))


def _merged(git: Git, head: str, one: Candidate) -> str | Conflict:
    """Return the tree of a merge, or why there is none."""
    words = ("merge-tree", "--write-tree", "--name-only", "--messages", "-z", head, one.commit)
    done = git.ask(*words)
    if done.code not in (0, 1):
        if "usage:" in done.errors:
            raise WorkspaceFailed("git is too old for a merge without files. Fix: install git 2.38 or newer.")
        raise WorkspaceFailed(f"{one.task} cannot be merged: {said(GitFailed(words, done.code, done.errors))}")
    first, _, messages = done.out.partition("\0\0") if done.code else (done.out, "", "")
    tree, *paths = [part for part in first.split("\0") if part]
    if done.code == 0:
        return tree
    base = git("merge-base", head, one.commit).out.split()[0]
    told = "\n".join(line for line in _git_sentences(messages) if line)
    return Conflict(one, base, head, one.commit, tuple(paths[:_PATHS_MAX]), told[:_MESSAGES_MAX])


def _git_sentences(messages: str) -> list[str]:
    """Return git's sentences: each message is a count of paths, the paths, a short type, and the sentence."""
    parts, found, at = messages.split("\0"), [], 0
    while at < len(parts) and parts[at].isdecimal():
        at += 1 + int(parts[at]) + 1
        found.append(parts[at].strip() if at < len(parts) else "")
        at += 1
    return found


def markers(git: Git, before: str, tree: str) -> list[str]:
    """Return the files to which a tree adds both ends of a conflict's markers. Errors: GitFailed."""
    words = ("diff-tree", "-r", "-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--text", "--no-color")
    found: dict[str, set[str]] = {}
    path = ""
    for line in git(*words, before, tree).out.split("\n"):
        if line.startswith("+++ "):
            path = line[4:].removeprefix("b/").rstrip("\t")
        elif line.startswith(("+<<<<<<< ", "+>>>>>>> ")):
            found.setdefault(path, set()).add(line[1])
    return sorted(name for name, ends in found.items() if len(ends) == 2)


def _commit(git: Git, tip: str, head: str, taken: Sequence[Candidate], merge_id: str) -> str:
    """Return the one commit of all that was taken."""
    names = ", ".join(one.task for one in taken)
    lines = [f"Merge {names}" if len(names) < 60 else f"Merge the work of {amount(len(taken), 'task')}", ""]
    lines += [f"Spool-Task: {one.task}" for one in taken] + [f"Spool-Merge: {merge_id}"] * bool(merge_id)
    parents = [word for one in (tip, *dict.fromkeys(one.commit for one in taken)) for word in ("-p", one)]
    text = "\n".join(lines) + "\n"
    return git.by(MERGER)("commit-tree", f"{head}^{{tree}}", *parents, "-F", "-", given=text).out.strip()
