"""A throw-away checkout in which the merger's own commands judge a commit.

Law: what the commands do to the files, or to the repository that lies there, reaches no commit: what is pushed comes
from a repository of ours. The commands are those of this machine's owner, never of a task.

Touches: files, the clock.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from spoold.agents.merge import shell
from spoold.agents.workspace import checkout, lfs, places
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.places import Places
from spoold.system.remover import remove

# Runs a line for the shell in a directory, for at most so many seconds; returns its exit code and its end.
Run = Callable[[str, str, float | None], tuple[int, str]]
_SUITE_S = 3600.0
# So much of the end of a failed line is named, in lines and characters.
_END_LINES, _END = 20, 3000
# So long (s) one merge works on what others left.
_CLEAR_S = 10.0


@dataclass(frozen=True, slots=True)
class Suite:
    """The merger's own commands: setup, tests and listing, which lists the tests ('' for none), are lines for the
    shell; within_s: for each of them."""

    tests: Sequence[str] = ()
    setup: Sequence[str] = ()
    within_s: float = _SUITE_S
    listing: str = ""


class Bench:
    """A folder of this merge alone, removed at its end; what a killed one left is removed by those that follow it,
    each for a bounded time. walls: makes what runs a line in place of `run`, where that is a sandbox, from the
    folders of objects that a checkout reads besides its own."""

    def __init__(
        self,
        where: Places,
        mirror: Mirror,
        suite: Suite,
        run: Run = shell.run,
        walls: Callable[[Sequence[str]], Run] | None = None,
    ) -> None:
        self._mirror, self._suite, self._run, self._judged = mirror, suite, run, 0
        self._tree, self._counts = "", dict[str, int]()
        self._top = os.path.join(where.top, "merges")
        os.makedirs(self._top, mode=0o700, exist_ok=True)
        with places.holding(f"{self._top}.lock"):
            self._clear()
            number = 0
            while os.path.lexists(os.path.join(self._top, str(number))):
                number += 1
            self._folder = os.path.join(self._top, str(number))
            os.mkdir(self._folder, mode=0o700)
            self._held = places.take(self._folder)
        self.git = Git(os.path.join(self._folder, "lane.git"))
        os.mkdir(self.git.directory)
        self.git("init", "--quiet", "--bare", "--template=")
        checkout.borrow(self.git.directory, mirror.objects)
        if walls is not None:
            self._run = walls((mirror.objects, os.path.join(self.git.directory, "objects")))

    @property
    def lists(self) -> bool:
        """Whether the tests are counted."""
        return bool(self._suite.listing)

    def verdict(self, commit: str) -> str:
        """Return why a commit is not good; '' for a good one. Errors: GitFailed, SpoolError, OSError."""
        return self._prepared(commit) or self._first_failure(self._suite.tests)

    def count(self, commit: str) -> int | str:
        """Return how many tests a commit has, or why that cannot be told; after its verdict the former. Errors:
        GitFailed, SpoolError, OSError."""
        if commit not in self._counts and (why := self._prepared(commit)):
            return why
        return self._counts[commit]

    def lacking(self, tip: str, commit: str) -> list[str]:
        """Return the files of git-lfs that a commit brings to a branch, and whose content the server does not have.

        Errors: GitFailed, WorkspaceFailed where the server is away.
        """
        if not lfs.program() or not lfs.used(self.git, commit) or not (found := lfs.added(self.git, tip, commit)):
            return []
        lfs.fetch(self.git, self._mirror.repo, self._mirror.owned(self.git, commit), commit)
        storages = [os.path.join(one, "lfs") for one in (self.git.directory, self._mirror.directory)]
        return sorted(path for path, (name, size) in found.items() if not lfs.has(storages, name, size))

    def _prepared(self, commit: str) -> str:
        """Make a checkout, set it up, and count its tests; returns why that fails, '' where it does not."""
        remove(os.path.join(self._folder, f"{self._judged}"))
        # What the tests of the commit before left may stay, so this one has a folder of its own.
        self._judged += 1
        self._tree = os.path.join(self._folder, f"{self._judged}", "tree")
        os.makedirs(self._tree)
        Git(tree=self._tree)("init", "--quiet", "--template=", ".")
        own = os.path.join(self._tree, ".git")
        checkout.borrow(own, self._mirror.objects, os.path.join(self.git.directory, "objects"))
        lfs.fetch(self.git, self._mirror.repo, self._mirror.owned(self.git, commit), commit)
        reads = (self._mirror.directory, self.git.directory)
        checkout.fill(Git(own, tree=self._tree), reads, (self._tree,), "checkout", "--quiet", "--detach", commit)
        if why := self._first_failure(self._suite.setup):
            return why
        if self._suite.listing:
            code, said = self._run(self._suite.listing, self._tree, self._suite.within_s)
            if code:
                return _failure(self._suite.listing, code, said)
            self._counts[commit] = counted(said)
        return ""

    def _first_failure(self, lines: Sequence[str]) -> str:
        for line in lines:
            code, said = self._run(line, self._tree, self._suite.within_s)
            if code:
                return _failure(line, code, said)
        return ""

    def close(self) -> None:
        """Remove the folder. Errors: none."""
        remove(self._folder)
        if self._held is not None:
            os.close(self._held)
            self._held = None

    def _clear(self) -> None:
        until = time.monotonic() + _CLEAR_S
        for entry in os.scandir(self._top):
            with suppress(OSError):  # a folder without a way in stays; this merge has its own
                if entry.is_dir(follow_symlinks=False) and (held := places.take(entry.path)) is not None:
                    try:
                        remove(entry.path, lambda: time.monotonic() < until)
                    finally:
                        os.close(held)


def _failure(line: str, code: int, said: str) -> str:
    late, _, said = said.partition("; ") if code == shell.TIMED_OUT else ("", "", said)
    end = " | ".join(said.splitlines()[-_END_LINES:])[-_END:]
    return f"`{line}` ended with {code}: {'; '.join(filter(None, (late, end)))}"


# How many tests there are, by what a line such as `pytest --collect-only -q` prints.


_SAID = re.compile(r"\b(?:(no)|(\d+)(?:/\d+)?) (?:tests?|items?)\b")


def counted(output: str) -> int:
    """Return the number of tests in the output of a line that lists them."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    said = [found for line in lines if "::" not in line for found in _SAID.finditer(line)]
    if said:
        return int(said[-1][2] or 0)
    if lines and lines[-1].isdecimal():
        return int(lines[-1])
    return len([line for line in lines if "::" in line]) or len(lines)
