"""Goal: several machines find out together what none of them could see alone.

Method: machines are threads with shares of their own over one real directory; some of these shares lie.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from spoold.doctor import together
from spoold.doctor.trial_share import LockKind, Share
from spoold.protocol.doctor_report import Report
from spoold.system.host import FakeHost, FakeMachine, HostIdentity
from spoold.system.mounts import Mount
from tests.cli.command import make
from tests.doctor import shares
from tests.doctor.examination import examined_together, files_in


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second of each trial shows what is to be shown."""
    monkeypatch.setattr("spoold.doctor.together.HANDING_S", 0.5)
    monkeypatch.setattr("spoold.doctor.together.LOCKING_S", 2.0)
    monkeypatch.setattr(together, "LOOKS", 2)
    monkeypatch.setattr(together, "STAT_S", 0.3)
    monkeypatch.setattr(together, "BEATS", 5)


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
    monkeypatch.setattr("spoold.doctor.together.HANDING_S", 3.0)
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


@pytest.fixture
def nfs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the kernel's table says of the mount."""
    mount = Mount("/mnt/spool", "nfs4", "nas:/", ("vers=4.2", "hard"))
    monkeypatch.setattr("spoold.doctor.alone.mount_of", lambda root: mount)


class Untouchable(Share):
    """Holds no file, locks none, and races for none, as a share that would wait for ever; other machines mount it."""

    remote = True

    def locked(self, path: str, kind: LockKind = "flock") -> NoReturn:
        raise AssertionError(path)

    def holding(self, path: str) -> NoReturn:
        raise AssertionError(path)

    def create_exclusive(self, path: str) -> NoReturn:
        raise AssertionError(path)


def alike(boot: str, *, first: int = 1) -> FakeHost:
    """A clone called `laptop`; its doctor is the process with this number."""
    host = FakeHost(machine=FakeMachine(HostIdentity("laptop", "m", boot, "1", "1")))
    for _ in range(first - 1):
        host = host.another()
    return host


@pytest.mark.usefixtures("nfs")
@pytest.mark.parametrize(
    ("other", "cloned"),
    [
        (alike("b2"), True),
        (alike("b1", first=2), True),  # resumed from one image: only their processes differ
        (FakeHost(machine=FakeMachine(HostIdentity("laptop", "m2", "b2", "1"))), False),
    ],
)
def test_machines_that_an_nfs_server_takes_for_one_client_make_no_trial_and_are_told_first(
    root: Path, other: FakeHost, *, cloned: bool
) -> None:
    """Issue 25: the doctor gave no report on such machines for minutes, and then said "safe with rename"."""
    before = files_in(root)
    told: list[list[str]] = []
    shares_of = Untouchable(str(root)), Untouchable(str(root))
    for report in examined_together(*shares_of, hosts=(alike("b1"), other), told=told):
        assert (report.verdict, report.machines) == ("not safe", 2)
        assert "since no trial was made, because several machines are called laptop" in report.reason
        assert {"locks", "claims", "race", "pace"} <= set(report.together["peers"]["not_tried"])
        assert set(report.measured) == {"marker", "mount", "space"}
        twins = [remark.mend for remark in report.remarks if "have one machine id" in remark.problem]
        assert ["systemd-machine-id-setup" in mend for mend in twins] == [True] * cloned
    for said in told:
        assert ["systemd-machine-id-setup" in line for line in said[2:]] == [True, False] if cloned else [False]
    # It would count for all nodes that mount the share in this way.
    assert files_in(root) == before


@pytest.mark.usefixtures("nfs")
def test_one_machine_that_asks_twice_is_no_twin_of_itself(root: Path) -> None:
    one = FakeHost("a")
    report, _ = examined_together(Share(str(root)), Share(str(root)), hosts=(one, one.another()))
    assert [remark.problem for remark in report.remarks if remark.probe == "peers"] == [
        "some of the machines are one and the same, which proves less than two kernels would"
    ]
    assert report.together["peers"]["not_tried"] == []


def test_clones_on_a_share_that_tells_them_apart_make_all_trials_and_are_told(root: Path) -> None:
    told: list[list[str]] = []
    report, _ = examined_together(Share(str(root)), Share(str(root)), hosts=(alike("b1"), alike("b2")), told=told)
    assert (report.verdict, "claims" in report.together) == ("safe with rename", True)
    assert [remark.probe for remark in report.remarks if "systemd-machine-id-setup" in remark.mend] == ["peers"]
    assert all("systemd-machine-id-setup" in said[2] for said in told)


def test_when_a_machine_fails_the_others_do_not_wait_for_it_and_their_report_says_so(root: Path) -> None:
    before = files_in(root)
    left, failed = examined_together(Share(str(root)), shares.BrittleShare(str(root)))
    assert "left before" in bad(left)["replaced"]
    assert "see what that machine says" in left.remarks[0].mend
    assert (left.verdict, failed.verdict, left.machines) == ("not safe", "not safe", 2)
    assert [name for name in files_in(root) if name not in before and not name.endswith(".json")] == []


def test_a_machine_of_another_version_is_told_apart(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A former version introduced itself without its process."""
    monkeypatch.setattr("spoold.doctor.together._is_missed", lambda said, host: said["no such word"])
    for report in examined_together(Share(str(root)), Share(str(root))):
        assert "install one version on all" in bad(report)["introduced"]
        assert report.verdict == "not safe"
