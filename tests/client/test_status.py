"""Goal: `status` tells the leader's figures exactly while a leader lives, and otherwise counts and says so.

Method: a real master on a spool in memory; the asker's clock moves only when it waits, so how long it waited shows.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from spoold.client.read.explanation import gather
from spoold.client.spool.fsck_and_repair import FsckReport, StillAlive, mend
from spoold.client.spool.living_nodes import living
from spoold.client.spool.spool_status import RENEWED_WITHIN_S, roster, status
from spoold.master.master import Master
from spoold.protocol.request import Verb
from spoold.protocol.snapshot import Snapshot
from spoold.rules.tree.audit import Finding, MakeDirectory, Severity
from spoold.store import control
from spoold.store.store import stamp
from spoold.system.filesystem import Usage
from spoold.system.host import FakeHost, FakeMachine
from tests.client.cluster import Cluster


def look(cluster: Cluster) -> tuple[Snapshot, float]:
    """The picture, and how long it took (s)."""
    before = cluster.clock.monotonic()
    picture = status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep)
    return picture, cluster.clock.monotonic() - before


def cluster_of(host: FakeHost | None = None, **settings: Any) -> tuple[Cluster, Master]:
    """A leader, an idle worker, one task ready and one waiting."""
    cluster = Cluster(**settings)
    master = cluster.master(host=host)
    cluster.worker(host=host)
    cluster.drop("r")
    cluster.drop("w", dependencies=["x"])
    cluster.steps(master)
    return cluster, master


def test_a_leader_on_this_host_is_believed_at_once() -> None:
    cluster, _ = cluster_of()
    picture, took_s = look(cluster)
    assert (picture.source, picture.master.leader, picture.master.epoch, took_s) == ("leader", "m-0001", 1, 0)
    assert (picture.tasks.ready, picture.tasks.waiting, picture.workers.idle) == (1, 1, 1)
    assert picture.warnings == ()


def test_a_leader_that_was_killed_on_this_host_is_seen_to_be_gone_at_once() -> None:
    host = FakeHost("here")
    cluster = Cluster()
    cluster.host = host
    leader = host.another()
    master = cluster.master(host=leader)
    cluster.drop("r")
    cluster.steps(master)
    leader.die()
    picture, took_s = look(cluster)
    assert (picture.source, picture.master.leader, picture.master.epoch, took_s) == ("listing", None, 1, 0)
    assert picture.tasks.ready == 1
    assert "no leader is seen" in picture.warnings[0]


def test_a_leader_elsewhere_is_believed_while_its_report_is_fresh() -> None:
    cluster, _ = cluster_of(FakeHost("there"))
    cluster.clock.advance(9)
    picture, took_s = look(cluster)
    assert (picture.source, took_s) == ("leader", 0)


def test_a_leader_elsewhere_that_is_long_silent_is_watched_and_then_not_believed() -> None:
    cluster, _ = cluster_of(FakeHost("there"))
    cluster.clock.advance(60)
    picture, took_s = look(cluster)
    assert (picture.source, picture.master.leader) == ("listing", None)
    # First its token is watched, then the beats: no node is called dead for its stamp.
    assert RENEWED_WITHIN_S <= took_s < RENEWED_WITHIN_S + 1.5 * cluster.store.settings.heartbeat.interval_s + 0.3
    assert (picture.tasks.ready, picture.tasks.waiting) == (1, 1)
    assert (picture.workers.alive, picture.workers.dead, picture.nodes[0].state) == (0, 1, "dead")


def test_a_leader_whose_clock_is_wrong_is_believed_when_it_renews() -> None:
    cluster, master = cluster_of(FakeHost("there"))
    cluster.clock.set_wall(cluster.clock.wall() + 86_400)
    stepped: list[float] = []

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        before = cluster.clock.wall()
        cluster.clock.set_wall(before - 86_400)
        master.step()
        cluster.clock.set_wall(before)
        stepped.append(seconds)

    picture = status(cluster.store, cluster.host, cluster.clock, sleep=sleep)
    assert (picture.source, picture.master.leader) == ("leader", "m-0001")
    assert sum(stepped) <= RENEWED_WITHIN_S


@pytest.mark.parametrize("skew_s", [0.0, 10.0, 3600.0, -3600.0])
@pytest.mark.parametrize("mine_s", [0.0, 10.0, -3600.0])
def test_a_dead_leader_is_believed_for_as_long_whatever_its_clock_said(skew_s: float, mine_s: float) -> None:
    """Else one that was an hour ahead would seem to live an hour after its death, when its last stamp is due."""
    cluster, _ = cluster_of(FakeHost("there"))
    cluster.worker("w-0009", cluster.host.another(), clock_ahead_s=mine_s)
    ahead_of_server(cluster, "m-0001", skew_s)
    told = cluster.clock.wall()
    for after_s in (1.0, 9.0, 14.0, 16.0, 24.0, 3600.0, 3610.0):
        cluster.clock.set_wall(told + after_s + mine_s)
        picture, took_s = look(cluster)
        seen = picture.source, picture.master.leader, took_s == 0
        assert seen == (("leader", "m-0001", True) if after_s < 15 else ("listing", None, False)), after_s


def test_a_stamp_that_is_still_to_come_proves_nothing() -> None:
    """The clock of who asks is behind, and nobody knows by how much."""
    cluster, _ = cluster_of(FakeHost("there"))
    cluster.clock.set_wall(cluster.clock.wall() - 5)
    assert look(cluster)[0].master.leader is None


def ahead_of_server(cluster: Cluster, node: str, skew_s: float) -> None:
    """What the node said it stamped with a clock that is so far ahead, and it knows so."""
    for path, data in (*cluster.fs.files("heartbeats").items(), *cluster.fs.files("status").items()):
        told = json.loads(data)
        if told.get("node", node) != node:
            continue
        for field in {"at", "generated_at"} & told.keys():
            told[field] = stamp(datetime.fromisoformat(told[field]).timestamp() + skew_s)
        if "node" in told:
            told["clock_ahead_s"] = skew_s
        cluster.fs.write(path, json.dumps(told).encode(), durable=False)


def test_a_stopped_leader_on_this_host_is_not_believed_for_ever() -> None:
    cluster, _ = cluster_of()
    cluster.clock.advance(60)
    assert look(cluster)[0].source == "listing"


def test_a_resigned_leader_leaves_no_leader() -> None:
    cluster, master = cluster_of()
    master.close()
    picture, took_s = look(cluster)
    assert (picture.source, picture.master.leader, took_s) == ("listing", None, 0)


def test_a_spool_without_any_token_of_leadership_can_still_be_counted() -> None:
    cluster = Cluster()
    for path in cluster.tree("master"):
        cluster.fs.unlink(path)
    picture, _ = look(cluster)
    assert (picture.source, picture.master.epoch) == ("listing", 0)
    (warning,) = picture.warnings
    assert warning.startswith("master/ has no token, so no master can lead, and nothing is admitted")
    assert warning.endswith("Stop all nodes and run `spool fsck --repair`")


def test_a_listing_between_two_names_of_the_token_does_not_hide_the_leader() -> None:
    cluster, _ = cluster_of()
    (token,) = cluster.tree("master")
    cluster.fs.unlink(token)

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        cluster.fs.write(token, b"", durable=False)

    picture = status(cluster.store, cluster.host, cluster.clock, sleep=sleep)
    assert (picture.source, picture.master.leader) == ("leader", "m-0001")


def test_a_leader_that_has_told_nothing_yet_is_named_and_the_figures_are_counted() -> None:
    cluster, master = cluster_of(FakeHost("there"))
    for path in cluster.tree("status"):
        cluster.fs.unlink(path)

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        master.leadership.hold(cluster.clock.monotonic(), lambda _: False)

    picture = status(cluster.store, cluster.host, cluster.clock, sleep=sleep)
    assert (picture.source, picture.master.leader) == ("listing", "m-0001")
    assert "m-0001 leads but has reported nothing new" in picture.warnings[0]
    assert picture.master.standbys == ()


def usage(monkeypatch: pytest.MonkeyPatch, cluster: Cluster, free_percent: int, inodes: int | None = None) -> None:
    """From now on the share of 1,000 bytes has so much room."""
    monkeypatch.setattr(cluster.fs, "usage", lambda: Usage(1000, 10 * free_percent, inodes))


def test_a_share_that_fills_up_is_told_though_its_leader_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster("[disk]\nenough_free_mb = 1\n")
    master = cluster.master()
    usage(monkeypatch, cluster, 15)
    cluster.steps(master)
    assert look(cluster)[0].warnings == ("the share is 85 % full ([disk] in spool.toml)",)
    usage(monkeypatch, cluster, 1)
    picture, _ = look(cluster)
    assert picture.source == "leader"
    assert picture.warnings == (
        "the share is 99 % full; no drop is admitted and no task starts until space is freed ([disk] in spool.toml)",
    )


def test_a_leader_that_cannot_tell_what_is_new_is_not_believed_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, master = cluster_of(FakeHost("there"))
    usage(monkeypatch, cluster, 50, inodes=0)
    cluster.clock.advance(60)
    cluster.drop("late")

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        master.leadership.hold(cluster.clock.monotonic(), lambda _: False)

    picture = status(cluster.store, cluster.host, cluster.clock, sleep=sleep)
    assert (picture.source, picture.master.leader, picture.tasks.pending) == ("listing", "m-0001", 1)
    assert picture.warnings[0].startswith("the share is out of inodes: 0 inodes left, one for each new file; no")
    assert picture.warnings[1].startswith("m-0001 leads but has reported nothing new")


def test_what_was_counted_agrees_with_what_the_leader_said() -> None:
    cluster, master = cluster_of()
    presence = cluster.worker("w-0002")
    cluster.claim("r", "w-0002")
    run = {"id": "r", "attempt": 1, "type": "review", "since": ""}
    presence.beat(0, "working", running=[run])
    control.post(cluster.open("cli-here-0002"), Verb.PAUSE, "other", "1")
    cluster.steps(master)
    told, _ = look(cluster)
    for path in cluster.tree("master"):
        cluster.fs.unlink(path)
    counted, _ = look(cluster)
    assert (told.source, counted.source) == ("leader", "listing")
    assert (counted.tasks, counted.types, counted.paused) == (told.tasks, told.types, told.paused)
    assert (counted.workers, counted.nodes) == (told.workers, told.nodes)
    assert counted.paused == ("other",)


def test_the_roster_tells_leader_standby_and_dead() -> None:
    cluster, _ = cluster_of()
    cluster.master("m-0002")
    gone = cluster.host.another()
    cluster.worker("w-0002", gone, status="draining")
    cluster.worker("w-0003", status="draining")
    gone.die()
    found = roster(cluster.store, cluster.host, cluster.clock)
    assert [(post.node, post.state) for post in found.masters] == [("m-0001", "leader"), ("m-0002", "standby")]
    assert [(node.worker, node.state) for node in found.workers] == [
        ("w-0001", "idle"),
        ("w-0002", "dead"),
        ("w-0003", "draining"),
    ]


def test_a_standby_that_was_killed_on_this_host_does_not_stand_by() -> None:
    """The leader told of it before it died: the reader looks its process up."""
    cluster, master = cluster_of(FakeHost("there"))
    gone = cluster.host.another()
    cluster.master("m-0002", gone)
    cluster.master("m-0003")
    cluster.clock.advance(6)
    cluster.steps(master)
    assert look(cluster)[0].master.standbys == ("m-0002", "m-0003")
    gone.die()
    picture, took_s = look(cluster)
    assert (picture.source, picture.master.standbys, took_s) == ("leader", ("m-0003",), 0)


def test_who_lives_here_is_known_by_its_process() -> None:
    cluster, _ = cluster_of()
    before = cluster.clock.monotonic()
    assert living(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep) == ["m-0001", "w-0001"]
    cluster.host.machine.running.clear()
    assert living(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep) == []
    assert cluster.clock.monotonic() == before


def test_a_machine_that_only_boots_alike_is_not_this_one() -> None:
    cluster, _ = cluster_of()
    here = cluster.host.identity()
    alike = FakeHost(machine=FakeMachine(replace(here, machine_id="another")))
    cluster.worker("w-0002", alike)
    cluster.clock.advance(120)
    workers = roster(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).workers
    assert [node.worker for node in workers if node.state == "dead"] == ["w-0002"]


@pytest.mark.parametrize("leads", [True, False])
@pytest.mark.parametrize("skew_s", [3600.0, -3600.0])
def test_a_worker_with_a_wrong_clock_is_not_called_dead(leads: bool, skew_s: float) -> None:
    cluster, _ = cluster_of()
    presence = cluster.worker("w-0002", FakeHost("yonder"))
    cluster.clock.set_wall(cluster.clock.wall() + skew_s)
    presence.beat(cluster.clock.monotonic(), "draining")
    cluster.clock.set_wall(cluster.clock.wall() - skew_s)
    if not leads:
        cluster.host.machine.running.clear()

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        if presence.due(cluster.clock.monotonic()):
            presence.beat(cluster.clock.monotonic(), "draining")

    workers = roster(cluster.store, cluster.host, cluster.clock, sleep=sleep).workers
    assert {node.worker: node.state for node in workers}["w-0002"] == "draining"
    picture = status(cluster.store, cluster.host, cluster.clock, sleep=sleep)
    assert {node.worker: node.state for node in picture.nodes}.get("w-0002", "draining") == "draining"


def test_who_lives_elsewhere_is_known_by_a_beat_that_comes_and_not_by_its_stamp() -> None:
    cluster, _ = cluster_of(FakeHost("there"))
    beats = iter([cluster.worker("w-0002", FakeHost("yonder"))])

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        for presence in beats:
            presence.beat(cluster.clock.monotonic(), "idle")

    before = cluster.clock.monotonic()
    assert living(cluster.store, cluster.host, cluster.clock, sleep=sleep) == ["w-0002"]
    assert cluster.clock.monotonic() - before < 8


@pytest.mark.parametrize("interval_s", [300.0, 1e9])
def test_a_beat_that_claims_a_long_interval_is_not_watched_for_longer_than_a_minute(interval_s: float) -> None:
    cluster, _ = cluster_of(FakeHost("there"))
    cluster.worker("w-0002", FakeHost("yonder"), interval_s=interval_s)
    cluster.clock.advance(min(interval_s * 9, 1e8))
    cluster.host.machine.running.clear()
    before = cluster.clock.monotonic()
    slow: dict[str, float] = {}
    assert living(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep, slow=slow) == ["w-0002"]
    assert slow == {"w-0002": interval_s}
    assert cluster.clock.monotonic() - before < 61
    before = cluster.clock.monotonic()
    workers = roster(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep).workers
    assert {node.worker: node.state for node in workers}["w-0002"] == "dead"
    assert cluster.clock.monotonic() - before < 65
    report = FsckReport("", (Finding(Severity.ERROR, "", ("tmp",), "", "", fix=MakeDirectory("tmp")),), {})
    with pytest.raises(StillAlive, match=f"w-0002 may still run: its heartbeat says .* every {interval_s:,.0f} s"):
        mend(cluster.store, cluster.host, cluster.clock, report, sleep=cluster.sleep)


def test_a_share_that_is_mounted_read_only_is_named_and_no_master_is_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = FakeHost("here")
    cluster, leader = Cluster(), host.another()
    cluster.host = host
    cluster.steps(cluster.master(host=leader))
    leader.die()
    assert "`spool master`" in look(cluster)[0].warnings[0]
    monkeypatch.setattr(cluster.fs, "usage", lambda: Usage(1 << 40, 1 << 40, None, read_only=True))
    warnings = look(cluster)[0].warnings
    assert any("mounted read-only here" in warning and "mount it read-write" in warning for warning in warnings)
    assert any("no leader is seen" in warning for warning in warnings)
    assert not any("`spool master`" in warning for warning in warnings)
    cluster.drop("r")
    assert gather(cluster.store, cluster.host, cluster.clock, "r", sleep=cluster.clock.advance).read_only


def test_workers_that_are_silent_where_nobody_leads_may_have_frozen_what_they_run() -> None:
    """Where the share can be read but not written, a live worker of this host still says that it works."""
    cluster, master = cluster_of()
    cluster.clock.advance(16)
    cluster.steps(master)
    told = [warning for warning in look(cluster)[0].warnings if "frozen" in warning]
    assert told == [], "a leader lives, and says itself who is dead"
    cluster.fs.unlink("master/" + cluster.fs.list("master")[0])
    (warning,) = (warning for warning in look(cluster)[0].warnings if "frozen" in warning)
    assert warning.startswith("1 worker has not been heard of for 1")
    assert warning.endswith("s (w-0001): its attempts are frozen there if its lease is over")
    cluster.worker("w-0002", FakeHost("yonder"))
    cluster.clock.advance(31)
    (warning,) = (warning for warning in look(cluster)[0].warnings if "frozen" in warning)
    assert "(w-0001, w-0002): their attempts are frozen there" in warning
    cluster.host.machine.running.clear()
    (warning,) = (warning for warning in look(cluster)[0].warnings if "frozen" in warning)
    assert "(w-0002)" in warning
