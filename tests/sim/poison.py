"""The world `poison`: some inputs make spoold itself fail, whenever a node reads them, and as long as they are there.

Laws: no node ends, every other task ends as ever, a task that cannot be handled ends too, and a drop that cannot be
handled goes to rejected/ with its reason. What a seed poisons depends on the seed and on the input alone: so the next
node meets the same, under whatever name a task has by then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from spoold.protocol.names import key, parse_beat
from spoold.system.scratch import MemoryScratch
from tests.sim.conduct import Broken
from tests.sim.laws import Laws, token_at
from tests.sim.mount import Mount
from tests.sim.scheduler import Scheduler
from tests.sim.server import Server
from tests.sim.weather import Weather
from tests.sim.workload import Client, check_ends
from tests.support.injected import KINDS, Injected

# How likely an input of a kind is poisoned. A task is one wherever its file is; a node is one whatever beat it is.
TASK, NODE = 0.15, 0.1
FILES = {"results": 0.15, "heartbeats": 0.1, "control": 0.2, "status": 0.1, "events": 0.2, "rejected": 0.3}
LEFT = 0.15
BAD = "bad-"
DROPS = 3

Draw = Callable[..., float]


def is_poisoned(draw: Draw, task_id: str) -> bool:
    """Whether no node can handle the file of this task."""
    return draw("poisoned task", key(task_id)) < TASK


def poison(draw: Draw, path: str) -> Injected | None:
    """The exception that comes of reading this file; None for nearly all files."""
    room, _, name = path.rpartition("/")
    token = token_at(path)
    if token is not None:
        return _of(draw, key(token.id)) if is_poisoned(draw, token.id) else None
    if name.startswith(BAD) and room in ("pending", "rejected"):
        return _of(draw, name)
    beat = parse_beat(name) if room == "heartbeats" else None
    if beat is not None and draw("poisoned node", beat.node) < NODE:
        return _of(draw, beat.node)
    return _of(draw, path) if draw("poisoned", path) < FILES.get(room, 0.0) else None


def _of(draw: Draw, what: str) -> Injected:
    return KINDS[int(draw("kind of poison", what) * len(KINDS))]("injected")


class PoisonedMount(Mount):
    """The share of a node, on which some files cannot be handled."""

    def read(self, path: str, limit: int | None = None, *, offset: int = 0) -> bytes:
        data = Mount.read(self, path, limit, offset=offset)
        if (error := poison(self._weather.draw, path)) is not None:
            raise error
        return data


@dataclass
class Leftovers:
    """What makes the scratch of each worker: in it, some of what tasks left cannot be handled."""

    draw: Draw = lambda *_: 1.0

    def __call__(self) -> MemoryScratch:
        return _PoisonedScratch(self.draw)


class _PoisonedScratch(MemoryScratch):
    def __init__(self, draw: Draw) -> None:
        super().__init__()
        self._draw = draw

    def read(self, key: str, name: str, offset: int = 0, limit: int = -1) -> bytes:
        data = super().read(key, name, offset, limit)
        if data and self._draw("poisoned leftover", key, name) < LEFT:
            raise _of(self._draw, f"{key} {name}")
        return data


LEFTOVERS = Leftovers()


class Poisoner(Client):
    """Submits as ever, and drops by hand what no node can handle. done: and all of that was rejected."""

    def __init__(
        self, scheduler: Scheduler, server: Server, weather: Weather, laws: Laws, base: str = "client"
    ) -> None:
        self._submitted = False
        super().__init__(scheduler, server, weather, laws, base)
        LEFTOVERS.draw = weather.draw

    @property
    def done(self) -> bool:
        """Whether everything was submitted, and what cannot be handled is set aside."""
        return self._submitted and not left_over(self._laws)

    @done.setter
    def done(self, submitted: bool) -> None:
        self._submitted = submitted

    def live(self) -> None:
        """Submit everything."""
        for number in range(DROPS):
            begin_s = 20.0 * self._weather.draw("bad drop", number)
            self._scheduler.spawn(f"{BAD}{number}", partial(self._drop, number), begin_s)
        Client.live(self)

    def _drop(self, number: int) -> None:
        task = json.dumps({"id": f"{BAD}{number}", "type": "wide", "command": ["work"]}).encode()
        path = f"pending/{BAD}{number}.{'jsonl' if number == DROPS - 1 else 'json'}"
        self._server.by_hand.add(path)
        self._server.call("write", path, task + b"\n", durable=True)


def left_over(laws: Laws) -> list[str]:
    """The drops that cannot be handled and are not in rejected/ with their reason."""
    names = [name for name in laws.server.fs.list("rejected") if name.endswith(".reason.json")]
    drops = [f"{BAD}{number}" for number in range(DROPS)]
    return [drop for drop in drops if not any(name.startswith(drop) for name in names)]


def check_poison(laws: Laws, cancelled: set[str]) -> None:
    """Every other task has ended as it had to, and what cannot be handled is where people find it."""
    bad = [asked for asked in laws.asked.values() if is_poisoned(LEFTOVERS.draw, asked.id)]
    for asked in bad:
        path = laws.tokens.get(key(asked.id), "nowhere")
        if not path.startswith(("completed/", "failed/")):
            raise Broken(f"a fault belongs to its cause: {asked.id}, which cannot be handled, stays at {path}")
    if left := left_over(laws):
        raise Broken(f"a fault belongs to its cause: {left} were not rejected: {laws.server.fs.list('rejected')}")
    every = dict(laws.asked)
    for asked in bad:
        del laws.asked[key(asked.id)]
    try:
        check_ends(laws, cancelled)
    finally:
        laws.asked.update(every)
