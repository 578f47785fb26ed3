"""Which repositories are in a workspace, and which other worktrees these have.

Law: what git ignores is no work, but for changed files of a worktree. A repository that cannot be read is named, and
so is a worktree whose files cannot be saved.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable

from spoold.agents.workspace import staged
from spoold.agents.workspace.agent_commits import Commits, git_of
from spoold.agents.workspace.git import Git, GitFailed
from spoold.agents.workspace.looking import looked_over
from spoold.agents.workspace.pack_request import Made, Request
from spoold.agents.workspace.staged import Entry
from spoold.agents.workspace.workbench import borrow, is_below, last
from spoold.agents.workspace.worktrees import Worktrees, saying, worktrees

# So many worktrees are looked at that lie elsewhere.
AWAY_MAX = 100


class Repositories:
    """The repositories of a workspace, by their paths, and what each has staged.

    within: those whose files are files of the work; worktrees: which of them are worktrees of another one; hidden:
    those in a git directory, such as that of a submodule that is gone; away: worktrees whose files are none of the
    work, as in the agent's home; strays: where the workspace is a worktree itself, others of its repository that are
    out of reach.
    """

    def __init__(self, git: Git, said: Request, made: Made) -> None:
        self._git, self._said, self._made = git, said, made
        self.within = dict[str, Commits]()
        self.worktrees = set[str]()
        self.hidden = dict[str, Commits]()
        self.away = dict[str, Commits]()
        self.strays = dict[str, Commits]()
        self.staged = dict[str, list[Entry] | None]()
        self._handled = set[str]()

    def open(self, found: Commits, paths: list[str], large: dict[str, int]) -> None:
        """Look for all of them. found: the workspace's own; paths, large: what was found in the tree, to which comes
        what is in worktrees beside it. Errors: GitFailed, OSError."""
        self._borrow(found)
        self.staged[""] = self.index_of(found, "")
        around = saying(self._said.tree)
        while True:
            looked = self._look(found, [*paths, *around])
            new = self._open_worktrees(looked, paths, large)
            new += self._open_within(paths)
            new += self._open_hidden(found)
            self._borrow(found)
            if not new:
                break
        self._open_rest(found, paths)
        self._borrow(found)
        self.staged |= {path: self.index_of(one, path) for path, one in self.inside.items()}
        self._tell(looked)

    @property
    def inside(self) -> dict[str, Commits]:
        """Those in the tree, and in a git directory."""
        return {**self.within, **self.hidden}

    @property
    def others(self) -> dict[str, Commits]:
        """All but the workspace's own that are no worktrees, and can be read."""
        return {path: one for path, one in self.inside.items() if one.shared and path not in self.worktrees}

    def _look(self, found: Commits, folders: Iterable[str]) -> Worktrees:
        own = {"": found} if found.shared else {}
        places = (os.path.join(self._said.tree, folder) for folder in folders)
        return worktrees(self._said.tree, self._said.was, {**own, **self.others}, places)

    def _borrow(self, found: Commits) -> None:
        """Have git read the objects of all that were opened. Errors: OSError."""
        opened = [one.objects for one in (found, *self.inside.values()) if one.shared]
        borrow(self._git, dict.fromkeys([self._said.objects, *self._said.submodules.values(), *opened]))

    def _open_worktrees(self, looked: Worktrees, paths: list[str], large: dict[str, int]) -> int:
        """Open worktrees that were not opened yet; returns how many."""
        top, new = os.path.realpath(self._said.tree), 0
        for folder, one in sorted(looked.places.items()):
            path = os.path.relpath(folder, top)
            if folder in self._handled:
                continue
            self._handled.add(folder)
            new += 1
            if self._is_in(folder):
                if path not in self.ignored([path]):
                    # Its files are files of the work, or of the worktree around it.
                    self.within[path] = one
                    self.worktrees.add(path)
                    continue
            else:
                blocking, repositories, sizes = looked_over(folder)
                if blocking:
                    why = "git cannot read it, and so changed files of this worktree are not saved"
                    self._made.left_out.append(f"{path}/{blocking[0]}: {why}")
                    continue
                paths += [f"{path}/{inner}" for inner in repositories]
                large |= {f"{path}/{name}": size for name, size in sizes.items()}
            if len(self.away) >= AWAY_MAX:
                self._made.left_out.append(f"{path}: its changed files: there are more worktrees than {AWAY_MAX}")
                continue
            inner = [other for other in self.away if other.startswith(f"{path}/")]
            self.away[path], self.staged[path] = one, self.index_of(one, path)
            for other in inner:
                self._handed_over(other)
        return new

    def _handed_over(self, path: str) -> None:
        """Have the files of a worktree be files of the one around it, which was opened later, unless that ignores
        them."""
        one, entries = self.away.pop(path), self.staged.pop(path)
        if path in self.ignored([path]):
            self.away[path], self.staged[path] = one, entries
        else:
            self.within[path] = one
            self.worktrees.add(path)

    def _is_in(self, folder: str) -> bool:
        """Whether a folder lies in the tree, or in a worktree that was opened."""
        top = os.path.realpath(self._said.tree)
        outer = {f"{one}/" for one in self.away}
        return folder.startswith(f"{top}/") or is_below(os.path.relpath(folder, top), outer)

    def _open_within(self, paths: Iterable[str]) -> int:
        """Open the repositories at these paths that are not ignored, but for worktrees; returns how many."""
        rest = [path for path in dict.fromkeys(paths) if path not in self.within and path not in self.away]
        ignored, new = self.ignored(rest), 0
        for path in rest:
            own = git_of(self._said.tree, path)
            if own and path not in ignored and os.path.basename(os.path.dirname(own)) != "worktrees":
                self.within[path] = self._trusted(path, Commits(own, own, self._said.submodules.get(path, "")))
                new += 1
        return new

    def _open_rest(self, found: Commits, paths: Iterable[str]) -> None:
        """Open worktrees in the tree of which their repository says nothing."""
        rest = [path for path in dict.fromkeys(paths) if path not in self.within and path not in self.away]
        owners = {os.path.realpath(os.path.join(one.shared, "worktrees")): one for one in self.others.values()}
        if found.shared:
            owners[os.path.realpath(os.path.join(found.shared, "worktrees"))] = found
        for path in set(rest) - self.ignored(rest):
            own = git_of(self._said.tree, path)
            owner = owners.get(os.path.dirname(own), Commits(own, own))
            if owner.shared != own:
                self.worktrees.add(path)
            self.within[path] = self._trusted(path, Commits(own, owner.shared, owner.borrows))

    def _open_hidden(self, found: Commits) -> int:
        """Open repositories that lie in git directories, as that of a submodule does that was taken out again;
        returns how many."""
        known, new = {os.path.realpath(one.own) for one in self.within.values() if one.own}, 0
        for path, one in {"": found, **self.within}.items():
            for name, inner in one.hidden().items() if one.shared else ():
                where = os.path.join(path, ".git", name)
                if os.path.realpath(inner.own) not in known and where not in self.hidden:
                    self.hidden[where] = self._trusted(where, inner)
                    new += 1
        return new

    def _tell(self, looked: Worktrees) -> None:
        """Name the worktrees whose files are not saved."""
        top = os.path.realpath(self._said.tree)
        for folder in looked.cut_off:
            path = os.path.relpath(folder, top)
            if not self._is_in(folder) or path in self.ignored([path]):
                why = "it and its repository do not name each other any more, and so its files are not saved"
                self._made.left_out.append(f"{path}: a worktree: {why}")
        for one in looked.unseen:
            why = "is out of reach, and so only what was committed or staged there is saved"
            told = f"{one.of}: " * bool(one.of) + f"the worktree {one.name}: its folder {one.noted} {why}"
            if one.of or not self._said.branch:
                self._made.unseen.append(told)
            else:  # the next attempt does not find it new again
                self._made.left_out.append(told)
                self.strays[f"the worktree {one.name}"] = one.commits

    def below(self, above: str, paths: Iterable[str]) -> list[str]:
        """Return those of these paths that are below one, from there, and in no other worktree than that. above: with
        its `/`."""
        others = {f"{path}/" for path in self.away if f"{path}/" != above and f"{path}/".startswith(above)}
        return [path[len(above) :] for path in paths if path.startswith(above) and not is_below(path, others)]

    def ignored(self, paths: Collection[str]) -> set[str]:
        """Return those of these paths that git would ignore."""
        found = set[str]()
        for top in ("", *self.away):
            if mine := self.below(f"{top}/" if top else "", paths):
                tree, index = os.path.join(self._said.tree, top), os.path.join(self._git.directory, "index-none")
                names = (
                    self._git.with_tree(tree, index).ask("check-ignore", "-z", "--stdin", given="\0".join(mine)).names
                )
                tracked = self.tracked(top) if names else set()
                found.update(os.path.join(top, name) for name in names if name not in tracked)
        return found

    def index_of(self, one: Commits, path: str) -> list[Entry] | None:
        """Return what is in the index of the repository at a path; None where it has none that can be read."""
        try:
            return staged.staged(self._git, one.own) if one.shared else None
        except GitFailed as failed:
            if failed.killed:
                raise
            whose = f"{path}: " if path else ""
            self._made.left_out.append(f"{whose}what it had staged: its index cannot be read: {last(failed)}")
            return None

    def tracked(self, path: str) -> set[str]:
        """Return the names that the repository at a path has in its index; without one, those of the commit that is
        checked out there. Errors: GitFailed."""
        found = self.staged.get(path)
        if found is not None:
            return {one.path for one in found}
        head = {**self.within, **self.away}[path].head() if path else self._said.start
        done = self._git.ask("ls-tree", "-r", "-z", "--name-only", head or "")
        return set(done.names) if head and not done.code else set()

    def tracked_within(self) -> set[str]:
        """Return the names that repositories within have in their index."""
        return {f"{path}/{name}" for path in self.within for name in self.tracked(path)}

    def _trusted(self, path: str, one: Commits) -> Commits:
        if one.own and one.trusted():
            return one
        self._made.left_out.append(f"{path}: the commits of the repository there, which cannot be read")
        return Commits("", "")
