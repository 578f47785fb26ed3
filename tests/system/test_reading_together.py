"""Many files of one directory are read at once, with the care of a single read."""

import os
from pathlib import Path

import pytest

from spoold.system.filesystem import ReadsTogether
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.posix import PosixFileSystem


def test_it_returns_what_single_reads_return_and_leaves_out_what_they_refuse(tmp_path: Path) -> None:
    lane = tmp_path / "waiting" / "lane"
    (lane / "directory").mkdir(parents=True)
    for name, data in {"a": b"1", "b": b"", "long": b"x" * 200_000}.items():
        (lane / name).write_bytes(data)
    (tmp_path / "waiting" / "outside").write_bytes(b"secret")
    (lane / "link").symlink_to(lane / "a")
    os.mkfifo(lane / "pipe")
    fs = PosixFileSystem(tmp_path)
    names = ["a", "b", "long", "link", "pipe", "directory", "gone"]
    found = fs.read_together("waiting/lane", names)
    assert found == {name: fs.read(f"waiting/lane/{name}") for name in ("a", "b", "long")}
    for name in ("../outside", "directory/../a", str(lane / "a")):
        with pytest.raises(ValueError, match="path"):
            fs.read_together("waiting/lane", [name])


def test_a_directory_that_is_gone_or_a_link_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "lane").mkdir()
    (tmp_path / "lane" / "a").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "lane")
    fs = PosixFileSystem(tmp_path)
    for path in ("gone", "link", "lane/a"):
        with pytest.raises(OSError, match=path):
            fs.read_together(path, ["a"])


def test_nothing_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"1")
    (tmp_path / "lane").mkdir()
    before = os.listdir("/proc/self/fd")
    PosixFileSystem(tmp_path).read_together("lane", ["a", "gone"])
    assert os.listdir("/proc/self/fd") == before


def test_only_the_real_one_does_it() -> None:
    assert not isinstance(MemoryFileSystem(), ReadsTogether)
