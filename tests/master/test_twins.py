"""Machines of one identity: nobody is dead by what its machine is called, and nobody leads beside its twin."""

from dataclasses import replace

import pytest

from spoold.master.state.leadership import Leadership
from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Heartbeat, HostId, MountFacts
from spoold.protocol.request import Verb
from spoold.rules.share.machine_identities import Twins, are_twins
from spoold.store import control, snapshots
from spoold.store.initialise import initialise
from spoold.store.own_heartbeat import Presence
from spoold.store.predecessors import Predecessors
from spoold.store.store import Store, open_store
from spoold.system.clock import ManualClock
from spoold.system.host import FakeHost, same_host
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.cluster import Cluster


class Resumed:
    """One spool, and writers that run twice, as after a machine was resumed from an image of its memory."""

    def __init__(self) -> None:
        self.clock = ManualClock()
        self.fs = MemoryFileSystem(self.clock)
        initialise(self.fs, self.clock, "spool", "/spool")

    def store(self, writer: str = "n1") -> Store:
        made = open_store(self.fs, self.clock, writer, "/spool")
        made.open_tmp() if writer not in self.fs.list("tmp") else None
        return made


def gone_from_here(store: Store, host: FakeHost) -> list[str]:
    """The workers that are reported as gone from that host; the reports are taken away."""
    Predecessors(store, host, "worker").step({"w1"})
    reports = store.fs.list("control")
    for report in reports:
        store.fs.unlink(f"control/{report}")
    return [report.split(".")[1] for report in reports]


def test_a_laptop_cloned_from_the_same_disk_is_not_gone() -> None:
    """N1: machine id and host name are equal, and each has its own boot."""
    spool, one, other = Resumed(), FakeHost("laptop"), FakeHost("laptop")
    other.machine.identity = replace(other.identity(), boot_id="another")
    Presence(spool.store("w1"), one, "worker").beat(0.0, "idle")
    assert gone_from_here(spool.store("w2"), other) == []
    one.die()
    assert gone_from_here(spool.store("w2"), other) == []
    assert gone_from_here(spool.store("w2"), one.another()) == ["w1"]


def test_of_two_that_beat_under_one_name_one_gives_it_up_and_the_other_goes_on() -> None:
    spool = Resumed()
    stays, leaves = (Presence(spool.store(), FakeHost(), "worker") for _ in range(2))
    stays.beat(0.0, "idle")
    leaves._beat, leaves._standing, leaves._sure = stays._beat, [*stays._standing], True
    given_up = []
    for at in range(1, 8):
        for one in (stays, leaves):
            try:
                if one not in given_up:
                    one.beat(4.0 * at, f"{at}")
            except ShutOut:
                given_up.append(one)
    assert len(given_up) == 1
    (left,) = {stays, leaves} - {*given_up}
    assert left.alone
    assert given_up[0]._store.shared
    before = spool.fs.list("heartbeats")
    given_up[0].leave()
    given_up[0]._store.close_tmp()
    assert spool.fs.list("heartbeats") == before
    assert "n1" in spool.fs.list("tmp")


def test_a_beat_that_somebody_else_removed_is_looked_into_and_no_more() -> None:
    spool = Resumed()
    mine = Presence(spool.store(), FakeHost(), "worker")
    mine.beat(0.0, "idle")
    spool.fs.unlink("heartbeats/n1.0.json")
    mine.beat(4.0, "working")
    assert not mine.alone
    mine.beat(4.0, "working")
    mine.beat(8.0, "working")
    assert mine.alone


def test_leadership_is_exclusive_though_the_token_names_both() -> None:
    """Of two masters of one name the second to renew takes the token over, and the first finds that out."""
    spool = Resumed()
    one, other = (Leadership(spool.store()) for _ in range(2))
    assert one.hold(0.0, lambda holder: False)
    other.token, other._highest, other._renewed_at = one.token, one._highest, one._renewed_at
    spool.clock.advance(3.0)
    old = spool.fs.list("master")
    renewed = one.hold(3.0, lambda holder: False)
    (token,) = spool.fs.list("master")
    assert renewed
    assert [token] != old
    assert one.token is not None
    assert other.token is not None
    other._swap(other.token, one.token, 3.0)
    assert other.token is not None
    assert other.token.epoch == one.token.epoch + 1
    with pytest.raises(ShutOut, match="another machine runs as n1"):
        one.hold(3.1, lambda holder: False)
    one.resign()
    assert other.hold(3.2, lambda holder: False)


def beat(node: str, **host: str) -> Heartbeat:
    here = {"hostname": "laptop", "machine_id": "m", "boot_id": "b1", **host}
    return Heartbeat(node=node, beat=0, host=HostId(**here))


def test_twins_are_named_once_both_were_seen_to_move() -> None:
    twins, nodes = Twins(), [beat("w1"), beat("w2", boot_id="b2")]
    twins.look({"w1": 1, "w2": 1}, 0.0)
    twins.look({"w1": 2, "w2": 1}, 5.0)
    assert twins.warnings(nodes) == []
    twins.look({"w1": 3, "w2": 2}, 10.0)
    (said,) = twins.warnings(nodes)
    assert "several machines called laptop" in said
    assert "w1, w2" in said
    assert "systemd-machine-id-setup" in said


def test_a_machine_that_was_started_anew_is_no_twin_of_itself() -> None:
    twins, nodes = Twins(), [beat("w1"), beat("w2", boot_id="b2")]
    for at in range(4):
        twins.look({"w1": at}, 5.0 * at)
    for at in range(4, 9):
        twins.look({"w1": 3, "w2": at}, 5.0 * at)
    assert twins.warnings(nodes) == []


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        ({"boot_id": "b2"}, True),
        ({"machine_id": "m+7"}, True),
        ({}, False),
        ({"boot_id": ""}, False),
        ({"boot_id": "b2", "machine_id": "m2"}, False),
        ({"boot_id": "b2", "hostname": "desktop"}, False),
    ],
)
def test_which_identities_are_those_of_twins(other: dict[str, str], expected: bool) -> None:
    assert are_twins(beat("w1").host, beat("w2", **other).host) is expected


def test_a_new_node_learns_from_a_marked_one_that_its_machine_runs_twice() -> None:
    """A machine that was resumed from an image: its new nodes must not look up the processes of the other."""
    spool, one, other = Resumed(), FakeHost("laptop"), FakeHost("laptop")
    one.doubt()
    Presence(spool.store("w1"), one, "worker").beat(0.0, "idle")
    assert gone_from_here(spool.store("w2"), other) == []
    assert not same_host(one.identity(), other.identity())
    assert other.identity().machine_id.startswith("machine-laptop+")


def test_machines_resumed_from_one_image_before_their_nodes_began_all_live() -> None:
    """N1: even the boot id is equal, so each looks in vain for the other's processes."""
    made = Cluster(remote=True)
    made.hosts["twin"] = FakeHost("laptop")
    made.master("m1", host="laptop")
    made.worker("w1", host="laptop")
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.advance(10)
    assert made.state("a") == "claimed"
    made.worker("w2", host="twin")
    made.master("m2", host="twin")
    made.master("m3", host="server")
    made.advance(25)
    assert made.fs.list("control") == []
    assert made.state("a") == "claimed"
    assert [name.split(".")[:2] for name in made.fs.list("master")] == [["1", "m1"]]
    found = snapshots.latest(made.fs)
    assert found is not None
    (said,) = [warning for warning in found[1].warnings if "machine id" in warning]
    assert "m1, m2, w1, w2" in said
    assert made.gone == {}


def test_on_a_share_only_a_worker_with_traces_on_this_disk_is_reported_at_once() -> None:
    """Without them it may be the living one of a twin, which may beat again within its lease."""
    made = Cluster(remote=True)
    made.worker("w1", host="laptop")
    made.hosts["twin"] = FakeHost("laptop")
    made.crash("w1")
    made.worker("w2", host="twin")
    made.pass_time(10)
    made.step("w2")
    assert made.fs.list("control") == []
    made.worker("w3", host="laptop")
    assert made.fs.list("control") == ["reap.w1.w3.json"]


def test_on_a_share_a_master_of_this_host_is_gone_once_it_stands_still() -> None:
    made = Cluster(remote=True)
    made.master("m1", host="laptop")
    made.master("m2", host="desktop")
    made.advance(5)
    made.crash("m2")
    made.master("m3", host="desktop")
    made.advance(5)
    assert any(name.startswith("m2.") for name in made.fs.list("heartbeats"))
    made.advance(6)
    assert not any(name.startswith("m2.") for name in made.fs.list("heartbeats"))


def test_nodes_of_one_boot_are_twins_if_one_misses_the_process_of_another_that_beats() -> None:
    twins, nodes = Twins(), [beat("w1"), beat("w2"), beat("w3")]
    for at in range(4):
        twins.look({"w1": at, "w2": at, "w3": at}, 5.0 * at)
    assert twins.warnings(nodes) == []
    twins.miss("w1", "w2")
    (said,) = twins.warnings(nodes)
    assert "They run w1, w2, whose" in said
    twins.look({"w2": 5, "w3": 5}, 25.0)
    assert twins.warnings(nodes[1:]) == []


@pytest.mark.parametrize(
    ("mounts", "disturbed"),
    [
        ((("nfs4", "4.2"), ("nfs4", "4.0")), True),
        ((("nfs", "3"), ("nfs4", "4.2")), False),
        ((("nfs", "3"), ("nfs", "3")), False),
        ((("cifs", "3.1.1"), ("cifs", "3.1.1")), False),
    ],
)
def test_where_a_server_knows_clients_by_name_the_warning_says_that_twins_disturb_each_other(
    mounts: tuple[tuple[str, str], ...], *, disturbed: bool
) -> None:
    """Their tasks do not run as on other nodes while calls wait for 10 s and more."""
    twins, boots = Twins(), ("b1", "b2")
    nodes = [
        beat(f"w{boot}", boot_id=boot).model_copy(
            update={"mount": MountFacts(fstype=fstype, version=version, network=True)}
        )
        for boot, (fstype, version) in zip(boots, mounts, strict=True)
    ]
    for at in range(3):
        twins.look({node.node: at for node in nodes}, 5.0 * at)
    (said,) = twins.warnings(nodes)
    assert ("whose tasks run as on other nodes" in said) is not disturbed
    assert ("which disturb each other, since an NFS 4 server takes machines of one host name" in said) is disturbed
    assert "systemd-machine-id-setup" in said


def test_a_worker_that_beats_is_not_reaped_though_its_own_host_says_that_it_is_gone() -> None:
    """Of two machines that were resumed each has the traces of what ran in the image."""
    made = Cluster(remote=True)
    made.master("m1")
    made.worker("w1", 1, host="laptop")
    made.worker("w2", 1, host="laptop")
    made.settle()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    control.post(open_store(made.fs, made.clock, "w2", "/spool"), Verb.REAP, "w1", "w2")
    made.advance(12)
    assert [name for name in made.fs.list("control") if name.startswith("reap")] == []
    assert {"w1", "w2"} <= {*made.fs.list("claimed")}
    latest = max(made.fs.list("status"), key=lambda name: int(name.partition("-")[2].partition(".")[0]))
    said = made.fs.read(f"status/{latest}").decode()
    assert "whose tasks run as on other nodes" in said
    made.finish("a")
    made.settle()
    assert [name.split(".")[:2] for name in made.fs.list("completed")] == [["a", "1"]]
