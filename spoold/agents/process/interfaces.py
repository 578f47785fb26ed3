"""Where an agent works, and what it may see: the interfaces `Workspace` and `Sandbox`, and what is behind them where
nothing else was asked for.

Law: what was asked for and is not here is an error, and never a plain folder or no sandbox in its place.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol

from spoold.agents.sandbox import private_home
from spoold.agents.sandbox.protected_files import MOUNTS_MAX, Whose, git_directory, takes
from spoold.agents.workspace.acceptance import inside
from spoold.agents.workspace.git import Git, GitFailed, links
from spoold.protocol.errors import SpoolError, legible
from spoold.system.walking import walk

# Homes of tasks that never came back are removed after so long (s).
KEPT_S = 7 * 86_400.0
# A folder with more files is not compared: it is no place for an agent alone.
FILES_MAX = 200_000
# How long (s) repositories are looked for, and how many are named.
LOOK_S, WARNED_MAX = 10.0, 20
# Git reads these of a git directory before it lists submodules.
_READ_BY_GIT = ("HEAD", "config", "config.worktree", "commondir", "index")


_MADE = ": the agent made a repository there. Git run in it runs its hooks and settings: look at them first."
_REPLACED = (
    ": the agent put another repository in the place of the one that was there. Git run there, or in the repository "
    "around it, runs its hooks and settings: run none before you have moved it away and put your own back."
)


class NoPlace(SpoolError):
    """The workspace or the sandbox that was asked for is not to be had; the words say why."""


@dataclass(frozen=True, slots=True)
class Opened:
    """Where an agent works. home: its private folder for settings and sessions; returning: whether both are those of
    an earlier attempt, so that its session can be resumed; env: variables that its processes get besides; borrowed:
    what else it must be able to read; whose: the repository there, as of `protected_files`, and submodules: where it
    has some, None where that is not known; setup: lines for the shell, to be run in it first; done: what an earlier
    attempt ended with whose work was done, as `Workspace.keep_words` was told it; goes_on_from: the commit of the
    work with which it begins, '' for the base, None where it has to."""

    directory: str
    home: str
    returning: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    borrowed: tuple[str, ...] = ()
    whose: Whose = "none"
    submodules: tuple[str, ...] | None = ()
    setup: tuple[str, ...] = ()
    done: Mapping[str, Any] = field(default_factory=dict)
    goes_on_from: str | None = None

    @property
    def git(self) -> str:
        """The git directory of a repository that is this attempt's own, '' for none."""
        return os.path.join(self.directory, ".git") if self.whose == "own" else ""


@dataclass(frozen=True, slots=True)
class Saved:
    """What was made. changed: the paths of the files that differ from the beginning; place: where it was brought to,
    as the result tells it; amiss: why that is not all that was made, as sentences; warnings: what the owner of the
    place should know of it."""

    changed: tuple[str, ...] = ()
    place: Mapping[str, Any] = field(default_factory=dict)
    amiss: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


class Workspace(Protocol):
    """One attempt's workspace."""

    @property
    def disk(self) -> str:
        """Where workspaces lie on this machine's own disk; '' for none."""
        ...

    def open(self) -> Opened:
        """Make it. Errors: SpoolError, OSError."""
        ...

    def begin(self) -> None:
        """Note that an agent begins there. Errors: OSError."""
        ...

    def keep_words(self, said: Mapping[str, Any]) -> None:
        """Keep what an agent ended with, for an attempt that finds its work done; {}: there is to be another end.

        Errors: OSError.
        """
        ...

    def save(self, message: str) -> Saved:
        """Bring what was made to safety; may be called again. Errors: SpoolError, OSError."""
        ...

    def push_branch(self, name: str) -> None:
        """Push what was saved to a branch. Errors: SpoolError."""
        ...

    def content(self, name: str) -> bytes | str:
        """Return the content of a file as it was saved, or in words why there is none. Errors: SpoolError."""
        ...

    def unsaved(self) -> Mapping[str, Any]:
        """Return where work is that its remote was not seen to have: folder, attempt, and push, a command that brings
        it there; {} for none. Never raises."""
        ...

    def close(self, *, over: bool) -> None:
        """Leave it. over: no attempt follows, so nothing is needed any more. Never raises."""
        ...


class Sandbox(Protocol):
    """What the processes of an agent see."""

    def enter(self, opened: Opened) -> AbstractContextManager[None]:
        """Be ready for the programs of an attempt that works there. Errors: SpoolError, OSError."""
        ...

    @property
    def refused(self) -> tuple[str, ...]:
        """Which hosts it did not let through, or did not reach, with cause and fix."""
        ...

    def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], fixed: Sequence[str] = (), own: Collection[str] = ()
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command and the variables to start in place of these. fixed: files that may only be read; own:
        the variables that this program's adapter set, which come through whatever their names.

        Errors: SpoolError, OSError.
        """
        ...

    def clear(self) -> None:
        """Remove what a program that was ended has left outside of its processes, as a container. Never raises."""
        ...


class Bare:
    """No sandbox."""

    def enter(self, opened: Opened) -> AbstractContextManager[None]:
        """There is nothing to be made ready."""
        return nullcontext()

    @property
    def refused(self) -> tuple[str, ...]:
        """It lets everything through."""
        return ()

    def wrap(
        self, argv: Sequence[str], env: Mapping[str, str], fixed: Sequence[str] = (), own: Collection[str] = ()
    ) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command and the variables as they are."""
        return argv, env

    def clear(self) -> None:
        """What a program leaves is its own."""


class Folder:
    """The folder in which the attempt starts: its own, or one that the profile or the task names with `cwd`."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        self._directory = os.path.realpath(os.getcwd())
        work = os.path.realpath(environ.get("SPOOL_WORK_DIR") or self._directory)
        # Of its own folder nothing is left for the next attempt, so a session there is worth nothing.
        self._kept = self._directory != work
        # Not in a folder for temporary files: agents with a sandbox of their own do not run from there.
        self._homes = os.path.join(state_home(environ), "spoold", "agents", "homes")
        self._home = os.path.join(self._homes, _name(environ))
        self._before: dict[str, tuple[int, int]] | None = {}
        self._there: dict[str, tuple[int, int]] | None = None

    @property
    def disk(self) -> str:
        """It lies where the attempt starts."""
        return ""

    def open(self) -> Opened:
        """Return the folder, with a home beside it."""
        self._sweep()
        if not self._kept:
            private_home.forget(self._home)
        returning = os.path.isdir(self._home)
        os.makedirs(self._home, mode=0o700, exist_ok=True)
        self._before = _files(self._directory)
        self._there = _repositories(self._directory) if self._kept else None
        links = _submodules(self._directory, self._there or ()) if self._kept else ()
        return Opened(
            self._directory, self._home, returning, whose="shared" if self._kept else "none", submodules=links
        )

    def begin(self) -> None:
        """The work is where it belongs."""

    def keep_words(self, said: Mapping[str, Any]) -> None:
        """Nothing comes after this: there is no place that may be away."""

    def push_branch(self, name: str) -> None:
        """There is nothing to push: only the work of a repository has a branch."""

    def content(self, name: str) -> bytes | str:
        """Return the content of a file, or in words why there is none."""
        return inside(self._directory, name)

    def save(self, message: str) -> Saved:
        """Return which files differ; there is no other place to bring them to."""
        now, warned = _files(self._directory), self._warnings()
        if now is None or self._before is None:
            return Saved(warnings=warned)
        names = now.keys() | self._before.keys()
        return Saved(
            tuple(sorted(name for name in names if now.get(name) != self._before.get(name))), warnings=warned
        )

    def unsaved(self) -> Mapping[str, Any]:
        """The work is where it belongs."""
        return {}

    def _warnings(self) -> tuple[str, ...]:
        """Return what the owner of the folder should know before anyone runs git in it, as sentences."""
        now = None if self._there is None else _repositories(self._directory)
        if now is None or self._there is None:
            return ()
        before = self._there
        made = sorted(path for path, which in now.items() if before.get(path) != which)
        told = [legible(path) + (_REPLACED if path in before else _MADE) for path in made[:WARNED_MAX]]
        return (*told, f"and {len(made) - WARNED_MAX} more") if len(made) > WARNED_MAX else tuple(told)

    def close(self, *, over: bool) -> None:
        """Remove the home where no attempt follows."""
        if over or not self._kept:
            private_home.forget(self._home)

    def _sweep(self) -> None:
        with suppress(OSError):
            for entry in os.scandir(self._homes):
                old = time.time() - entry.stat(follow_symlinks=False).st_mtime > KEPT_S
                if old and entry.is_dir(follow_symlinks=False) and entry.path != self._home:
                    private_home.forget(entry.path)


def _files(directory: str) -> dict[str, tuple[int, int]] | None:
    """Return size and time of each file below, by its path; None where there are too many. Git's own are left out."""
    found: dict[str, tuple[int, int]] = {}
    for folder in walk(directory):
        folder.folders[:] = [name for name in folder.folders if name != ".git"]
        for name in folder.files:
            with suppress(OSError):
                status = os.stat(name, dir_fd=folder.fd, follow_symlinks=False)
                found[os.path.join(folder.path, name)] = (status.st_size, status.st_mtime_ns)
        if len(found) > FILES_MAX:
            return None
    return found


def _repositories(directory: str) -> dict[str, tuple[int, int]] | None:
    """Return the folders that git takes for repositories, bare ones too, each with the device and inode of its git
    directory or of the file that names that; None where there is too much to look at."""
    found, entries, until = dict[str, tuple[int, int]](), 0, time.monotonic() + LOOK_S
    for folder in walk(directory):
        entries += len(folder.folders) + len(folder.files)
        if entries > FILES_MAX or time.monotonic() > until:
            return None
        bare = takes((*folder.folders, *folder.files))
        own = ".git" in folder.files or (".git" in folder.folders and _holds_something(".git", folder.fd))
        if own or bare:
            with suppress(OSError):
                status = os.stat(".git" if own else ".", dir_fd=folder.fd, follow_symlinks=False)
                found[folder.path or "."] = (status.st_dev, status.st_ino)
        # Also in a bare one: three names make any folder look like one, and more may lie below.
        folder.folders[:] = [name for name in folder.folders if name != ".git"]
    return found


def _holds_something(name: str, above: int) -> bool:
    """Return whether a folder is not empty, as one is that a sandbox put where none can be made."""
    try:
        opened = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=above)
    except OSError:
        return True
    try:
        return bool(os.listdir(opened))
    except OSError:
        return True
    finally:
        os.close(opened)


def _submodules(directory: str, within: Iterable[str] = ()) -> tuple[str, ...] | None:
    """Return the paths of submodules, as the indexes say of the repository in which a folder lies, of those within,
    and of the submodules' own. In a cage, since an agent may have made one of them. None: that took longer than
    LOOK_S, or git would wait for ever."""
    trees = [os.path.normpath(f"{directory}/{path}") for path in within]
    top = directory
    while top != "/" and not os.path.lexists(f"{top}/.git"):
        top = os.path.dirname(top)
    found: dict[str, None] = {}
    trees, seen, until = [*trees, top], set[str](), time.monotonic() + LOOK_S
    while trees and len(found) <= MOUNTS_MAX and time.monotonic() < until:
        tree = trees.pop()
        own = git_directory(tree)
        if tree in seen or not os.path.isdir(own):
            continue
        seen.add(tree)
        common = os.path.dirname(os.path.dirname(own)) if own.endswith(f"/worktrees/{os.path.basename(own)}") else own
        if _holds_git_up(own) or _holds_git_up(common):
            return None
        with suppress(GitFailed, OSError):
            # The repository of a submodule names its tree, which is not in the cage, and is not needed.
            git = Git(own).with_tree(own, f"{own}/index").caged(reads=(common,), writes=())
            listed = git.ask("ls-files", "--stage", "-z", within_s=LOOK_S)
            for name in links(listed.names):
                path = os.path.join(tree, name)
                if os.path.lexists(f"{path}/.git"):
                    trees.append(path)
                found[path] = None
    if time.monotonic() >= until:
        return None  # of a list that is cut short, what is left out would be open to the agent
    return tuple(os.path.relpath(path, directory) for path in found if path.startswith(f"{directory}/"))


def _holds_git_up(own: str) -> bool:
    """Return whether git would wait for ever for a file of a git directory, as for a pipe in its place."""
    for name in _READ_BY_GIT:
        with suppress(OSError):
            mode = os.stat(os.path.join(own, name)).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return True
    return False


def state_home(environ: Mapping[str, str]) -> str:
    """Return the folder for what programs of this user keep."""
    return environ.get("XDG_STATE_HOME") or os.path.join(os.path.expanduser("~"), ".local", "state")


def _name(environ: Mapping[str, str]) -> str:
    root, task = environ.get("SPOOL_ROOT", ""), environ.get("SPOOL_TASK_ID", "")
    digest = hashlib.blake2b(f"{os.path.realpath(root)}\0".encode(), digest_size=6).hexdigest()
    return f"{digest}.{task.lower()}"
