"""Goal: `spool init` makes a spool that claims as is safe here, and none where nothing is."""

from __future__ import annotations

import grp
import json
import os
from pathlib import Path

import pytest

from spoold.faces.cli.verbs.init import strategy
from spoold.protocol import layout
from spoold.protocol.doctor_report import Remark, Report, Strategy
from spoold.protocol.errors import Unavailable
from spoold.store.doctor_reports import read_reports
from spoold.system.posix import PosixFileSystem
from tests.cli.command import make, spool


def report(*against: Strategy) -> Report:
    """What the doctor says of a mount that rules these out."""
    remarks = tuple(
        Remark(grade="bad", probe="mount", problem=f"no {one}", mend=f"allow {one}", against=(one,))
        for one in against
    )
    return Report(at="", node="doctor-x", directory="/mnt/s", verdict="not safe", reason="so", remarks=remarks)


def test_a_spool_is_made_with_the_report_of_its_mount_and_nothing_else(tmp_path: Path) -> None:
    result = spool(tmp_path, "init", str(tmp_path / "new" / "s"), "--json")
    assert result.exit_code == 0
    root = tmp_path / "new" / "s"
    answer = json.loads(result.stdout)
    assert (answer["directory"], answer["claim"]) == (str(root), "rename")
    assert {path.name for path in root.iterdir()} == {*layout.TREE, layout.MARKER, layout.SETTINGS}
    (kept,) = read_reports(PosixFileSystem(root)).values()
    assert (kept.verdict, kept.quick, kept.spool_id) == ("safe with rename", True, answer["spool_id"])
    assert not [remark for remark in kept.remarks if remark.probe == "marker"]
    assert not list((root / "tmp").iterdir())


def test_a_group_is_given_all_of_it_and_others_no_results(tmp_path: Path) -> None:
    group = grp.getgrgid(os.getegid()).gr_name
    before = os.umask(0o077)
    try:
        result = spool(tmp_path, "init", str(tmp_path / "s"), "--group", group)
    finally:
        os.umask(before)
    assert result.exit_code == 0, result.stderr
    assert f"members of group {group} can use this spool" in result.stderr
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "s").iterdir()}
    assert all(modes[name] & 0o2070 == 0o2070 for name in layout.TREE), modes
    assert all(modes[name] & 0o007 == 0 for name in layout.PRIVATE)
    assert modes[layout.SETTINGS] & 0o060 == 0o060


def test_without_a_group_it_is_said_that_one_user_can_use_it(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        result = spool(tmp_path, "init", str(tmp_path / "s"))
    finally:
        os.umask(before)
    assert "(umask 022); for several users use `spool init --group GROUP DIR`" in result.stderr
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "s").iterdir()}
    assert (modes["results"], modes["logs"], modes["archive"], modes["pending"]) == (0o750, 0o750, 0o750, 0o755)


def test_an_unknown_group_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    result = spool(tmp_path, "init", str(tmp_path / "s"), "--group", "no-such-group")
    assert result.exit_code == 2
    assert "--group: names no group of this machine" in result.stderr
    assert "`getent group` lists them." in result.stderr
    assert not (tmp_path / "s").exists()


def test_a_directory_that_no_report_could_name_is_refused(tmp_path: Path) -> None:
    result = spool(tmp_path, "init", f"{tmp_path}/\udcff")
    assert result.exit_code == 2
    assert "\\udcff is not UTF-8, as configurations and reports must be. Fix: rename" in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("against", "wanted", "force", "made"),
    [
        ((), None, False, "rename"),
        ((), "lock", False, "lock"),
        (("lock",), None, False, "rename"),
        (("lock",), "rename", False, "rename"),
        (("rename",), None, False, "lock"),
        (("rename",), "lock", False, "lock"),
        (("rename",), "rename", True, "rename"),
        (("rename", "lock"), None, True, "rename"),
        (("rename", "lock"), "lock", True, "lock"),
    ],
)
def test_what_is_chosen(against: tuple[Strategy, ...], wanted: Strategy | None, force: bool, made: str) -> None:
    assert strategy(report(*against), wanted, force=force) == made


@pytest.mark.parametrize(
    ("against", "wanted", "words"),
    [
        (("rename", "lock"), None, "/mnt/s is not safe for a spool: no rename. Fix: allow rename."),
        (("rename",), "rename", "not safe for a spool with rename: no rename"),
        (("lock",), "lock", "not safe for a spool with lock: no lock"),
    ],
)
def test_what_is_refused(against: tuple[Strategy, ...], wanted: Strategy | None, words: str) -> None:
    with pytest.raises(Unavailable, match="--force") as caught:
        strategy(report(*against), wanted, force=False)
    assert words in str(caught.value)


def test_an_unsafe_mount_is_refused_before_anything_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spoold.doctor.examine.examine", lambda order: report("rename", "lock"))
    result = spool(tmp_path, "init", str(tmp_path / "s"))
    assert (result.exit_code, (tmp_path / "s").exists()) == (69, False)
    (tmp_path / "s").mkdir()
    forced = spool(tmp_path, "init", str(tmp_path / "s"), "--force")
    assert forced.exit_code == 0
    assert "bad: no rename; allow rename" in forced.stderr


def test_what_comes_next_can_be_pasted(tmp_path: Path) -> None:
    root = tmp_path / "my share"
    result = spool(tmp_path, "init", str(root))
    assert result.exit_code == 0
    assert f"next: spool --spool '{root}' up --allow-command\n" in result.stderr
    assert f"or, with agents or handlers: spool --spool '{root}' up --config worker.toml\n" in result.stderr
    assert "--allow-command lets a worker run any command that the pool's members submit." in result.stderr
    assert f"`spool doctor '{root}' --with 2`" in result.stderr


def test_no_spool_is_made_within_a_spool(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    (tmp_path / "link").symlink_to(root)
    before = sorted(root.rglob("*"))
    for inside in ("sub", "pending", "pending/x", "sub/deeper/still", "../link/sub"):
        result = spool(tmp_path, "init", str(root / inside))
        assert result.exit_code == 69
        assert f"lies in the spool {root} (which has spool.json). Name a directory outside of it." in result.stderr
    assert sorted(root.rglob("*")) == before


def test_where_no_directory_can_be_it_says_why_and_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("kept")
    for path, said in (
        (str(file), f"{file}: is a file. Name a new or empty directory."),
        (
            f"{file}/x",
            f"{file}/x: cannot be made, since {file} is a file. Name a directory that is not below a file.",
        ),
        (f"{file}/x/y", f"since {file} is a file. Name"),
        (
            "/proc/x",
            "/proc/x: cannot be made in /proc: No such file or directory. Name a directory where `mkdir` works",
        ),
    ):
        result = spool(tmp_path, "init", path)
        assert result.exit_code == 69
        assert said in result.stderr
    assert file.read_text() == "kept"
