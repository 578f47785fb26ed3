"""Journals: appended in batches, rotated, followed, and never in the way."""

import errno

import pytest

from spoold.store import journal
from spoold.store.initialise import initialise
from spoold.store.journal import Journal, Reader
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
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


def open_as(mount: FaultyFileSystem, clock: ManualClock, writer: str) -> Store:
    """The spool as this writer sees it."""
    return open_store(mount, clock, writer, "/spool")


def test_nothing_is_written_until_flushed_and_then_in_one_call(mount: FaultyFileSystem, clock: ManualClock) -> None:
    mine = Journal(open_as(mount, clock, "w1"), epoch=7)
    mine.flush()
    mine.note("CLAIMED", "a", 2)
    mine.note("STOPPED", why=ValueError("odd"))
    assert mount.list("events") == []
    before = mount.calls
    mine.flush()
    assert mount.calls - before == 1
    claimed, stopped = Reader(mount).read()
    assert (claimed.event, claimed.task, claimed.attempt, claimed.epoch, claimed.seq) == ("CLAIMED", "a", 2, 7, 1)
    assert (stopped.task, stopped.attempt, stopped.detail) == (None, None, {"why": "odd"})


def test_a_segment_that_is_full_is_followed_by_the_next(
    mount: FaultyFileSystem, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "SEGMENT_BYTES", 300)
    mine = Journal(open_as(mount, clock, "w1"))
    for number in range(10):
        mine.note("ROUND", number=number)
        mine.flush()
    assert sorted(mount.list("events")) == ["w1.0.jsonl", "w1.1.jsonl", "w1.2.jsonl"]
    assert [event.seq for event in Reader(mount).read()] == list(range(1, 11))


def test_what_cannot_be_written_is_held_back_up_to_a_bound(
    mount: FaultyFileSystem, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "HELD_BACK_LINES", 5)
    mine = Journal(open_as(mount, clock, "w1"))
    mount.fail("append", "events/", errno.EIO, times=2)
    for number in range(8):
        mine.note("ROUND", number=number)
    mine.flush()
    assert mine.lost == 3
    mine.note("ROUND", number=8)
    mine.flush()
    assert mine.lost == 4
    mine.flush()
    assert [event.detail["number"] for event in Reader(mount).read()] == [4, 5, 6, 7, 8]


def test_a_reader_follows_and_sees_every_line_once(mount: FaultyFileSystem, clock: ManualClock) -> None:
    one, two, reader = (
        Journal(open_as(mount, clock, "w1")),
        Journal(open_as(mount, clock, "m1")),
        Reader(mount),
    )
    one.note("FIRST")
    clock.advance(1)
    two.note("SECOND")
    two.flush()
    one.flush()
    assert [event.event for event in reader.read()] == ["FIRST", "SECOND"]
    assert reader.read() == []
    clock.advance(1)
    one.note("THIRD")
    one.flush()
    assert [(event.writer, event.event) for event in reader.read()] == [("w1", "THIRD")]


def test_a_torn_line_waits_for_its_end_and_hides_no_other(mount: FaultyFileSystem, clock: ManualClock) -> None:
    mine, reader = Journal(open_as(mount, clock, "w1")), Reader(mount)
    mine.note("WHOLE")
    mine.flush()
    whole = mount.read("events/w1.0.jsonl")
    next_one, last = whole.replace(b"WHOLE", b"NEXT"), whole.replace(b"WHOLE", b"LAST")
    mount.append("events/w1.0.jsonl", next_one[:20])
    assert [event.event for event in reader.read()] == ["WHOLE"]
    mount.append("events/w1.0.jsonl", next_one[20:] + b'{"torn\n' + last)
    assert [event.event for event in reader.read()] == ["NEXT", "LAST"]


def test_an_append_that_was_cut_short_spoils_no_line_and_tells_nothing_twice(
    mount: FaultyFileSystem, clock: ManualClock
) -> None:
    mine, reader = Journal(open_as(mount, clock, "w1")), Reader(mount)
    mount.fail("append", "events/", errno.ENOSPC, how="done")
    mine.note("ONE")
    mine.note("TWO")
    mine.flush()
    torn = mount.read("events/w1.0.jsonl")[:-9]
    mount.write("events/w1.0.jsonl", torn, durable=False)
    mine.note("THREE")
    mine.flush()
    assert [event.event for event in reader.read()] == ["ONE", "TWO", "THREE"]


def test_journals_that_retention_took_away_are_no_error(mount: FaultyFileSystem, clock: ManualClock) -> None:
    mine = Journal(open_as(mount, clock, "w1"))
    mine.note("GONE")
    mine.flush()
    mount.fail("read", "events/w1.0.jsonl", errno.ENOENT)
    mount.write("events/notes.txt", b"somebody's notes", durable=False)
    reader = Reader(mount)
    assert reader.read() == []
    assert [event.event for event in reader.read()] == ["GONE"]


def test_a_reader_that_wants_some_tasks_gets_their_events_alone(mount: FaultyFileSystem, clock: ManualClock) -> None:
    mine = Journal(open_as(mount, clock, "w1"))
    for event, task in (("ONE", "Build"), ("TWO", "build-2"), ("THREE", None), ("FOUR", "build")):
        mine.note(event, task)
    mine.flush()
    mount.write("events/w2.0.jsonl", b'["build"]\n{"task": "build"}\n{"task": 7}\n', durable=False)
    assert [event.event for event in Reader(mount, tasks={"build"}).read()] == ["ONE", "FOUR"]
    assert Reader(mount, tasks=()).read() == []


def test_a_segment_with_a_successor_is_read_to_its_end_and_then_left_alone(
    mount: FaultyFileSystem, clock: ManualClock
) -> None:
    reader = Reader(mount)
    mount.write("events/w1.0.jsonl", b'{"writer": "w1", "event": "A"}\n', durable=False)
    assert [event.event for event in reader.read()] == ["A"]
    mount.write("events/w1.1.jsonl", b'{"writer": "w1", "event": "C"}\n', durable=False)
    mount.append("events/w1.0.jsonl", b'{"writer": "w1", "event": "B"}\n')
    assert [event.event for event in reader.read()] == ["B", "C"]
    reader.read()
    before = mount.calls
    mount.append("events/w1.1.jsonl", b'{"writer": "w1", "event": "D"}\n')
    assert [event.event for event in reader.read()] == ["D"]
    assert mount.calls - before == 3  # the append, the listing, and the segment that grows
