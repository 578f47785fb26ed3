"""The time by which deadlines are judged: this node's clock, corrected by the file server's and by the other nodes'.

Law: no single machine's date decides. The mtime of a file that was just written is the file server's time. It is
asked for now and then, and kept in between by CLOCK_BOOTTIME, which nobody can set. `rules.cluster.clocks` says which
clock is right.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from spoold.rules.cluster import clocks
from spoold.system.clock import Clock
from spoold.system.filesystem import FileSystem

if TYPE_CHECKING:
    from spoold.protocol.heartbeat import Heartbeat

# How often (s) the server is asked; and again soon where it took so long to answer that the answer tells little.
ASK_EVERY_S = 300.0
ASK_AGAIN_S, VAGUE_S = 10.0, 1.0
TRIES = 3


class Stager(Protocol):
    """Who writes the file whose stamp is asked for: a `Store` is one."""

    @property
    def fs(self) -> FileSystem:
        """Where the file is."""

    def stage(self, data: bytes, *, durable: bool) -> str:
        """Write a file of this writer's own and return its path. Errors: OSError, ShutOut."""


class CommonClock:
    """One node's view of the clocks. All moments in seconds since 1970."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._server: float | None = None  # minus boottime
        self._took_s = float("inf")  # for the server to say so
        self._right = 0.0  # ahead of the server's clock
        self._due = float("-inf")

    @property
    def due(self) -> bool:
        """Whether the server should be asked."""
        return self._clock.boottime() >= self._due

    @property
    def ahead_s(self) -> float | None:
        """How far this machine's clock is ahead of the server's; None while nobody knows."""
        server = self.server()
        return None if server is None else self._clock.wall() - server

    def server(self) -> float | None:
        """The file server's time, by which files are stamped; None while nobody knows."""
        return None if self._server is None else self._clock.boottime() + self._server

    def wall(self) -> float:
        """The time by which deadlines are judged."""
        ahead = self.ahead_s
        return self._clock.wall() + (0.0 if ahead is None else clocks.correction(ahead, self._right))

    def left_s(self, moment: float) -> float:
        """How long (s) it is until a deadline; endless before the server's time is known, since this machine's own
        date decides nothing.
        """
        return math.inf if self._server is None else moment - self.wall()

    def ask(self, store: Stager) -> None:
        """Ask the server for its time; at first some times, until it answers quickly. Errors: OSError, ShutOut."""
        first = self._server is None
        for _ in range(TRIES if first else 1):
            if self._ask(store) <= VAGUE_S:
                return

    def _ask(self, store: Stager) -> float:
        """How long (s) it took. Errors: as `ask`."""
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
        """Take in what the machines say of their clocks, one figure for each."""
        self._right = clocks.agreed(sorted(ahead))


def by_host(beats: Iterable[Heartbeat]) -> Mapping[str, float]:
    """How far the clock of each machine is ahead of the server's, as the nodes on it say."""
    return {beat.host.hostname: beat.clock_ahead_s for beat in beats if beat.clock_ahead_s is not None}
