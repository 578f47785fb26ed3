"""Claim strategy `lock`, broken: on a share where two machines win one rename, each omission must be noticed.

That no move at all is without it, and what else is looked for first, is in tests/store/test_locked.py: what needs two
leaders at one moment, or a reply that is lost twice, comes too seldom here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from spoold.protocol import layout
from spoold.store import locked_renames
from spoold.store.locked_renames import LockedFileSystem
from tests.sim.mutation import Mutations, Swap

locks = Mutations("two-winners-lock")
locks_at_the_end = Mutations("two-winners-lock-ends")


def _without(room: str) -> list[Swap]:
    return [(locked_renames, "OWN", locked_renames.OWN | {room})]


@locks.add("one token", "Nobody takes the lock.")
def lock_not_taken() -> list[Swap]:
    @contextmanager
    def free(self: LockedFileSystem) -> Iterator[float]:
        yield self._clock.boottime()

    return [(LockedFileSystem, "_locked", free)]


@locks.add("one token", "Workers claim without the lock.")
def claim_without_lock() -> list[Swap]:
    return _without(layout.READY)


@locks_at_the_end.add("one token", "Workers commit, and the leader takes claims back, without the lock.")
def commit_without_lock() -> list[Swap]:
    return _without(layout.CLAIMED)


@locks.add("leadership", "The token of leadership is taken without the lock.")
def takeover_without_lock() -> list[Swap]:
    return _without(layout.MASTER)


@locks.add("one token", "Leaders move what waits without the lock.")
def waiting_without_lock() -> list[Swap]:
    return _without(layout.WAITING)


@locks.add("one token", "The lock is taken, and what is believed to stand at the source is not looked for.")
def source_not_listed() -> list[Swap]:
    return [(LockedFileSystem, "_stands", lambda *_: True)]


@locks.add("leadership", "Who led once and leads no more still moves what only leaders move.")
def former_leader_moves() -> list[Swap]:
    stands = LockedFileSystem._stands

    def moves_on(self: LockedFileSystem, src: str) -> bool:
        self._candidate = False
        return stands(self, src)

    return [(LockedFileSystem, "_stands", moves_on)]
