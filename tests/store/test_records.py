"""A result is written whatever a member puts in its place; nothing there is followed, read or lost."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.store.attempt_records import read_record, write_record
from spoold.store.initialise import initialise
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock, SystemClock
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.posix import PosixFileSystem
from tests.support.faults import FaultyFileSystem

PATH = "results/a.1.w1.json"
RESULT = b'{"task_id": "a", "attempt": 1, "worker_id": "w1", "status": "success"}'


@pytest.fixture
def store(tmp_path: Path) -> Store:
    root = tmp_path / "spool"
    root.mkdir()
    fs, clock = PosixFileSystem(root), SystemClock()
    initialise(fs, clock, "spool", str(root))
    return open_store(fs, clock, "w1", str(root))


def link(place: Path, victim: Path) -> None:
    place.symlink_to(victim)


def broken_link(place: Path, victim: Path) -> None:
    place.symlink_to(victim.parent / "nothing")


def pipe(place: Path, victim: Path) -> None:
    os.mkfifo(place)


def directory(place: Path, victim: Path) -> None:
    (place / "kept").mkdir(parents=True)


def hard_link(place: Path, victim: Path) -> None:
    os.link(victim, place)


def test_a_pipe_that_somebody_reads_gets_nothing(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "spool" / PATH
    os.mkfifo(place)
    reader = os.open(place, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_record(store, PATH, RESULT, durable=False)
        assert (place.is_file(), place.read_bytes()) == (True, RESULT)
        assert os.read(reader, 100) == b""
    finally:
        os.close(reader)


@pytest.mark.parametrize("plant", [link, broken_link, pipe, directory, hard_link])
def test_a_result_is_written_past_what_stands_in_its_place(
    store: Store, tmp_path: Path, plant: Callable[[Path, Path], None]
) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    place = tmp_path / "spool" / PATH
    plant(place, victim)
    told = write_record(store, PATH, RESULT, durable=False)
    assert (place.is_symlink(), place.is_file(), place.read_bytes()) == (False, True, RESULT)
    assert victim.read_bytes() == b"mine"
    assert not (tmp_path / "nothing").exists()
    beside = [entry for entry in place.parent.iterdir() if entry != place]
    if plant is hard_link:  # only a name of the file: the write that it refused took it away
        assert (told, beside) == ([], [])
        return
    (aside,) = beside
    assert (aside.name.startswith(".a.1.w1.json."), aside.name.endswith(".aside")) == (True, True)
    assert f"results/{aside.name}" in told[0]
    assert plant is not directory or (aside / "kept").is_dir()


def test_what_only_its_owner_may_touch_is_renamed_where_it_is() -> None:
    fs, clock = MemoryFileSystem(), ManualClock()
    initialise(fs, clock, "spool", "/spool")
    mount = FaultyFileSystem(fs)
    store = open_store(mount, clock, "w1", "/spool")
    fs.mkdir(PATH)
    mount.closed.add(PATH)
    assert read_record(mount, PATH) is None
    (told,) = write_record(store, PATH, RESULT, durable=False)
    assert PATH in told
    assert fs.read(PATH) == RESULT
    found = read_record(store.fs, "results/b.1.w1.json")
    assert found is None


@pytest.mark.parametrize("code", [errno.EIO, errno.ENOSPC, errno.EROFS])
def test_what_the_share_says_moves_nothing(code: int) -> None:
    fs, clock = MemoryFileSystem(), ManualClock()
    initialise(fs, clock, "spool", "/spool")
    fs.write(PATH, RESULT, durable=False)
    mount = FaultyFileSystem(fs)
    mount.fail("write", PATH, code)
    mount.fail("read", PATH, errno.EIO)
    store = open_store(mount, clock, "w1", "/spool")
    with pytest.raises(OSError, match=os.strerror(code)):
        write_record(store, PATH, b"{}", durable=False)
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        read_record(mount, PATH)
    assert fs.list("results") == ["a.1.w1.json"]


def test_a_directory_that_lets_nobody_write_is_said_as_it_is() -> None:
    fs, clock = MemoryFileSystem(), ManualClock()
    initialise(fs, clock, "spool", "/spool")
    fs.write(PATH, RESULT, durable=False)
    mount = FaultyFileSystem(fs)
    mount.fail("write", PATH, errno.EACCES)
    mount.fail("rename", PATH, errno.EPERM)
    with pytest.raises(PermissionError) as denied:
        write_record(open_store(mount, clock, "w1", "/spool"), PATH, b"{}", durable=False)
    assert denied.value.errno == errno.EACCES
