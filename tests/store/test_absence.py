"""What does not show itself is not gone: an NFS client may be mistaken, and a share may not be mounted just now."""

import errno

import pytest

from spoold.protocol import layout
from spoold.store import existence
from spoold.store.store import clear_directory
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

FILE = "claimed/w1/x"


@pytest.fixture
def fs() -> FaultyFileSystem:
    memory = MemoryFileSystem()
    memory.make_dirs("claimed/w1")
    memory.write(FILE, b"x", durable=False)
    return FaultyFileSystem(memory)


def away(fs: FaultyFileSystem, verb: str, times: int = 1) -> None:
    """So often the share is not mounted when it is asked for this."""
    fs.fail(verb, "claimed", errno.ENOENT, times=times)


def test_what_is_there_needs_no_second_look(fs: FaultyFileSystem) -> None:
    assert existence.stands(fs, FILE)
    assert not existence.stands(fs, "claimed/w1/y")
    assert (existence.names_in(fs, "claimed/w1"), existence.read(fs, FILE)) == (["x"], b"x")
    assert fs.asked == {"list": 3, "read": 1}


def test_what_is_gone_is_gone_with_all_that_was_in_it(fs: FaultyFileSystem) -> None:
    for path in ("claimed/w1/y", "claimed/w2/x", "claimed/w2/deep/x"):
        assert not existence.stands(fs, path)
        assert existence.read(fs, path) is None
        existence.remove(fs, path)
    assert existence.names_in(fs, "claimed/w2") == existence.names_in(fs, "claimed/w2/deep") == []
    assert clear_directory(fs, "claimed/w2")


def test_a_directory_that_the_one_above_still_lists_is_not_empty(fs: FaultyFileSystem) -> None:
    for ask in (existence.stands, existence.read, existence.remove):
        away(fs, "list")
        if ask is not existence.stands:
            away(fs, "unlink" if ask is existence.remove else "read")
        with pytest.raises(FileNotFoundError):
            ask(fs, FILE)
    away(fs, "list")
    with pytest.raises(FileNotFoundError):
        existence.names_in(fs, "claimed/w1")
    assert fs.list("claimed/w1") == ["x"]


def test_the_spools_own_directories_are_never_gone(fs: FaultyFileSystem) -> None:
    for ask in (existence.stands, existence.read, existence.remove):
        with pytest.raises(FileNotFoundError):
            ask(fs, "ready/lane/x")


def test_below_an_unmounted_share_none_of_the_spools_directories_counts_as_empty() -> None:
    """A listing that found nothing there would make a new leader skip records, or forget a change of settings."""
    below = MemoryFileSystem()
    for directory in ("results", "settings", "claimed/w1"):
        with pytest.raises(FileNotFoundError):
            existence.names_in(below, directory)


def test_what_an_earlier_release_did_not_make_is_empty_in_a_spool_that_is_mounted() -> None:
    spool = MemoryFileSystem()
    spool.write(layout.MARKER, b"{}", durable=False)
    assert existence.names_in(spool, "settings") == []
    with pytest.raises(FileNotFoundError):
        existence.names_in(spool, "results")


def test_a_name_wrongly_believed_absent_is_read_after_a_listing(fs: FaultyFileSystem) -> None:
    away(fs, "read")
    assert existence.read(fs, FILE) == b"x"


def test_a_file_that_was_not_removed_is_not_taken_for_removed(fs: FaultyFileSystem) -> None:
    away(fs, "unlink")
    with pytest.raises(FileNotFoundError):
        existence.remove(fs, FILE)
    existence.remove(fs, FILE)
    assert fs.list("claimed/w1") == []


def test_a_door_is_shut_when_the_listing_says_so(fs: FaultyFileSystem) -> None:
    away(fs, "rmdir")
    assert clear_directory(fs, "claimed/w1")
    assert fs.list("claimed") == []
