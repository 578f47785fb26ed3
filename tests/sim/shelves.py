"""The world `shelves`: what the tasks of a batch share, how far they have come, and their laws.

Laws: an entry or a step is what one writer wrote, and survives a power cut from when it was acknowledged; a number is
given once by a writer; of two that put without knowledge of each other at least one is told; an entry stays while a
task of its batch is open, and a step while its task is there; an attempt goes on from no less than what the last one
that saved anything had acknowledged; in the end nothing stays.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from spoold.client.context_and_steps import Shared
from spoold.master.master import Master
from spoold.protocol import codec, context_entry, step
from spoold.protocol.context_entry import Entry, EntryName, parse_entry
from spoold.protocol.names import EndedName, TaskName, key
from spoold.protocol.step import KEPT, parse_step
from spoold.store.store import open_store
from spoold.system.host import FakeHost
from tests.sim.conduct import ALIVE, Broken
from tests.sim.laws import Laws
from tests.sim.machine import Clocks
from tests.sim.scheduler import Scheduler
from tests.sim.workload import SETTINGS, Client, check_ends

ROOT = "/spool"
# Long after everything else, however often the server's date is set, so that nothing is archived while faults come;
# and soon, so that leaders look through what batches share while these go on.
OF_SHELVES = (
    SETTINGS
    + b"""
[retention]
completed_s = 100_000
failed_s = 100_000
archive_s = 5
tmp_s = 5
"""
)
BATCHES = {"long": 4, "short": 3, "again": 2}
# In the end a leader looks through everything so often, every minute; and so often a day passes in between.
LOOKS, DAYS = 20, 4


def batch_of(task_id: str) -> str:
    """The batch of a task, by its id."""
    return task_id.rpartition("-")[0]


class ShelfClient(Client):
    """Submits the tasks of some batches; the last one of a batch comes after the others, or late."""

    def live(self) -> None:
        """Submit everything."""
        for batch, count in BATCHES.items():
            names = [f"{batch}-{number}" for number in range(count)]
            for number, name in enumerate(names):
                self._scheduler.sleep(2.0 * self._weather.draw("between", name))
                earlier = names[:number] if number == count - 1 and batch == "long" else []
                self._submit([{**self._task(name, []), "batch": batch, "dependencies": earlier}])
        self._scheduler.sleep(12.0 * self._weather.draw("late"))
        self._submit([{**self._task("short-late", []), "batch": "short"}])
        self.done = True


@dataclass(slots=True)
class ShelfLaws(Laws):
    """The laws of shelves, besides all others. entries: what stands, by path; given: who gave which number; means:
    what may come to stand, since somebody tries to write it; acked: the paths that were acknowledged.
    """

    open_since: dict[str, float] = field(default_factory=dict)
    entries: dict[str, bytes] = field(default_factory=dict)
    ever: dict[str, bytes] = field(default_factory=dict)
    given: set[tuple[str, int, str]] = field(default_factory=set)
    means: set[tuple[str, str, bytes]] = field(default_factory=set)
    acked: set[str] = field(default_factory=set)
    puts: dict[tuple[str, str, int], list[tuple[Shared, bool]]] = field(default_factory=dict)
    lives: Counter[str] = field(default_factory=Counter)
    steps: dict[str, bytes] = field(default_factory=dict)
    saved: dict[str, dict[int, int]] = field(default_factory=dict)

    def renamed(self, src: str, dst: str, replaced: bool) -> None:
        """After every rename."""
        Laws.renamed(self, src, dst, replaced)
        room, owner, file = (*dst.split("/"), "", "")[:3]
        if room == "context":
            self._entered(dst, owner, file)
        elif room == "steps":
            name = parse_step(file)
            if name is None or self.server.is_volatile(dst):
                raise Broken(f"durable: {dst} is published, and would not survive a power cut")
            self._give(owner, name.number, name.node, dst)
            self.steps[dst] = self.server.fs.read(dst)

    def removed(self, path: str) -> None:
        """After every unlink."""
        Laws.removed(self, path)
        room, owner, file = (*path.split("/"), "", "")[:3]
        if room not in ("context", "steps"):
            return
        process = self.scheduler.current
        node = self.conduct.machines.get(process.name) if process is not None else None
        if room == "context":
            self.entries.pop(path, None)
            self.acked.discard(path)
            self.lives[owner] += not self.server.fs.list(context_entry.directory(owner))
        else:
            self.steps.pop(path, None)
        if node is not None:
            mine = [k for k in self.open_since if (room == "context" and batch_of(k) == owner) or k == owner]
            left = sorted(k for k in mine if self.open_since[k] < node.step_began)
            if left:
                raise Broken(f"shelf: {node.name} removes {path}, and {left} have not ended")
            if room == "steps" and self.tokens.get(owner, "").startswith(("completed/", "failed/")):
                raise Broken(f"shelf: {node.name} removes {path}, and its task stands at {self.tokens[owner]}")
        elif room == "steps" and process is not None and not process.name.startswith("late "):
            self._trimmed(path, owner, file)

    def rebuilt(self) -> None:
        """After a power cut."""
        Laws.rebuilt(self)
        now = self.scheduler.now
        alive = [k for k, at in self.tokens.items() if at.startswith(ALIVE)]
        self.open_since = dict.fromkeys(alive, now)
        files = self.server.fs.files()
        for known in (self.entries, self.steps):
            for path, data in [*known.items()]:
                there = path in files
                if (there and self.server.fs.read(path) != data) or (path in self.acked and not there):
                    raise Broken(f"durable: {path} was lost in a power cut")
                if not there:
                    del known[path]

    def means_entry(self, batch: str, name: str, data: bytes) -> None:
        """Somebody tries to put this."""
        self.means.add((key(batch), key(name), data))

    def means_step(self, task_id: str, value: dict[str, Any]) -> None:
        """Somebody tries to save this."""
        self.means.add((key(task_id), "", json.dumps(value).encode()))

    def put(self, batch: str, shared: Shared, data: bytes) -> None:
        """It was acknowledged."""
        path = _path(batch, shared)
        there = path in self.entries or not self._of(batch)
        if self.ever.get(path) != data or not there:
            raise Broken(f"shelf: {path} is acknowledged, and {there=} holds {self.ever.get(path)!r}")
        self.acked.add(path)
        told = bool(shared.conflicts)
        self.puts.setdefault((key(batch), key(shared.name), self.lives[key(batch)]), []).append((shared, told))

    def floor(self, batch: str, name: str) -> int:
        """The version that everybody must see from now on, as long as a task of the batch is open."""
        own = [path for path in self.acked if path.startswith(f"context/{key(batch)}/")]
        names = [found for path in own if (found := parse_entry(path.rpartition("/")[2])) is not None]
        return max((each.number for each in names if each.name == name), default=0)

    def got(self, task_id: str, shared: Shared, data: bytes, floor: int) -> None:
        """Somebody has read this."""
        path = _path(batch_of(task_id), shared)
        if self.ever.get(path) != data:
            raise Broken(f"shelf: {task_id} reads {data!r} in {path}, where somebody put {self.ever.get(path)!r}")
        self._at_least(task_id, shared.name, shared.version, floor)

    def not_found(self, task_id: str, name: str, floor: int) -> None:
        """Somebody has found nothing."""
        self._at_least(task_id, name, 0, floor)

    def confirm(self, task_id: str, attempt: int, number: int, value: dict[str, Any]) -> None:
        """A step was acknowledged."""
        saved = self.saved.setdefault(key(task_id), {})
        saved[attempt] = max(number, saved.get(attempt, 0))

    def confirmed(self, task_id: str, attempt: int) -> tuple[int, int]:
        """The attempt and number of the last step that this attempt must at least go on from."""
        saved = self.saved.get(key(task_id), {})
        return max(((each, number) for each, number in saved.items() if each <= attempt), default=(0, 0))

    def restored(self, task_id: str, attempt: int, at_least: tuple[int, int], found: tuple[int, Any] | None) -> int:
        """An attempt goes on from this; returns how much is done."""
        if found is None:
            if at_least > (0, 0) and key(task_id) in self.open_since:
                raise Broken(f"steps: {task_id}.{attempt} begins anew, and {at_least} was acknowledged")
            return 0
        number, value = found
        if (key(task_id), "", json.dumps(value).encode()) not in self.means:
            raise Broken(f"steps: {task_id}.{attempt} goes on from {value}, which nobody saved")
        if value["by"] > attempt or (value["by"], number) < at_least:
            raise Broken(f"steps: {task_id}.{attempt} goes on from {number} {value}, and {at_least} was acknowledged")
        return len(value["done"])

    def check_told(self) -> None:
        """Of two that did not know of each other one was told."""
        for (batch, name, _), made in self.puts.items():
            for (one, told), (other, also) in combinations(made, 2):
                if one.version > other.base and other.version > one.base and not (told or also):
                    raise Broken(f"told: {batch}, {name}: {one} and {other} did not know of each other")

    def _of(self, batch: str) -> set[str]:
        return {k for k in self.open_since if batch_of(k) == key(batch)}

    def _at_least(self, task_id: str, name: str, version: int, floor: int) -> None:
        if version < floor and key(task_id) in self.open_since:
            raise Broken(f"shelf: {task_id} sees version {version} of {name}, and {floor} was acknowledged")

    def _entered(self, path: str, batch: str, file: str) -> None:
        name, data = parse_entry(file), self.server.fs.read(path)
        if name is None or self.server.is_volatile(path):
            raise Broken(f"durable: {path} is published, and would not survive a power cut")
        content = codec.load_model(Entry, data, path).data
        if (batch, key(name.name), content) not in self.means:
            raise Broken(f"shelf: {path} holds {content!r}, which nobody put")
        self._give(batch, name.number, name.node, path)
        self.entries[path] = data
        self.ever[path] = content

    def _give(self, owner: str, number: int, node: str, path: str) -> None:
        if (owner, number, node) in self.given:
            raise Broken(f"shelf: {path} has a number that {node} has given before")
        self.given.add((owner, number, node))

    def _trimmed(self, path: str, owner: str, file: str) -> None:
        """An author removes a step of its own attempt, and leaves the last ones."""
        old = parse_step(file)
        names = filter(None, map(parse_step, self.server.fs.list(step.directory(owner))))
        later = [each for each in names if old and each.attempt == old.attempt and each > old]
        if len(later) < KEPT:
            raise Broken(f"steps: {path} was removed, and only {len(later)} came after it")

    def _arrive(self, name: TaskName | EndedName, src: str, dst: str) -> None:
        Laws._arrive(self, name, src, dst)
        room = dst.partition("/")[0]
        # What the network made wait behind the leader's back he may learn of when it moves on.
        unknown = room == "waiting" and self.conduct._actor() != self.conduct.holder
        if room in ALIVE and not unknown:
            self.open_since.setdefault(key(name.id), self.scheduler.now)
        elif room not in ALIVE:
            self.open_since.pop(key(name.id), None)


def _path(batch: str, shared: Shared) -> str:
    name = EntryName(shared.version, shared.node, shared.name, shared.base)
    return f"{context_entry.directory(batch)}/{name.encode()}"


def check_shelves(laws: Laws, cancelled: set[str]) -> None:
    """All has ended as it had to, and when its time is over nothing is left on a shelf. Errors: Broken."""
    check_ends(laws, cancelled)
    assert isinstance(laws, ShelfLaws)
    laws.check_told()
    fs = laws.server.fs.snapshot()
    scheduler = Scheduler()
    scheduler.now = laws.scheduler.now
    fs._clock = clock = Clocks(scheduler, 0.0, 0.0, 1.0)
    store = open_store(fs, clock, "m9", ROOT)
    store.open_tmp()
    master = Master(store, FakeHost("m9"))
    for _ in range(DAYS):
        for _ in range(LOOKS):
            scheduler.now += 61.0
            master.step()
        scheduler.now += 86_400.0
    left = [path for path in fs.files() if path.startswith(("context/", "steps/", "archive/"))]
    if left:
        raise Broken(f"shelf: {left} are left when their time is over")
