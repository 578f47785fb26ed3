"""A dry run: one commit of everything that fits together, onto the tip of the branch, and what does not fit.

Law: no file is written but objects. The commit has the tip as its first parent and each piece of work as another, so
that each commit in the line of first parents is a tested one. What adds conflict markers, or nothing, is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spoold.agents.merge.candidate import Candidate, Refused
from spoold.agents.workspace.git import Git, GitFailed, is_ancestor
from spoold.agents.workspace.remote import WorkspaceFailed, said
from spoold.protocol.amount import amount

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
    told = "\n".join(line for line in _sentences(messages) if line)
    return Conflict(one, base, head, one.commit, tuple(paths[:_PATHS_MAX]), told[:_MESSAGES_MAX])


def _sentences(messages: str) -> list[str]:
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
