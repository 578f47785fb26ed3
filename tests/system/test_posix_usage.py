"""What statvfs says of the file system below a spool, as the port passes it on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

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
