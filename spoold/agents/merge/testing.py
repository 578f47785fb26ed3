"""A throw-away checkout in which the merger's own commands judge a commit: in its sandbox, or without one.

Law: what the commands do to the files, or to the repository that lies there, reaches no commit: what is pushed comes
from a repository of ours. The commands are those of this machine's owner, never of a task. A line gets no standard
input. Its output is this process's, and its end is returned besides. When it has ended, or its time is over, all that
it started and that has not left its session ends, too.

What a line sees in a sandbox is decided by the merger's owner alone, anew for each line, and never by what lies in
the checkout. Each checkout has a home of its own, so that no work meets what the tests of another one left.

Touches: files, processes, the clock, the terminal.
"""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from spoold.agents.configuration.merge_settings import TABLE, VARIABLE
from spoold.agents.configuration.profiles import REDACT
from spoold.agents.process import confinement
from spoold.agents.process.confinement import Confined
from spoold.agents.process.interfaces import Opened
from spoold.agents.process.turns import Scene, run_command
from spoold.agents.workspace import checkout, lfs, workspace_layout
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.mirror import Mirror
from spoold.agents.workspace.workspace_layout import Places
from spoold.system.remover import remove

# Runs a line for the shell in a checkout, where no sandbox does.


# So much of what a line prints is returned (bytes): the names of 50,000 tests.
OUTPUT_MAX = 4 << 20
_PIECE = 1 << 16
_LOOK_S = 0.05
TIMED_OUT = 124


def run(line: str, directory: str, within_s: float | None = None) -> tuple[int, str]:
    """Run a line in a directory; returns its exit code, 124 where its time was over, and the end of its output."""
    until = None if within_s is None else time.monotonic() + within_s
    end = bytearray()
    with subprocess.Popen(
        ["/bin/sh", "-c", line],
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        source = process.stdout.fileno()
        code, over = None, False
        while code is None and not over:
            code = process.poll()  # what it left behind may hold the pipe open for ever
            over = until is not None and time.monotonic() >= until
            while piece := _piece(source, 0.0 if code is not None or over else _LOOK_S):
                sys.stdout.write(piece.decode("utf-8", "replace"))
                end += piece
                if len(end) > 2 * OUTPUT_MAX:
                    del end[:-OUTPUT_MAX]
                if until is not None and time.monotonic() >= until:
                    break
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        code = process.wait()
    sys.stdout.flush()
    said = end[-OUTPUT_MAX:].decode("utf-8", "replace").strip()
    return (TIMED_OUT, f"it has not ended within {within_s:g} s; {said}") if over else (code, said)


def _piece(source: int, within_s: float) -> bytes:
    """Return the next piece of output; b"" at its end, or when none came in this time."""
    ready, _, _ = select.select([source], [], [], within_s)
    return os.read(source, _PIECE) if ready else b""


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
        run: Run = run,
        walls: Callable[[Sequence[str]], Run] | None = None,
    ) -> None:
        self._mirror, self._suite, self._run, self._judged = mirror, suite, run, 0
        self._tree, self._counts = "", dict[str, int]()
        self._top = os.path.join(where.top, "merges")
        os.makedirs(self._top, mode=0o700, exist_ok=True)
        with workspace_layout.holding(f"{self._top}.lock"):
            self._clear()
            number = 0
            while os.path.lexists(os.path.join(self._top, str(number))):
                number += 1
            self._folder = os.path.join(self._top, str(number))
            os.mkdir(self._folder, mode=0o700)
            self._held = workspace_layout.take(self._folder)
        self.git = Git(os.path.join(self._folder, "lane.git"))
        os.mkdir(self.git.directory)
        self.git("init", "--quiet", "--bare", "--template=")
        checkout.borrow(self.git.directory, mirror.objects)
        if walls is not None:
            self._run = walls((mirror.objects, os.path.join(self.git.directory, "objects")))

    @property
    def tests(self) -> bool:
        """Whether a command judges what is to land."""
        return bool(self._suite.tests or self._suite.setup)

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
                if entry.is_dir(follow_symlinks=False) and (held := workspace_layout.take(entry.path)) is not None:
                    try:
                        remove(entry.path, lambda: time.monotonic() < until)
                    finally:
                        os.close(held)


def _failure(line: str, code: int, said: str) -> str:
    late, _, said = said.partition("; ") if code == TIMED_OUT else ("", "", said)
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


# Runs a line for the shell in a checkout, in the sandbox of this merger.


class Walled:
    """Runs lines in a sandbox. said: of the merger; borrowed: folders of objects that a checkout reads besides."""

    def __init__(self, said: str | Mapping[str, Any], environ: Mapping[str, str], borrowed: Sequence[str]) -> None:
        self._said, self._environ = said, environ
        config = confinement.read(said, TABLE)
        self._config = config.model_copy(update={"show": (*config.show, *borrowed)})

    def __call__(self, line: str, directory: str, within_s: float | None = None) -> tuple[int, str]:
        """Run a line in a checkout, beside which nothing lies; as `run` does. Errors: SpoolError, OSError."""
        place = os.path.dirname(directory)
        home = os.path.join(place, "home")
        os.makedirs(home, mode=0o700, exist_ok=True)
        environ = {**self._environ, "SPOOL_WORK_DIR": os.path.join(place, "work")}
        sandbox = Confined(self._config, environ)
        env = {name: value for name, value in environ.items() if name not in (VARIABLE, REDACT)}
        opened = Opened(directory, home)
        with sandbox.enter(opened):
            scene = Scene(sandbox, directory, home, env, lambda: False, lambda: None)
            ran = run_command(["/bin/sh", "-c", line], scene, within_s or float("inf"), aloud=True, most=OUTPUT_MAX)
        if ran.code is None:
            return TIMED_OUT, f"it has not ended within {within_s:g} s; {ran.output}"
        return ran.code, ran.output + (confinement.hint(self._said, ran.output, self._environ) if ran.code else "")
