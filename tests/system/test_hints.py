"""Hints: what moves wakes, what reads does not, and where inotify cannot help it says so and stays quiet."""

from __future__ import annotations

import errno
import os
import resource
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.system import hints as hints_module
from spoold.system.hints import Hints
from spoold.system.mounts import Mount

PATIENCE = 20.0


class Bell:
    """Counts calls, and lets a test wait for the next one."""

    def __init__(self) -> None:
        self.rung = threading.Event()
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        self.rung.set()

    def wait(self) -> bool:
        woken = self.rung.wait(PATIENCE)
        self.rung.clear()
        return woken


@pytest.fixture
def bell() -> Bell:
    return Bell()


@pytest.fixture
def hints(tmp_path: Path, bell: Bell) -> Iterator[Hints]:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hints = Hints(tmp_path, bell)
    yield hints
    hints.close()


def test_a_file_created_moved_in_moved_out_or_deleted_wakes(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    hints.watch(["a"])
    assert hints.reason is None
    (tmp_path / "a/x").write_bytes(b"")
    assert bell.wait()
    (tmp_path / "a/x").rename(tmp_path / "b/x")
    assert bell.wait()
    (tmp_path / "b/x").rename(tmp_path / "a/y")
    assert bell.wait()
    (tmp_path / "a/y").unlink()
    assert bell.wait()
    (tmp_path / "a/dir").mkdir()
    assert bell.wait()


def test_the_root_can_be_watched(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    hints.watch([""])
    (tmp_path / "spool.json").write_bytes(b"")
    assert bell.wait()


def test_reading_listing_and_writing_wake_nobody(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    (tmp_path / "a/x").write_bytes(b"1")
    (tmp_path / "a/below").mkdir()
    hints.watch(["a"])
    (tmp_path / "a/x").read_bytes()
    os.listdir(tmp_path / "a")
    with open(tmp_path / "a/x", "ab") as file:
        file.write(b"2")
    os.utime(tmp_path / "a/x")
    (tmp_path / "a/below/y").write_bytes(b"")
    (tmp_path / "b/y").write_bytes(b"")
    # One directory's events come in order, so when this one is through, the others would have been.
    (tmp_path / "a/last").mkdir()
    assert bell.wait()
    hints.close()
    assert bell.count == 1


def test_a_missing_directory_is_watched_once_it_is_there(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    hints.watch(["later", "a/file/x"])
    assert hints.reason is None
    (tmp_path / "later").mkdir()
    hints.watch(["later"])
    hints.watch(["later"])
    (tmp_path / "later/x").write_bytes(b"")
    assert bell.wait()


def test_a_directory_removed_and_made_again_is_watched_again(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    hints.watch(["a"])
    (tmp_path / "a").rmdir()
    assert bell.wait()
    (tmp_path / "a").mkdir()
    probes = iter(range(1_000_000))

    def woken_by_a_new_file() -> bool:
        hints.watch(["a"])
        (tmp_path / f"a/{next(probes)}").write_bytes(b"")
        return bell.rung.wait(0.05)

    assert any(woken_by_a_new_file() for _ in range(int(PATIENCE / 0.05)))


def test_nothing_wakes_after_close(tmp_path: Path, hints: Hints, bell: Bell) -> None:
    hints.watch(["a"])
    hints.close()
    hints.close()
    hints.watch(["a"])
    (tmp_path / "a/x").write_bytes(b"")
    assert bell.count == 0
    assert not [thread for thread in threading.enumerate() if "notify" in type(thread).__name__]


def test_a_network_file_system_gets_no_watch_and_a_reason(
    tmp_path: Path, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints_module, "mount_of", lambda path: Mount("/mnt/spool", "nfs4", "nas:/x", ()))
    hints = Hints(tmp_path, bell)
    hints.watch([""])
    assert hints.reason is not None
    assert "nfs4" in hints.reason
    (tmp_path / "x").write_bytes(b"")
    hints.close()
    assert bell.count == 0


def test_a_limit_of_instances_is_a_reason_not_an_error(tmp_path: Path, bell: Bell) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The lowest free descriptor as the limit: the next one that is asked for cannot be had.
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        # Older watchdogs ask for an instance at the first watch, newer ones at once.
        hints = Hints(tmp_path, bell)
        hints.watch([""])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    hints.close()
    assert hints.reason is not None
    assert "ulimit" in hints.reason


def test_a_limit_of_watches_is_a_reason_and_the_others_go_on(
    tmp_path: Path, hints: Hints, bell: Bell, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real limit belongs to the whole machine; lowering it for a test would take it from everybody.
    def no_more(*_args: object, **_options: object) -> None:
        raise OSError(errno.ENOSPC, "inotify watch limit reached")

    hints.watch(["a"])
    monkeypatch.setattr("spoold.system.hints.InotifyObserver.schedule", no_more)
    hints.watch(["a", "b"])
    assert hints.reason is not None
    assert "max_user_watches" in hints.reason
    (tmp_path / "a/x").write_bytes(b"")
    assert bell.wait()


def test_more_directories_than_the_bound_are_left_to_polling(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints_module, "MAX_WATCHES", 1)
    hints.watch(["a"])
    assert hints.reason is None
    hints.watch(["a", "b"])
    assert "only 1 " in str(hints.reason)
