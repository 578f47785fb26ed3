"""Shares that are not fit for a spool: what no design on top of them survives, and what the laws then say.

Law: nothing here is part of any seed of the swarm. It shows that the witness is awake, and why `mount` stops where it
stops.
"""

from __future__ import annotations

from tests.sim.mount import Mount
from tests.sim.server import Server

STALE_S = 12.0


class StaleListings(Mount):
    """Lists a directory from memory for a while, as no NFS or SMB client did when it was opened by its path."""

    def list(self, path: str) -> list[str]:
        kept: dict[str, tuple[float, list[str]]] = self.__dict__.setdefault("_listed", {})
        at, names = kept.get(path, (float("-inf"), []))
        self._scheduler.sleep(0.001)
        if self._weather.fair or self._scheduler.now - at > STALE_S:
            at, names = self._scheduler.now, super().list(path)
            kept[path] = (at, names)
        return names


class TwoWinners(Server):
    """Lets two machines that rename one file at the same time both win, each to its own name."""

    def __init__(self, clock: object, rolls_back: bool) -> None:
        super().__init__(clock, rolls_back)
        self._moved: dict[str, bytes] = {}

    def _rename(self, src: str, dst: str) -> None:
        if src in self._moved and not self._exists(src):
            self.fs.write(src, self._moved.pop(src), durable=True)
        if src.startswith("ready/"):
            self._moved[src] = self.fs.read(src)
        super()._rename(src, dst)


class Forgetful(Server):
    """Says that a file is durable, and keeps it in memory only."""

    def _write(self, path: str, data: bytes, *, durable: bool) -> None:
        super()._write(path, data, durable=False)

    def _flush(self) -> None:
        """Nothing is made durable."""
