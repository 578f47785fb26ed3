"""Hints: what moves wakes, what reads does not, and where inotify cannot help it says so and stays quiet."""

from __future__ import annotations

import errno
import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest

from spoold.system import hints as hints_module
from spoold.system.bell import readable
from spoold.system.hints import Hints
from spoold.system.mounts import Mount

PATIENCE_S = 20.0


@pytest.fixture
def hints(tmp_path: Path) -> Iterator[Hints]:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hints = Hints(tmp_path)
    yield hints
    hints.close()


def told(hints: Hints, timeout_s: float = PATIENCE_S) -> bool:
    return bool(readable(timeout_s, hints.fileno()))


def test_a_name_made_in_or_moved_into_a_directory_is_told(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    assert hints.reason is None
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)
    assert not hints.clear()
    (tmp_path / "b/y").write_bytes(b"")
    (tmp_path / "b/y").rename(tmp_path / "a/y")
    assert told(hints)
    assert not hints.clear()
    (tmp_path / "a/dir").mkdir()
    assert told(hints)
    assert hints.clear(), "a directory came, which may have to be watched"


def test_the_root_can_be_watched(tmp_path: Path, hints: Hints) -> None:
    hints.watch([""])
    (tmp_path / "spool.json").write_bytes(b"")
    assert told(hints)


def test_what_reads_lists_writes_or_leaves_is_not_told(tmp_path: Path, hints: Hints) -> None:
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
    (tmp_path / "a/x").rename(tmp_path / "b/x")
    assert not told(hints, 0)


def test_a_missing_directory_is_watched_once_it_is_there(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["later", "a/file/x"])
    assert hints.reason is None
    (tmp_path / "later").mkdir()
    hints.watch(["later"])
    hints.watch(["later"])
    (tmp_path / "later/x").write_bytes(b"")
    assert told(hints)


def test_a_directory_removed_and_made_again_is_watched_again(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    (tmp_path / "a").rmdir()
    assert told(hints)
    assert hints.clear()
    (tmp_path / "a").mkdir()
    hints.watch(["a"])
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)


def test_more_events_than_one_read_takes_are_cleared_at_once(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    for number in range(2000):
        (tmp_path / f"a/{number:0>40}").write_bytes(b"")
    assert not hints.clear()
    assert not told(hints, 0)


def test_nothing_is_told_after_close(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    hints.close()
    hints.close()
    hints.watch(["a"])
    assert hints.fileno() < 0
    assert not hints.clear()


def test_a_network_file_system_gets_no_watch_and_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints_module, "mount_of", lambda path: Mount("/mnt/spool", "nfs4", "nas:/x", ()))
    hints = Hints(tmp_path)
    hints.watch([""])
    assert hints.reason is not None
    assert "nfs4" in hints.reason
    assert hints.fileno() < 0
    hints.close()


def test_a_limit_of_instances_is_a_reason_not_an_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The lowest free descriptor as the limit: the next one that is asked for cannot be had.
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        hints = Hints(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    hints.close()
    assert hints.reason is not None
    assert "ulimit" in hints.reason


def test_a_limit_of_watches_is_a_reason_and_the_others_go_on(
    tmp_path: Path, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real limit belongs to the whole machine; lowering it for a test would take it from everybody.
    def no_more(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    hints.watch(["a"])
    with monkeypatch.context() as patch:
        patch.setattr("spoold.system.hints.INotify.add_watch", no_more)
        hints.watch(["a", "b"])
    assert hints.reason is not None
    assert "max_user_watches" in hints.reason
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)


def test_without_inotify_there_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inotify_simple._libc", object())
    assert "does not work here" in str(Hints(tmp_path).reason)


def test_more_directories_than_the_bound_are_left_to_polling(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints_module, "MAX_WATCHES", 1)
    hints.watch(["a"])
    assert hints.reason is None
    hints.watch(["a", "b"])
    assert "only 1 " in str(hints.reason)
