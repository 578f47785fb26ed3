"""What a worker's file says that will fail its agents' tasks, or the merges of their work, seen before any is run.

Law: it looks, and changes nothing. Only what this machine can see is said: of a repository on a path, never of one at
another address. Each is named with its field and its fix, for the worker's start, for `spool doctor`, and for a task.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from spoold.agents.sandbox.guarded import git_directory, takes
from spoold.agents.workspace.addresses import is_among, repository
from spoold.agents.workspace.git import Git, GitFailed
from spoold.agents.workspace.remote import bare_or_updated

_LOOK_S, _BRANCHES = 20.0, 3
_BRANCH = "branch refs/heads/"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """What will not go well. field: of the worker's file; fix: for it; sure: no other worker can make it go well."""

    field: str
    problem: str
    fix: str
    sure: bool = True

    @property
    def words(self) -> str:
        """All as one sentence."""
        return f"{self.field}: {self.problem}; fix: {self.fix}"


def of_workspace(name: str, workspace: Mapping[str, Any]) -> list[Foreseen]:
    """Return what is wrong with the repository of a profile. Errors: WrongValue for an address that is none."""
    return list(_unusable(f"agents.{name}.workspace.repo", workspace.get("repo") or ""))


def of_repositories(repos: Sequence[str]) -> list[Foreseen]:
    """Return what is wrong with the repositories of [merge]."""
    return [one for repo in repos for one in _unusable("merge.repos", repo)]


def of_branches(repos: Sequence[str]) -> list[Foreseen]:
    """Return into which repositories of [merge] git takes no merge, since the branch is checked out there."""
    found = []
    for repo in repos:
        if branches := _checked_out(repo):
            told = ", ".join([*branches[:_BRANCHES], *(["…"] if len(branches) > _BRANCHES else [])])
            problem = f"{told} is checked out in {repo}, and git refuses merges into what is checked out"
            found.append(Foreseen("merge.repos", problem, bare_or_updated(repo)))
    return found


def of_merges(
    name: str, repo: str, here: Sequence[str], elsewhere: Mapping[str, Sequence[str]] | None
) -> list[Foreseen]:
    """Return that nothing merges the work of a profile with `then = "merge"`; [] where something does.

    repo: '' for any; here: of [merge] in the same file; elsewhere: by live worker what it merges, () where that is
    not known; None where there was no spool to ask.
    """
    others = (elsewhere or {}).values()
    if any(not repos or _has(repos, repo) for repos in others) or _has(here, repo):
        return []
    what = repo or "any repository"
    asked = "" if elsewhere is None else ", and no live worker merges it"
    said = f'"merge" submits merges, and [merge] of this file does not name {what}'
    problem = f"{said}{asked}: its work would not land"
    line = f'repos = ["{repo or "/srv/git/app.git"}"]'
    where = f"add {line} below [merge]" if not here else f'add "{repo}" to repos of [merge]'
    fix = f"{where} of this file, or of the file of a worker that is to merge"
    return [Foreseen(f"agents.{name}.then", problem, fix, sure=elsewhere is not None)]


def _has(repos: Sequence[str], repo: str) -> bool:
    return is_among(repo, repos) if repo else bool(repos)


def _unusable(field: str, said: str) -> Iterator[Foreseen]:
    repo = repository(said) if said else ""
    if not repo.startswith("/"):
        return
    there = [path for path in (repo, f"{repo}.git") if os.path.exists(path)]
    if not there:
        fix = "correct the path, mount what holds it, or make it with git init --bare"
        yield Foreseen(field, f"{repo} is not there", fix)
    elif not any(map(_is_repository, there)):
        yield Foreseen(field, f"{repo} is no git repository", "name one, or make it with git init --bare")


def _is_repository(path: str) -> bool:
    """Whether git opens a path. A file may be a bundle; and what cannot be looked into is not known to be none."""
    try:
        names = os.listdir(path)
    except OSError:
        return True
    return ".git" in names or takes(names)


def _checked_out(repo: str) -> list[str]:
    """Return the branches of a repository on a path that are checked out, where git takes no push into these."""
    path = next((one for one in (repo, f"{repo}.git") if repo.startswith("/") and os.path.isdir(one)), "")
    if not path:
        return []
    git = Git(git_directory(path) if os.path.lexists(f"{path}/.git") else path)
    try:
        rule = git.ask("config", "--get", "receive.denyCurrentBranch", within_s=_LOOK_S).out.strip().lower()
        if rule not in ("", "refuse", "true", "yes", "on", "1"):
            return []
        rows = git("worktree", "list", "--porcelain", "-z", within_s=_LOOK_S).names
    except GitFailed:
        return []
    return [row.removeprefix(_BRANCH) for row in rows if row.startswith(_BRANCH)]
