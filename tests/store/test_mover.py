"""What is true after a rename, for every way in which it can go wrong."""

import errno

import pytest

from spoold.protocol.errors import LawBroken
from spoold.protocol.lifecycle import Mover
from spoold.store import mover
from spoold.store.initialise import initialise
from spoold.store.mover import Fate
from spoold.store.store import open_store
from spoold.system.clock import ManualClock
from spoold.system.errnos import ERESTARTSYS
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.faults import FaultyFileSystem

UNCLEAR = [
    errno.EIO,
    errno.ETIMEDOUT,
    errno.EAGAIN,
    errno.EINTR,
    errno.EHOSTDOWN,
    errno.ENOTCONN,
    errno.ECONNABORTED,
    errno.ECONNREFUSED,
    errno.ECONNRESET,
    ERESTARTSYS,
]
PASSING = [errno.ENOENT, errno.ESTALE, errno.EACCES, errno.EPERM, errno.EBUSY, errno.ETXTBSY]
HOPELESS = [
    errno.ENOSPC,
    errno.EDQUOT,
    errno.EXDEV,
    errno.ENAMETOOLONG,
    errno.EROFS,
    errno.EINVAL,
    errno.EEXIST,
    errno.ENOTEMPTY,
    errno.EISDIR,
    errno.ENOTDIR,
]


@pytest.fixture
def fs() -> FaultyFileSystem:
    memory = MemoryFileSystem()
    memory.make_dirs("from", "to")
    memory.write("from/x", b"token", durable=False)
    return FaultyFileSystem(memory)


def move(fs: FaultyFileSystem) -> mover.Moved:
    """The one move of these tests."""
    return mover.move(fs, "from/x", "to/x")


def test_a_rename_that_works_costs_one_call(fs: FaultyFileSystem) -> None:
    assert move(fs)
    assert fs.calls == 1
    assert fs.list("to") == ["x"]


@pytest.mark.parametrize("code", UNCLEAR + PASSING)
def test_it_happened_though_it_was_reported_as_failed(fs: FaultyFileSystem, code: int) -> None:
    fs.fail("rename", "from/x", code, "done")
    assert move(fs).fate is Fate.DONE


@pytest.mark.parametrize("code", UNCLEAR + PASSING)
def test_somebody_else_moved_it(fs: FaultyFileSystem, code: int) -> None:
    fs.fail("rename", "from/x", code)
    fs.inner.rename("from/x", "from/elsewhere")
    moved = move(fs)
    assert moved.fate is Fate.LOST
    assert moved.error is not None


@pytest.mark.parametrize("code", UNCLEAR)
def test_what_may_still_happen_is_not_ordered_twice(fs: FaultyFileSystem, code: int) -> None:
    fs.fail("rename", "from/x", code, "late")
    moved = move(fs)
    assert moved.fate is Fate.UNKNOWN
    assert not moved
    assert fs.calls == 3  # the rename, and a look at either side
    fs.deliver()
    assert move(fs).fate is Fate.DONE


@pytest.mark.parametrize("code", PASSING)
def test_what_passes_is_tried_again(fs: FaultyFileSystem, code: int) -> None:
    """A stale name, a handle that aged, a file that a peer holds open."""
    fs.fail("rename", "from/x", code, times=2)
    assert move(fs).fate is Fate.DONE


@pytest.mark.parametrize("code", PASSING)
def test_but_not_for_ever(fs: FaultyFileSystem, code: int) -> None:
    fs.fail("rename", "from/x", code, times=100)
    moved = move(fs)
    assert moved.fate is Fate.UNKNOWN
    assert moved.error is not None
    assert moved.error.errno == code
    assert fs.list("from") == ["x"]


@pytest.mark.parametrize("code", HOPELESS)
def test_what_the_environment_refuses_stays_where_it_is(fs: FaultyFileSystem, code: int) -> None:
    fs.fail("rename", "from/x", code)
    moved = move(fs)
    assert moved.fate is Fate.REFUSED
    assert moved.error is not None
    assert moved.error.errno == code
    assert fs.calls == 1
    assert fs.list("from") == ["x"]


def test_no_directory_to_move_to(fs: FaultyFileSystem) -> None:
    fs.rmdir("to")
    assert move(fs).fate is Fate.NO_DIRECTORY


def test_no_directory_to_move_from(fs: FaultyFileSystem) -> None:
    assert mover.move(fs, "from/gone/x", "to/x").fate is Fate.LOST


def test_a_directory_that_only_does_not_show_itself_is_not_gone(fs: FaultyFileSystem) -> None:
    """The share is not mounted while the source is looked at, and mounted again before the destination is."""
    fs.mkdir("from/mine")
    fs.rename("from/x", "from/mine/x")
    fs.fail("rename", "from/mine/x", errno.EIO)
    fs.fail("list", "from/mine", errno.ENOENT)
    assert mover.move(fs, "from/mine/x", "to/x").fate is not Fate.LOST
    assert fs.list("from/mine") + fs.list("to") == ["x"]


def test_a_share_without_any_of_its_directories_is_not_mounted(fs: FaultyFileSystem) -> None:
    for directory in ("from", "to"):
        fs.fail("list", directory, errno.ENOENT, times=mover.TRIES)
    fs.fail("rename", "from/x", errno.ENOENT, times=mover.TRIES)
    assert move(fs).fate is Fate.UNKNOWN


@pytest.mark.parametrize("blind", ["to", "from"])
def test_who_cannot_look_does_not_know(fs: FaultyFileSystem, blind: str) -> None:
    fs.fail("rename", "from/x", errno.EIO)
    fs.fail("list", blind, errno.EHOSTDOWN)
    moved = move(fs)
    assert moved.fate is Fate.UNKNOWN
    assert moved.error is not None
    assert moved.error.errno == errno.EHOSTDOWN


def test_a_store_makes_no_move_that_is_not_in_the_table() -> None:
    fs, clock = MemoryFileSystem(), ManualClock()
    initialise(fs, clock, "spool", "/spool")
    store = open_store(fs, clock, "m1", "/spool")
    with pytest.raises(LawBroken, match="pending/ to completed/"):
        store.move(Mover.LEADER, "REJECTED", "pending/a.json", "completed/a.1.m1.json")
    assert store.move(Mover.LEADER, "REJECTED", "pending/a.json", "rejected/a.json").fate is Fate.LOST


@pytest.mark.parametrize("look", ["from", "to"])
def test_what_the_network_carries_out_between_the_two_looks_is_not_lost(fs: FaultyFileSystem, look: str) -> None:
    """Seed 452391154 of the simulator: a commit was taken for lost, and its result thrown away."""
    fs.fail("rename", "from/x", errno.EIO, "late")
    fs.hang("list", look, fs.deliver)
    assert move(fs).fate is Fate.DONE


@pytest.mark.parametrize(
    ("undone", "taken", "fate"),
    [(True, False, Fate.UNKNOWN), (False, False, Fate.DONE), (True, True, Fate.REFUSED)],
)
def test_where_a_server_may_forget_a_name_that_is_refused_as_taken_is_looked_at(
    fs: FaultyFileSystem, monkeypatch: pytest.MonkeyPatch, *, undone: bool, taken: bool, fate: Fate
) -> None:
    """It may be one that only this client believes in, or the move was made and its reply lost."""
    monkeypatch.setattr(MemoryFileSystem, "forgets", True)
    if taken:
        fs.write("to/x", b"another", durable=False)
    elif not undone:
        fs.inner.rename("from/x", "to/x")
    fs.fail("rename", "from/x", errno.EEXIST, times=mover.TRIES)
    assert move(fs).fate is fate
