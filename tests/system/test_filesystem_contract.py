"""The contract of the file-system port: what it promises is shown here of every implementation, errno for
errno.

What the simulator proves in memory is worth as much as this file: a difference between the two is a lie told
by every simulated run.
"""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Protocol

import pytest

from spoold.system import posix
from spoold.system.clock import ManualClock
from spoold.system.filesystem import FileSystem, NotRegularError
from spoold.system.memory_filesystem import MemoryFileSystem
from spoold.system.mounts import Mount
from spoold.system.posix import PosixFileSystem
from tests.support.mounted import lie_on


class World(Protocol):
    """A file system and the means to put into it what the port cannot."""

    fs: FileSystem

    def symlink(self, path: str) -> None: ...
    def fifo(self, path: str) -> None: ...


class PosixWorld:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.fs: FileSystem = PosixFileSystem(root)

    def symlink(self, path: str) -> None:
        (self.root / path).symlink_to("nowhere")

    def fifo(self, path: str) -> None:
        os.mkfifo(self.root / path)


class MemoryWorld:
    def __init__(self) -> None:
        self.memory = MemoryFileSystem()
        self.fs: FileSystem = self.memory

    def symlink(self, path: str) -> None:
        self.memory.make_symlink(path)

    def fifo(self, path: str) -> None:
        self.memory.make_fifo(path)


@pytest.fixture(params=["posix", "memory"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    """A root with a file, a directory with something in it, an empty one, a symlink and a FIFO."""
    world: World = PosixWorld(tmp_path) if request.param == "posix" else MemoryWorld()
    world.fs.write("file", b"content", durable=True)
    world.fs.mkdir("full")
    world.fs.write("full/inside", b"", durable=False)
    world.fs.mkdir("empty")
    world.symlink("link")
    world.fifo("fifo")
    return world


@pytest.fixture(autouse=True)
def _serves_no_nfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the machine of these tests does besides."""
    monkeypatch.setattr(posix, "SERVER", tmp_path / "no server")


@pytest.fixture
def fs(world: World) -> FileSystem:
    return world.fs


Call = Callable[[FileSystem], object]


def refused(fs: FileSystem, call: Call) -> int | None:
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is what the caller compares
        call(fs)
    return caught.value.errno


REFUSALS: list[tuple[str, Call, int]] = [
    ("list missing", lambda fs: fs.list("gone"), errno.ENOENT),
    ("list file", lambda fs: fs.list("file"), errno.ENOTDIR),
    ("list link", lambda fs: fs.list("link"), errno.ENOTDIR),
    ("list below link", lambda fs: fs.list("link/x"), errno.ENOTDIR),
    ("list below file", lambda fs: fs.list("file/x"), errno.ENOTDIR),
    ("read missing", lambda fs: fs.read("gone"), errno.ENOENT),
    ("read below missing", lambda fs: fs.read("gone/x"), errno.ENOENT),
    ("read below file", lambda fs: fs.read("file/x"), errno.ENOTDIR),
    ("read dir", lambda fs: fs.read("full"), errno.EINVAL),
    ("read root", lambda fs: fs.read(""), errno.EINVAL),
    ("read link", lambda fs: fs.read("link"), errno.EINVAL),
    ("read fifo", lambda fs: fs.read("fifo"), errno.EINVAL),
    ("write below missing", lambda fs: fs.write("gone/x", b"", durable=False), errno.ENOENT),
    ("write below file", lambda fs: fs.write("file/x", b"", durable=False), errno.ENOTDIR),
    ("write dir", lambda fs: fs.write("empty", b"", durable=False), errno.EISDIR),
    ("write root", lambda fs: fs.write("", b"", durable=False), errno.EISDIR),
    ("write link", lambda fs: fs.write("link", b"", durable=False), errno.ELOOP),
    ("write fifo", lambda fs: fs.write("fifo", b"", durable=False), errno.ENXIO),
    ("write long name", lambda fs: fs.write("n" * 256, b"", durable=False), errno.ENAMETOOLONG),
    ("append below missing", lambda fs: fs.append("gone/x", b""), errno.ENOENT),
    ("append dir", lambda fs: fs.append("empty", b""), errno.EISDIR),
    ("append root", lambda fs: fs.append("", b""), errno.EISDIR),
    ("append link", lambda fs: fs.append("link", b""), errno.ELOOP),
    ("append fifo", lambda fs: fs.append("fifo", b""), errno.ENXIO),
    ("rename missing", lambda fs: fs.rename("gone", "new"), errno.ENOENT),
    ("rename missing onto file", lambda fs: fs.rename("gone", "file"), errno.ENOENT),
    ("rename into missing", lambda fs: fs.rename("file", "gone/x"), errno.ENOENT),
    ("rename into file", lambda fs: fs.rename("full", "file/x"), errno.ENOTDIR),
    ("rename file onto dir", lambda fs: fs.rename("file", "empty"), errno.EISDIR),
    ("rename file onto own dir", lambda fs: fs.rename("full/inside", "full"), errno.ENOTEMPTY),
    ("rename dir onto file", lambda fs: fs.rename("empty", "file"), errno.ENOTDIR),
    ("rename dir onto full dir", lambda fs: fs.rename("empty", "full"), errno.ENOTEMPTY),
    ("rename dir into itself", lambda fs: fs.rename("full", "full/x"), errno.EINVAL),
    ("rename to long name", lambda fs: fs.rename("file", "n" * 256), errno.ENAMETOOLONG),
    ("rename root", lambda fs: fs.rename("", "new"), errno.EBUSY),
    ("rename onto root", lambda fs: fs.rename("empty", ""), errno.EBUSY),
    ("unlink missing", lambda fs: fs.unlink("gone"), errno.ENOENT),
    ("unlink dir", lambda fs: fs.unlink("empty"), errno.EISDIR),
    ("unlink root", lambda fs: fs.unlink(""), errno.EISDIR),
    ("mkdir again", lambda fs: fs.mkdir("empty"), errno.EEXIST),
    ("mkdir on file", lambda fs: fs.mkdir("file"), errno.EEXIST),
    ("mkdir on link", lambda fs: fs.mkdir("link"), errno.EEXIST),
    ("mkdir root", lambda fs: fs.mkdir(""), errno.EEXIST),
    ("mkdir below missing", lambda fs: fs.mkdir("gone/x"), errno.ENOENT),
    ("mkdir below file", lambda fs: fs.mkdir("file/x"), errno.ENOTDIR),
    ("mkdir below link", lambda fs: fs.mkdir("link/x"), errno.ENOTDIR),
    ("rename from below link", lambda fs: fs.rename("link/x", "new"), errno.ENOTDIR),
    ("rename to below link", lambda fs: fs.rename("file", "link/x"), errno.ENOTDIR),
    ("stat below link", lambda fs: fs.stat("link/x"), errno.ENOTDIR),
    ("sync link", lambda fs: fs.sync("link"), errno.ENOTDIR),
    ("rmdir missing", lambda fs: fs.rmdir("gone"), errno.ENOENT),
    ("rmdir full", lambda fs: fs.rmdir("full"), errno.ENOTEMPTY),
    ("rmdir file", lambda fs: fs.rmdir("file"), errno.ENOTDIR),
    ("rmdir link", lambda fs: fs.rmdir("link"), errno.ENOTDIR),
    ("rmdir root", lambda fs: fs.rmdir(""), errno.EBUSY),
    ("stat missing", lambda fs: fs.stat("gone"), errno.ENOENT),
    ("stat below file", lambda fs: fs.stat("file/x"), errno.ENOTDIR),
    ("stat long name", lambda fs: fs.stat("n" * 256), errno.ENAMETOOLONG),
    ("sync missing", lambda fs: fs.sync("gone"), errno.ENOENT),
    ("sync file", lambda fs: fs.sync("file"), errno.ENOTDIR),
]


@pytest.mark.parametrize(("call", "code"), [pytest.param(c, n, id=name) for name, c, n in REFUSALS])
def test_a_refusal_has_the_errno_of_posix_and_changes_nothing(fs: FileSystem, call: Call, code: int) -> None:
    before = {name: fs.stat(name) for name in fs.list("")}
    assert refused(fs, call) == code
    assert {name: fs.stat(name) for name in fs.list("")} == before
    assert fs.list("full") == ["inside"]


@pytest.mark.parametrize("path", ["/etc/passwd", "..", "../x", "full/../x", "full/", "full//inside", "./x", "."])
def test_a_path_that_climbs_or_is_spelled_twice_is_refused_by_every_verb(fs: FileSystem, path: str) -> None:
    verbs: list[Call] = [
        lambda fs: fs.list(path),
        lambda fs: fs.read(path),
        lambda fs: fs.write(path, b"", durable=False),
        lambda fs: fs.append(path, b""),
        lambda fs: fs.rename(path, "x"),
        lambda fs: fs.rename("file", path),
        lambda fs: fs.unlink(path),
        lambda fs: fs.mkdir(path),
        lambda fs: fs.rmdir(path),
        lambda fs: fs.stat(path),
        lambda fs: fs.sync(path),
    ]
    for verb in verbs:
        with pytest.raises(ValueError, match="not a path inside the spool"):
            verb(fs)


def test_what_was_written_is_listed_and_read_back(fs: FileSystem) -> None:
    assert sorted(fs.list("")) == ["empty", "fifo", "file", "full", "link"]
    assert fs.list("empty") == []
    assert fs.read("file") == b"content"
    fs.write("file", b"new", durable=False)
    assert fs.read("file") == b"new"


@pytest.mark.parametrize("size", [0, 1, 4096, 3_000_000])
def test_any_size_is_read_back_whole(fs: FileSystem, size: int) -> None:
    data = os.urandom(size)
    fs.write("sized", data, durable=False)
    assert fs.read("sized") == data
    assert fs.stat("sized").size == size


def test_a_read_begins_where_it_is_told_to(fs: FileSystem) -> None:
    fs.write("file", b"content", durable=False)
    assert fs.read("file", offset=3) == b"tent"
    assert fs.read("file", 2, offset=3) == b"te"
    assert fs.read("file", offset=7) == fs.read("file", offset=99) == b""


def test_a_limit_bounds_what_is_read(fs: FileSystem) -> None:
    assert fs.read("file", 0) == b""
    assert fs.read("file", 4) == b"cont"
    assert fs.read("file", limit=7) == b"content"
    assert fs.read("file", 1 << 40) == b"content"


@pytest.mark.parametrize(("path", "what"), [("link", "symlink"), ("fifo", "FIFO"), ("full", "directory")])
def test_reading_what_is_no_file_says_what_it_is(fs: FileSystem, path: str, what: str) -> None:
    with pytest.raises(NotRegularError, match=what):
        fs.read(path)


def test_append_creates_and_then_adds(fs: FileSystem) -> None:
    fs.append("journal", b"one\n")
    fs.append("journal", b"")
    fs.append("journal", b"two\n")
    assert fs.read("journal") == b"one\ntwo\n"


def test_rename_moves_the_file_itself(fs: FileSystem) -> None:
    before = fs.stat("file")
    fs.rename("file", "empty/moved")
    assert fs.read("empty/moved") == b"content"
    assert fs.stat("empty/moved") == before
    assert refused(fs, lambda fs: fs.read("file")) == errno.ENOENT


def test_rename_replaces_an_existing_file_without_a_word(fs: FileSystem) -> None:
    fs.rename("file", "full/inside")
    assert fs.read("full/inside") == b"content"
    assert fs.list("full") == ["inside"]


def test_rename_onto_itself_does_nothing(fs: FileSystem) -> None:
    fs.rename("file", "file")
    fs.rename("full", "full")
    assert fs.read("file") == b"content"
    assert fs.list("full") == ["inside"]


def test_rename_moves_a_directory_with_all_it_holds(fs: FileSystem) -> None:
    fs.rename("full", "empty")
    assert fs.list("empty") == ["inside"]
    assert "full" not in fs.list("")


def test_a_symlink_or_fifo_is_moved_and_removed_as_itself(fs: FileSystem) -> None:
    fs.rename("link", "empty/link")
    fs.rename("fifo", "empty/fifo")
    assert fs.stat("empty/link").kind == "symlink"
    assert fs.stat("empty/fifo").kind == "other"
    fs.unlink("empty/link")
    fs.unlink("empty/fifo")
    fs.rmdir("empty")
    assert "empty" not in fs.list("")


def test_stat_tells_kinds_and_inodes(fs: FileSystem) -> None:
    kinds = {name: fs.stat(name).kind for name in fs.list("")}
    assert kinds == {"file": "file", "full": "dir", "empty": "dir", "link": "symlink", "fifo": "other"}
    assert fs.stat("").kind == "dir"
    assert len({fs.stat(name).inode for name in ["", *fs.list("")]}) == 6


def test_rewriting_keeps_the_inode_and_never_the_old_tail(fs: FileSystem) -> None:
    before = fs.stat("file").inode
    fs.write("file", b"x", durable=True)
    assert fs.stat("file").inode == before
    assert fs.read("file") == b"x"


@pytest.mark.parametrize(
    "name",
    ["with space", "line\nbreak", "-dash", ".hidden", "...", "Käse", "\udcff\udcfe", "n" * 255, 'q"uote', "a\\b"],
)
def test_an_odd_name_comes_back_as_it_went(fs: FileSystem, name: str) -> None:
    fs.mkdir("odd")
    fs.write(f"odd/{name}", b"1", durable=False)
    assert fs.list("odd") == [name]
    assert fs.read(f"odd/{name}") == b"1"
    fs.rename(f"odd/{name}", "odd/plain")
    assert fs.list("odd") == ["plain"]


def test_a_null_byte_is_a_value_error(fs: FileSystem) -> None:
    with pytest.raises(ValueError, match="null"):
        fs.write("nu\0ll", b"", durable=False)


def test_a_file_of_somebody_else_is_made_durable_and_stays_what_it_is(fs: FileSystem) -> None:
    fs.write("new", b"content", durable=False)
    fs.persist("new")
    assert fs.read("new") == b"content"
    assert refused(fs, lambda fs: fs.persist("absent")) == errno.ENOENT


def test_nobody_has_a_file_open_that_was_written_whole(fs: FileSystem) -> None:
    fs.write("new", b"content", durable=False)
    assert fs.has_writer("new") is False
    assert refused(fs, lambda fs: fs.has_writer("absent")) == errno.ENOENT


def test_sync_of_a_directory_is_accepted(fs: FileSystem) -> None:
    fs.sync("")
    fs.sync("full")


def test_usage_is_plausible(fs: FileSystem) -> None:
    usage = fs.usage()
    assert 0 < usage.free_bytes <= usage.total_bytes


class TestPosix:
    """What only a real directory can show."""

    def test_a_link_to_a_real_file_is_neither_read_nor_overwritten(self, tmp_path: Path) -> None:
        secret = tmp_path / "secret"
        secret.write_bytes(b"mine")
        (tmp_path / "spool").mkdir()
        (tmp_path / "spool" / "task.json").symlink_to(secret)
        fs = PosixFileSystem(tmp_path / "spool")
        assert refused(fs, lambda fs: fs.read("task.json")) == errno.EINVAL
        assert refused(fs, lambda fs: fs.write("task.json", b"", durable=False)) == errno.ELOOP
        assert secret.read_bytes() == b"mine"

    def test_a_writer_is_seen_until_it_closes_the_file_wherever_that_is_moved(self, tmp_path: Path) -> None:
        fs = PosixFileSystem(tmp_path)
        with (tmp_path / "a").open("ab") as writer, (tmp_path / "a").open("rb"):
            assert fs.has_writer("a") is True
            writer.write(b"more")
            fs.rename("a", "b")
            assert fs.has_writer("b") is True
        assert fs.has_writer("b") is False
        assert fs.read("b") == b"more"

    @pytest.mark.parametrize(("threads", "found"), [("8", None), ("0", False)])
    def test_on_a_machine_that_serves_nfs_nothing_says_that_a_file_is_closed(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: str, found: bool | None
    ) -> None:
        """An NFS 3 client has it open, and no process here."""
        (tmp_path / "nfsd").write_text(f"rc 0 5 17\nfh 0 0 0 0 0\nio 10 20\nth {threads} 0 0.000 0.000\nra 32 0\n")
        monkeypatch.setattr(posix, "SERVER", tmp_path / "nfsd")
        fs = PosixFileSystem(tmp_path)
        fs.write("a", b"", durable=False)
        assert fs.has_writer("a") is found
        with (tmp_path / "a").open("ab"):
            assert fs.has_writer("a") is True

    def test_a_writer_that_comes_while_one_looks_ends_nobody(self, tmp_path: Path) -> None:
        """A lease that is broken sends a signal to its holder; the usual one would end it."""
        fs, file = PosixFileSystem(tmp_path), tmp_path / "a"
        file.touch()
        script = "import sys\nfor _ in range(20000): open(sys.argv[1], 'ab').close()"
        writer = subprocess.Popen([sys.executable, "-c", script, str(file)])
        looks = 0
        while writer.poll() is None:
            looks += fs.has_writer("a") is not None
        assert writer.returncode == 0
        assert looks

    def test_what_a_server_holds_says_nothing_of_its_writers(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(PosixFileSystem, "remote", True)
        (tmp_path / "a").touch()
        assert PosixFileSystem(tmp_path).has_writer("a") is None

    @pytest.mark.parametrize(("fstype", "flags"), [("ext4", [os.O_RDONLY]), ("cifs", [os.O_RDWR]), ("nfs4", [])])
    def test_a_server_is_asked_to_flush_through_a_handle_that_may_write(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fstype: str, flags: list[int]
    ) -> None:
        (tmp_path / "a").write_bytes(b"content")
        asked: list[int] = []
        fs = PosixFileSystem(tmp_path)
        lie_on(fs, Mount("/", fstype, "x", ()))
        monkeypatch.setattr(os, "fsync", lambda fd: asked.append(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE))
        fs.persist("a")
        assert asked == flags

    def test_a_socket_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind("socket")
            with pytest.raises(NotRegularError, match="socket"):
                PosixFileSystem(tmp_path).read("socket")

    def test_a_write_cut_short_leaves_no_file(self, tmp_path: Path, small_files: int) -> None:
        fs = PosixFileSystem(tmp_path)
        fs.write("fits", b"x" * small_files, durable=True)
        assert refused(fs, lambda fs: fs.write("big", b"x" * (small_files + 1), durable=False)) == errno.EFBIG
        assert fs.list("") == ["fits"]

    def test_an_append_cut_short_takes_back_what_went_in(self, tmp_path: Path, small_files: int) -> None:
        fs = PosixFileSystem(tmp_path)
        fs.append("journal", b"one\n")
        assert refused(fs, lambda fs: fs.append("journal", b"x" * small_files)) == errno.EFBIG
        assert fs.read("journal") == b"one\n"

    @pytest.mark.parametrize("call", ["fsync", "close"])
    def test_an_error_of_fsync_or_close_removes_the_file(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        # Only a network file system fails here; no local one can be brought to, hence the patch of `os`.
        real: Callable[[int], None] = getattr(os, call)

        def fail(fd: int) -> None:
            real(fd)
            raise OSError(errno.ENOSPC, "told late")

        fs = PosixFileSystem(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr(f"spoold.system.posix.os.{call}", fail)
            assert refused(fs, lambda fs: fs.write("x", b"data", durable=True)) == errno.ENOSPC
        assert fs.list("") == []

    def test_only_a_durable_write_pays_for_fsync(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        synced: list[int] = []
        monkeypatch.setattr("spoold.system.posix.os.fsync", synced.append)
        fs = PosixFileSystem(tmp_path)
        fs.write("x", b"", durable=False)
        assert len(synced) == 0
        fs.write("x", b"", durable=True)
        assert len(synced) == 1

    def test_nothing_stays_open(self, tmp_path: Path) -> None:
        fs = PosixFileSystem(tmp_path)
        before = len(os.listdir("/proc/self/fd"))
        fs.write("x", b"1", durable=True)
        fs.append("x", b"2")
        fs.read("x")
        fs.list("")
        fs.sync("")
        refused(fs, lambda fs: fs.read(""))
        assert len(os.listdir("/proc/self/fd")) == before

    @pytest.fixture
    def small_files(self) -> Iterator[int]:
        """For one test no file of this process may grow beyond so many bytes: the nearest thing to a full
        disk.
        """
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
        yield 8192
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


class TestMemory:
    """What only memory promises."""

    def test_a_full_disk_refuses_the_write_and_removes_the_file(self) -> None:
        fs = MemoryFileSystem(capacity=10)
        fs.write("a", b"12345678", durable=True)
        assert refused(fs, lambda fs: fs.write("b", b"123", durable=True)) == errno.ENOSPC
        assert fs.list("") == ["a"]
        assert fs.usage().free_bytes == 2
        fs.write("a", b"1234567890", durable=True)
        assert refused(fs, lambda fs: fs.write("a", b"12345678901", durable=True)) == errno.ENOSPC
        assert fs.usage().free_bytes == 10

    def test_a_full_disk_cuts_an_append_short(self) -> None:
        fs = MemoryFileSystem(capacity=5)
        fs.append("j", b"123")
        assert refused(fs, lambda fs: fs.append("j", b"456")) == errno.ENOSPC
        assert fs.read("j") == b"12345"

    def test_room_comes_back_when_a_file_is_removed_or_replaced(self) -> None:
        fs = MemoryFileSystem(capacity=10)
        fs.write("a", b"12345", durable=False)
        fs.write("b", b"12345", durable=False)
        fs.rename("a", "b")
        assert fs.usage().free_bytes == 5
        fs.unlink("b")
        assert fs.usage().free_bytes == 10

    def test_a_snapshot_and_its_origin_go_separate_ways(self) -> None:
        fs = MemoryFileSystem()
        fs.make_dirs("a/b")
        fs.write("a/b/f", b"old", durable=False)
        copy = fs.snapshot()
        fs.write("a/b/f", b"new", durable=False)
        copy.rename("a/b/f", "a/g")
        second = copy.snapshot()
        copy.unlink("a/g")
        assert fs.files() == {"a/b/f": b"new"}
        assert copy.files() == {}
        assert second.files() == {"a/g": b"old"}

    def test_a_directory_moved_after_a_snapshot_is_still_shared_safely(self) -> None:
        fs = MemoryFileSystem()
        fs.make_dirs("a", "b")
        fs.write("a/f", b"1", durable=False)
        copy = fs.snapshot()
        fs.rename("a", "b/a")
        fs.write("b/a/f", b"2", durable=False)
        assert copy.files() == {"a/f": b"1"}
        assert fs.files() == {"b/a/f": b"2"}

    def test_mtime_is_the_clocks(self) -> None:
        clock = ManualClock(wall=100.0)
        fs = MemoryFileSystem(clock)
        fs.mkdir("d")
        clock.advance(5)
        fs.write("d/f", b"", durable=False)
        assert fs.stat("d/f").mtime_ns == fs.stat("d").mtime_ns == 105_000_000_000
        clock.advance(5)
        fs.rename("d/f", "f")
        assert fs.stat("f").mtime_ns == 105_000_000_000
        assert fs.stat("d").mtime_ns == 110_000_000_000

    def test_listings_are_deterministic_and_unsorted(self) -> None:
        fs = MemoryFileSystem()
        for name in ["a", "b", "c"]:
            fs.mkdir(name)
        assert fs.list("") == ["c", "b", "a"]
