"""Claim strategy `lock`: what is done under the lock, what is looked for first, and what it means not to get it."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from spoold.protocol import layout
from spoold.protocol.lifecycle import MOVES
from spoold.store import mover
from spoold.store.locked_renames import DOORS, HOPELESS, OWN, SHARED, TRUST_S, LockedFileSystem
from spoold.store.mover import Fate
from spoold.system.clock import ManualClock
from spoold.system.errnos import advice
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

WAIT_S = 2.5
LEADER = "m1"


@dataclass(slots=True)
class WatchedLock:
    """A lock that says whether it is held, and how long each was ready to wait for it."""

    clock: ManualClock
    codes: list[int] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    takes_s: float = 0.0
    inside: bool = False

    @contextmanager
    def held(self, wait_s: float) -> Iterator[None]:
        assert not self.inside
        self.waits.append(wait_s)
        self.clock.advance(self.takes_s)
        if self.codes:
            self.clock.advance(wait_s)
            code = self.codes.pop(0)
            raise OSError(code, os.strerror(code), "spool.lock")
        self.inside = True
        try:
            yield
        finally:
            self.inside = False


class World:
    """A spool with one token of leadership, and a mount that notes which change was made under the lock."""

    def __init__(self, writer: str = LEADER) -> None:
        self.clock = ManualClock()
        self.memory = MemoryFileSystem(self.clock)
        self.memory.make_dirs(*(f"{room}/x" for room in layout.TREE if room != layout.MASTER), layout.MASTER)
        self.memory.write(f"master/3.{LEADER}.7", b"", durable=False)
        self.lock = WatchedLock(self.clock)
        self.mount = FaultyFileSystem(self.memory)
        self.changes: list[tuple[str, bool]] = []
        self.listings: list[str] = []
        for verb in ("rename", "rmdir", "mkdir"):
            self._note(verb)
        self._note_listings()
        self.fs = LockedFileSystem(self.mount, self.lock, self.clock, writer, WAIT_S)

    def _note(self, verb: str) -> None:
        change = getattr(self.mount, verb)

        def noted(*paths: str) -> None:
            self.changes.append((verb, self.lock.inside))
            change(*paths)

        setattr(self.mount, verb, noted)

    def _note_listings(self) -> None:
        look = self.mount.list

        def listed(path: str) -> list[str]:
            if self.lock.inside:
                self.listings.append(path)
            return look(path)

        setattr(self.mount, "list", listed)  # noqa: B010  a method of this one object

    def put(self, path: str) -> str:
        """A file is there."""
        self.memory.write(path, b"{}", durable=False)
        return path


@pytest.fixture
def world() -> World:
    return World()


TOKENS = sorted({(move.source, move.target) for move in MOVES if move.source != layout.TMP})
MORE = [("master", "master"), ("results", "archive"), ("logs", "archive")]


@pytest.mark.parametrize(("source", "target"), [*TOKENS, *MORE])
@pytest.mark.parametrize("writer", [LEADER, "w1", "fsck"])
def test_every_move_of_a_token_is_made_under_the_lock(source: str, target: str, writer: str) -> None:
    world = World(writer)
    src, dst = f"{source}/x/token", f"{target}/x/moved"
    if source == layout.MASTER:
        src, dst = f"master/3.{LEADER}.7", "master/4.w1.0"
    else:
        world.put(src)
    assert mover.move(world.fs, src, dst)
    assert world.changes == [("rename", True)]
    assert world.lock.waits == [WAIT_S]


@pytest.mark.parametrize(
    ("src", "dst"), [("tmp/x/1", "pending/a.json"), ("heartbeats/n.1.json", "heartbeats/n.2.json")]
)
def test_what_only_its_writer_moves_needs_no_lock(world: World, src: str, dst: str) -> None:
    world.lock.codes = [errno.EAGAIN]
    assert mover.move(world.fs, world.put(src), dst)
    world.fs.rmdir("tmp/x")
    world.fs.mkdir("tmp/y")
    world.fs.mkdir("waiting/type=a")
    assert [inside for _, inside in world.changes] == [False] * 4
    assert world.lock.waits == []


def test_doors_are_made_and_shut_under_the_lock(world: World) -> None:
    for room in DOORS:
        world.fs.mkdir(f"{room}/y")
        world.fs.rmdir(f"{room}/y")
    world.fs.rmdir("ready/x")
    assert world.changes == [("mkdir", True), ("rmdir", True)] * len(DOORS) + [("rmdir", True)]


def test_a_door_with_something_in_it_is_not_shut_whatever_the_server_would_say(world: World) -> None:
    world.put("claimed/x/token")
    with pytest.raises(OSError, match="not empty"):
        world.fs.rmdir("claimed/x")
    assert world.changes == []


@pytest.mark.parametrize("room", sorted(SHARED))
def test_a_source_that_is_not_listed_is_lost_whatever_the_server_would_say(world: World, room: str) -> None:
    moved = mover.move(world.fs, f"{room}/x" if room == layout.MASTER else f"{room}/x/token", "returned/x/token")
    assert moved.fate is Fate.LOST
    assert world.changes == []


def test_nothing_comes_into_a_door_that_was_removed_or_onto_a_name_in_it(world: World) -> None:
    src = world.put("ready/x/token")
    assert mover.move(world.fs, src, "claimed/gone/token").fate is Fate.NO_DIRECTORY
    world.put("claimed/x/token")
    with pytest.raises(FileExistsError):
        world.fs.rename(src, "claimed/x/token")
    assert world.changes == []


def test_the_leader_need_not_list_the_whole_backlog_for_each_move(world: World) -> None:
    assert mover.move(world.fs, world.put("waiting/x/token"), "ready/x/token")
    assert world.listings == ["master"]


def test_whoever_leads_no_more_makes_no_last_move(world: World) -> None:
    waiting = world.put("waiting/x/token")
    assert mover.move(world.fs, f"master/3.{LEADER}.7", f"master/3.{LEADER}.8")
    world.memory.rename(f"master/3.{LEADER}.8", "master/4.m2.0")
    assert mover.move(world.fs, waiting, "ready/x/token").fate is Fate.UNKNOWN
    assert [verb for verb, _ in world.changes] == ["rename"]


def test_what_never_led_and_is_no_leader_lists_first_as_fsck_must() -> None:
    world = World("fsck")
    assert mover.move(world.fs, world.put("waiting/x/token"), "rejected/x/token")
    assert world.listings == ["master", "waiting/x"]


def test_a_leader_who_was_not_told_what_became_of_his_move_lists_before_the_next_try(world: World) -> None:
    src, dst = world.put("waiting/x/token"), "ready/x/token"
    world.mount.fail("rename", src, errno.EIO, "done")
    world.mount.fail("list", "ready/", errno.EIO)
    assert mover.move(world.fs, src, dst).fate is Fate.UNKNOWN
    assert mover.move(world.fs, src, dst).fate is Fate.DONE
    assert world.changes == [("rename", True)]
    world.listings.clear()
    assert mover.move(world.fs, world.put(src), "ready/x/again")
    assert world.listings == ["master"]


def test_a_lock_that_others_have_is_tried_again_and_never_a_lost_race(world: World) -> None:
    world.lock.codes = [errno.EAGAIN]
    src = world.put("ready/x/token")
    assert mover.move(world.fs, src, "claimed/x/token").fate is Fate.UNKNOWN
    assert mover.move(world.fs, src, "claimed/x/token")


def test_who_waited_in_vain_asks_only_once_until_he_gets_it(world: World) -> None:
    """A step may make a hundred moves; to wait for each would cost a node its beats, and its tasks their lease."""
    world.lock.codes = [errno.EAGAIN] * 3
    src = world.put("ready/x/token")
    for _ in range(4):
        mover.move(world.fs, src, "claimed/x/token")
    mover.move(world.fs, "claimed/x/token", "returned/x/token")
    assert world.lock.waits == [WAIT_S, 0.0, 0.0, 0.0, WAIT_S]


def test_a_lock_that_nobody_gives_back_is_told_to_people(world: World) -> None:
    world.lock.codes = [errno.EAGAIN] * 3
    src = world.put("ready/x/token")
    assert mover.move(world.fs, src, "claimed/x/token").fate is Fate.UNKNOWN
    world.clock.advance(HOPELESS * WAIT_S)
    moved = mover.move(world.fs, src, "claimed/x/token")
    assert moved.fate is Fate.REFUSED
    assert moved.error is not None
    assert "others have held the lock for 32 s" in str(moved.error)
    assert "spool doctor" in advice(moved.error)
    assert world.changes == []


@pytest.mark.parametrize("code", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_mount_without_locks_refuses_every_move(world: World, code: int) -> None:
    world.lock.codes = [code] * 2
    assert mover.move(world.fs, world.put("ready/x/token"), "claimed/x/token").fate is Fate.REFUSED
    with pytest.raises(OSError, match=os.strerror(code)):
        world.fs.mkdir("claimed/y")
    assert world.changes == []


def test_a_holder_that_slept_does_not_count_on_the_lock_any_more(world: World) -> None:
    """The server may have given it to somebody else, who may be renaming just now."""
    src = world.put("ready/x/token")
    world.lock.takes_s = TRUST_S + 1
    assert mover.move(world.fs, src, "claimed/x/token").fate is Fate.UNKNOWN
    world.memory.mkdir("ready/y")
    with pytest.raises(BlockingIOError):
        world.fs.rmdir("ready/y")
    assert world.changes == []
    world.lock.takes_s = TRUST_S - 1
    assert mover.move(world.fs, src, "claimed/x/token")


def test_rooms_are_what_they_are_called() -> None:
    assert set(layout.TREE) >= OWN | SHARED | DOORS
    assert not OWN & SHARED
