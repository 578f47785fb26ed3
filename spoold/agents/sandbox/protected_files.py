"""Files in a workspace by which an agent could run something outside of its sandbox.

Git runs hooks and programs that a repository's own settings name. After the agent, others run git in the same place,
outside of the sandbox: so the agent must not write those files, move the folder that holds them, or put another in
its place. Whose repository it is decides how much of it is held:

    own      a clone that was made for this attempt: the agent commits there, and what leads git away is held
    shared   a repository that others use, too, as of `cwd` and of a worktree: every git directory within may only be
             read: each that a `.git` in the workspace or above it leads to, by a file, a link, a `commondir` or
             alternates, and each that git would find by itself. The folders above them cannot be moved. Where git
             looks for a repository of the owner and there is none, none can be made
    none     a folder that goes with the attempt: nobody runs git there

Law: what is held is decided once, before the agent begins, and never by what it wrote. A `.git` that names another
folder is shown only where that folder names it, too: no agent can write that there. What cannot be held is an error.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from spoold.system.walking import walk

Whose = Literal["own", "shared", "none"]
_FIXED = ("config", "config.worktree", "commondir", "hooks", "info", "modules", "objects/info")
# With one of these, which cannot be held before they are there, git takes settings from where the agent says.
_LEADS_AWAY = ("commondir", "config.worktree")
_SETTINGS = (
    *(".claude", ".codex", ".gemini", ".opencode", ".qwen", ".cursor", ".vscode", ".envrc"),
    *(".mcp.json", "opencode.json", "opencode.jsonc", ".husky", ".pre-commit-config.yaml"),
)
# Each place that is held is a mount: 1000 take bubblewrap 4 s for each command, and it takes no more than 3000.
MOUNTS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Guarded:
    """What of a workspace is held. pinned: writable, but it cannot be moved or replaced; fixed: read only; shown: the
    repository of a worktree, which lies elsewhere and may be read; absent: not there, and it cannot be made; above:
    the folders above these, as pinned; loose: what cannot be held, and the fix, () for nothing."""

    pinned: tuple[str, ...] = ()
    fixed: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    above: tuple[str, ...] = ()
    loose: tuple[str, ...] = ()


NOTHING = Guarded()


def guarded(workspace: str, whose: Whose, submodules: Sequence[str] | None = ()) -> Guarded:
    """Return what is to be held in a workspace. submodules: paths at which git looks for a repository, also where
    there is none yet: folders on the way to them are made; None where nobody can say. Errors: OSError."""
    if whose == "none":
        return NOTHING
    git = f"{workspace}/.git"
    settings = tuple(path for name in _SETTINGS if os.path.lexists(path := f"{workspace}/{name}"))
    if whose == "own":
        return Guarded((git,), (*_there(git, _FIXED), *settings))
    if submodules is None:
        slow = (
            f"git cannot list the submodules of the repositories in {workspace}, which must be held: it took too "
            "long, or what it reads is no file, as a pipe in the place of .git/config"
        )
        fix = "remove what is no file from the git directories there, or name a smaller folder with cwd"
        return Guarded(loose=(slow, fix))
    ways = _Ways(workspace)
    above_it = (f"{folder}/.git" for folder in _parents(workspace))
    for entry in chain([git], _within(workspace), above_it):
        ways.follow(entry)
        if ways.full:
            break
    if not os.path.lexists(git) and any(takes(_names(one)) for one in (workspace, *_parents(workspace))):
        ways.held.setdefault(workspace)
    for path in (git, *(f"{workspace}/{one}/.git" for one in submodules)):
        if not os.path.lexists(path):
            ways.keep_away(path)
    if not os.path.lexists(git) and workspace not in ways.held and not ways.full:
        for name in _lacking(workspace):
            ways.keep_away(f"{workspace}/{name}")
    held = _outermost(ways.held)
    absent = tuple(path for path in ways.absent if ways.held.keys().isdisjoint(_parents(path)))
    above = tuple(dict.fromkeys(one for path in (*held, *absent) for one in _parents(path) if _below(one, workspace)))
    if ways.full or len(held) + len(absent) + len(above) > MOUNTS_MAX:
        problem = f"{workspace} has more repositories, and folders above them, than the {MOUNTS_MAX} that can be held"
        ways.loose += [problem, "name a smaller folder with cwd"]
    fixed = tuple(dict.fromkeys((*held, *settings)))
    return Guarded((), fixed, _elsewhere(git), absent, above, tuple(ways.loose[:2]))


def takes(names: Iterable[str]) -> bool:
    """Return whether git takes a folder with these names in it for a git directory."""
    there = set(names)
    return "HEAD" in there and ({"objects", "refs"} <= there or "commondir" in there)


def _lacking(folder: str) -> tuple[str, ...]:
    """Return names without which a folder stays none that git takes for a git directory, whatever else is made in it.
    A name that people give to a command of git is the last choice."""
    there = set(_names(folder))
    lacks = next((name for name in ("refs", "objects") if name not in there), "")
    return (lacks, "commondir") if lacks and "commondir" not in there else ("HEAD",)


def git_directory(tree: str) -> str:
    """Return the git directory of a tree, as its `.git` says."""
    git = f"{tree}/.git"
    _, _, said = ("", "", "") if os.path.isdir(git) else _text(git).partition("gitdir:")
    return os.path.realpath(os.path.join(tree, said.strip("\n\r ")) if said else git)


class _Ways:
    """Where git is led from `.git` entries. held: what that is within the workspace; absent: the same, where it is
    not there; loose: what cannot be held, and the fix. An earlier agent may have written them: of however many, and
    of a chain of any length, no more is followed than can be held."""

    def __init__(self, workspace: str) -> None:
        self._workspace = workspace
        self.held: dict[str, None] = {}
        self.absent: dict[str, None] = {}
        self.loose: list[str] = []
        self._seen: set[str] = set()
        self._led: list[
            tuple[str, Callable[[str], None]]
        ] = []  # where to go on, and what that is; the last one first

    @property
    def full(self) -> bool:
        """Whether there is more than can be held."""
        return len(self.held) + len(self.absent) > MOUNTS_MAX

    def follow(self, entry: str) -> None:
        """Follow a `.git` of any kind, or a folder that git takes for a git directory."""
        if not os.path.lexists(entry):
            return
        self._led = [(entry, self._entry)]
        while self._led and not self.full:
            path, then = self._led.pop()
            real, before = self._reach(path), len(self._led)
            if os.path.lexists(real):
                then(real)
            elif _below(real, self._workspace):
                self.keep_away(real)
            self._led[before:] = reversed(self._led[before:])

    def keep_away(self, path: str) -> None:
        """Note what must not be made, and make the folders on the way to it."""
        at = self._workspace
        for name in os.path.relpath(os.path.dirname(path), at).split("/"):
            at = os.path.normpath(f"{at}/{name}")
            if not os.path.lexists(at):
                os.mkdir(at)
            elif os.path.islink(at) or not os.path.isdir(at):
                self._cannot(at, "is no folder, and git looks for a repository there")
                return
        self.absent.setdefault(path)

    def _entry(self, path: str) -> None:
        if os.path.isdir(path):
            self._directory(path)
            return
        self._hold(path)
        _, _, said = _text(path).partition("gitdir:")
        if said.strip():
            self._lead(os.path.dirname(path), said.strip("\n\r "), self._directory)

    def _directory(self, path: str) -> None:
        if path in self._seen:
            return
        self._seen.add(path)
        self._hold(path)
        for name in (*_links(path), *(f"hooks/{name}" for name in _links(f"{path}/hooks"))):
            self._lead(path, name, self._hold)
        if common := _text(f"{path}/commondir").strip():
            self._lead(path, common, self._directory)
        for line in _text(f"{path}/objects/info/alternates").splitlines():
            if line.strip() and not line.startswith("#"):
                self._lead(f"{path}/objects", line.strip('"'), self._objects)

    def _objects(self, path: str) -> None:
        if path not in self._seen:
            self._seen.add(path)
            self._hold(path)
            for line in _text(f"{path}/info/alternates").splitlines():
                if line.strip() and not line.startswith("#"):
                    self._lead(path, line.strip('"'), self._objects)

    def _lead(self, base: str, said: str, then: Callable[[str], None]) -> None:
        self._led.append((os.path.join(base, said), then))

    def _hold(self, path: str) -> None:
        within = path == self._workspace or _below(path, self._workspace)
        if within and self.held.keys().isdisjoint(_parents(path)):
            self.held.setdefault(path)

    def _reach(self, path: str) -> str:
        """Return where a path leads. A link that the agent could replace cannot be held, unless it is in what is."""
        at = "/"
        for name in path.split("/"):
            at = os.path.normpath(os.path.join(at, name))
            if os.path.islink(at):
                if _below(at, self._workspace) and self.held.keys().isdisjoint(_parents(at)):
                    self._cannot(at, "is a link on the way to a repository, and the agent could put another there")
                at = os.path.realpath(at)
        return at

    def _cannot(self, path: str, why: str) -> None:
        self.loose += [f"{path} {why}", "replace it by the folder that it names, or remove it"]


def disarm(held: Guarded) -> list[str]:
    """Remove what makes git take settings from where the agent says, after it and before any git; returns what was
    removed. Errors: OSError."""
    removed = []
    for path in (f"{git}/{name}" for git in held.pinned for name in _LEADS_AWAY):
        if os.path.lexists(path) and path not in held.fixed:
            os.unlink(path)
            removed.append(path)
    for path in held.absent:
        with suppress(OSError):
            os.rmdir(path)  # the place of what could not be made
    return removed


def _there(folder: str, names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(path for name in names if os.path.exists(path := f"{folder}/{name}"))


def _within(workspace: str) -> Iterator[str]:
    """Yield each `.git` below a workspace, and each folder that git takes for a git directory."""
    for folder in walk(workspace):
        names = (*folder.folders, *folder.files)
        if folder.path and ".git" in names:
            yield f"{workspace}/{folder.path}/.git"
        bare = bool(folder.path) and takes(names)
        if bare:
            yield f"{workspace}/{folder.path}"
        folder.folders[:] = [] if bare else [name for name in folder.folders if name != ".git"]


def _parents(path: str) -> Iterator[str]:
    """Yield the folders above a path, the nearest first."""
    while path != "/":
        path = os.path.dirname(path)
        yield path


def _below(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")


def _outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return those that are not below another one."""
    kept = set(paths)
    return tuple(path for path in sorted(kept) if not kept.intersection(_parents(path)))


def _names(folder: str) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)
    return []


def _links(folder: str) -> list[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entry.name for entry in entries if entry.is_symlink())
    return []


def _elsewhere(git: str) -> tuple[str, ...]:
    """Return the folders of a repository elsewhere whose worktree this is, as both of them say; () for any other."""
    own = git_directory(os.path.dirname(git))
    if (
        os.path.isdir(git)
        or own == os.path.realpath(git)
        or os.path.realpath(_text(f"{own}/gitdir").strip()) != os.path.realpath(git)
    ):
        return ()
    common = os.path.realpath(os.path.join(own, _text(f"{own}/commondir").strip() or "."))
    return tuple(dict.fromkeys((common, own)))


def _text(path: str) -> str:
    with suppress(OSError), open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        return file.read(4096).decode("utf-8", "surrogateescape")
    return ""
