"""Kills what saves, pushes or merges the work of a task, at a moment that the seed decides.

Law: only processes that carry the id of the task in their environment get a signal, and never the agent itself.

Touches: files, processes, threads, the clock.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
import time
from collections.abc import Callable, Sequence

LOOK_S, PATIENCE_S = 0.02, 30.0


class Killer(threading.Thread):
    """Kills one process of a task, once. what: git, saver or merger."""

    def __init__(self, task: str, root: str, what: str, seed: int) -> None:
        super().__init__(daemon=True)
        self._task = f"{task}-merge" if what == "merger" else task
        self._root, self._what, self._chance = root, what, random.Random(f"kill {seed}")
        self._over = threading.Event()
        self.killed = ""

    def run(self) -> None:
        """Look for it, wait a moment, and kill it."""
        until = time.monotonic() + PATIENCE_S
        wait_s = self._chance.choice((0.0, 0.02, 0.1, 0.3, 0.8))
        while time.monotonic() < until and not self._over.wait(LOOK_S):
            found = self._found()
            if not found:
                continue
            if self._what != "git":
                time.sleep(wait_s)
            pid, line = self._chance.choice(found)
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                self.killed = line
                return

    def end(self) -> str:
        """Stop looking; returns the command line of what was killed, '' for nothing."""
        self._over.set()
        if self.ident is not None:  # else the task has ended before it left anything
            self.join()
        return self.killed

    def _found(self) -> list[tuple[int, str]]:
        """Return the processes that may be killed now."""
        return of_tasks(self._root, [self._task], self._fits)

    def _fits(self, words: list[bytes]) -> bool:
        if self._what == "git":
            # A git that takes its time: those that only look are gone before anybody sees them.
            return os.path.basename(words[0]).startswith(b"git") and any(
                one in words
                for one in (b"add", b"push", b"pack-objects", b"write-tree", b"read-tree", b"commit-tree")
            )
        return b"spoold.agents.merge" in words if self._what == "merger" else _is_saver(words)


def of_tasks(root: str, tasks: Sequence[str], fits: Callable[[list[bytes]], bool]) -> list[tuple[int, str]]:
    """Return the processes of these tasks of a spool, with their command lines. fits: which, by their words."""
    found = []
    wanted, place = {f"SPOOL_TASK_ID={task}".encode() for task in tasks}, f"SPOOL_ROOT={root}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/cmdline", "rb") as file:
                words = file.read().split(b"\0")
            if not fits(words):
                continue
            with open(f"/proc/{name}/environ", "rb") as file:
                environment = file.read().split(b"\0")
            if place in environment and wanted.intersection(environment):
                found.append((int(name), b" ".join(words).decode(errors="replace")[:200]))
    return found


def _is_saver(words: list[bytes]) -> bool:
    return any(one.startswith(b"spoold.agents") and one != b"spoold.agents.merge" for one in words)
