"""What must hold after every single change of the tree, and at the end.

The witness sits at the server, where nobody lies, and knows the grammar of names and nothing else of the product.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise

from spoold.protocol.lifecycle import allowed
from spoold.protocol.names import EndedName, TaskName, key, parse_archived, parse_ended, parse_returned, parse_task
from tests.sim.programs import Execution
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server

# A supervisor looks at its lease now and then; a command may be that late to die (s).
OVERLAP_S = 0.6
CHANGE_OF_LEADER_S = 30.0


class Broken(AssertionError):
    """A law is broken."""


@dataclass(slots=True)
class Asked:
    """A task that was submitted and acknowledged: what the laws must know of it."""

    id: str
    kind: str
    parents: tuple[str, ...] = ()


@dataclass(slots=True)
class Laws:
    """Looks at every change. limits: how many of a type may be claimed at once."""

    scheduler: Scheduler
    server: Server
    limits: dict[str, int]
    asked: dict[str, Asked] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    attempts: dict[tuple[str, int], str] = field(default_factory=dict)
    fenced: set[tuple[str, int]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    epoch: int = 0
    epoch_at: float = -CHANGE_OF_LEADER_S
    moves: int = 0

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        if replaced:
            raise Broken(f"written once: {src} was renamed onto {dst}, which was there")
        if dst.startswith("master/"):
            self._led(int(dst.removeprefix("master/").partition(".")[0]))
        before, after = token_at(src), token_at(dst)
        if after is None and before is None:
            return
        self.moves += 1
        source, target = src.partition("/")[0], dst.partition("/")[0]
        if not allowed(source, target):
            raise Broken(f"the table of moves has no line from {source}/ to {target}/: {src} → {dst}")
        if before is not None:
            self._leave(before, src)
        if after is not None:
            self._arrive(after, src, dst)

    def removed(self, path: str) -> None:
        """After every unlink."""
        if token_at(path) is not None:
            raise Broken(f"lost: {path} was removed")

    def rebuilt(self) -> None:
        """After a power cut: the tree may be that of an earlier moment, the laws hold there too."""
        self.tokens.clear()
        self.attempts.clear()
        self.fenced.clear()
        for path in self.server.fs.files():
            name = token_at(path)
            if name is not None:
                if key(name.id) in self.tokens:
                    raise Broken(f"one token: {self.tokens[key(name.id)]} and {path} after a power cut")
                self.tokens[key(name.id)] = path

    def _led(self, epoch: int) -> None:
        if epoch != self.epoch:
            self.epoch, self.epoch_at = epoch, self.scheduler.now

    def _leave(self, name: TaskName | EndedName, src: str) -> None:
        known = self.tokens.pop(key(name.id), None)
        if known != src:
            raise Broken(f"one token: {src} moved, while the task stood at {known}")

    def _arrive(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        there = self.tokens.get(key(name.id))
        if there is not None:
            raise Broken(f"one token: {src} → {dst}, while the task stands at {there}")
        self.tokens[key(name.id)] = dst
        target = dst.partition("/")[0]
        if target == "claimed":
            self._claimed(name, dst)
        elif target in ("completed", "failed"):
            self._committed(name, src, dst)
        elif target == "returned":
            if (key(name.id), name.attempt) in self.attempts:
                raise Broken(f"fencing: {dst} goes back under an attempt that was claimed before")
            self.fenced.add((key(name.id), name.attempt - 1))

    def _claimed(self, name: TaskName | EndedName, dst: str) -> None:
        attempt = (key(name.id), name.attempt)
        if attempt in self.attempts:
            raise Broken(f"fencing: {dst} is claimed again; that attempt was {self.attempts[attempt]}'s")
        worker = dst.split("/")[1]
        self.attempts[attempt] = worker
        asked = self.asked.get(key(name.id))
        if asked is None:
            return
        for parent in asked.parents:
            at = self.tokens.get(key(parent), "nowhere")
            if not (at.startswith("completed/") or at.endswith(".completed.json")):
                raise Broken(f"dependencies: {dst} is claimed while its parent {parent} is at {at}")
        limit = self.limits.get(asked.kind)
        if limit is not None:
            running = [
                k for k, path in self.tokens.items() if path.startswith("claimed/") and self._is(k, asked.kind)
            ]
            bound = limit if self.scheduler.now - self.epoch_at > CHANGE_OF_LEADER_S else 2 * limit
            if len(running) > bound:
                raise Broken(f"limits: {len(running)} of type {asked.kind} are claimed, at most {bound} may be")

    def _is(self, task_key: str, kind: str) -> bool:
        asked = self.asked.get(task_key)
        return asked is not None and asked.kind == kind

    def _committed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        state, _, file = dst.partition("/")
        ended = parse_ended(file)
        assert ended is not None
        self.counts[state] += 1
        path = f"results/{file}"
        try:
            said = json.loads(self.server.fs.read(path))
        except (OSError, ValueError) as error:
            raise Broken(f"result before commit: {dst} is committed and {path} is not whole ({error})") from error
        if path in self.server._volatile:
            raise Broken(f"result before commit: {dst} is committed and {path} would not survive a power cut")
        if (said["task_id"], said["attempt"]) != (ended.id, ended.attempt):
            raise Broken(f"result before commit: {path} speaks of {said['task_id']}, attempt {said['attempt']}")
        if state == "completed":
            owner = self.attempts.get((key(ended.id), ended.attempt))
            if owner is not None and owner != ended.decider:
                raise Broken(f"fencing: {dst} is committed, but that attempt was {owner}'s")
            if (key(ended.id), ended.attempt) in self.fenced:
                raise Broken(f"fencing: {dst} is committed after that attempt was taken back")
            if said["status"] != "success":
                raise Broken(f"result before commit: {path} says {said['status']}")


def token_at(path: str) -> TaskName | EndedName | None:
    """The name of the task file at this path, if it is one."""
    state, _, rest = path.partition("/")
    name = rest.rpartition("/")[2]
    if state in ("waiting", "ready", "claimed"):
        return parse_task(name)
    if state == "returned":
        returned = parse_returned(name)
        return returned[0] if returned else None
    if state in ("completed", "failed"):
        return parse_ended(name)
    archived = parse_archived(name) if state == "archive" else None
    return archived[0] if archived and archived[1] != "result" else None


def check_executions(executions: list[Execution], now: float) -> None:
    """No attempt ran twice, and no two attempts of one task at the same time."""
    seen: set[tuple[str, int, str]] = set()
    by_task: dict[str, list[Execution]] = {}
    for run in executions:
        if (run.task, run.attempt, run.worker) in seen:
            raise Broken(f"one attempt ran twice: {run}")
        seen.add((run.task, run.attempt, run.worker))
        by_task.setdefault(run.task, []).append(run)
    for runs in by_task.values():
        runs.sort(key=lambda run: run.begin)
        for earlier, later in pairwise(runs):
            end = now if earlier.end is None else earlier.end
            if end > later.begin + OVERLAP_S:
                raise Broken(f"lease: {earlier} still ran when {later} began")
