"""What statvfs says of the file system below a spool, as the port passes it on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spoold.protocol.settings import DiskSettings
from spoold.rules.share import free_space
from spoold.system.filesystem import Usage, usage_of
from spoold.system.posix import PosixFileSystem


@pytest.mark.parametrize(("flags", "read_only"), [(0, False), (os.ST_RDONLY, True), (os.ST_NOSUID, False)])
def test_a_mount_is_read_only_where_the_kernel_says_so(
    flags: int, read_only: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ten = (4096, 4096, 10, 5, 5, 0, 0, 0, flags, 255)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(ten))
    usage = PosixFileSystem(tmp_path).usage()
    assert usage.read_only is read_only
    assert (usage.total_bytes, usage.free_bytes, usage.free_inodes) == (40960, 20480, None)


@pytest.mark.parametrize("favail", [-1, (1 << 64) - 1, (1 << 32) - 1, 0])
def test_the_inodes_of_cephfs_are_unknown(favail: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """C1: CephFS answers f_favail = -1, and its f_files are the files that exist."""
    files = 0 if favail == 0 else 1234
    ten = (4 << 20, 4 << 20, 3000, 2900, 2900, files, favail, favail, 0, 255)
    monkeypatch.setattr(os, "statvfs", lambda path: os.statvfs_result(ten))
    usage = PosixFileSystem(tmp_path).usage()
    assert usage == Usage(3000 * (4 << 20), 2900 * (4 << 20), None)
    assert (
        free_space.room(usage.total_bytes, usage.free_bytes, usage.free_inodes, DiskSettings())
        is free_space.Room.ENOUGH
    )


UNKNOWN = st.sampled_from([-1, -(1 << 63), 1 << 63, (1 << 64) - 1])


@given(
    st.one_of(UNKNOWN, st.integers(0, 1 << 50)),
    st.one_of(UNKNOWN, st.integers(0, 1 << 50)),
    st.sampled_from([0, 512, 4096, 1 << 22]),
    st.one_of(UNKNOWN, st.integers(0, 1 << 40)),
    st.one_of(UNKNOWN, st.integers(0, 1 << 40)),
)
@example(0, 0, 0, 0, 0)
@example(0, 0, 4096, 0, 0)
@example(10, 11, 4096, 10, 11)
def test_nothing_is_closed_because_of_an_unknown(blocks: int, free: int, size: int, inodes: int, more: int) -> None:
    """C1: whatever statvfs answers, a share is full only by figures that fit each other."""
    usage = usage_of(blocks, free, size, inodes, more)
    verdict = free_space.room(usage.total_bytes, usage.free_bytes, usage.free_inodes, DiskSettings(enough_free_mb=0))
    if verdict in (free_space.Room.LITTLE, free_space.Room.FULL):
        assert 0 <= free <= blocks < 1 << 63
        assert free < 0.2 * blocks
        assert size
    if verdict in (free_space.Room.FEW_FILES, free_space.Room.NO_FILES):
        assert 0 <= more <= inodes < 1 << 63
        assert more < free_space.FEW_INODES
    assert 0 <= usage.free_bytes <= usage.total_bytes
