"""The worktrees of the repositories in a workspace, wherever an agent has made, moved or damaged them.

A repository has a folder for each of its worktrees, whose `gitdir` has the place of that; and `.git` in the place
names that folder. Either alone leads to one: after `mv` only `.git` is right, and without `.git` only the repository
knows of it.

Law: all of it is read as text of an agent's. A worktree is below the folder of the workspace, links resolved, and is
neither the tree nor a whole home.

Touches: files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from spoold.agents.workspace.agent_commits import Commits, text_of
from spoold.system.walking import walk


@dataclass(frozen=True, slots=True)
class Kept:
    """What a repository has of a worktree. of: path of the repository; noted: the place that it says, '' for none."""

    of: str
    name: str
    commits: Commits
    noted: str


@dataclass(slots=True)
class Worktrees:
    """What was found. places: folder and git directory of each; cut_off: folders with files that were one, where
    either side does not know of the other any more; unseen: those that lie where nobody can look."""

    places: dict[str, Commits] = field(default_factory=dict)
    cut_off: list[str] = field(default_factory=list)
    unseen: list[Kept] = field(default_factory=list)


def saying(tree: str) -> list[str]:
    """Return the folders beside a tree, as in the agent's home, that say of themselves that they are worktrees."""
    top, found = os.path.dirname(os.path.realpath(tree)), list[str]()
    try:
        names = sorted(os.listdir(top))
    except OSError:
        return []
    for name in names:  # each of them may be a mount of its own
        place = os.path.join(top, name)
        for folder in walk(place) if place != os.path.realpath(tree) else ():
            if ".git" in folder.files:
                found.append(os.path.join(place, folder.path))
            folder.folders[:] = [one for one in folder.folders if one != ".git"]
    return found


def worktrees(tree: str, was: str, repositories: Mapping[str, Commits], folders: Iterable[str]) -> Worktrees:
    """Return the worktrees of repositories, by the paths of these. was: where the folder with the tree was when the
    agent worked, whose paths git has noted; folders: those which may say that they are one."""
    here, made = _Here(tree, was), Worktrees()
    kept = {os.path.realpath(one.commits.own): one for one in here.kept(repositories)}
    tops = tuple(f"{os.path.realpath(one.shared)}/worktrees/" for one in repositories.values())
    noted = {one.noted for one in kept.values()}
    claimed = set[str]()
    for folder in dict.fromkeys([*sorted(noted), *map(os.path.realpath, folders)]):
        target = here.target(folder) if here.may_be(folder) else ""
        if target in kept:
            claimed.add(target)
            made.places[folder] = kept[target].commits
        elif target.startswith(tops) and not os.path.isdir(target) and _has_files(folder):
            made.cut_off.append(folder)
    for own, one in kept.items():
        if own in claimed:
            continue
        if not here.holds(one.noted):
            made.unseen.append(one)
        elif here.may_be(one.noted) and one.noted not in made.cut_off and _is_cut_off(one.noted):
            made.cut_off.append(one.noted)
    return made


class _Here:
    """The folder of a workspace."""

    def __init__(self, tree: str, was: str) -> None:
        self._tree, self._was = os.path.realpath(tree), was
        self._top = os.path.dirname(self._tree)
        self._all = os.path.realpath(os.path.dirname(was))

    def moved(self, path: str) -> str:
        """Return where a path that an agent wrote is now."""
        return os.path.realpath(self._top + path[len(self._was) :] if path.startswith(f"{self._was}/") else path)

    def holds(self, place: str) -> bool:
        return place.startswith(f"{self._top}/")

    def may_be(self, place: str) -> bool:
        return self.holds(place) and place not in (self._tree, f"{self._top}/home")

    def target(self, place: str) -> str:
        """Return the git directory that a worktree names; '' for none."""
        kind, _, said = text_of(os.path.join(place, ".git")).strip("\n").partition("gitdir: ")
        return self.moved(os.path.join(place, said)) if said and not kind and "\0" not in said else ""

    def kept(self, repositories: Mapping[str, Commits]) -> Iterator[Kept]:
        """Yield what repositories have of their worktrees; of a mirror, only of those that lie in this workspace, and
        of strays, see `_is_stray`."""
        for of, one in repositories.items():
            top = os.path.join(one.shared, "worktrees")
            for folder in walk(top):
                if not folder.path or "gitdir" not in folder.files:
                    continue
                folder.folders[:] = []
                own = os.path.join(top, folder.path)
                said = text_of(os.path.join(own, "gitdir")).strip("\n").replace("\0", "")
                noted = self.moved(os.path.dirname(os.path.join(own, said)))
                own_ones = one.own == one.shared or self.holds(noted)
                if noted != self._tree and (own_ones or self._is_stray(noted, own, one.own)):
                    yield Kept(of, folder.path, Commits(own, one.shared, one.borrows), noted)

    def _is_stray(self, noted: str, own: str, mine: str) -> bool:
        """Whether a worktree lies in no workspace, and was made since this one was: by its agent, or by another one
        that worked meanwhile. own, mine: git directories of both."""
        return not noted.startswith(f"{self._all}/") and _made_at(own) > _made_at(mine)


def _made_at(own: str) -> int:
    """Return when the git directory of a worktree was made (epoch, ns): this file is never written again."""
    try:
        return os.lstat(os.path.join(own, "commondir")).st_mtime_ns
    except OSError:
        return 0


def _is_cut_off(place: str) -> bool:
    """Whether a folder that a repository has as its worktree holds files, and says of no repository that it is its
    own."""
    own = os.path.join(place, ".git")
    try:
        if stat.S_ISDIR(os.lstat(own).st_mode):
            return False
    except OSError:
        return _has_files(place)
    kind, _, said = text_of(own).strip("\n").partition("gitdir: ")
    is_other = bool(said) and not kind and "\0" not in said and os.path.isdir(os.path.join(place, said))
    return not is_other and _has_files(place)


def _has_files(place: str) -> bool:
    return any(set(folder.files) - {".git"} for folder in walk(place))
