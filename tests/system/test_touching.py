"""What is polled on NFS gets new times: once its names stand still, and ever more rarely while they do."""

import os
from pathlib import Path

import pytest

from spoold.system.mounts import Mount, Touching
from spoold.system.posix import PosixFileSystem, only_looking
from tests.support.mounted import lie_on


def touches(folder: Path, touching: Touching, moments: range, names: object = None) -> list[int]:
    """At which of the moments (s) the directory was touched; `names` maps a moment to what is listed then."""
    found = []
    for now in moments:
        os.utime(folder, (1, 1))
        if touching.due(str(folder), float(now)):
            os.utime(folder)
        touching.after(str(folder), float(now), names(now) if callable(names) else ["a"])
        if folder.stat().st_mtime != 1:
            found.append(now)
    return found


def test_names_that_stay_are_asked_for_ever_more_rarely(tmp_path: Path) -> None:
    assert touches(tmp_path, Touching(by_times=True), range(300)) == [0, 10, 50, 110, 170, 230, 290]


def test_a_change_is_looked_behind_once_all_stands_still(tmp_path: Path) -> None:
    found = touches(tmp_path, Touching(by_times=True), range(300), lambda now: ["a"] if now < 200 else ["a", "b"])
    assert found == [0, 10, 50, 110, 170, 210, 250]


def test_names_that_change_all_the_time_show_by_themselves_what_was_missed(tmp_path: Path) -> None:
    found = touches(tmp_path, Touching(by_times=True), range(90), lambda now: [str(min(now, 50))])
    assert found == [0, 60]


def test_where_the_server_counts_changes_a_minute_is_enough(tmp_path: Path) -> None:
    found = touches(tmp_path, Touching(by_times=False), range(200), lambda now: [str(now)])
    assert found == [0, 60, 120, 180]


def test_what_may_not_be_touched_is_listed_all_the_same(tmp_path: Path) -> None:
    fs = PosixFileSystem(tmp_path)
    lie_on(fs, Mount(str(tmp_path), "nfs", "server:/share", ("rw", "vers=3")))
    with pytest.raises(FileNotFoundError):
        fs.list("nowhere")
    fs.mkdir("theirs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("spoold.system.posix._touch", _refuse)
        assert fs.list("theirs") == []


def _refuse(name: str, above: int | None) -> None:
    raise PermissionError(name, above)


@pytest.mark.parametrize(
    ("fstype", "options", "touched"),
    [("nfs", ("rw", "vers=3"), True), ("nfs4", ("rw", "vers=4.2"), True), ("cifs", (), False), ("ext4", (), False)],
)
def test_only_nfs_is_touched(tmp_path: Path, fstype: str, options: tuple[str, ...], touched: bool) -> None:
    (tmp_path / "d").mkdir()
    os.utime(tmp_path / "d", (1, 1))
    fs = PosixFileSystem(tmp_path)
    lie_on(fs, Mount(str(tmp_path), fstype, "server:/share", options))
    assert fs.list("d") == []
    assert ((tmp_path / "d").stat().st_mtime != 1) == touched


def test_who_only_looks_leaves_no_trace(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    os.utime(tmp_path / "d", (1, 1))
    fs = only_looking(PosixFileSystem(tmp_path))
    lie_on(fs, Mount(str(tmp_path), "nfs", "server:/share", ("rw", "vers=3")))
    assert fs.list("d") == []
    assert (tmp_path / "d").stat().st_mtime == 1
