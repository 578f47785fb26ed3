"""Shares that are not fit for a spool: what no design on top of them survives, and what the laws then say.

Law: nothing here is part of any seed of the swarm. It shows that the witness is awake, and why `mount` stops where it
stops.
"""

from __future__ import annotations

import errno
import os

from tests.sim.mount import Mount
from tests.sim.server import Server

STALE_S = 12.0
CREDIT_S = 10.0


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


class Credulous(Mount):
    """Renames what it saw a moment ago, at the beginning of the call or in a listing, and does not ask again.

    So of two machines that rename one file at about the same time both are told that it was done. A change that the
    network carries out late finds nothing here that could keep it from the next: not even a lock helps against that,
    and it is left out.
    """

    def list(self, path: str) -> list[str]:
        names = super().list(path)
        self._seen[path] = (self._scheduler.now, set(names))
        return names

    def rename(self, src: str, dst: str) -> None:
        directory, _, name = src.rpartition("/")
        at, names = self._seen.get(directory, (float("-inf"), set()))
        if (self._scheduler.now - at > CREDIT_S or name not in names) and not self._server.exists(src):
            self._pause(src)
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), src)
        super().rename(src, dst)
        names.discard(name)

    @property
    def _seen(self) -> dict[str, tuple[float, set[str]]]:
        seen: dict[str, tuple[float, set[str]]] = self.__dict__.setdefault("_listed", {})
        return seen

    def _strikes(self, kind: str) -> bool:
        return kind not in ("late", "orphan") and super()._strikes(kind)


class TwoWinners(Server):
    """Where those mounts lead: carries out what a machine believes to be there, from what was there."""

    def __init__(self, clock: object, rolls_back: bool) -> None:
        super().__init__(clock, rolls_back)
        self._moved: dict[str, bytes] = {}

    def _rename(self, src: str, dst: str) -> None:
        if self.exists(src):
            self._moved[src] = self.fs.read(src)
        elif src in self._moved:
            self.fs.write(src, self._moved[src], durable=True)
        super()._rename(src, dst)


class NamesLost(Server):
    """Answers for a rename before it is on its disk, as SMB servers do: for a few seconds a power cut can undo it."""

    def __init__(self, clock: object, rolls_back: bool) -> None:
        super().__init__(clock, rolls_back)
        self.forgets = True


class Forgetful(Server):
    """Says that a file is durable, and keeps it in memory only."""

    def _write(self, path: str, data: bytes, *, durable: bool) -> None:
        super()._write(path, data, durable=False)

    def _flush(self) -> None:
        """Nothing is made durable."""
