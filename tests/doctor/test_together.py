"""Goal: several machines find out together what none of them could see alone.

Method: machines are threads with shares of their own over one real directory; some of these shares lie.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.doctor import freshness
from spoold.doctor.meeting import NobodyCame
from spoold.doctor.share import Share
from spoold.protocol.report import Report
from spoold.system.host import FakeHost, FakeMachine, HostIdentity
from tests.cli.command import make
from tests.doctor import shares
from tests.doctor.examination import examined_together, files_in


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of each trial shows what is to be shown."""
    monkeypatch.setattr("spoold.doctor.contest.HANDING_S", 0.5)
    monkeypatch.setattr("spoold.doctor.contest.LOCKING_S", 2.0)
    monkeypatch.setattr(freshness, "ROUNDS", 2)
    monkeypatch.setattr(freshness, "STAT_S", 0.3)
    monkeypatch.setattr(freshness, "BEATS", 5)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


def bad(report: Report) -> dict[str, str]:
    return {remark.probe: remark.problem for remark in report.remarks if remark.grade == "bad"}


def test_three_machines_on_a_good_share(root: Path) -> None:
    (root / "pending" / "a.json").write_text('{"command": "true"}')
    before = files_in(root)
    reports = examined_together(*(Share(str(root)) for _ in range(3)))
    assert [(report.verdict, bad(report), report.machines) for report in reports] == [("safe with rename", {}, 3)] * 3
    assert reports[0].reason == "as 3 machines saw it together"
    assert reports[0].together == reports[1].together == reports[2].together
    together = reports[0].together
    assert together["peers"]["hostnames"] == ["a", "b", "c"]
    assert (together["claims"]["files"], sum(together["claims"]["won"].values())) == (60, 60)
    assert together["freshness"]["rounds"] == 3 * 2 * 2
    assert together["handover"]["moves"] > 0
    assert together["locks"]["rounds"] == 3 * 15
    assert together["exclusive"]["doubled"] == together["noreplace"]["doubled"] == 0
    assert together["read_rename"] == {**together["read_rename"], "rounds": 9, "refused": 0}
    assert [name for name in files_in(root) if name not in before and not name.endswith(".json")] == []


def test_a_rename_that_two_can_win_rules_rename_out(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Long enough that on a busy machine, too, both threads get at one file at once.
    monkeypatch.setattr("spoold.doctor.contest.HANDING_S", 3.0)
    reports = examined_together(shares.CopyingShare(str(root)), shares.CopyingShare(str(root)))
    assert {report.verdict for report in reports} == {"safe with lock"}
    assert {"claims", "handover"} <= set(bad(reports[0]))
    assert reports[0].together["claims"]["doubled"] > 0


def test_locks_that_stay_at_home_rule_lock_out(root: Path) -> None:
    for report in examined_together(shares.GenerousShare(str(root)), shares.GenerousShare(str(root))):
        assert report.together["locks"]["overlaps"] > 0
        assert "held one flock at the same time" in bad(report)["locks"]
        assert report.verdict == "safe with rename"


def test_neither_is_not_safe(root: Path) -> None:
    class Neither(shares.CopyingShare, shares.LocklessShare):
        pass

    reports = examined_together(Neither(str(root)), Neither(str(root)))
    assert [report.verdict for report in reports] == ["not safe", "not safe"]
    assert "and no lock either" in reports[0].reason


@pytest.mark.parametrize(
    ("liar", "probe", "words"),
    [
        (shares.ForgetfulShare, "freshness", "lacked a file"),
        (shares.StubbornShare, "absent", "stays absent"),
    ],
)
def test_what_one_machine_sees_too_late_is_unsafe_for_all(
    root: Path, liar: type[Share], probe: str, words: str
) -> None:
    reports = examined_together(Share(str(root)), liar(str(root)))
    assert [words in bad(report)[probe] for report in reports] == [True, True]
    assert {report.verdict for report in reports} == {"not safe"}


def test_a_server_that_clings_to_what_was_read_is_warned_of(root: Path) -> None:
    shares.ClingingShare.read_at.clear()
    report, _ = examined_together(shares.ClingingShare(str(root)), shares.ClingingShare(str(root)))
    (found,) = [remark for remark in report.remarks if remark.probe == "read_rename"]
    assert (found.grade, "(EIO)" in found.problem, "nolease" in found.mend) == ("warning", True, True)
    assert report.verdict == "safe with rename"


def test_what_is_wrong_with_one_machine_is_told_on_all_by_its_name(root: Path) -> None:
    lockless, other = examined_together(shares.LocklessShare(str(root)), Share(str(root)))
    assert {remark.host for remark in lockless.remarks if "flock gives ENOLCK" in remark.problem} == {""}
    assert "a" in [remark.host for remark in other.remarks if "flock gives ENOLCK" in remark.problem]


def test_two_machines_with_one_name(root: Path) -> None:
    one, other = FakeHost("same"), FakeHost(machine=FakeMachine(HostIdentity("same", "other", "boot-2", "1")))
    report, _ = examined_together(Share(str(root)), Share(str(root)), hosts=(one, other))
    assert "several machines are called same" in bad(report)["peers"]


def test_a_machine_that_fails_says_so_and_the_others_do_not_wait_for_it(root: Path) -> None:
    before = files_in(root)
    with pytest.raises(NobodyCame, match="left before"):
        examined_together(Share(str(root)), shares.BrittleShare(str(root)))
    assert [name for name in files_in(root) if name not in before and not name.endswith(".json")] == []
