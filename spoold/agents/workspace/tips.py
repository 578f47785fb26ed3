"""Commits that lie beside the work, and the one above them that brings them to the remote.

Law: each is told with where it was. Those that somebody may have to merge are judged, however many others there are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spoold.agents.workspace.agent_commits import LOG
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.pack_request import Made
from spoold.agents.workspace.workbench import dated, empty
from spoold.protocol.amount import some
from spoold.protocol.errors import legible

# So many are told, and so many of what is in one.
TOLD_MAX, NAMED_MAX = 20, 5
# Below these lies what was fetched from others; and what is about commits, and none of the work: notes, and objects
# that git is to take for others.
FETCHED = ("refs/remotes/", "refs/prefetch/")
_ABOUT = ("refs/notes/", "refs/replace/")


@dataclass(frozen=True, slots=True)
class Tip:
    """A commit that is not in the work. what: where it was, for people; amiss: whether it should have been; None:
    where its changes are in no commit of the work."""

    what: str
    commit: str
    amiss: bool | None = None


def trace(path: str, file: str, commit: str) -> Tip:
    """Return a commit that only a file of a git directory names, as it is told. Nobody has to merge what was left
    behind, but for changes that were put away."""
    whose = f"{path}: " if path else ""
    what = "a commit that only the log of HEAD has" if file == LOG else f"a commit that stands only in .git/{file}"
    return Tip(f"{whose}{what}", commit, amiss=None if "autostash" in file.lower() else False)


def amiss_of(name: str) -> bool | None:
    """Return `amiss` of what a reference names. What was fetched, or is about commits, is pushed, and nobody is told
    to merge it."""
    return False if name.startswith((*FETCHED, *_ABOUT)) else None


def carry(git: Git, made: Made, tips: Sequence[Tip], author: str, base: str) -> None:
    """Make the one commit above all that lies beside the work, and note it with what it is. Errors: GitFailed."""
    commits = dict.fromkeys(tip.commit for tip in tips)
    if not commits:
        return
    said = [f"{tip.commit} {legible(tip.what)}" for tip in tips]
    parents = [word for one in commits for word in ("-p", one)]
    text = "\n".join([f"What lies beside the work of {author}", "", *said, ""])
    there = dated(git.by(author), made.commit)
    made.more = there("commit-tree", empty(git), *parents, "-F", "-", given=text).out.strip()
    judged = dict.fromkeys(tip.commit for tip in tips if tip.amiss is not False)
    for commit in dict.fromkeys([*list(commits)[:TOLD_MAX], *list(judged)[:TOLD_MAX]]):
        mine = [tip for tip in tips if tip.commit == commit]
        made.beside[commit] = some([legible(tip.what) for tip in mine], NAMED_MAX)
        unsure = any(tip.amiss is None for tip in mine)
        if any(tip.amiss for tip in mine) or (unsure and _has_changes(git, made.commit, commit, base)):
            made.amiss.append(commit)


def _has_changes(git: Git, work: str, commit: str, base: str) -> bool:
    """Whether a commit has changes that no commit of the work has. Errors: GitFailed."""
    words = ("rev-list", "--count", "--cherry-pick", "--right-only", "--no-merges")
    done = git.ask(*words, f"{work}...{commit}", "--not", base)
    return done.code != 0 or done.out.strip() != "0"
