"""Goal: a node tells how it mounts the spool, and who reports warns of what the doctor has not approved."""

from __future__ import annotations

from pathlib import Path

import pytest

from spoold.client.spool.spool_status import status
from spoold.daemon.loop import open_spool
from spoold.daemon.progress_watch import Pulse
from spoold.doctor.report_files import keep
from spoold.protocol.doctor_report import Remark, Report
from spoold.protocol.heartbeat import MountFacts
from spoold.store import heartbeats
from spoold.store.doctor_reports import list_reports, mount_facts, mount_warnings, mounts_of, read_reports
from spoold.store.own_heartbeat import Presence
from spoold.system.filesystem import FileSystem
from tests.cli.command import make
from tests.client.cluster import Cluster

NFS = MountFacts(fstype="nfs4", version="4.2", network=True)
SOFT = NFS.model_copy(update={"options": ("soft",)})


def approve(fs: FileSystem, mount: MountFacts, *, machines: int = 1, bad: bool = False) -> Report:
    """A report that a doctor has left."""
    remark = Remark(grade="bad", probe="claims", problem="won twice", mend="mend", against=("rename",))
    report = Report(
        at="", node="doctor-a", verdict="safe with rename", reason="", mount=mount, machines=machines
    ).model_copy(update={"remarks": (remark,) if bad else ()})
    keep(fs, report, "tmp")
    return report


def nfs_worker(cluster: Cluster, mount: MountFacts = NFS) -> Presence:
    """A worker whose heartbeat says that it mounts like this."""
    return cluster.worker("w-nfs", mount=mount)


def test_a_daemon_tells_its_mount_in_its_heartbeat(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    store = open_spool(str(root), "w-0001", Pulse())
    mount = store.mount()
    assert mount == mount_facts(str(root))
    assert mount is not None
    assert not mount.network
    store.open_tmp()
    from spoold.system.host import SystemHost

    Presence(store, SystemHost(), "worker").beat(0.0, "idle")
    assert mounts_of(heartbeats.read_all(store.fs)) == {"w-0001": mount}


def test_nodes_on_local_disks_are_not_warned_of_and_nothing_is_read() -> None:
    cluster = Cluster()
    cluster.fs.rename("doctor", "elsewhere")
    assert mount_warnings(cluster.store, {"w": MountFacts(fstype="ext4")}) == []


def test_the_leader_warns_until_a_doctor_has_approved() -> None:
    cluster = Cluster()
    master = cluster.master()
    nfs_worker(cluster)
    cluster.steps(master)
    warnings = status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings
    assert [warning for warning in warnings if "no doctor has seen" in warning] == [
        "w-nfs mounts the spool as nfs4 4.2, which no doctor has seen; run `spool doctor` there"
    ]
    approve(cluster.fs, NFS)
    for _ in range(12):
        nfs_worker(cluster)
        cluster.clock.advance(3)
        master.step()
    cluster.steps(master)
    assert status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings == ()


def test_without_a_leader_who_asks_is_warned_too() -> None:
    cluster = Cluster()
    nfs_worker(cluster, SOFT)
    approve(cluster.fs, SOFT)
    warnings = status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).warnings
    assert "w-nfs mounts the spool as nfs4 4.2 (soft): a soft mount" in warnings[1]


def test_reports_that_no_longer_count_are_taken_away_and_what_two_machines_saw_is_kept() -> None:
    fs = Cluster().fs
    approve(fs, NFS)
    two = approve(fs, NFS, machines=2, bad=True)
    assert list(read_reports(fs).values()) == [two]
    other = approve(fs, SOFT)
    approve(fs, NFS)
    assert list(read_reports(fs).values()) == [two, other]
    again = approve(fs, NFS, machines=2)
    assert list(read_reports(fs).values()) == [other, again]


def test_what_is_no_report_is_passed_over() -> None:
    fs = Cluster().fs
    fs.write("doctor/7.doctor-x.json", b"{", durable=False)
    fs.write("doctor/notes.txt", b"", durable=False)
    fs.mkdir("doctor/run.doctor-y")
    assert read_reports(fs) == {}
    assert [name.number for name in list_reports(fs)] == [7]
    fs.unlink("doctor/7.doctor-x.json")
    fs.unlink("doctor/notes.txt")
    fs.rmdir("doctor/run.doctor-y")
    fs.rmdir("doctor")
    assert list_reports(fs) == []


@pytest.mark.parametrize("machines", [1, 2])
def test_a_report_that_rules_the_strategy_out_is_quoted(machines: int) -> None:
    cluster = Cluster()
    approve(cluster.fs, NFS, machines=machines, bad=True)
    assert mount_warnings(cluster.store, {"w": NFS}) == ["w mounts the spool as nfs4 4.2: won twice; mend"]
