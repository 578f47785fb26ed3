"""Removes references of work that landed long ago from the remote.

Law: a reference goes only if its commit is in the branch, read just before, and is old enough; and only as long as it
holds that commit. Work that has not landed is never touched.
"""

from __future__ import annotations

from spoold.agents.merge.landing import Branch
from spoold.agents.workspace.git import REMOTE_S, Git, GitFailed
from spoold.agents.workspace.mirror import HEADS
from spoold.agents.workspace.publishing import TOP, standing
from spoold.agents.workspace.remote import WorkspaceFailed

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
