"""Goal: one machine's trials tell a good share from one that lies, and leave nothing behind.

Method: the real trials on a real directory, through shares that are made unsafe on purpose.
"""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from spoold.doctor import alone
from spoold.doctor.trial_share import Share
from spoold.protocol.doctor_report import Report
from spoold.protocol.lanes import LANE_MAX, parse_lane
from spoold.protocol.names import parse_task
from spoold.store.doctor_reports import read_reports
from spoold.system.posix import PosixFileSystem
from tests.cli.command import make
from tests.doctor import shares
from tests.doctor.examination import examined, files_in


def bad(report: Report) -> dict[str, str]:
    return {remark.probe: remark.problem for remark in report.remarks if remark.grade == "bad"}


def test_a_local_directory_is_safe_and_stays_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    report = examined(Share(str(tmp_path)), quick=False)
    assert (report.verdict, bad(report), report.machines) == ("safe with rename", {}, 1)
    assert report.mount is not None
    assert not report.mount.network
    assert {remark.probe for remark in report.remarks} >= {"marker"}
    assert files_in(tmp_path) == ["mine"]
    assert report.measured["locks"] == {"flock": "excludes", "ofd": "excludes"}
    assert report.measured["rename"]["into"] == "done"
    assert report.measured["hints"]["works"]
    assert abs(report.measured["clock"]["offset_s"]) < 5
    assert set(report.measured["pace"]) == {*"write write_fsync rename list read mkdir rmdir unlink".split()}  # noqa: SIM905


def test_in_a_spool_the_directories_of_the_tree_are_tried_and_the_report_is_kept(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    (root / "pending" / "a.json").write_text('{"command": "true"}')
    before = files_in(root)
    report = examined(Share(str(root)), quick=False)
    assert report.measured["crossing"] == {"pairs": 21 * 20 // 2, "failed": []}
    assert report.spool_id == "s1"
    assert [name for name in files_in(root) if name not in before] == ["doctor/0.doctor-a-00000.json"]
    (kept,) = read_reports(PosixFileSystem(root)).values()
    assert kept == report
    examined(Share(str(root)))
    assert [name.number for name in read_reports(PosixFileSystem(root))] == [1]  # the one before no longer counts


def test_a_report_that_leaves_no_room_for_later_ones_costs_no_verdict_and_is_named(tmp_path: Path) -> None:
    """Names-a: the doctor ended with the name that did not fit, and its verdict was lost."""
    root = make(tmp_path / "s")
    strange = root / "doctor" / "999999999.x.json"
    strange.write_text("{}")
    report = examined(Share(str(root)))
    assert report.verdict == "safe with rename"
    (said,) = [remark for remark in report.remarks if remark.probe == "record"]
    assert (said.grade, "doctor/999999999.x.json: has a number that leaves no room" in said.problem) == (
        "warning",
        True,
    )
    assert said.mend == "rename it to a lower number that is free, or remove it."
    strange.unlink()
    report = examined(Share(str(root)))
    assert not [remark for remark in report.remarks if remark.probe == "record"]
    assert [name.number for name in read_reports(PosixFileSystem(root))] == [0]


@pytest.mark.parametrize(
    ("unsafe", "verdict", "probe", "words"),
    [
        (shares.CopyingShare, "safe with lock", "race", "won twice"),
        (shares.TwoVolumes, "not safe", "crossing", "EXDEV"),
        (shares.LocklessShare, "safe with rename", "locks", "ENOLCK"),
        (shares.GenerousShare, "safe with rename", "locks", "granted twice"),
        (shares.WindowsShare, "not safe", "names", "(254 bytes)"),
        (shares.ShallowShare, "not safe", "names", "(200 bytes)/5000"),
    ],
)
def test_a_lie_is_found(tmp_path: Path, unsafe: type[Share], verdict: str, probe: str, words: str) -> None:
    report = examined(unsafe(str(make(tmp_path / "s"))))
    assert words in bad(report)[probe]
    assert report.verdict == verdict
    assert [path.name for path in (tmp_path / "s").rglob("*doctor-*")] == ["0.doctor-a-00000.json"]


def test_a_trial_that_fails_is_a_figure_and_the_others_go_on(tmp_path: Path) -> None:
    class Broken(Share):
        def create_exclusive(self, path: str) -> None:
            raise shares.refuse(errno.EIO, path)

    report = examined(Broken(str(tmp_path)))
    assert "Input/output error" in bad(report)["exclusive"]
    assert (report.verdict, "pace" in report.measured) == ("not safe", True)


def test_the_longest_names_that_a_spool_may_hold_are_tried() -> None:
    assert parse_lane(alone.LANE) is not None
    assert parse_task(alone.TASK) is not None
    assert (len(alone.LANE), len(alone.LONGEST)) == (LANE_MAX, 254)
