"""Snapshots, requests, lanes and the archive: small rooms with one promise each."""

import errno

import pytest

from spoold.protocol import layout
from spoold.protocol.errors import BadName
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, SnapshotName, TaskName
from spoold.protocol.request import Verb
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.store import control, lanes_and_archive, snapshots
from spoold.store.dependency_results import write_dependencies
from spoold.store.initialise import initialise
from spoold.store.mover import Fate
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

NAME = TaskName(5000, "0000000001-1", "a")


@pytest.fixture
def mount() -> FaultyFileSystem:
    memory = MemoryFileSystem()
    initialise(memory, ManualClock(), "spool", "/spool")
    return FaultyFileSystem(memory)


@pytest.fixture
def store(mount: FaultyFileSystem) -> Store:
    made = open_store(mount, ManualClock(), "m1", "/spool")
    made.open_tmp()
    return made


def picture(spool_id: str) -> Snapshot:
    """A snapshot that can be told from others."""
    return Snapshot(generated_at="2026-01-01T00:00:00Z", spool_id=spool_id)


def test_the_highest_snapshot_counts_and_old_ones_go(store: Store, mount: FaultyFileSystem) -> None:
    assert snapshots.latest(mount) is None
    for seq in range(5):
        snapshots.publish(store, SnapshotName(3, seq), picture(f"s{seq}"))
    assert sorted(mount.list("status")) == ["3-3.json", "3-4.json"]
    found = snapshots.latest(mount)
    assert found is not None
    assert (found[0], found[1].spool_id) == (SnapshotName(3, 4), "s4")


def test_a_leader_of_a_higher_epoch_outranks_a_stale_one(store: Store, mount: FaultyFileSystem) -> None:
    snapshots.publish(store, SnapshotName(2, 900), picture("stale"))
    snapshots.publish(store, SnapshotName(10, 0), picture("new"))
    found = snapshots.latest(mount)
    assert found is not None
    assert found[1].spool_id == "new"


def test_a_directory_in_the_place_of_a_snapshot_is_passed_over(store: Store, mount: FaultyFileSystem) -> None:
    snapshots.publish(store, SnapshotName(1, 0), picture("good"))
    mount.mkdir("status/1-1.json")
    found = snapshots.latest(mount)
    assert found is not None
    assert found[1].spool_id == "good"
    mount.fail("read", "status/1-0", errno.EIO)
    with pytest.raises(OSError, match=r"status/1-0\.json"):
        snapshots.latest(mount)


def test_a_snapshot_that_is_replaced_or_broken_is_passed_over(store: Store, mount: FaultyFileSystem) -> None:
    snapshots.publish(store, SnapshotName(1, 0), picture("good"))
    mount.write("status/1-1.json", b"{", durable=False)
    mount.write("status/1-x.json", b"", durable=False)
    found = snapshots.latest(mount)
    assert found is not None
    assert found[1].spool_id == "good"
    mount.fail("read", "status/1-0", errno.ENOENT)
    found = snapshots.latest(mount)
    assert found is not None
    assert found[1].spool_id == "good"


def test_requests_are_posted_and_listed_in_a_settled_order(store: Store, mount: FaultyFileSystem) -> None:
    pause = control.post(store, Verb.PAUSE, "+all", "2", by="you", reason="backup")
    cancel = control.post(store, Verb.CANCEL, "some.task", "1")
    mount.write("control/notes.txt", b"", durable=False)
    assert control.list_requests(mount) == [cancel, pause]
    mount.unlink(control.path(pause))
    assert control.list_requests(mount) == [cancel]
    with pytest.raises(BadName):
        control.post(store, Verb.CANCEL, "../x", "3")


def test_a_lane_is_made_when_it_is_first_needed(store: Store, mount: FaultyFileSystem) -> None:
    mount.write("pending/a.json", b"{}", durable=False)
    moved = lanes_and_archive.move_into_lane(
        store, "ADMITTED", "pending/a.json", "ready", "type=x,run=command", NAME.encode()
    )
    assert moved
    assert lanes_and_archive.list_tasks(mount, "ready/type=x,run=command") == {NAME.encode(): NAME}
    assert list(lanes_and_archive.list_lanes(mount, "ready")) == ["type=x,run=command"]


def test_a_lane_is_not_made_for_what_is_not_there(store: Store, mount: FaultyFileSystem) -> None:
    lanes_and_archive.move_into_lane(store, "ADMITTED", "pending/none.json", "ready", "type=x", NAME.encode())
    moved = lanes_and_archive.move_into_lane(store, "ADMITTED", "pending/none.json", "ready", "type=x", NAME.encode())
    assert moved.fate is Fate.LOST


def test_foreign_names_in_lanes_are_passed_over(mount: FaultyFileSystem) -> None:
    for path in ("ready/lost+found", "ready/type=x"):
        mount.mkdir(path)
    mount.write("ready/type=x/notes.txt", b"", durable=False)
    assert list(lanes_and_archive.list_lanes(mount, "ready")) == ["type=x"]
    assert lanes_and_archive.list_tasks(mount, "ready/type=x") == {}
    assert lanes_and_archive.list_tasks(mount, "ready/type=gone") == {}


def test_the_archive_finds_a_task_by_its_id_whatever_its_case(store: Store, mount: FaultyFileSystem) -> None:
    name = EndedName("Some.Task", 2, "w1")
    assert lanes_and_archive.find_archived(mount, "some.task") is None
    mount.write(f"failed/{name.encode()}", b"{}", durable=False)
    lanes_and_archive.make_buckets(mount, [name.id, "SOME.TASK"])
    assert lanes_and_archive.archive_task(store, State.FAILED, name.encode(), name)
    found = lanes_and_archive.find_archived(mount, "SOME.task")
    assert found is not None
    assert found.endswith("/Some.Task.2.w1.failed.json")
    mount.write(f"{found.rpartition('/')[0]}/Some.Task.1.w1.result.json", b"{}", durable=False)
    mount.write("archive/README", b"", durable=False)
    assert list(lanes_and_archive.list_archived(mount)) == [(found, name, "failed")]
    assert lanes_and_archive.find_archived(mount, "other") is None


def test_a_task_gets_the_committed_results_of_all_that_it_depended_on(store: Store, mount: FaultyFileSystem) -> None:
    for state, name in (("completed", "good.2.w1"), ("failed", "bad.1.w2")):
        mount.write(f"{state}/{name}.json", b"{}", durable=False)
        mount.write(f"results/{name}.json", name.encode(), durable=False)
    mount.write("results/good.1.w9.json", b"an earlier attempt", durable=False)
    lanes_and_archive.make_buckets(mount, ["old", "good"])
    bucket, other = layout.bucket("old"), layout.bucket("good")
    mount.write(f"{bucket}/old.1.w1.completed.json", b"{}", durable=False)
    mount.write(f"{bucket}/old.1.w1.result.json", b"old", durable=False)
    task = Task.model_validate({"type": "x", "after": ["Good", "old"], "after_any": ["bad", "removed"]})
    written: dict[str, bytes] = {}
    list(write_dependencies(mount, task, written.__setitem__))
    assert written == {"deps/Good.json": b"good.2.w1", "deps/bad.json": b"bad.1.w2", "deps/old.json": b"old"}
    written.clear()
    mount.rename("results/good.2.w1.json", f"{other}/good.2.w1.result.json")
    mount.unlink("results/bad.1.w2.json")
    list(write_dependencies(mount, task, written.__setitem__))
    assert written == {"deps/Good.json": b"good.2.w1", "deps/old.json": b"old"}
    before = mount.calls
    list(write_dependencies(mount, Task.model_validate({"type": "x"}), written.__setitem__))
    assert mount.calls == before


def test_the_results_that_a_task_gets_are_bounded_together(
    store: Store, mount: FaultyFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are copied in one step of the worker, to its own disk."""
    monkeypatch.setattr("spoold.store.dependency_results.TOTAL_MAX", 10)
    for name, size in (("a", 6), ("b", 6), ("c", 4), ("d", 11)):
        mount.write(f"completed/{name}.1.w1.json", b"{}", durable=False)
        mount.write(f"results/{name}.1.w1.json", b"x" * size, durable=False)
    written: dict[str, bytes] = {}
    task = Task.model_validate({"type": "x", "after": ["a", "b", "c", "d"]})
    list(write_dependencies(mount, task, written.__setitem__))
    assert {name: len(data) for name, data in written.items()} == {"deps/a.json": 6, "deps/c.json": 4}
