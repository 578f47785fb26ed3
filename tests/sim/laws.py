"""What must hold after every single change of the tree, and at the end.

The witness sits at the server, where nobody lies, and knows the grammar of names and nothing else of the product.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import combinations

from spoold.protocol.lifecycle import allowed
from spoold.protocol.names import EndedName, TaskName, key, parse_archived, parse_ended, parse_returned, parse_task
from spoold.protocol.request import parse_request
from tests.sim.conduct import Broken, Conduct
from tests.sim.decided import Decided
from tests.sim.journals import Journals
from tests.sim.loaned import lent
from tests.sim.programs import Execution
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server

# A supervisor looks at its lease now and then; a command may be that late to die (s).
OVERLAP_S = 0.6
# What a stalled answer of the server can hide of its time (s). The clocks of the machines are hours off.
EARLY_S = 10.0


@dataclass(slots=True)
class Asked:
    """A task that was submitted and acknowledged: what the laws must know of it."""

    id: str
    kind: str
    parents: tuple[str, ...] = ()
    not_before: float = 0.0  # in true time (s)
    locks: dict[str, list[str]] | None = None


@dataclass(slots=True)
class Laws:
    """Polling at every change. limits: how many of a type may be claimed at once; by_lock: the spool claims by lock.

    able: the machine that has every program, '' where none is sure to take tasks. one_date: the pool's never changes.
    excused: paths of which fsck may complain.
    """

    scheduler: Scheduler
    server: Server
    limits: dict[str, int]
    by_lock: bool
    asked: dict[str, Asked] = field(default_factory=dict)
    tokens: dict[str, str] = field(default_factory=dict)
    attempts: dict[tuple[str, int], str] = field(default_factory=dict)
    begun: dict[tuple[str, int], float] = field(default_factory=dict)
    fenced: set[tuple[str, int]] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    moves: int = 0
    able: str = ""
    one_date: bool = True
    check_locks: Callable[[Laws, Asked], None] = lambda laws, asked: None
    since: dict[str, float] = field(default_factory=dict)
    journals: Journals = field(default_factory=Journals)
    conduct: Conduct = field(init=False)
    decided: Decided = field(default_factory=Decided)
    excused: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.conduct = Conduct(self.scheduler, self.server, self.by_lock)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        if replaced:
            raise Broken(f"written once: {src} was renamed onto {dst}, which was there")
        self.conduct.renamed(src, dst)
        self.decided.renamed(self.server, self.scheduler.now, dst)
        self.decided.sent_back(self.tokens, src, dst)
        before, after = token_at(src), token_at(dst)
        token = before or after
        if token is None:
            return
        self.moves += 1
        self.journals.moved(token, dst)
        if after is not None:
            self._check_own(dst)
        source, target = src.partition("/")[0], dst.partition("/")[0]
        if not allowed(source, target):
            raise Broken(f"the table of moves has no line from {source}/ to {target}/: {src} → {dst}")
        if before is not None:
            self._leave(before, src)
            if source == "claimed" and isinstance(before, TaskName):
                self._check_still(before, src, dst)
        if after is not None:
            self._arrive(after, src, dst)

    def removed(self, path: str) -> None:
        """After every unlink."""
        if token_at(path) is not None:
            raise Broken(f"lost: {path} was removed")
        request = parse_request(path.removeprefix("control/")) if path.startswith("control/") else None
        where = self.tokens.get(key(request.target), "") if request is not None else ""
        self.conduct.removed(path, self._counted_on(path), where)

    def written(self, path: str, replaced: bool) -> None:
        """After every write."""
        self.conduct.written(path, replaced, self._counted_on(path))

    def made(self, path: str) -> None:
        """After every mkdir."""
        if self.able and path.startswith(f"claimed/{self.able}-"):
            self.since[path.partition("/")[2]] = self.scheduler.now
        self.conduct.made(path)

    def appended(self, path: str, data: bytes) -> None:
        """After every append."""
        if path.startswith("events/"):
            self.journals.told(data)

    def scribbled(self, path: str) -> None:
        """After a program that is no node's wrote into a file that it has open, or emptied it."""
        if token_at(path) is not None:
            self._check_own(path)

    def check_runs(self, executions: list[Execution]) -> None:
        """At the end: what the laws of a world of its own say of what ran. Errors: Broken."""

    def _check_own(self, path: str) -> None:
        """No task is a file that a stranger has opened; but for shares over which files are only opened by name."""
        by_name = self.server.forgets and not self.server.rolls_back
        if not by_name and self.server.is_strangers(path):
            raise Broken(f"own file: {path} is a file that a program which is no node's has opened")

    def _counted_on(self, path: str) -> bool:
        """Whether this is a result, and the task that it belongs to is committed under its name."""
        room, _, file = path.partition("/")
        ended = parse_ended(file) if room == "results" else None
        return ended is not None and self.tokens.get(key(ended.id)) in (f"completed/{file}", f"failed/{file}")

    def rebuilt(self) -> None:
        """After a power cut: the tree may be that of an earlier moment, the laws hold there too."""
        self.conduct.rebuilt()
        self.tokens.clear()
        self.attempts.clear()
        self.fenced.clear()
        self.since.clear()
        for path in self.server.fs.files():
            name = token_at(path)
            if name is not None:
                if key(name.id) in self.tokens:
                    raise Broken(f"one token: {self.tokens[key(name.id)]} and {path} after a power cut")
                self.tokens[key(name.id)] = path

    def _leave(self, name: TaskName | EndedName, src: str) -> None:
        known = self.tokens.pop(key(name.id), None)
        if known != src:
            raise Broken(f"one token: {src} moved, while the task stood at {known}")

    def _check_still(self, before: TaskName, src: str, dst: str) -> None:
        """Nothing of an attempt moves at the moment in which another than its worker takes the claim away."""
        worker, target = src.split("/")[1], dst.rpartition("/")[2]
        returned, ended = parse_returned(target), parse_ended(target)
        mover = returned[1] if returned else ended.decider if ended else worker
        if mover == worker or self.conduct.forgot_at > -math.inf:
            return
        for machine in self.conduct.machines.values():
            if machine.name == worker and machine.moves(f"{before.id}.{before.attempt}"):
                raise Broken(f"never two active: {dst} takes attempt {before.attempt} from {worker} while it moves")

    def _arrive(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        there = self.tokens.get(key(name.id))
        if there is not None:
            raise Broken(f"one token: {src} → {dst}, while the task stands at {there}")
        self.tokens[key(name.id)] = dst
        target = dst.partition("/")[0]
        if target == "claimed":
            self._claimed(name, src, dst)
        elif target in ("completed", "failed"):
            self._committed(name, src, dst)
        elif target == "returned":
            if (key(name.id), name.attempt) in self.attempts:
                raise Broken(f"fencing: {dst} goes back under an attempt that was claimed before")
            self.fenced.add((key(name.id), name.attempt - 1))

    def _claimed(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        attempt = (key(name.id), name.attempt)
        if src.startswith("claimed/"):
            if src.rpartition("/")[0] != dst.rpartition("/")[0] or src == dst:
                raise Broken(f"own directory: {src} → {dst}")
            return
        if attempt in self.attempts:
            raise Broken(f"fencing: {dst} is claimed again; that attempt was {self.attempts[attempt]}'s")
        worker = dst.split("/")[1]
        self.attempts[attempt] = worker
        self.begun[attempt] = self.scheduler.now
        asked = self.asked.get(key(name.id))
        if asked is None:
            return
        if self.scheduler.now < asked.not_before - EARLY_S:
            raise Broken(
                f"clock: {dst} is claimed at {self.scheduler.now:.1f} s, not_before {asked.not_before:.1f} s"
            )
        for parent in asked.parents:
            at = self.tokens.get(key(parent), "nowhere")
            # Of a parent whose commit was forgotten, whoever waited for it may have been let go.
            done = at.startswith("completed/") or at.endswith(".completed.json") or self.conduct.forgot_at > -math.inf
            if not done:
                raise Broken(f"dependencies: {dst} is claimed while its parent {parent} is at {at}")
        self.check_locks(self, asked)
        limit = self.limits.get(asked.kind)
        if limit is not None:
            running = [
                k for k, path in self.tokens.items() if path.startswith("claimed/") and self._is(k, asked.kind)
            ]
            # What the network or a former leader made ready behind the leader's back he learns at his next listing.
            known = {k for k in running if k not in self.conduct.strangers}
            if (
                len(known) > limit
                and len(known - lent(self.server, self.tokens).keys()) > limit
                and not self.conduct.amazed
            ):
                raise Broken(f"limits: {sorted(running)} of type {asked.kind} are claimed, at most {limit} may be")

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
        if self.server.is_volatile(path):
            raise Broken(f"result before commit: {dst} is committed and {path} would not survive a power cut")
        if (said["task_id"], said["attempt"]) != (ended.id, ended.attempt):
            raise Broken(f"result before commit: {path} speaks of {said['task_id']}, attempt {said['attempt']}")
        if state == "failed" and said["error"] is not None:
            self._failed(ended, said["error"])
        if state == "completed":
            owner = self.attempts.get((key(ended.id), ended.attempt))
            if owner is not None and owner != ended.decider:
                raise Broken(f"fencing: {dst} is committed, but that attempt was {owner}'s")
            if (key(ended.id), ended.attempt) in self.fenced:
                raise Broken(f"fencing: {dst} is committed after that attempt was taken back")
            if said["status"] != "success":
                raise Broken(f"result before commit: {path} says {said['status']}")

    def _failed(self, ended: EndedName, error: dict[str, str]) -> None:
        """No task fails for want of a program while a worker that has it could be seen all the time."""
        begun = self.begun.get((key(ended.id), ended.attempt), -math.inf)
        seen = [node for node in self.server.fs.list("claimed") if self.since.get(node, math.inf) < begun]
        if seen and "SPAWN_FAILED" in (error["code"], error.get("cause")):
            raise Broken(
                f"elsewhere: {ended.id} failed on {ended.decider} ({error['message']}), and {seen} could run it"
            )


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


def check_executions(executions: list[Execution], now: float, since: float = -math.inf) -> None:
    """No attempt ran twice, and no two attempts of one task at the same time, of those that began since then: what a
    server forgets may begin anew.
    """
    seen: set[tuple[str, int, str]] = set()
    by_task: dict[str, list[Execution]] = {}
    for run in [run for run in executions if run.begin >= since]:
        if (run.task, run.attempt, run.worker) in seen:
            raise Broken(f"one attempt ran twice: {run}")
        seen.add((run.task, run.attempt, run.worker))
        by_task.setdefault(run.task, []).append(run)
    for runs in by_task.values():
        runs.sort(key=lambda run: run.begin)
        for earlier, later in combinations(runs, 2):
            if any(_overlap_s(one, other) > OVERLAP_S for one in earlier.active(now) for other in later.active(now)):
                raise Broken(f"never two active: {earlier} moved while {later} did")


def _overlap_s(one: tuple[float, float], other: tuple[float, float]) -> float:
    return min(one[1], other[1]) - max(one[0], other[0])
