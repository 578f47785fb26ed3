"""A rename that did not happen is never called done, where a server may forget: two names of one file show it here as
an SMB client does that still has the entry of an undone rename.
"""

from __future__ import annotations

import ctypes
import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from spoold.doctor.trial_share import Share
from spoold.system import posix
from spoold.system.mounts import Mount
from spoold.system.posix import PosixFileSystem, rename_known
from tests.support.mounted import lie_on


def share(root: Path, fstype: str) -> PosixFileSystem:
    """The directory, as if it lay on a mount of this type."""
    fs = PosixFileSystem(root)
    lie_on(fs, Mount(str(root), fstype, "server:/share", ("rw",)))
    return fs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for directory in ("from", "to"):
        (tmp_path / directory).mkdir()
    (tmp_path / "from" / "x").write_text("token")
    return tmp_path


def undone(root: Path) -> None:
    """The client's belief: both names are one file."""
    os.link(root / "from" / "x", root / "to" / "x")


def test_posix_calls_it_done_and_nothing_has_happened(root: Path) -> None:
    """The witness of the trap itself."""
    undone(root)
    os.rename(root / "from" / "x", root / "to" / "x")
    assert (root / "from" / "x").exists()


def test_where_a_server_may_forget_it_is_refused(root: Path) -> None:
    undone(root)
    with pytest.raises(FileExistsError):
        share(root, "cifs").rename("from/x", "to/x")
    assert (root / "from" / "x").exists()


def test_a_file_that_is_there_is_never_replaced(root: Path) -> None:
    (root / "to" / "x").write_text("another")
    with pytest.raises(FileExistsError):
        share(root, "cifs").rename("from/x", "to/x")
    assert (root / "to" / "x").read_text() == "another"


def test_a_belief_that_the_server_does_not_share_is_dropped_and_the_rename_made(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first refusal is the client's; asked about the name, the server knows none."""
    rename = posix._rename_noreplace
    refused: list[str] = []

    def once(src: str, dst: str, giver: int | None, taker: int | None) -> None:
        if not refused:
            refused.append(dst)
            raise FileExistsError(errno.EEXIST, "believed", dst)
        rename(src, dst, giver, taker)

    monkeypatch.setattr(posix, "_rename_noreplace", once)
    share(root, "cifs").rename("from/x", "to/x")
    assert (root / "to" / "x").read_text() == "token"
    assert len(refused) == 1


@pytest.mark.parametrize("fstype", ["cifs", "nfs4", "ext4", "fuse.sshfs"])
def test_a_rename_is_a_rename_everywhere(root: Path, fstype: str) -> None:
    fs = share(root, fstype)
    fs.rename("from/x", "to/y")
    assert [fs.list("from"), fs.list("to")] == [[], ["y"]]
    with pytest.raises(FileNotFoundError):
        fs.rename("from/x", "to/z")


def test_below_directories_that_are_open(root: Path) -> None:
    giver, taker = (os.open(root / name, os.O_RDONLY | os.O_DIRECTORY) for name in ("from", "to"))
    try:
        rename_known("x", "x", giver, taker)
        with pytest.raises(FileNotFoundError):
            rename_known("x", "x", giver, taker)
    finally:
        os.close(giver)
        os.close(taker)
    assert (root / "to" / "x").exists()


def _einval(*_: object) -> int:
    ctypes.set_errno(errno.EINVAL)
    return -1


@pytest.mark.parametrize("call", [None, _einval])
def test_a_system_that_cannot_make_the_difference_renames_as_ever(
    root: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., int] | None
) -> None:
    monkeypatch.setattr(posix, "_RENAMEAT2", call)
    share(root, "cifs").rename("from/x", "to/x")
    assert (root / "to" / "x").read_text() == "token"


def test_the_doctor_sees_what_the_mount_does(root: Path) -> None:
    (root / "to" / "x").write_text("another")
    trial = Share(str(root))
    lie_on(trial, Mount(str(root), "cifs", "server:/share", ("rw",)))
    trial.rename("from/x", "to/x")
    assert (root / "to" / "x").read_text() == "token"
