"""Heartbeats: who lives, who it is, and who is provably gone."""

import errno

import pytest

from spoold.protocol.names import BeatName
from spoold.store import heartbeats
from spoold.store.initialise import initialise
from spoold.store.own_heartbeat import Presence, provably_gone
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def mount(clock: ManualClock) -> FaultyFileSystem:
    memory = MemoryFileSystem(clock)
    initialise(memory, clock, "spool", "/spool")
    return FaultyFileSystem(memory)


@pytest.fixture
def store(mount: FaultyFileSystem, clock: ManualClock) -> Store:
    made = open_store(mount, clock, "w1", "/spool")
    made.open_tmp()
    return made


def test_a_beat_replaces_the_one_before_under_a_new_name(store: Store, mount: FaultyFileSystem) -> None:
    mine = Presence(store, FakeHost("laptop"), "worker")
    for beat in range(3):
        mine.beat(0.0, "idle", slots=beat)
        assert mount.list("heartbeats") == [f"w1.{beat}.json"]
    read = heartbeats.read(mount, BeatName("w1", 2))
    assert read is not None
    assert (read.node, read.role, read.beat, read.status, read.slots) == ("w1", "worker", 2, "idle", 2)
    assert (read.host.hostname, read.interval_s) == ("laptop", 5)


def test_who_has_nothing_new_to_say_renames_the_beat_before(store: Store, mount: FaultyFileSystem) -> None:
    """For three intervals: then the stamp is too old for who looks only once."""
    mine = Presence(store, FakeHost(), "worker")
    seen = []
    for at in (0.0, 4.0, 8.0, 12.0, 16.0, 20.0):
        mine.beat(at, "idle", load=at)
        seen += mount.list("heartbeats")
    expected = ["w1.0.json", "w1.1.0.json", "w1.2.0.json", "w1.3.0.json", "w1.4.json", "w1.5.4.json"]
    assert seen == expected
    mine.beat(21.0, "draining")
    assert mount.list("heartbeats") == ["w1.6.json"]
    read = heartbeats.read_all(mount)["w1"]
    assert (read.beat, read.status) == (6, "draining")


@pytest.mark.parametrize("done", [True, False], ids=["done all the same", "not done"])
def test_a_beat_whose_renaming_failed_is_said_under_the_number_after(
    store: Store, mount: FaultyFileSystem, done: bool
) -> None:
    mine = Presence(store, FakeHost(), "worker")
    mine.beat(0.0, "idle")
    mount.fail("rename", "heartbeats/", errno.EIO)
    mount.fail("list", "heartbeats", errno.EIO)
    mine.beat(1.0, "idle")
    if done:
        mount.inner.write("heartbeats/w1.1.0.json", b"{}", durable=False)  # what the network carries out late
    assert heartbeats.list_beats(mount)["w1"] == BeatName("w1", 2)
    mine.beat(2.0, "working")
    mine.leave()
    assert mount.list("heartbeats") == []


def test_a_beat_that_gets_its_next_name_between_listing_and_reading_is_not_missed(
    store: Store, mount: FaultyFileSystem, clock: ManualClock
) -> None:
    mine = Presence(store, FakeHost(), "worker")
    mine.beat(0.0, "idle")
    onlooker = FaultyFileSystem(mount)
    onlooker.hang("read", "heartbeats/", lambda: mine.beat(1.0, "idle"))
    assert list(heartbeats.read_all(onlooker)) == ["w1"]
    mount.write("heartbeats/w0.1.json", b"no heartbeat", durable=False)
    assert list(heartbeats.read_all(onlooker)) == ["w0", "w1"], "one that says nothing lives by its name"


def test_a_beat_is_due_well_before_it_would_be_missed(store: Store, clock: ManualClock) -> None:
    mine = Presence(store, FakeHost(), "worker")
    assert mine.due(clock.monotonic())
    assert mine.next_due() == 0.0
    mine.beat(clock.monotonic(), "idle")
    assert not mine.due(clock.monotonic() + 3)
    assert mine.due(clock.monotonic() + 5 * 2 / 3)
    assert mine.next_due() < clock.monotonic() + 5


def test_a_beat_that_failed_still_is_due_and_its_number_is_never_used_again(
    store: Store, mount: FaultyFileSystem, clock: ManualClock
) -> None:
    mine = Presence(store, FakeHost(), "worker")
    mount.fail("rename", "heartbeats/", errno.EIO)
    with pytest.raises(OSError, match="Input/output"):
        mine.beat(clock.monotonic(), "idle")
    assert mine.due(clock.monotonic())
    mine.beat(clock.monotonic(), "idle")
    assert mount.list("heartbeats") == ["w1.1.json"]


def test_the_highest_beat_counts_and_foreign_files_do_not(store: Store, mount: FaultyFileSystem) -> None:
    for name in ("w1.9.json", "w1.10.json", "w2.0.json", "README", "w3.json"):
        mount.write(f"heartbeats/{name}", b"{}", durable=False)
    assert heartbeats.list_beats(mount) == {"w1": BeatName("w1", 10), "w2": BeatName("w2", 0)}
    assert heartbeats.read(mount, BeatName("w1", 10)) is not None
    assert heartbeats.read(mount, BeatName("w1", 11)) is None
    Presence(store, FakeHost(), "worker").beat(0.0, "idle")
    assert {node: beat.beat for node, beat in heartbeats.read_all(mount).items()} == {"w1": 10, "w2": 0}


def test_an_old_beat_that_could_not_be_removed_does_no_harm(store: Store, mount: FaultyFileSystem) -> None:
    mine = Presence(store, FakeHost(), "worker")
    mine.beat(0.0, "idle")
    mount.fail("unlink", "heartbeats/", errno.EBUSY)
    mine.beat(0.0, "working")
    assert heartbeats.list_beats(mount) == {"w1": BeatName("w1", 1)}
    mine.leave()
    assert mount.list("heartbeats") == []


def test_on_a_full_share_a_node_still_lives(store: Store, mount: FaultyFileSystem) -> None:
    """The beat before gets the new name: a rename needs no room."""
    mine = Presence(store, FakeHost(), "worker")
    mount.fail("write", "tmp/", errno.ENOSPC)
    with pytest.raises(OSError, match="No space"):
        mine.beat(0.0, "idle")
    mine.beat(0.0, "idle")
    mount.fail("write", "tmp/", errno.ENOSPC)
    mine.beat(0.0, "working")
    assert mount.list("heartbeats") == ["w1.2.1.json"]
    old = heartbeats.read(mount, BeatName("w1", 2, 1))
    assert old is not None
    assert old.status == "idle"
    mine.beat(0.0, "working")
    assert mount.list("heartbeats") == ["w1.3.json"]  # what could not be said then is said now


def test_leaving_never_fails_and_takes_nobody_else_along(store: Store, mount: FaultyFileSystem) -> None:
    mine = Presence(store, FakeHost(), "worker")
    mine.beat(0.0, "idle")
    mount.write("heartbeats/w1-2.0.json", b"{}", durable=False)
    mount.off = True
    mine.leave()
    mount.off = False
    mine.leave()
    assert mount.list("heartbeats") == ["w1-2.0.json"]


def test_gone_is_said_only_of_what_ran_on_this_host_and_is_no_more(store: Store, mount: FaultyFileSystem) -> None:
    before = FakeHost("laptop")
    Presence(store, before, "worker").beat(0.0, "idle")
    beat = heartbeats.read(mount, BeatName("w1", 0))
    assert beat is not None
    after = before.another()
    assert not provably_gone(beat, after)
    before.die()
    assert provably_gone(beat, after)
    assert not provably_gone(beat, FakeHost("other"))
    after.reboot()
    assert not provably_gone(beat, after.another())  # N1: so it looks from a clone of the laptop, too
