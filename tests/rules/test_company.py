"""Who takes part in an examination: namesakes and twins are told before anything is tried."""

from __future__ import annotations

import pytest

from spoold.protocol.doctor_report import Remark
from spoold.protocol.heartbeat import HostId, MountFacts
from spoold.rules.share.machine_identities import Company, clients_of_one_name, judge_company

BOTH, LOCK = ("rename", "lock"), ("lock",)
NFS3 = MountFacts(fstype="nfs", version="3", network=True)
NFS4 = MountFacts(fstype="nfs4", version="4.2", network=True)
SMB, DISK = MountFacts(fstype="cifs", version="3.1.1", network=True), MountFacts(fstype="ext4")


def host(hostname: str = "a", machine: str = "m", boot: str = "1") -> HostId:
    return HostId(hostname=hostname, machine_id=machine, boot_id=boot)


def company(*hosts: HostId, mounts: tuple[MountFacts | None, ...] = (), missed: tuple[str, ...] = ()) -> Company:
    """Members called 0, 1 and so on."""
    named = {str(number): mount for number, mount in enumerate(mounts) if mount is not None}
    return Company({str(number): one for number, one in enumerate(hosts)}, named, missed)


def rules_out(found: list[Remark]) -> list[tuple[str, ...]]:
    return [remark.against for remark in found]


@pytest.mark.parametrize("mounts", [(), (NFS3, NFS3), (NFS4, NFS4), (SMB, SMB)])
def test_machines_with_names_of_their_own(mounts: tuple[MountFacts, ...]) -> None:
    assert judge_company(company(host("a", "m1", "1"), host("b", "m2", "2"), mounts=mounts)) == []


@pytest.mark.parametrize("other", [host(boot="2"), host(machine="m2", boot="2")])
@pytest.mark.parametrize("version", ["4.0", "4.1", "4.2"])
def test_on_nfs_4_machines_of_one_name_are_not_tried_and_not_safe(version: str, other: HostId) -> None:
    mount = NFS4.model_copy(update={"version": version})
    asked = company(host(), other, mounts=(mount, mount))
    assert clients_of_one_name(asked) == ["a"]
    (found,) = [remark for remark in judge_company(asked) if remark.grade == "bad"]
    assert found.against == BOTH
    assert found.problem.startswith("no trial was made, because several machines are called a, and an NFS 4 server")
    assert "hostnamectl set-hostname" in found.mend


@pytest.mark.parametrize(
    ("mounts", "against"),
    [((), [LOCK]), ((NFS3, NFS3), [LOCK]), ((NFS3, NFS4), [LOCK]), ((SMB, SMB), []), ((DISK, DISK), [])],
)
def test_elsewhere_one_name_rules_out_locks_at_most(
    mounts: tuple[MountFacts, ...], against: list[tuple[str, ...]]
) -> None:
    asked = company(host(), host(machine="m2", boot="2"), mounts=mounts)
    assert clients_of_one_name(asked) == []
    assert rules_out(judge_company(asked)) == against


@pytest.mark.parametrize("mount", [NFS3, NFS4, SMB, DISK])
def test_clones_are_told_first_and_with_the_fix(mount: MountFacts) -> None:
    told = judge_company(company(host(boot="1"), host(boot="2"), mounts=(mount, mount)))[0]
    assert told.problem == "several machines called a have one machine id, as clones of one disk or memory image do"
    assert (told.grade, "systemd-machine-id-setup" in told.mend) == ("warning", True)


@pytest.mark.parametrize(("mount", "against"), [(NFS4, [(), BOTH]), (NFS3, [(), LOCK]), (SMB, [()])])
def test_machines_that_were_resumed_are_twins_and_not_one_machine(
    mount: MountFacts, against: list[tuple[str, ...]]
) -> None:
    """All of their identity is equal, but each looks in vain for the other's process."""
    found = judge_company(company(host(), host(), mounts=(mount, mount), missed=("0", "1")))
    assert rules_out(found) == against
    assert "several machines called a have one machine id" in found[0].problem


def test_one_machine_twice_proves_less_and_is_one_client() -> None:
    asked = company(host(), host(), mounts=(NFS4, NFS4))
    (found,) = judge_company(asked)
    assert (found.grade, found.against, clients_of_one_name(asked)) == ("warning", (), [])
    assert judge_company(company(host("a", boot=""), host("b", "", ""))) == []


@pytest.mark.parametrize(("others", "grades"), [(NFS4, ["bad"]), (SMB, ["bad", "warning"])])
def test_a_machine_that_is_the_server_itself(others: MountFacts, grades: list[str]) -> None:
    found = judge_company(company(host(), host("b", "m2", "2"), mounts=(DISK, others)))
    assert [remark.grade for remark in found] == grades
    assert found[0].against == LOCK
