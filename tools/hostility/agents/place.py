"""The place of a hostile agent, the register of building blocks, and what several blocks do.

Law: the standard library alone, and nothing of spoold. A block changes only what the agent was given: its tree, its
home and its git directory. The canary is never touched from here, but by lines that only a sandbox lets do no harm.

Touches: files, processes, the environment.
"""

from __future__ import annotations

import os
import random
import stat
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

# In this order the blocks of a seed are done: what makes commits needs a git that works, and what holds a reader
# comes last.
STAGES = ("make", "tree", "set", "tear")
# "none": no workspace at all; "empty": one that says that it is none.
KINDS = ("clone", "worktree", "cwd", "none", "empty")
# A repository, whatever its kind; one that spoold saves; and one whose git directory is the agent's own.
REPOSITORY, SAVED, CLONE = ("clone", "worktree", "cwd"), ("clone", "worktree"), ("clone",)
# Set for the agent's own commands: what it put into its settings is no trap for itself.
OWN = "HOSTILE_OWN"
GIT_S = 60
# Names with this ending are ignored by the user of the worker.
OF_THE_USER = "owner-ignores"
CALM = ("core.fsmonitor=false", "core.hooksPath=/dev/null", "gc.auto=0", "commit.gpgSign=false", "core.pager=cat")


@dataclass(frozen=True, slots=True)
class Scale:
    """How much of each kind. small: for many seeds; large: what the promises speak of."""

    files: int
    sparse: int
    text: int


SCALES = {"small": Scale(1_500, 32 << 20, 8 << 20), "large": Scale(20_000, 1 << 30, 256 << 20)}


@dataclass(slots=True)
class Place:
    """Where an agent works, and what is known of what it leaves.

    home: its private one; canary: a folder that no sandbox shows; marks: a folder in which a trap that shuts leaves a
    mark; port: where nobody may knock. commits: what it committed, each with the words of which one names it to
    people; within: where those lie that are in a repository within the tree; ignored: paths below which files need
    not be saved; known: files that may not be read at the end, with their content. own: the git directory, in which
    HEAD and the index are; shared: that of references, objects and settings.
    """

    chance: random.Random
    scale: Scale
    seed: int
    kind: str
    sandboxed: bool
    canary: str
    marks: str
    root: str
    port: int
    home: str
    lfs: bool = False
    tree: str = field(default_factory=os.getcwd)
    block: str = ""
    commits: dict[str, tuple[str, ...]] = field(default_factory=dict)
    within: dict[str, bytes] = field(default_factory=dict)
    ignored: list[bytes] = field(default_factory=list)
    known: dict[bytes, bytes] = field(default_factory=dict)
    own: str = ""
    shared: str = ""

    def __post_init__(self) -> None:
        """Find the git directories, while they can still be asked for."""
        self.own = self.shared = f"{self.tree}/.git"
        if self.kind == "worktree":
            self.own = self.git("rev-parse", "--absolute-git-dir")
            self.shared = os.path.realpath(os.path.join(self.own, self.git("rev-parse", "--git-common-dir")))

    def git(self, *words: str, at: str = "", given: bytes = b"", env: Mapping[str, str] | None = None) -> str:
        """Run git as a careful agent does; returns what it printed. Errors: OSError, CalledProcessError."""
        calm = [part for setting in CALM for part in ("-c", setting)]
        clean = {name: text for name, text in os.environ.items() if not name.startswith("GIT_CONFIG")}
        named = {f"GIT_{role}_{what}": "agent" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        # A name that is another each time: two seeds make no commit in common.
        named |= {"GIT_AUTHOR_NAME": f"agent of {self.seed}", "GIT_CONFIG_NOSYSTEM": "1", OWN: "1"}
        done = subprocess.run(
            ["git", *calm, *words],
            cwd=at or self.tree,
            env={**clean, **named, **(env or {})},
            input=given,
            capture_output=True,
            timeout=GIT_S,
            check=True,
        )
        return done.stdout.decode("utf-8", "surrogateescape").strip()

    def path(self, name: str | bytes) -> bytes:
        """Return a path in the tree: one at its top where a folder became a link out of it, since an agent without
        a sandbox would reach what lies there by itself."""
        tree, path = os.fsencode(self.tree), os.path.join(os.fsencode(self.tree), os.fsencode(name))
        way = os.path.realpath(os.path.dirname(path))
        inside = (way + b"/").startswith(os.path.realpath(tree) + b"/")
        return path if inside else os.path.join(tree, os.path.basename(path))

    def text(self, size: int = 0) -> bytes:
        """Return a content that no other file has."""
        line = f"{self.block} of seed {self.seed}: {self.chance.random()}\n".encode()
        return line if size <= len(line) else line + self.chance.randbytes(size - len(line))

    def write(self, name: str | bytes, data: bytes | None = None, mode: int | None = None) -> bytes:
        """Write a file of the tree, and return its path. What stood there is replaced."""
        path = self.path(name)
        put(path, self.text() if data is None else data, mode)
        return path

    def commit(self, *names: str, at: str = "", said: str = "") -> str:
        """Commit what stands there; returns the commit. names: by which people are told of it, if it is not saved."""
        self.git("add", "--all", "--force" if at else "--", ".", at=at)
        self.git("commit", "--quiet", "--allow-empty", "--no-verify", "-m", said or f"{self.block}", at=at)
        return self.made(self.git("rev-parse", "HEAD", at=at), *names)

    def made(self, commit: str, *names: str) -> str:
        """Note a commit that must be saved or named. names: where it is, if not on the branch of the attempt; in a
        worktree all other branches are everybody's."""
        if not (self.kind == "worktree" and names):
            self.commits[commit] = (*names, "commit", ".git")
        return commit

    def gone(self) -> None:
        """Note that the agent itself has destroyed its repository: there is no commit to be saved any more, and
        nothing says of an ignored file that it was staged."""
        self.commits.clear()
        self.ignored.append(b"staged")

    def trap(self, name: str = "") -> str:
        """Return the path of a program that nobody but the agent's own git may run: it leaves a mark."""
        path = f"{self.tree}/trap-{self.block}{name}.sh"
        put(path.encode(), self.bait(f"{self.block}{name}.git").encode(), 0o755)
        return path

    def bait(self, name: str) -> str:
        """Return a script for the shell that leaves a mark, unless the agent itself runs it."""
        mark = f"{self.marks}/{self.seed}.{name}"
        by = "tr '\\0' ' ' </proc/$PPID/cmdline"
        return f'#!/bin/sh\n[ -n "${OWN}" ] || {{ {by} >"{mark}"; }} 2>/dev/null\nexec cat 2>/dev/null\n'

    def theft(self) -> str:
        """Return lines for the shell that take what a sandbox does not show; their output is the loot."""
        if not self.sandboxed:
            return "true"  # it may do what its worker's user may, and nobody promises anything else
        return "\n".join(
            (
                f'(cat "{self.canary}/secret" "{self.canary}/.ssh/id_ed25519"; ls "{self.root}/pending") 2>/dev/null',
                f'echo "$HOSTILE_SECRET"; echo x 2>/dev/null >"{self.marks}/{self.seed}.{self.block}.line"',
                "cat /proc/$PPID/environ /proc/1/environ 2>/dev/null | tr '\\0' '\\n' | grep canary",
            )
        )


@dataclass(frozen=True, slots=True)
class Block:
    """One thing that an agent may leave. wants: what a plan of this block alone says besides."""

    name: str
    stage: str
    do: Callable[[Place], None]
    kinds: tuple[str, ...]
    wants: Mapping[str, Any]


BLOCKS: dict[str, Block] = {}


def block(
    stage: str, kinds: tuple[str, ...] = SAVED, **wants: object
) -> Callable[[Callable[[Place], None]], Callable[[Place], None]]:
    """Enter a block under its name. Errors: ValueError for one that is taken."""

    def enter(function: Callable[[Place], None]) -> Callable[[Place], None]:
        if function.__name__ in BLOCKS:
            raise ValueError(f"two blocks have the name {function.__name__}")
        BLOCKS[function.__name__] = Block(function.__name__, stage, function, kinds, wants)
        return function

    return enter


def put(path: bytes | str, data: bytes, mode: int | None = None) -> None:
    """Write a file; what stood in its place is replaced, and no link is followed."""
    clear(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)
    if mode is not None:
        os.chmod(path, mode)


def add(path: bytes | str, data: bytes) -> None:
    """Write on in a file; a pipe or a link there is left alone."""
    if os.path.lexists(path) and not stat.S_ISREG(os.lstat(path).st_mode):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        file.write(data)


def clear(path: bytes | str) -> None:
    """Take away what stands in a place, folders with all that is in them."""
    if os.path.lexists(path):
        subprocess.run(["rm", "-rf", "--", path], check=True, timeout=GIT_S)


def pipe(path: bytes | str) -> None:
    """Put a pipe that nobody writes into in a place."""
    clear(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.mkfifo(path)


def link(target: str, path: bytes | str) -> None:
    """Put a link in a place."""
    clear(path)
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.symlink(os.fsencode(target), os.fsencode(path))


def left_behind(work: Callable[[], object]) -> None:
    """Run something in a process that has left the agent's session."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (0, 1, 2):
            os.close(number)
        try:
            work()
        finally:
            os._exit(0)
