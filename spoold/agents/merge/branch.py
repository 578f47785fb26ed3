"""The branch on the remote: the push of a tested commit, what the remote says afterwards, and the clean-up.

Law: the push names the commit on which the tests began, so the remote takes it only while the branch is there, and
only forwards. What counts is what the remote shows when it is read again, also after a push whose answer was lost.

The clean-up removes a reference only if its commit is in the branch, read just before, and is old enough; and only as
long as it holds that commit. Work that has not landed is never touched.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.agents.workspace.git import (
    REMOTE_S,
    Git,
    GitFailed,
    WorkspaceFailed,
    checked_out,
    commit_of,
    failure,
    is_ancestor,
    said,
)
from spoold.agents.workspace.mirror import HEADS, Mirror
from spoold.agents.workspace.publishing import TOP, push, standing


class NoBranch(WorkspaceFailed):
    """The remote has no such branch, which no later try changes."""


@dataclass(frozen=True, slots=True)
class Branch:
    """The branch of the remote that is merged into."""

    mirror: Mirror
    name: str

    def fetch(self, patterns: tuple[str, ...] = ()) -> str:
        """Fetch all branches, and these references besides; returns the tip. Errors: WorkspaceFailed, OSError."""
        with self.mirror.locked() as git:
            self.mirror.fetch(git, patterns)
            found = commit_of(git, [f"{HEADS}{self.name}"])
        if found is None:
            raise NoBranch(f"{self.mirror.repo} has no branch {self.name}. Fix: make it, or name another.")
        return found

    def tip(self) -> str:
        """Return what the remote says is the tip. Errors: WorkspaceFailed."""
        ref = f"refs/heads/{self.name}"
        found = standing(Git(), self.mirror.repo, [ref]).get(ref)
        if found is None:
            raise NoBranch(f"{self.mirror.repo} has no branch {self.name} any more. Fix: make it again.")
        return found

    def land(self, git: Git, tip: str, commit: str) -> bool:
        """Push a commit onto the tip that it was tested on; whether it landed, or else lost the race.

        Errors: WorkspaceFailed where the remote refuses it for another reason.
        """
        if not is_ancestor(git, tip, commit):
            raise WorkspaceFailed(f"{commit} does not contain {tip}: this would undo what is in {self.name}.")
        ref, words = f"refs/heads/{self.name}", ("push", "--porcelain", "--no-verify", "--quiet")
        failed = push(git, self.mirror.repo, ref, *words, f"--force-with-lease={ref}:{tip}", f"{commit}:{ref}")
        found = self.tip()
        if found == commit or self._holds(commit):
            return True
        if found == tip:
            failed = failed or GitFailed(words, 0, "it said that it took it, and the branch is where it was")
            if why := checked_out(failed, self.mirror.repo, self.name):
                raise failure(failed, why, known=True)
            text = f"{self.mirror.repo} does not take the merge into {self.name}: {said(failed)}"
            raise failure(failed, text, "Fix: let this machine's user push to that branch.", known=True)
        return False

    def _holds(self, commit: str) -> bool:
        """Whether the branch, read again, goes on from the commit."""
        with self.mirror.locked() as git:
            self.mirror.fetch(git)
            known = git.ask("cat-file", "-e", f"{commit}^{{commit}}").code == 0
            return known and is_ancestor(git, commit, f"{HEADS}{self.name}")


# Removes references of work that landed long ago from the remote.


# So many in one push; a later merge removes the others.
_AT_ONCE = 200


def clear(branch: Branch, keep_s: float, now: float) -> list[str]:
    """Remove references whose work is in the branch, and whose commit is older than keep_s; returns their names.

    now: epoch, s. Errors: WorkspaceFailed, OSError; a remote that keeps them is none.
    """
    git = branch.mirror.git
    there = standing(git, branch.mirror.repo, [f"{TOP}*"])
    branch.fetch()
    landed = _landed(git, branch.name, now - keep_s)
    old = {name: commit for name, commit in there.items() if commit in landed}
    gone = dict(sorted(old.items())[:_AT_ONCE])
    if not gone:
        return []
    leases = [f"--force-with-lease={name}:{commit}" for name, commit in gone.items()]
    words = ("push", "--porcelain", "--no-verify", "--quiet")
    try:
        git.ask(*words, *leases, "--", branch.mirror.repo, *(f":{name}" for name in gone), within_s=REMOTE_S)
    except GitFailed:
        return []
    left = standing(git, branch.mirror.repo, [f"{TOP}*"])
    return [name for name in gone if name not in left]


def _landed(git: Git, branch: str, before: float) -> set[str]:
    """Return the commits of a branch that were made before a time (epoch, s)."""
    try:
        return set(git("rev-list", f"--before={int(before)}", f"{HEADS}{branch}").out.split())
    except GitFailed as failed:
        raise WorkspaceFailed(str(failed)) from failed
