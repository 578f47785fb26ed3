"""The server's time is asked for, kept, and believed as far as its answer was quick."""

import errno

import pytest

from spoold.store.initialise import initialise
from spoold.store.pool_clock import ASK_AGAIN_S, ASK_EVERY_S
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

HOUR = 3600.0


@pytest.fixture
def server() -> ManualClock:
    return ManualClock()


@pytest.fixture
def mine(server: ManualClock) -> ManualClock:
    return ManualClock(wall=server.wall() + HOUR)


@pytest.fixture
def mount(server: ManualClock) -> FaultyFileSystem:
    fs = MemoryFileSystem(server)
    initialise(fs, server, "s", "/spool")
    return FaultyFileSystem(fs)


@pytest.fixture
def store(mount: FaultyFileSystem, mine: ManualClock) -> Store:
    store = open_store(mount, mine, "w1", "/spool")
    store.open_tmp()
    return store


def test_until_the_server_was_asked_nothing_is_known(store: Store, mine: ManualClock) -> None:
    assert (store.common.ahead_s, store.common.server()) == (None, None)
    assert store.common.wall() == mine.wall()
    assert store.common.due


def test_the_servers_time_is_kept_whatever_is_done_to_our_date(
    store: Store, server: ManualClock, mine: ManualClock, mount: FaultyFileSystem
) -> None:
    store.common.ask(store)
    assert mount.list("tmp/w1") == []
    assert store.common.ahead_s == pytest.approx(HOUR)
    for clock in (server, mine):
        clock.suspend(ASK_EVERY_S - 1.0)
    mine.set_wall(0.0)
    assert store.common.server() == pytest.approx(server.wall())
    assert store.common.wall() == pytest.approx(server.wall())
    assert not store.common.due
    mine.suspend(1.0)
    assert store.common.due


def test_what_most_machines_share_is_right(store: Store, mine: ManualClock) -> None:
    store.common.ask(store)
    store.common.agree([HOUR, HOUR])
    assert store.common.wall() == mine.wall()
    store.common.agree([HOUR])
    assert store.common.wall() == pytest.approx(mine.wall() - HOUR)


def test_an_answer_that_took_long_is_worth_less(
    store: Store, server: ManualClock, mine: ManualClock, mount: FaultyFileSystem
) -> None:
    def stall(more: int = 0) -> None:
        for clock in (server, mine):
            clock.advance(20.0)
        if more:
            mount.hang("stat", "tmp/", lambda: stall(more - 1))

    mount.hang("stat", "tmp/", lambda: stall(2))
    store.common.ask(store)
    assert store.common.ahead_s == pytest.approx(HOUR, abs=10.1)  # better than nothing
    mine.advance(ASK_AGAIN_S)
    server.advance(ASK_AGAIN_S)
    assert store.common.due
    store.common.ask(store)
    assert store.common.ahead_s == pytest.approx(HOUR)
    mount.hang("stat", "tmp/", stall)
    store.common.ask(store)
    assert store.common.ahead_s == pytest.approx(HOUR)


def test_a_server_that_does_not_answer_is_asked_again(store: Store, mount: FaultyFileSystem) -> None:
    mount.fail("stat", "tmp/", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        store.common.ask(store)
    assert store.common.due
