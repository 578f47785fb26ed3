"""What a peer removes while it is open here is stale to an NFS client. It is gone; the share is well."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from spoold.system.posix import PosixFileSystem


def _stale(
    monkeypatch: pytest.MonkeyPatch, call: str, times: int = 1, then: Callable[[], None] = lambda: None
) -> list[int]:
    """The first so many of these calls fail as the kernel has them fail, after a peer did `then`."""
    real = getattr(os, call)
    asked: list[int] = []

    def failing(fd: int, *more: Any) -> Any:
        asked.append(fd)
        if len(asked) > times:
            return real(fd, *more)
        then()
        raise OSError(errno.ESTALE, os.strerror(errno.ESTALE), fd)

    monkeypatch.setattr(os, call, failing)
    return asked


@pytest.fixture
def lane(tmp_path: Path) -> Path:
    made = tmp_path / "ready" / "type=build"
    made.mkdir(parents=True)
    (made / "task.json").write_bytes(b"{}")
    return made


def test_a_directory_that_went_stale_while_it_was_listed_is_listed_again(
    lane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = _stale(monkeypatch, "listdir")
    assert PosixFileSystem(tmp_path).list("ready/type=build") == ["task.json"]
    assert len(asked) == 2


def test_a_directory_that_a_peer_removed_while_it_was_listed_is_not_there(
    lane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remove() -> None:
        (lane / "task.json").unlink()
        lane.rmdir()

    _stale(monkeypatch, "listdir", then=remove)
    with pytest.raises(FileNotFoundError) as caught:
        PosixFileSystem(tmp_path).list("ready/type=build")
    assert caught.value.filename == str(lane)


def test_a_directory_that_stays_stale_is_named_by_its_path(
    lane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stale(monkeypatch, "listdir", times=9)
    with pytest.raises(OSError, match="Stale") as caught:
        PosixFileSystem(tmp_path).list("ready/type=build")
    assert (caught.value.errno, caught.value.filename) == (errno.ESTALE, str(lane))


def test_a_file_that_a_peer_removed_while_it_was_read_is_not_there(
    lane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _stale(monkeypatch, "fstat", then=(lane / "task.json").unlink)
    with pytest.raises(FileNotFoundError):
        PosixFileSystem(tmp_path).read("ready/type=build/task.json")


def test_a_file_that_a_peer_replaced_while_it_was_read_is_read_again(
    lane: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def replace() -> None:
        (lane / "task.json").write_bytes(b"[]")

    _stale(monkeypatch, "fstat", then=replace)
    assert PosixFileSystem(tmp_path).read("ready/type=build/task.json") == b"[]"
