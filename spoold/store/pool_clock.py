"""The time that decides about deadlines: this node's clock, corrected by the file server's and the other nodes'.

Law: no single machine's date decides. The mtime of a file that was just written is the file server's time. The node
asks for it now and then, and in between counts by CLOCK_BOOTTIME, which cannot be set. `rules.cluster.pool_clock`
decides which clock is right.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from spoold.rules.cluster import pool_clock
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat

# How often (s) to ask the server; sooner again if its answer took so long that it is too vague.
ASK_EVERY_S = 60.0
ASK_AGAIN_S, VAGUE_S = 10.0, 1.0
TRIES = 3


class Stager(Protocol):
    """Writes the file whose stamp is the server's time: a `Store` does."""

    @property
    def fs(self) -> FileSystem:
        """The file system of that file."""

    def stage(self, data: bytes, *, durable: bool) -> str:
        """Write a file of this writer's own and return its path. Errors: OSError, ShutOut."""


class CommonClock:
    """One node's view of the clocks. All moments in seconds since 1970."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._server: float | None = None  # minus boottime
        self._took_s = float("inf")  # how long the server took to answer
        self._right = 0.0  # ahead of the server's clock
        self._due = float("-inf")

    @property
    def due(self) -> bool:
        """Whether the server should be asked."""
        return self._clock.boottime() >= self._due

    @property
    def ahead_s(self) -> float | None:
        """How far this machine's clock is ahead of the server's; None while it is unknown."""
        server = self.server()
        return None if server is None else self._clock.wall() - server

    def server(self) -> float | None:
        """The file server's time, by which files are stamped; None while it is unknown."""
        return None if self._server is None else self._clock.boottime() + self._server

    def wall(self) -> float:
        """The time that decides about deadlines."""
        ahead = self.ahead_s
        return self._clock.wall() + (0.0 if ahead is None else pool_clock.correction(ahead, self._right))

    def left_s(self, moment: float) -> float:
        """Seconds until a deadline; infinite before the server's time is known, since this machine's own date decides
        nothing.
        """
        return math.inf if self._server is None else moment - self.wall()

    def ask(self, store: Stager) -> None:
        """Ask the server for its time; at first several times, until it answers quickly. Errors: OSError, ShutOut."""
        first = self._server is None
        for _ in range(TRIES if first else 1):
            if self._ask(store) <= VAGUE_S:
                return

    def _ask(self, store: Stager) -> float:
        """Ask once; return how long (s) it took. Errors: as `ask`."""
        began = self._clock.boottime()
        path = store.stage(b"\n", durable=False)
        stamp = store.fs.stat(path).mtime_ns / 1e9
        took_s = self._clock.boottime() - began
        with contextlib.suppress(OSError):
            store.fs.unlink(path)
        vague = took_s > VAGUE_S
        self._due = began + took_s + (ASK_AGAIN_S if vague else ASK_EVERY_S)
        if took_s <= max(VAGUE_S, self._took_s):
            self._server, self._took_s = stamp - (began + took_s / 2), took_s
        return took_s

    def agree(self, ahead: Iterable[float]) -> None:
        """Take in how far each machine says that its clock is ahead."""
        self._right = pool_clock.agreed(sorted(ahead))


def machine(beat: Heartbeat) -> str:
    """The name of a node's machine, as `by_host` has it."""
    return pool_clock.machine(beat.host.hostname, beat.node)


def by_host(beats: Iterable[Heartbeat]) -> Mapping[str, float]:
    """How far the clock of each machine is ahead of the server's, as its nodes report."""
    return {machine(beat): beat.clock_ahead_s for beat in beats if beat.clock_ahead_s is not None}
