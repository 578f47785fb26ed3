"""The program that reads a workspace and packs what is in it: nothing else of ours opens what an agent wrote there.

    python -P -m spoold.agents.workspace.packer

A Request comes on stdin. Into the folder `scratch`, which is its own and stays from one save to the next, it writes
out/pack-HASH.pack, with all objects that the remote does not have, and out/made.json, see Made.

What counts as the work is the commit that is checked out, and on top of it all files but ignored ones. As for git, a
file that is in the agent's index is not ignored. Beside the work lies what the agent committed elsewhere: on other
branches, in the stash, in repositories within; what it staged, where the file has other content by now, or is gone;
changed files of worktrees that lie elsewhere; trees and contents to which a name of git leads; and files that only a
git directory has. All of that is in the pack, too, below one commit, so that it is on the remote, and none of it is
in the work. A repository within whose path the work has as a submodule stays one. The files of any other one are
files of the work, as they lie there: what creates a project often makes a repository of it, and nobody means that its
files are to be left out.

Git may refuse what an agent made: a file with such a name, a commit with such a date. Then the program runs again and
sifts: what git refuses is left out and named, and all else is packed.

Law: it runs in a cage. No setting, hook, filter or reference of the agent's decides what runs. What cannot be read is
named. It is killed at any point, and the next one begins anew.

Touches: files, processes, the terminal.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import resource
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict

from spoold.agents.workspace import lfs, staged, workbench
from spoold.agents.workspace.adding import add_all, add_these
from spoold.agents.workspace.agent_commits import TRACES_MAX, Commits, is_whole
from spoold.agents.workspace.git import KILLED, Git, GitFailed, commit_of, is_ancestor
from spoold.agents.workspace.git import links as links_of
from spoold.agents.workspace.looking import looked_over
from spoold.agents.workspace.pack_request import Made, Request
from spoold.agents.workspace.repositories import Repositories
from spoold.agents.workspace.sanitize import Sifter
from spoold.agents.workspace.staged import Entry
from spoold.agents.workspace.tips import FETCHED, NAMED_MAX, TOLD_MAX, Tip, amiss_of, carry, trace
from spoold.agents.workspace.workbench import (
    announced,
    between,
    changed_links,
    dated,
    empty,
    is_below,
    last,
    tree_of,
)
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import legible
from spoold.system.remover import remove

# Memory (bytes) of git and of this program, each.
MEMORY = 6 << 30
TIPS_MAX = 2000
# History of a repository within that is larger (bytes) is named, and does not come to the remote.
WITHIN_MAX = 256 << 20
# So much (bytes) of a large file is saved, and so much of all: what git compresses within its time.
FILE_MAX, FILES_MAX = 4 << 30, 8 << 30
_EMPTY_FILES = [made(b"blob 0\0").hexdigest() for made in (hashlib.sha1, hashlib.sha256)]
# What the references of a mirror begin with that are no agent's, or another attempt's.
_OF_OTHERS = (*FETCHED, "refs/heads/spool/", "refs/spool/", "the worktree ")


def main() -> int:
    """Save what stdin says, in bounds; returns the exit code."""
    for kind, most in ((resource.RLIMIT_AS, MEMORY), (resource.RLIMIT_CORE, 0)):
        with suppress(ValueError, OSError):
            resource.setrlimit(kind, (most, most))
    return serve(sys.stdin.read())


def serve(text: str) -> int:
    """Save what a request says; returns the exit code."""
    request = Request(**json.loads(text))
    out = os.path.join(request.scratch, "out")
    os.makedirs(out, exist_ok=True)
    remove(os.path.join(out, "lfs"))
    for name in os.listdir(out):
        os.unlink(os.path.join(out, name))
    try:
        made = Saver(request).save(os.path.join(out, "pack"))
    except GitFailed as failed:
        sys.stderr.write(f"{failed}\n")
        return KILLED if failed.killed else 1
    with open(os.path.join(out, "made.json"), "w", encoding="ascii") as file:
        json.dump(asdict(made), file)
    return 0


class Saver:
    """One save."""

    def __init__(self, request: Request) -> None:
        self._said = request
        self._made = Made()
        self._tips: list[Tip] = []
        self._named = dict[str, dict[str, str]]()  # what files of their git directories name, by repository
        self._git = workbench.opened(request.scratch).set(lfs.filters())
        self._all = Repositories(self._git, request, self._made)
        self._sifter: Sifter | None = None
        self._links = dict[str, str]()  # commits that an index names and no tree: where that is
        self._loose = dict[
            str, list[tuple[str, str, str]]
        ]()  # by repository: name, type and object of what is no commit
        self._large = frozenset[str]()
        self._shared = ""  # the repository of the workspace itself
        self._there = dict[str, set[str]]()

    def save(self, pack: str) -> Made:
        """Save it all, into a pack of this name. Errors: GitFailed."""
        said, made = self._said, self._made
        made.blocking, paths, large = looked_over(said.tree)
        if made.blocking:
            return made
        found = Commits(said.own, said.shared, said.borrows)
        if not (said.owns and found.trusted()):
            found = Commits("", "")
        self._shared = found.shared
        self._all.open(found, paths, large)
        inside, away = self._all.inside, self._all.away
        mine = {path: one for path, one in away.items() if one.shared == found.shared}
        # In a clone the files of a worktree's git directory lie below its own.
        named = {"": found, **inside, **(mine if said.branch else {}), **self._all.strays}
        self._named = {path: self._in_full(path, one) for path, one in named.items()}
        self._leave_out(large)
        if said.sifts:
            self._sift([found, *inside.values()])
        made.commit = self._work(found)
        changed = self._git("diff-tree", "-r", "-z", "--raw", "--no-renames", said.base, made.commit).names
        made.links = changed_links(changed)
        waiting = [*links_of(self._git("ls-tree", "-r", "-z", made.commit).names)]
        for path, one in away.items():
            waiting += self._changed_files(path, one, "a worktree", amiss=None)
        while waiting:
            waiting += self._submodule_files(waiting.pop(0))
        for path, one in inside.items():
            if path not in self._all.worktrees:
                self._beside(path, one)
        self._elsewhere(found)
        for path, one in named.items():
            self._traces(path, one)
        self._uncommitted(found, named)
        if tree_of(self._git, made.commit) == tree_of(self._git, said.base):
            self._tips.append(Tip("commits that change nothing", made.commit, amiss=False))
        self._tips = [tip for tip in self._tips if tip.commit not in (said.base, said.start, *said.known)]
        carry(self._git, made, self._tips, said.author, said.base)
        wanted = [one for one in (made.commit, made.more) if one]
        lines = "\n".join([*wanted, "--not", *said.known, said.start])
        self._git("pack-objects", "--quiet", "--revs", "--delta-base-offset", pack, given=f"{lines}\n")
        self._lfs(wanted, found, os.path.join(os.path.dirname(pack), "lfs"))
        made.unseen = _told(made.unseen)
        made.left_out = _told([*made.left_out, *(self._sifter.told() if self._sifter is not None else ())])
        return made

    def _in_full(self, path: str, one: Commits) -> dict[str, str]:
        """Return what files of a git directory name, by whole names, each with the file. Errors: GitFailed."""
        found, whose = one.traces() if one.shared else {}, f"{path}: " if path else ""
        short = [name for name in found if not is_whole(name)]
        whole = {name: file for name, file in found.items() if is_whole(name)}
        for name, commit in zip(short, workbench.commits_in_full(self._git, short), strict=True):
            if commit == workbench.AMBIGUOUS:
                why = f"more than one commit has a name that begins with {name}"
                self._made.left_out.append(f"{whose}.git/{found[name]}: {why}")
            elif commit:
                whole.setdefault(commit, found[name])
        return whole

    def _uncommitted(self, found: Commits, named: Mapping[str, Commits]) -> None:
        """Note what no commit has. named: the repositories whose own files count. Errors: GitFailed."""
        inside = {**self._all.inside, **self._all.away}
        looked = {os.path.realpath(inside[path].own) for path in (*self._all.worktrees, *self._all.away)}
        others = {**self._all.strays}
        for path, one in {"": found, **self._all.others}.items():
            for name, other in one.other_indexes().items() if one.shared else ():
                if os.path.realpath(other.own) not in looked:
                    others[f"{path}: the worktree {name}" if path else f"the worktree {name}"] = other
        self._all.staged |= {name: self._all.index_of(one, name) for name, one in others.items()}
        for path, one in {"": found, **inside, **others}.items():
            self._only_staged(path, one)
        self._only_linked(inside.values())
        for path, loose in self._loose.items():
            self._keep_loose(path, loose)
        for path, one in named.items():
            self._keep_files(path, one)

    def _leave_out(self, large: Mapping[str, int]) -> None:
        """Note the files of these, with their sizes, which are too large to be saved; ignored ones do not count."""
        ignored, total, out = self._all.ignored(large) - self._all.tracked_within(), 0, set[str]()
        for path, size in sorted(large.items(), key=lambda one: (one[1], one[0])):
            if path in ignored:
                continue
            why = f"and {FILE_MAX >> 20:,} MiB of a file are saved" if size > FILE_MAX else ""
            if not why and total + size > FILES_MAX:
                why = f"and {FILES_MAX >> 20:,} MiB of all large files, smaller ones first"
            if why:
                out.add(path)
                self._made.left_out.append(f"{path}: it has {size >> 20:,} MiB, {why}")
            else:
                total += size
        self._large = frozenset(out)

    def _sift(self, repositories: Sequence[Commits]) -> None:
        """Look at all commits that may be saved, so that each can be taken as git takes it. Errors: GitFailed."""
        said = self._said
        self._sifter = Sifter(self._git, [*said.known, *said.elsewhere], [said.start, said.base], said.author)
        own, *within = repositories
        others = list(self._own_tips(own).values())
        others += [name for one in within if one.shared for name in one.references().values()]
        others += [name for traces in self._named.values() for name in traces]
        around = (*self._all.away.values(), *self._all.strays.values())
        there = [one for one in (*repositories, *around) if one.shared]
        heads = [name for one in there for name in (one.head(), *one.merging()) if name]
        self._sifter.look([*heads, *others])

    def _clean(self, commit: str | None) -> str | None:
        """Return a commit as it may be saved. Errors: OSError."""
        return commit if commit is None or self._sifter is None else self._sifter.commit(commit)

    def _work(self, found: Commits) -> str:
        """Return the commit of all files, on top of the agent's own. Errors: GitFailed."""
        git, said = self._git, self._said
        if not found.shared:
            self._made.left_out.append("its own commits: its .git is not as it was made; its files are saved")
        elif found.is_torn():
            why = "HEAD of its .git names none any more; its files are saved, and what its branches name, beside them"
            self._made.left_out.append(f"its own commits: {why}")
        head = commit_of(git, [one for one in (self._clean(found.head()), said.start) if one]) or said.start
        if said.last and commit_of(git, [said.last]) and is_ancestor(git, head, said.last):
            head = said.last  # the agent has not committed since the last save: this one goes on top of it
        index = os.path.join(git.directory, "index")
        working = git.with_tree(said.tree, index).by(said.author)
        tree = self._files(working, head, said.start)
        others = filter(None, map(self._clean, found.merging()))
        merged = [one for one in others if one != head and commit_of(git, [one])]
        if not merged and tree == tree_of(git, head):
            return head
        parents = [word for one in (head, *merged) for word in ("-p", one)]
        return working("commit-tree", tree, *parents, "-F", "-", given=said.message).out.strip()

    def _files(self, git: Git, head: str, start: str, above: str = "") -> str:
        """Return the tree of all files that are not ignored. start: the commit or tree with which the agent's index
        began; above: the way to them from the top, with its `/`. Errors: GitFailed.
        """
        try:
            git("read-tree", "-m", head)
        except GitFailed:
            git("read-tree", head)  # the index is of no use, as after a power cut; this one reads every file again
        links = {*links_of(git("ls-files", "--stage", "-z").names), *announced(git)}
        inner = self._all.below(above, self._all.within)
        inner = [path for path in inner if not any(path.startswith(f"{link}/") for link in links)]
        large = sorted(self._all.below(above, self._large))
        said = add_all(git, [*inner, *large])
        said += self._as_staged(git, start, above, [*inner, *links], large)
        self._made.left_out += [f"{above}: {line}" if above else line for line in said]
        for path in inner:
            if path in links:
                self._link(git, path, self._all.within[above + path])
            else:
                self._add_below(git, path, large, above)
        tree = git("write-tree").out.strip()
        return tree if self._sifter is None else self._sifter.tree(tree, above)

    def _as_staged(
        self, git: Git, start: str, above: str, elsewhere: Collection[str], large: Collection[str]
    ) -> list[str]:
        """Have our index name what the agent's own does; returns what was not added. elsewhere: paths below which
        other repositories are. Errors: GitFailed."""
        found = self._all.staged.get(above.rstrip("/"))
        if found is None:
            return []
        ours, others = staged.entries(git), {f"{path}/" for path in elsewhere}
        mine = [one for one in found if not is_below(one.path, others)]
        forced = {one.path for one in mine if one.mode != staged.LINK}.difference(ours, large)
        files = [path for path in forced if staged.is_file(git.tree, path)]
        told = add_these(git, files) if files else []
        staged.restored(git, mine, {*ours, *files})
        staged.untracked(git, found, ours, start)
        self._there[above.rstrip("/")] = {content for _, content in ours.values()}
        return told

    def _link(self, git: Git, path: str, inner: Commits) -> None:
        """Note the commit that is checked out in a submodule, as git does. Errors: GitFailed."""
        head = inner.head() if inner.shared else None
        if head and commit_of(self._git, [head]):
            git("update-index", "-z", "--index-info", given=f"160000 {head}\t{path}\0")

    def _add_below(self, git: Git, path: str, but: Collection[str], above: str) -> None:
        """Add the files of a repository within as files, but for these. above: what it is below in the workspace.

        Errors: GitFailed.
        """
        index = os.path.join(git.directory, "index-within")
        with suppress(FileNotFoundError):
            os.unlink(index)
        there = self._git.with_tree(os.path.join(git.tree, path), index)
        listed = there("ls-files", "-z", "--others", "--exclude-standard").names
        names = {f"{path}/{name}" for name in listed if not name.endswith("/")}
        names |= set(git("ls-files", "-z", "--", f":(top,literal){path}").names)
        known = git.ask("check-ignore", "-z", "--stdin", given="\0".join(sorted(names)))
        names -= set(known.names)
        names |= {f"{path}/{name}" for name in self._all.tracked(above + path) if staged.is_file(there.tree, name)}
        names -= set(but)
        self._made.left_out += add_these(git, names)

    def _only_staged(self, path: str, one: Commits) -> None:
        """Note what a repository has staged that no file and no commit has. Errors: GitFailed."""
        found = self._all.staged.get(path) or []
        git, head = self._git, self._clean(one.head()) if one.shared else None
        commits = [self._made.commit, self._said.start, self._said.base, *([head] if head else [])]
        there = {*_EMPTY_FILES, *self._there.get(path, ())}
        for commit in commits:
            if found := [entry for entry in found if entry.content not in there]:
                there |= {content for _, content in staged.of_tree(git, commit).values()}
        for tip in self._tips[:TOLD_MAX] if found else ():
            there |= {content for _, content in staged.of_tree(git, tip.commit).values()}
        found = [entry for entry in found if entry.content not in there]
        whose, sizes, room = f"{path}: " if path else "", lfs.sizes(git, [one.content for one in found]), FILES_MAX
        for stage in range(4):
            kept = []
            for entry in found:
                if entry.stage != stage:
                    continue
                size = 0 if entry.mode == staged.LINK else sizes.get(entry.content)
                if size is None or size > min(FILE_MAX, room):
                    why = "is not there" if size is None else f"has {size >> 20:,} MiB, which is too large"
                    self._made.left_out.append(f"{whose}{entry.path}: the content that was staged {why}")
                else:
                    room -= size
                    kept.append(entry)
            if kept:
                self._keep_entries(f"{whose}what was staged and is in no file", whose, kept)
        self._links |= {one.content: f"{whose}{one.path}" for one in found if one.mode == staged.LINK}

    def _only_linked(self, inside: Iterable[Commits]) -> None:
        """Note commits that nothing but an index names, as that of a submodule. inside: other repositories, whose own
        commits are looked at by themselves. Errors: GitFailed."""
        git, said = self._git, self._said
        led = zip(self._links.items(), self._led_to(self._links), strict=True)
        new = {clean: where for (_, where), (kind, one) in led if kind == "commit" and (clean := self._clean(one))}
        if not new:
            return
        named = [name for one in inside if one.shared for name in (one.head(), *one.references().values()) if name]
        known = [clean for kind, name in self._led_to(named) if kind == "commit" and (clean := self._clean(name))]
        known += [*said.known, *said.elsewhere, said.start, self._made.commit, *(tip.commit for tip in self._tips)]
        own = set(git("rev-list", "--stdin", given=between(new, known)).lines)
        self._tips += [
            Tip(f"{where}: a commit that only the index names", one, amiss=False)
            for one, where in new.items()
            if one in own
        ]

    def _keep_files(self, path: str, one: Commits) -> None:
        """Note a commit of the files that a git directory has for itself, such as patches that are still to be
        applied. path: of the repository. Errors: GitFailed."""
        (found, more), kept, room, whose = one.own_files(), list[str](), WITHIN_MAX, f"{path}: " if path else ""
        if more:
            why = f"it and others: more than {TRACES_MAX:,} files of that repository's own"
            self._made.left_out.append(f"{whose}.git/{more}: {why}")
        for name, size in found.items():
            if size is None or "\n" in name or not staged.leads_in(name):
                self._made.left_out.append(f"{whose}.git/{name}: it cannot be read")
            elif size > room:
                why = f"it has {size >> 20:,} MiB, and {WITHIN_MAX >> 20:,} MiB of such files are saved"
                self._made.left_out.append(f"{whose}.git/{name}: {why}")
            else:
                room -= size
                kept.append(name)
        if kept:
            given = "".join(f"{os.path.join(one.own, name)}\n" for name in kept)
            names = self._git("hash-object", "-w", "--no-filters", "--stdin-paths", given=given).lines
            rows = [Entry("100644", name, 0, at, hidden=False) for at, name in zip(kept, names, strict=True)]
            self._keep_entries(f"{whose}files of the git directory", whose, rows)

    def _keep_entries(self, what: str, whose: str, found: Sequence[Entry]) -> None:
        """Note a commit of these entries, all of one stage."""
        what = f"{what}: {some([one.path for one in found], NAMED_MAX)}"
        try:
            tree = workbench.tree_of_entries(self._git, found)
            self._keep(what, tree if self._sifter is None else self._sifter.tree(tree, whose))
        except GitFailed as failed:
            if self._sifter is None or failed.killed:
                raise
            self._made.left_out.append(f"{what}: {last(failed)}")

    def _keep(self, what: str, tree: str, text: str = "") -> None:
        """Note a commit of a tree that nobody has to merge. text: the rest of its message. Errors: GitFailed."""
        git, message = dated(self._git.by(self._said.author), self._said.start), f"{what}\n\n{text}".strip()
        made = git("commit-tree", tree, "-F", "-", given=f"{message}\n").out.strip()
        self._tips.append(Tip(what, made, amiss=False))

    def _keep_loose(self, path: str, found: Sequence[tuple[str, str, str]]) -> None:
        """Note a commit of the trees and contents to which names lead, and which no commit has. path: of the
        repository within; found: where each name is, and type and name of the object. Errors: GitFailed."""
        git, said, whose = self._git, self._said, f"{path}: " if path else ""
        new = {one: kind for _, kind, one in found}
        if not said.branch:  # else the mirror has what agents made, too
            there = workbench.kinds(Git(os.path.dirname(said.objects)), new)
            new = {one: kind for (one, kind), (known, _) in zip(new.items(), there, strict=True) if not known}
        if new:
            lines = between([self._made.commit, *(tip.commit for tip in self._tips)], [*said.known, said.start])
            saved = set(git("rev-list", "--objects", "--no-object-names", "--stdin", given=lines).lines)
            saved.update(git("rev-list", "--objects", "--no-object-names", "--no-walk", said.start).lines)
            new = {one: kind for one, kind in new.items() if one not in saved}
        if not new:
            return
        rows = [(where, one) for where, _, one in found if one in new]
        what = f"{whose}what no commit has: {some([where for where, _ in rows], NAMED_MAX)}"
        tree = workbench.tree_of_objects(git, new)
        tree = tree if self._sifter is None else self._sifter.tree(tree, f"{what}: ")
        size = sum(lfs.sizes(git, workbench.new_below(git, tree, [said.start, self._made.commit])).values())
        if size > (most := WITHIN_MAX if path else FILES_MAX):
            self._made.left_out.append(f"{what}: they have {size >> 20:,} MiB, and {most >> 20:,} MiB are saved")
        elif tree != empty(git):
            self._keep(what, tree, "".join(f"{one} {legible(where)}\n" for where, one in rows))

    def _beside(self, path: str, one: Commits) -> None:
        """Note what a repository within has that its own remotes do not have. Errors: GitFailed."""
        if not one.shared:
            return
        git, head = self._git, self._clean(one.head())
        start = commit_of(git, [head] if head else [])
        others = {name: commit for name, commit in self._peeled(one.references(), path).items() if commit != start}
        tips = {"HEAD": start, **others}
        fetched = [commit for name, commit in others.items() if name.startswith(FETCHED)]
        lines = between(filter(None, tips.values()), [*self._said.elsewhere, self._made.commit])
        new = git.ask("rev-list", "--objects", "--disk-usage", "--stdin", given=lines)
        if not new.code and int(new.out or 0) > WITHIN_MAX and fetched:
            # So much was hardly made here: what its remotes are said to have stays with them.
            tips = {name: commit for name, commit in tips.items() if commit not in fetched}
            lines = between(filter(None, tips.values()), [*self._said.elsewhere, *fetched, self._made.commit])
            new = git.ask("rev-list", "--objects", "--disk-usage", "--stdin", given=lines)
        if new.code and self._sifter is None:
            raise GitFailed(("rev-list", "--objects"), new.code, new.errors)
        if new.code or int(new.out or 0) > WITHIN_MAX:
            why = "they are not whole" if new.code else f"they have more than {WITHIN_MAX >> 20} MiB"
            self._made.left_out.append(f"{path}: the commits of the repository there: {why}")
            return
        own = set(git("rev-list", "--stdin", given=lines).out.split())
        for name, commit in tips.items():
            if commit in own:
                self._tips.append(self._tip_within(path, name, commit))

    def _tip_within(self, path: str, name: str, commit: str) -> Tip:
        """Return a commit of a repository within, as it is told."""
        if name != "HEAD":
            return Tip(f"{path}: {name} of a repository within", commit, amiss_of(name))
        # Whether the remote of a submodule has its commit is asked outside.
        kind = "submodule" if path in self._made.links else "repository within"
        return Tip(f"{path}: commits of a {kind}", commit, amiss=False)

    def _submodule_files(self, path: str) -> list[str]:
        """Note the files of a submodule, where they are not those of the commit that is checked out in it; returns
        the submodules in it. Without a repository there, none of its files is. Errors: GitFailed."""
        where, one = os.path.join(self._said.tree, path), self._all.within.get(path)
        if not os.path.isdir(where) or os.path.islink(where):
            return []
        return self._changed_files(path, one, "a submodule", amiss=True)

    def _changed_files(self, path: str, one: Commits | None, kind: str, *, amiss: bool | None) -> list[str]:
        """Note the files at a path that are not as in the commit that is checked out there; returns the submodules
        below. Errors: GitFailed."""
        git, said = self._git, self._said
        found = self._clean(one.head()) if one is not None and one.shared else None
        head = commit_of(git, [found] if found else [])
        inner = git.with_tree(os.path.join(said.tree, path), os.path.join(git.directory, "index-submodule"))
        with suppress(FileNotFoundError):
            os.unlink(inner.index)
        before = tree_of(git, head) if head else empty(git)
        tree = self._files(inner, head or before, head or before, f"{path}/")
        if tree != before:
            words = ("commit-tree", tree, *(("-p", head) if head else ()), "-m", said.message)
            made = dated(inner.by(said.author), head or said.start)(*words).out.strip()
            self._tips.append(Tip(f"{path}: changed files of {kind}", made, amiss))
        return [f"{path}/{link}" for link in links_of(git("ls-tree", "-r", "-z", tree).names)]

    def _own_tips(self, found: Commits) -> dict[str, str]:
        """Return what references name that may be the agent's own."""
        tips, only = found.references() if found.shared else {}, self._said.branch
        tips = {name: one for name, one in tips.items() if self._said.tags.get(name) != one}
        mine = ("", only, *self._all.strays)
        return {
            name: one for name, one in tips.items() if not only or name in mine or not name.startswith(_OF_OTHERS)
        }

    def _elsewhere(self, found: Commits) -> None:
        """Note the commits of other branches, of the stash, and below any other reference. Errors: GitFailed."""
        around = (*self._all.away.values(), *self._all.strays.values())
        git, was = self._git, found.visited().union(*(one.visited() for one in around))
        tips = self._peeled(self._own_tips(found), "", was if self._said.branch else None)
        if found.shared and not self._said.branch:
            self._made.left_out += [f"{name}: it names no commit" for name in found.torn()]
        if not tips:
            return
        lines = between(tips.values(), [*self._said.known, self._said.start, self._made.commit])
        done = git("rev-list", "--objects", "--stdin", given=lines)
        new = {row.partition(" ")[0] for row in done.lines}
        for name, commit in tips.items():
            if commit not in new:
                continue
            if len(self._tips) < TIPS_MAX:
                branch = name.removeprefix("refs/heads/")
                self._tips.append(Tip(f"the branch {branch}" if branch != name else name, commit, amiss_of(name)))
            else:
                self._made.left_out.append(f"{name}: more branches than {TIPS_MAX} with commits of their own")

    def _traces(self, path: str, one: Commits) -> None:
        """Note commits to which no reference leads and which the log of HEAD, or another file of a git directory,
        names, as after a reset, or where a merge has put changes away. Those that git has removed since are gone.
        path: of the repository within this one. Errors: GitFailed."""
        git, said = self._git, self._said
        saved = {self._made.commit, said.start, said.base, said.last, *said.known}
        found = {name: file for name, file in self._named[path].items() if name not in saved}
        led = list(zip(found.values(), self._led_to(found), strict=True))
        self._note_loose(path, [(f".git/{file}", *one) for file, one in led])
        seen = {clean: file for file, (kind, one) in led if kind == "commit" and (clean := self._clean(one))}
        seen = {name: file for name, file in seen.items() if name not in saved}
        if not seen:
            return
        own = self._led_to(one.references().values())
        named = [clean for kind, name in own if kind == "commit" and (clean := self._clean(name))]
        named += [tip.commit for tip in self._tips]
        known = [*said.known, *(said.elsewhere if path else ()), said.start, self._made.commit]
        done = git.ask("rev-list", "--parents", "--stdin", given=between(seen, [*known, *named]))
        parents = {name for row in done.lines for name in row.split()[1:]}
        heads = [row.split()[0] for row in done.lines] if not done.code else []
        new = [trace(path, seen[one], one) for one in heads if one in seen and one not in parents]
        most = FILES_MAX if one.shared == self._shared else WITHIN_MAX
        self._tips += self._fitting(new[: TIPS_MAX - len(self._tips)], [*known, *named], most)

    def _fitting(self, new: Sequence[Tip], known: Sequence[str], most: int) -> Sequence[Tip]:
        """Return those of these that bring no more than so much (bytes) beside what is known, and name the others.
        Errors: GitFailed where one is torn, and nobody sifts."""
        if not new or self._size(new, known) <= most:
            return new
        kept, lost = list[Tip](), 0
        for tip in new:
            if lost < TOLD_MAX and self._size([*kept, tip], known) <= most:
                kept.append(tip)
            else:
                lost += 1
                self._made.left_out.append(f"{tip.what}: with it such commits have more than {most >> 20:,} MiB")
        return kept

    def _size(self, tips: Sequence[Tip], known: Sequence[str]) -> float:
        """Return how much (bytes) these bring beside what is known; of what is not whole, that is without a bound."""
        lines = between([one.commit for one in tips], known)
        done = self._git.ask("rev-list", "--objects", "--disk-usage", "--stdin", given=lines)
        if done.code and self._sifter is None:
            raise GitFailed(("rev-list", "--objects"), done.code, done.errors)
        return math.inf if done.code else int(done.out or 0)

    def _peeled(self, tips: Mapping[str, str], path: str, was: Collection[str] | None = None) -> dict[str, str]:
        """Return the commit that each name leads to, through tags, as it may be saved; what leads to none is left
        out. path: of the repository within this one; was: where the agent itself was in a worktree, whose other
        references are everybody's. Errors: GitFailed where one is torn, and nobody sifts."""
        led = dict(zip(tips, self._led_to(tips.values()), strict=True))
        found = {name: one for name, (kind, one) in led.items() if kind == "commit"}
        if was is not None:
            found = {name: one for name, one in found.items() if name == self._said.branch or one in was}
        clean = {name: self._clean(one) for name, one in found.items()}
        gone = {name: "it leads to no whole commit" for name, one in clean.items() if not one}
        if was is None:
            self._note_loose(path, [(name, *one) for name, one in led.items()])
            kept = ("commit", *workbench.MODES)
            gone |= {name: "it names no commit that is there" for name, (kind, _) in led.items() if kind not in kept}
        self._made.left_out += [f"{path}: {name}: {why}" if path else f"{name}: {why}" for name, why in gone.items()]
        return {name: one for name, one in clean.items() if one}

    def _led_to(self, names: Iterable[str]) -> list[tuple[str, str]]:
        """Return type and name of what each of these objects is, or leads to as a tag. Errors: GitFailed where one is
        torn, and nobody sifts."""
        if self._sifter is None:
            return workbench.kinds(self._git, list(names), peeled=True)
        return workbench.kinds(self._git, [self._sifter.peeled(one) for one in names])

    def _note_loose(self, path: str, led: Iterable[tuple[str, str, str]]) -> None:
        """Note which names lead to a tree or a content. led: each, with type and name of the object."""
        self._loose.setdefault(path, []).extend(one for one in led if one[1] in workbench.MODES)

    def _lfs(self, wanted: Sequence[str], found: Commits, out: str) -> None:
        """Bring out the content of new files of git-lfs. Judged is all that the work has beyond its base, also what
        earlier attempts made. Errors: GitFailed, OSError."""
        git, made, said = self._git, self._made, self._said
        storages = [os.path.join(one, "lfs") for one in (git.directory, found.shared) if one]
        if not lfs.used(git, made.commit) and not any(map(os.path.isdir, storages)):
            return  # a pointer is a text like any other there
        lines = between(wanted, [*said.known, said.start])
        names = git("rev-list", "--objects", "--no-object-names", "--stdin", given=lines).lines
        os.makedirs(out, exist_ok=True)
        made.lfs, missing = lfs.taken_out(storages, dict(lfs.pointers(git, names).values()), out)
        lacking = set(missing)
        if lfs.program():  # without it nothing is here of what an earlier attempt gave the server
            fetched = [*storages, os.path.join(os.path.dirname(said.objects), "lfs")]
            before = lfs.added(git, said.base, made.commit).values()
            lacking.update(name for name, size in before if not lfs.has(fetched, name, size))
        if lacking:
            why = "" if lfs.program() else ", and git-lfs is not installed on this machine"
            made.left_out.append(f"the content of {amount(len(lacking), 'file')} of git-lfs: it is not here{why}")


def _told(lines: Sequence[str]) -> list[str]:
    kept = [legible(line) for line in lines[:TOLD_MAX]]
    return [*kept, f"and {len(lines) - TOLD_MAX} more"] if len(lines) > TOLD_MAX else kept


if __name__ == "__main__":
    sys.exit(main())
