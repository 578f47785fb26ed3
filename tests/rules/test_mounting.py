"""Mount options: which are unsafe, and whose mount differs from what the doctor approved."""

from typing import Any

import pytest

from spoold.protocol.doctor_report import Remark, Report, Strategy
from spoold.protocol.heartbeat import MountFacts
from spoold.rules.share.mount_options import describe, disapproved, facts_of, in_force, judge_mount

# As /proc/self/mountinfo shows them.
NFS42 = "rw,relatime,vers=4.2,rsize=262144,namlen=255,hard,proto=tcp,timeo=600,retrans=2,sec=sys,local_lock=none"
NFS3 = "rw,relatime,vers=3,hard,nolock,proto=tcp,mountproto=udp,local_lock=all,addr=10.0.0.1"
SMB = "rw,relatime,vers=3.1.1,cache=strict,uid=0,soft,nounix,serverino,mapposix,actimeo=1,closetimeo=1"


def facts(fstype: str, options: str, *, network: bool = True) -> MountFacts:
    return facts_of(fstype, options.split(","), network=network)


LOCAL = facts("ext4", "rw,relatime", network=False)
NFS = facts("nfs4", NFS42)
CIFS = facts("cifs", SMB + ",nolease")


@pytest.mark.parametrize(
    ("fstype", "options", "kept", "version"),
    [
        ("nfs4", NFS42, (), "4.2"),
        ("nfs", NFS3, ("local_lock=all", "nolock"), "3"),
        (
            "nfs4",
            NFS42 + ",softerr,noac,lookupcache=positive,ro",
            ("lookupcache=positive", "noac", "ro", "softerr"),
            "4.2",
        ),
        ("cifs", SMB, (), "3.1.1"),
        ("cifs", SMB.replace("strict", "loose") + ",nobrl", ("cache=loose", "nobrl"), "3.1.1"),
        ("cifs", SMB.replace("closetimeo=1", "closetimeo=0"), ("closetimeo=0",), "3.1.1"),
        ("9p", "rw,trans=virtio,cache=loose", ("cache=loose",), ""),
        ("9p", "rw,trans=virtio,cache=none", (), ""),
    ],
)
def test_only_what_matters_is_kept(fstype: str, options: str, kept: tuple[str, ...], version: str) -> None:
    found = facts(fstype, options)
    assert found.options == kept
    assert (found.version, found.network) == (version, True)


def test_of_a_local_disk_only_whether_it_can_be_written_matters() -> None:
    assert facts("ext4", "rw,soft,cache=x", network=False).options == ()
    assert facts("ext4", "ro,relatime", network=False).options == ("ro",)


def test_a_mount_in_a_few_words() -> None:
    assert (describe(NFS), describe(LOCAL)) == ("nfs4 4.2", "ext4")
    assert describe(facts("nfs", NFS3)) == "nfs 3 (local_lock=all,nolock)"


@pytest.mark.parametrize(
    ("fstype", "options", "grade", "against", "mend"),
    [
        ("nfs4", NFS42.replace("hard", "soft"), "bad", ("rename", "lock"), "hard instead of soft"),
        ("nfs4", NFS42.replace("hard", "softerr"), "bad", ("rename", "lock"), "hard instead of soft"),
        ("nfs4", NFS42 + ",nocto", "bad", ("rename", "lock"), "without nocto"),
        ("nfs4", NFS42 + ",ro", "bad", ("rename", "lock"), "read-write"),
        ("nfs4", NFS42 + ",noac", "warning", (), "without noac"),
        ("nfs4", NFS42.replace("local_lock=none", "local_lock=flock"), "bad", ("lock",), "without nolock"),
        ("nfs4", NFS42.replace("4.2", "4.0"), "note", (), "vers=4.2"),
        ("nfs", NFS42.replace("4.2", "3"), "warning", (), "vers=4.2"),
        ("cifs", SMB + ",nolease,cache=loose", "bad", ("rename", "lock"), "cache=strict"),
        ("cifs", SMB + ",nolease,nobrl", "bad", ("lock",), "without nobrl"),
        ("cifs", SMB, "warning", (), "nolease"),
        ("cifs", SMB.replace("3.1.1", "2.1") + ",nolease", "warning", (), "vers=3.1.1"),
        ("9p", "rw,cache=mmap", "bad", ("rename", "lock"), "cache=none"),
        ("fuse.sshfs", "rw", "warning", (), "dir_cache=no"),
        ("fuse.juicefs", "rw", "warning", (), "two machines"),
        ("fuse.s3fs", "rw", "bad", ("rename", "lock"), "NFS, SMB or a disk"),
    ],
)
def test_an_option_and_its_mend(fstype: str, options: str, grade: str, against: tuple[str, ...], mend: str) -> None:
    (found,) = judge_mount(facts(fstype, options))
    assert (found.grade, found.against) == (grade, against)
    assert mend in found.mend


@pytest.mark.parametrize("mount", [LOCAL, NFS, CIFS, facts("9p", "rw"), facts("ceph", "rw")])
def test_nothing_is_wrong_with_these(mount: MountFacts) -> None:
    assert judge_mount(mount) == []


def test_without_locks_on_nfs_3_rename_is_still_safe() -> None:
    found = judge_mount(facts("nfs", NFS3))
    assert [remark.against for remark in found] == [("lock",), ()]
    assert "`rename` needs none" in found[0].problem


def report(mount: MountFacts | None, *against: Strategy, machines: int = 1, host: str = "") -> Report:
    remarks = [Remark(grade="bad", probe="claims", problem="won twice", mend="mend it", against=against, host=host)]
    more: dict[str, Any] = {"remarks": tuple(remarks) if against else (), "mount": mount, "machines": machines}
    return Report(at="", node="n", verdict="safe with rename", reason="", **more)


def test_a_spool_on_a_local_disk_needs_no_doctor() -> None:
    assert disapproved({"w-1": LOCAL, "w-2": facts("xfs", "rw", network=False)}, [], "rename") == []
    assert disapproved({"w-1": LOCAL}, [], "lock") == []


def test_a_mount_that_was_approved_is_not_warned_of_and_another_is() -> None:
    other = facts("nfs4", NFS42.replace("4.2", "4.1"))
    (warning,) = disapproved({"w-1": NFS, "w-2": other}, [report(NFS), report(None)], "rename")
    assert warning == "w-2 mounts the spool as nfs4 4.1, which no doctor has seen; run `spool doctor` there"


def test_an_unsafe_option_is_named_with_its_mend_whatever_was_approved() -> None:
    soft = facts("nfs4", NFS42.replace("hard", "soft"))
    (warning,) = disapproved({"w-1": soft}, [report(soft)], "rename")
    assert warning.startswith("w-1 mounts the spool as nfs4 4.2 (soft): a soft mount")
    assert warning.endswith("mount with hard instead of soft")


def test_locks_that_stay_on_a_machine_matter_only_to_a_spool_that_locks() -> None:
    three = facts("nfs", NFS3)
    assert disapproved({"w-1": three}, [report(three)], "rename") == []
    (warning,) = disapproved({"w-1": three}, [report(three)], "lock")
    assert "excludes no node" in warning


def test_a_report_against_the_strategy_is_quoted_but_not_what_was_wrong_with_another_machine() -> None:
    assert disapproved({"w-1": NFS}, [report(NFS, "rename")], "rename") == [
        "w-1 mounts the spool as nfs4 4.2: won twice; mend it"
    ]
    assert disapproved({"w-1": NFS}, [report(NFS, "rename")], "lock") == []
    assert disapproved({"w-1": NFS}, [report(NFS, "rename", host="other")], "rename") == []


def test_the_newest_report_counts_but_one_machine_does_not_outweigh_two() -> None:
    alone, two, later = report(NFS), report(NFS, "rename", machines=2), report(NFS, machines=2)
    assert [*in_force([alone, two, alone]).values()] == [two]
    assert [*in_force([alone, two, later]).values()] == [later]
    assert [*in_force([report(NFS, "rename"), alone]).values()] == [alone]


@pytest.mark.parametrize(
    ("others", "claim", "words"),
    [
        (NFS, "rename", None),
        (NFS, "lock", "do not see each other"),
        (CIFS, "rename", "Samba does not notify"),
        (CIFS, "lock", "do not see each other"),
    ],
)
def test_a_node_on_the_servers_own_disk(others: MountFacts, claim: Strategy, words: str | None) -> None:
    found = disapproved({"nas": LOCAL, "w-1": others}, [report(others)], claim)
    assert len(found) == (words is not None)
    assert words is None or (words in found[0] and found[0].startswith("nas works on the server's own disk"))
