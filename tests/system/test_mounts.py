"""Mount tables: the right line for a path, with the kernel's escapes undone."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spoold.system.mounts import Mount, is_network, lying_on, mount_of, parse

MOUNTINFO = rb"""22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
23 22 0:21 / /proc rw - proc proc rw
24 22 0:40 / /mnt/spool rw,noatime shared:7 master:2 - nfs4 nas:/export rw,vers=4.2,soft
25 22 0:41 /sub /mnt/my\040spool\134x rw - cifs //nas/my\040share rw,vers=3.1.1,nolease
26 24 0:42 / /mnt/spool/tmp rw - tmpfs tmpfs rw,size=4k
27 22 0:43 / /mnt/spoolers rw - fuse.sshfs me@nas: rw
28 22 0:44 / /mnt/twice rw - ext4 /dev/vdb rw
29 28 0:45 / /mnt/twice rw - nfs nas:/b rw,hard
broken line
30 22 0:46 / /mnt/short rw
"""


@pytest.mark.parametrize(
    ("path", "fstype"),
    [
        ("/", "ext4"),
        ("/home/me", "ext4"),
        ("/mnt/spool", "nfs4"),
        ("/mnt/spool/pending/x", "nfs4"),
        ("/mnt/spool/tmp/w", "tmpfs"),
        ("/mnt/spoolers/x", "fuse.sshfs"),
        ("/mnt/spooler", "ext4"),
        ("/mnt/my spool\\x/y", "cifs"),
        ("/mnt/twice/x", "nfs"),
    ],
)
def test_a_path_lies_on_the_longest_and_latest_mount_above_it(path: str, fstype: str) -> None:
    found = lying_on(path, parse(MOUNTINFO))
    assert found is not None
    assert found.fstype == fstype


def test_source_and_options_of_mount_and_server_are_kept() -> None:
    mounts = {mount.point: mount for mount in parse(MOUNTINFO)}
    assert len(mounts) == 7
    assert mounts["/mnt/spool"] == Mount("/mnt/spool", "nfs4", "nas:/export", ("rw", "noatime", "vers=4.2", "soft"))
    assert mounts["/mnt/my spool\\x"].source == "//nas/my share"


def test_a_path_under_no_mount_has_none() -> None:
    assert lying_on("/x", []) is None


@pytest.mark.parametrize(
    "fstype",
    ["nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "virtiofs", "fuse.sshfs", "fuse.juicefs", "fuse"],
)
def test_served_from_elsewhere(fstype: str) -> None:
    assert is_network(fstype)


@pytest.mark.parametrize("fstype", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", "fuseblk", "fuse.ntfs-3g"])
def test_a_disk_of_ones_own(fstype: str) -> None:
    assert not is_network(fstype)


def test_the_real_table_knows_proc_and_follows_links(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/proc/sys")
    found = mount_of(tmp_path / "link")
    assert found is not None
    assert (found.fstype, found.network) == ("proc", False)
    device = mount_of(tmp_path)
    assert device is not None
    assert os.stat(device.point).st_dev == os.stat(tmp_path).st_dev
