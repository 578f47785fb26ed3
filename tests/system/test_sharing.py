"""What is made in a spool is for whom its directories are for, whatever umask the process has."""

import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_IMODE

import pytest

from spoold.system.permissions import give_to_group, is_shut, owners_of, umask
from spoold.system.posix import PosixFileSystem


@pytest.fixture(params=[0o002, 0o022, 0o077])
def mask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def mode(path: Path) -> int:
    return S_IMODE(path.lstat().st_mode)


def shared(root: Path) -> PosixFileSystem:
    root.mkdir()
    give_to_group(str(root), os.getegid())
    return PosixFileSystem(root, ["logs"])


def test_a_group_may_use_every_directory_and_read_every_file(tmp_path: Path, mask: int) -> None:
    root = tmp_path / "s"
    fs = shared(root)
    fs.mkdir("claimed")
    fs.mkdir("claimed/w-1")
    fs.write("claimed/w-1/task", b"", durable=False)
    fs.append("claimed/journal", b"")
    fs.write("spool.lock", b"", durable=False)
    for path in (root, root / "claimed", root / "claimed/w-1"):
        assert mode(path) & 0o2070 == 0o2070, path
    for path in (root / "claimed/w-1/task", root / "claimed/journal"):
        assert mode(path) & 0o040, path
    assert mode(root / "spool.lock") & 0o060 == 0o060, "a lock is opened for writing by all"
    assert mode(root / "claimed") & 0o007 == 0o005 & ~mask, "others get what the umask gives"


@pytest.mark.parametrize("group", [True, False])
def test_what_is_private_is_closed_to_others_with_all_that_is_in_it(tmp_path: Path, mask: int, group: bool) -> None:
    root = tmp_path / "s"
    if group:
        fs = shared(root)
    else:
        root.mkdir()
        fs = PosixFileSystem(root, ["logs"])
    fs.mkdir("logs")
    fs.mkdir("logs/00")
    fs.append("logs/a.1.w-1.log", b"key")
    fs.write("logs/00/a", b"key", durable=True)
    for path in (root / "logs", *(root / "logs").rglob("*")):
        assert mode(path) & 0o007 == 0, path
    assert (mode(root / "logs") & 0o070 == 0o070) == (group or not mask & 0o070)


def test_an_existing_spool_goes_on_as_it_was(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        (tmp_path / "logs").mkdir()
        fs = PosixFileSystem(tmp_path, ["logs"])
        fs.write("logs/a", b"", durable=False)
        fs.mkdir("logs/00")
        assert (mode(tmp_path / "logs/a"), mode(tmp_path / "logs/00")) == (0o644, 0o755)
    finally:
        os.umask(before)


def test_a_directory_that_was_swapped_for_a_link_is_not_opened_to_the_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between making a directory and giving it to the group somebody puts a link in its place."""
    fs = shared(tmp_path / "s")
    (tmp_path / "private").mkdir(mode=0o700)
    real = os.mkdir

    def swap(*args: object, **kwargs: object) -> None:
        real(*args, **kwargs)  # type: ignore[arg-type]
        (tmp_path / "s" / "tmp").rmdir()
        (tmp_path / "s" / "tmp").symlink_to(tmp_path / "private")

    monkeypatch.setattr("spoold.system.posix.os.mkdir", swap)
    with pytest.raises(NotADirectoryError):
        fs.mkdir("tmp")
    assert mode(tmp_path / "private") == 0o700


def test_who_owns_a_spool_is_told(tmp_path: Path, mask: int) -> None:
    fs = shared(tmp_path / "s")
    found = owners_of(fs.root)
    assert (found.uid, found.owner, found.member, found.primary) == (os.geteuid(), os.geteuid(), True, True)
    assert found.root_mode & 0o2070 == 0o2070
    assert found.umask == umask() == mask


def test_a_directory_that_the_group_does_not_share_is_found(tmp_path: Path) -> None:
    fs = shared(tmp_path / "s")
    for name, bits in (("claimed", 0o755), ("returned", 0o2775), ("ready", 0o775)):
        fs.mkdir(name)
        os.chmod(tmp_path / "s" / name, bits)
    assert owners_of(fs.root, ["claimed", "returned", "ready", "missing"]).unshared == ("claimed", "ready")
    os.chmod(tmp_path / "s", 0o755)
    assert owners_of(fs.root, ["claimed"]).unshared == (), "there the root is what has to be said"


@pytest.mark.parametrize(
    ("mode", "owner", "group", "user", "shut"),
    [
        (0o42755, 7, 5, 8, True),
        (0o42775, 7, 5, 8, False),
        (0o42775, 7, 6, 8, True),  # the group may write, and this user is not in it
        (0o42777, 7, 6, 8, False),
        (0o42755, 8, 5, 8, False),
        (0o42755, 7, 5, 0, False),
        (0o100644, 7, 5, 8, False),
    ],
)
def test_a_directory_of_another_user_is_shut(
    mode: int, owner: int, group: int, user: int, shut: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: 4)
    monkeypatch.setattr(os, "getgroups", lambda: [5])
    assert is_shut(os.stat_result((mode, 1, 1, 2, owner, group, 0, 0, 0, 0))) is shut


def test_a_stat_says_whether_a_directory_is_shut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "x.json").mkdir(mode=0o755)
    fs = PosixFileSystem(tmp_path)
    assert not fs.stat("x.json").shut
    owner = (tmp_path / "x.json").stat().st_uid
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    (tmp_path / "x.json").chmod(0o755)
    assert fs.stat("x.json").shut
    (tmp_path / "x.json").chmod(0o777)
    assert not fs.stat("x.json").shut
