"""What an agent committed by itself, read from the git directory of its workspace as plain files.

Law: no git command runs there: its settings are the agent's, and may name programs. Names and hashes are read as
text; objects are read by a repository of ours, which checks each against its name. A link is not followed.

Touches: files.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from stat import S_ISREG

from spoold.system.walking import Folder, walk

# Git reads capital letters as well, and writes small ones.
_HASH = re.compile(r"[0-9a-fA-F]{40}|[0-9a-fA-F]{64}")
_NAMES = re.compile(r"\b(?:[0-9a-fA-F]{40}|[0-9a-fA-F]{64})\b")
LOG = "logs/HEAD"
# What git is still to do, or has done, of a rebase or of several commits to pick: it may name these by their
# beginnings.
_TODO = re.compile(r"(?:.*/)?(?:sequencer/todo|rebase-merge/(?:git-rebase-todo(?:\.backup)?|done))")
_BEGINNING = re.compile(r"^[a-z]+(?: -[cC])? ([0-9a-fA-F]{7,63})\b", re.MULTILINE)
# In these are no commits that nothing else names.
_NO_TRACES = frozenset({"objects", "refs", "hooks", "lfs", "modules", "remotes", "index", "packed-refs"})
# Git's own folders of such files: they are read first, since an agent decides how many others there are.
_STATES = frozenset({"logs", "rebase-apply", "rebase-merge", "sequencer", "worktrees"})
# Names at the top of a git directory that are git's own: messages, states that name commits, settings, lists.
_OF_GIT = _NO_TRACES | {"branches", "commondir", "config", "config.worktree", "description", "gc.log", "gc.pid"}
_OF_GIT |= {"gitdir", "info", "locked", "logs", "rebase-merge", "reftable", "sequencer", "shallow"}
_OF_GIT_TOO = re.compile(
    r"(?:[A-Z_]+_)?(?:HEAD|MSG|EDITMSG|MODE|RR|AUTOSTASH|DESCRIPTION)|(?:BISECT|NOTES)_[A-Z_]+|AUTO_MERGE|"
    r"sharedindex\..*|fsmonitor--daemon.*|.*\.lock"
)
_WORKTREE, _TRACE_SIZE = re.compile("worktrees/[^/]+"), 4096
# So many files are read, and so much of them (bytes).
TRACES_MAX, _TRACES_SIZE = 10_000, 64 << 20
_READ_MAX = 4 << 20
_REFERENCES_MAX, _HIDDEN_MAX = 10_000, 100


@dataclass(frozen=True, slots=True)
class Commits:
    """The git directory of a workspace. own: where HEAD is; shared: where references and objects are (both are the
    same in a clone); borrows: the folder of objects that it borrows, '' where it has none from elsewhere."""

    own: str
    shared: str
    borrows: str = ""

    @property
    def objects(self) -> str:
        """The folder of its objects."""
        return os.path.join(self.shared, "objects")

    def trusted(self) -> bool:
        """Whether it is a git directory of plain files, which borrows objects from where we said and nowhere else:
        another's objects would be published as this agent's work, and at a pipe git would wait for ever."""
        if not all(os.path.isdir(path) and not os.path.islink(path) for path in (self.own, self.shared)):
            return False
        if os.path.islink(self.objects) or not os.path.isdir(self.objects):
            return False
        if not all(_is_plain(name, folder.fd) for folder in walk(self.objects) for name in folder.files):
            return False
        said = text_of(os.path.join(self.objects, "info", "alternates"))
        return [line for line in said.splitlines() if line] == ([self.borrows] if self.borrows else [])

    def head(self) -> str | None:
        """Return the commit that is checked out; None where none is."""
        return self._resolved(text_of(os.path.join(self.own, "HEAD")))

    def is_torn(self) -> bool:
        """Whether HEAD names neither a commit nor a branch, which may have none yet."""
        text = text_of(os.path.join(self.own, "HEAD")).strip()
        return not (_named(text) or text.startswith("ref: refs/"))

    def merging(self) -> list[str]:
        """Return the commits of a merge that was begun and not committed."""
        return [one for word in text_of(os.path.join(self.own, "MERGE_HEAD")).split() if (one := _named(word))]

    def visited(self) -> frozenset[str]:
        """Return the commits that were checked out here, as the log of HEAD says."""
        log = text_of(os.path.join(self.own, "logs", "HEAD")).splitlines()
        found = (_named(line.split(" ", 2)[1]) for line in log[-_REFERENCES_MAX:] if line.count(" ") > 1)
        return frozenset(filter(None, found))

    def traces(self) -> dict[str, str]:
        """Return what its other files name, each with the file: where it was, as the log of HEAD says, what a merge
        or a rebase has put away, what was fetched, and whatever else git notes while it works. Not all of these are
        commits, and of one that is to be picked it may be the beginning of its name alone, see `is_whole`."""
        found, files, room = dict.fromkeys(self.visited(), LOG), 0, _TRACES_SIZE
        for folder in walk(self.own):
            if folder.path and _is_git_directory(folder):
                folder.folders[:] = []  # a repository of its own, see `hidden`
                continue
            if not folder.path or folder.path == "logs/refs":
                folder.folders[:] = [name for name in folder.folders if name not in _NO_TRACES]
                folder.folders.sort(key=lambda name: name not in _STATES)
            for name in set(folder.files) - _NO_TRACES:
                files += 1
                if files > TRACES_MAX or room <= 0 or len(found) >= 2 * _REFERENCES_MAX:
                    return found
                path = os.path.join(folder.path, name)
                text = text_of(os.path.join(self.own, path))
                room -= len(text)
                for one in (*_NAMES.findall(text), *(_BEGINNING.findall(text) if _TODO.fullmatch(path) else ())):
                    found.setdefault(one.lower(), path)
        return found

    def own_files(self) -> tuple[dict[str, int | None], str]:
        """Return the files that are neither git's own nor settings, such as patches that `git am` has still to apply,
        what rerere has learned, or bundles; with their sizes (bytes), None for one that cannot be read. One that
        holds nothing but names of objects is none, see `traces`. And the first that is too many, '' for none."""
        found, files = dict[str, int | None](), 0
        for folder in walk(self.own):
            if folder.path and _is_git_directory(folder):
                folder.folders[:] = []
                continue
            names = folder.files
            if not folder.path or _WORKTREE.fullmatch(folder.path):
                folder.folders[:] = [name for name in folder.folders if name not in _OF_GIT]
                names = [name for name in names if name not in _OF_GIT and not _OF_GIT_TOO.fullmatch(name)]
            for name in sorted(names):
                path, files = os.path.join(folder.path, name), files + 1
                if files > TRACES_MAX:
                    return found, path
                with suppress(FileNotFoundError):
                    about = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                    if S_ISREG(about.st_mode) and about.st_size and not self._is_trace(path, about.st_size):
                        found[path] = about.st_size if os.access(name, os.R_OK, dir_fd=folder.fd) else None
        return dict(sorted(found.items())), ""

    def _is_trace(self, path: str, size: int) -> bool:
        return size <= _TRACE_SIZE and not _NAMES.sub("", text_of(os.path.join(self.own, path)) or "?").strip()

    def hidden(self) -> dict[str, Commits]:
        """Return the git directories within it, by their paths there, such as that of a submodule."""
        found = dict[str, Commits]()
        for folder in walk(self.own):
            if folder.path and _is_git_directory(folder):
                folder.folders[:] = []
                place = os.path.join(self.own, folder.path)
                if len(found) < _HIDDEN_MAX:
                    found[folder.path] = Commits(place, place)
        return found

    def other_indexes(self) -> dict[str, Commits]:
        """Return its worktrees that have an index, by their names, for one whose references are all its own."""
        top = os.path.join(self.shared, "worktrees")
        places = [folder.path for folder in walk(top) if "index" in folder.files] if self.own == self.shared else []
        return {name: Commits(os.path.join(top, name), self.shared, self.borrows) for name in places}

    def torn(self) -> list[str]:
        """Return the references whose files hold neither a commit nor another's name."""
        top, found = os.path.join(self.shared, "refs"), list[str]()
        for folder in walk(top):
            for name in folder.files:
                text = text_of(os.path.join(top, path := os.path.join(folder.path, name))).strip()
                if not (_named(text) or text.startswith("ref: ")):
                    found.append(f"refs/{path}")
        return found

    def references(self) -> dict[str, str]:
        """Return what each reference names, and the commits of worktrees and of each entry of the stash."""
        found = {**self.below("refs/"), **self._worktrees()}
        stash = found.pop("refs/stash", None)
        log = text_of(os.path.join(self.shared, "logs", "refs", "stash")).splitlines()
        older = [words[1] for line in log[-_REFERENCES_MAX:] if len(words := line.split(" ", 2)) == 3]
        entries = [*dict.fromkeys(filter(None, map(_named, [stash or "", *older[::-1]])))]
        return {**found, **{f"stash@{{{number}}}": one for number, one in enumerate(entries)}} if stash else found

    def below(self, prefix: str) -> dict[str, str]:
        """Return the commit of each reference whose name begins so; prefix: `refs/…/`."""
        found = {name: one for name, one in self._packed().items() if name.startswith(prefix)}
        top = os.path.join(self.shared, prefix)
        for folder in walk(top):
            for name in folder.files:
                path = os.path.join(folder.path, name)
                one = self._resolved(text_of(os.path.join(top, path)))
                if one is not None and len(found) < _REFERENCES_MAX:
                    found[f"{prefix}{path}"] = one
        return found

    def _worktrees(self) -> dict[str, str]:
        """Return what is checked out in each worktree of this repository."""
        top, found = os.path.join(self.shared, "worktrees"), dict[str, str]()
        for folder in walk(top):
            one = self._resolved(text_of(os.path.join(top, folder.path, "HEAD"))) if "HEAD" in folder.files else None
            if one is not None and len(found) < _REFERENCES_MAX:
                found[f"the worktree {folder.path}"] = one
        return found

    def _resolved(self, text: str) -> str | None:
        text = text.strip()
        if one := _named(text):
            return one
        name = text.removeprefix("ref: ")
        if name == text or not name.startswith("refs/") or ".." in name:
            return None
        return _named(text_of(os.path.join(self.shared, name)).strip()) or self._packed().get(name)

    def _packed(self) -> dict[str, str]:
        found = {}
        for line in text_of(os.path.join(self.shared, "packed-refs")).splitlines()[:_REFERENCES_MAX]:
            word, _, name = line.partition(" ")
            if one := _named(word):
                found[name] = one
        return found


def is_whole(name: str) -> bool:
    """Whether it is the whole name of an object, and not its beginning."""
    return bool(_HASH.fullmatch(name))


def _named(word: str) -> str:
    """Return the whole name of an object, as git writes it; '' for anything else."""
    return word.lower() if _HASH.fullmatch(word) else ""


def git_of(tree: str, path: str) -> str:
    """Return the git directory of a repository at a path below a tree; '' where it has none that lies below it."""
    place = os.path.join(tree, path, ".git")
    if os.path.isdir(place) and not os.path.islink(place):
        return place
    kind, _, said = text_of(place).partition("gitdir:")
    target = os.path.realpath(os.path.join(tree, path, said.strip()))
    return target if said and not kind and target.startswith(os.path.realpath(tree) + os.sep) else ""


def _is_git_directory(folder: Folder) -> bool:
    return "HEAD" in folder.files and "objects" in folder.folders


def _is_plain(name: str, above: int) -> bool:
    try:
        return S_ISREG(os.stat(name, dir_fd=above, follow_symlinks=False).st_mode)
    except OSError:
        return False  # it changes just now: as bad as a link


def read_small(path: str, most: int = _READ_MAX) -> bytes:
    """Return what a small file holds, up to so many bytes; no link is followed. Errors: OSError."""
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.read(held, most)
    finally:
        os.close(held)


def text_of(path: str) -> str:
    """Return what a small file holds; '' for a link, and for anything that cannot be read."""
    try:
        return read_small(path).decode("utf-8", "replace")
    except OSError:
        return ""
