"""What was frozen goes on under a new name of its claim, and only where nobody can have taken the old one."""

from __future__ import annotations

import errno
import json
from datetime import datetime
from typing import Literal

import pytest

from spoold.master.master import Master
from spoold.master.state.tree_view import Wanted
from spoold.master.tasks import reaping
from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import AMOUNT_MAX
from spoold.protocol.names import DELAY_MAX_MS, TaskName
from spoold.store.journal import Reader
from spoold.store.store import stamp
from spoold.worker.attempts.lease import renamed
from tests.support.cluster import Cluster, Node

CLAIM = "5000.{order}.t0.a1f0c0{rest}.json"


def frozen(*, settings: str = "", **config: object) -> tuple[Cluster, Node]:
    """A worker whose one task was frozen, since its share is silent. No leader looks on."""
    made = Cluster(settings=settings)
    made.master("m1")
    made.submit("t0.json", '{"id": "t0", "command": ["work"], "timeout": 60}')
    node = made.worker("w1", config=config)
    made.settle()
    made.nodes["m1"].frozen = True
    node.fs.off = True
    made.advance(14)
    assert node.runner is not None
    assert node.runner.frozen().keys() == {"t0.1"}
    return made, node


def rest(made: Cluster) -> int:
    """How often the claim has got a new name."""
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    return name.delay_ms


def is_frozen(node: Node) -> bool:
    assert node.runner is not None
    return "t0.1" in node.runner.frozen()


def test_it_goes_on_as_the_same_attempt_and_says_how_long_it_was_frozen() -> None:
    made, node = frozen()
    node.fs.off = False
    made.step("w1")
    assert not is_frozen(node)
    assert (made.state("t0"), rest(made)) == ("claimed", 1)
    made.finish("t0", output="done")
    made.nodes["m1"].frozen = False
    made.settle()
    result = json.loads(made.fs.read("results/t0.1.w1.json"))
    assert (result["attempt"], result["status"]) == (1, "success")
    assert 1 <= result["frozen_s"] < 5
    assert b"while its worker had no lease]" in made.fs.read("logs/t0.1.w1.log")
    told = {event.event: event for event in Reader(made.fs).read() if event.event in ("FROZEN", "RESUMED")}
    since, at = (
        datetime.fromisoformat(stamp).timestamp() for stamp in (told["FROZEN"].detail["since"], told["RESUMED"].at)
    )
    assert 1 <= at - since < 5, "it is written when the share is back, and says when it began"
    assert told["RESUMED"].detail["frozen_s"] == pytest.approx(at - since, abs=0.1)


def test_a_date_that_was_set_by_decades_meanwhile_keeps_no_worker_from_beating() -> None:
    """frozen_s is the difference of two dates, and a heartbeat holds no absurd figure."""
    made, node = frozen()
    node.clock.set_wall(node.clock.wall() + 5e9)
    node.fs.off = False
    made.step("w1")
    made.advance(10, but="w1")
    node.clock.advance(10)
    made.step("w1")
    (beat,) = (name for name in made.fs.list("heartbeats") if name.startswith("w1."))
    (running,) = json.loads(made.fs.read(f"heartbeats/{beat}"))["running"]
    assert running["frozen_s"] == AMOUNT_MAX


@pytest.mark.parametrize("timeout", [60, 25])
def test_a_deadline_does_not_stand_still_while_it_is_frozen(timeout: int) -> None:
    made = Cluster()
    made.master("m1")
    moment = stamp(made.nodes["m1"].clock.wall() + 30)
    made.submit("t0.json", f'{{"id": "t0", "command": ["work"], "timeout": {timeout}, "deadline": "{moment}"}}')
    node = made.worker("w1")
    made.settle()
    made.nodes["m1"].frozen = True
    node.fs.off = True
    made.advance(31)
    assert is_frozen(node)
    node.fs.off = False
    made.step("w1")
    made.step("w1")
    assert made.state("t0") == "failed"
    assert json.loads(made.fs.read("results/t0.1.w1.json"))["error"]["code"] == "DEADLINE"


def test_the_next_lapse_gives_the_next_name() -> None:
    made, node = frozen()
    for number in (1, 2, 3):
        node.fs.off = False
        made.step("w1")
        assert (is_frozen(node), rest(made)) == (False, number)
        node.fs.off = True
        made.advance(14)
        assert is_frozen(node)
    assert renamed(TaskName(1, "a", "b", delay_ms=DELAY_MAX_MS)).delay_ms == 1


def test_without_a_claim_it_is_killed() -> None:
    made, node = frozen()
    token = made.find("t0").path
    made.fs.rename(token, token.replace("claimed/w1", "ready/type=command,run=command"))
    node.fs.off = False
    made.step("w1")
    assert node.runner is not None
    assert node.runner.live == {}
    made.advance(4)  # a twin may have taken the claim: two beats show that none has
    assert made.state("t0") == "claimed", "and may be claimed again, as any other"


def test_a_claim_that_the_network_carries_out_late_begins_under_a_name_that_nobody_takes_late() -> None:
    made = Cluster()
    made.master("m1")
    node = made.worker("w1")
    made.settle()
    made.submit("t0.json", '{"id": "t0", "command": ["work"]}')
    node.fs.fail("rename", "ready/", errno.EIO, "late")
    while not node.fs.waiting:
        made.advance(1)
    made.nodes["m1"].frozen = True
    assert node.fs.deliver() == 1
    assert node.runner is not None
    node.fs.fail("rename", "claimed/w1", errno.EIO, times=2)
    for _ in range(2):
        made.pass_time(0.5)
        made.step("w1")
        assert (node.runner.live, rest(made)) == ({}, 0), "it does not begin before it has that name"
    made.pass_time(0.5)
    made.step("w1")
    assert (list(node.runner.live), rest(made)) == (["t0.1"], 1)


def test_whoever_was_shut_out_kills_it() -> None:
    made, node = frozen()
    made.nodes["m1"].frozen = False
    made.advance(40)  # the leader was away, too, and waits as long again
    node.fs.off = False
    with pytest.raises(ShutOut):
        node.worker.step()
    node.worker.close()
    assert node.runner is not None
    assert node.runner.live == {}


@pytest.mark.parametrize("how", ["refused", "done", "late"])
def test_a_move_in_doubt_is_looked_into_before_it_goes_on(how: Literal["refused", "done", "late"]) -> None:
    made, node = frozen()
    node.fs.off = False
    node.fs.fail("rename", "claimed/w1", errno.EIO, how=how)
    node.fs.fail("list", "claimed/w1", errno.EIO, after=1, times=1)
    made.step("w1")
    assert is_frozen(node)
    assert any("its claim cannot be moved yet" in note for note in node.worker.notes)
    node.fs.deliver()
    made.pass_time(1.5)
    made.step("w1")
    assert not is_frozen(node)
    assert (made.state("t0"), rest(made)) == ("claimed", 1)


def test_a_move_that_was_ordered_in_an_earlier_lease_proves_nothing() -> None:
    """Between that move and the beat of the new lease a leader could list the new name, and take it late."""
    made, node = frozen()
    node.fs.off = False
    node.fs.fail("rename", "claimed/w1", errno.EIO, how="done")
    node.fs.fail("list", "claimed/w1", errno.EIO, after=1, times=1)
    made.step("w1")
    assert is_frozen(node)
    node.fs.off = True
    made.advance(14)
    node.fs.off = False
    made.step("w1")
    assert is_frozen(node)
    made.step("w1")
    assert (is_frozen(node), rest(made)) == (False, 2)


def test_a_lease_that_ends_within_the_move_lets_nothing_go_on() -> None:
    made, node = frozen()
    node.fs.off = False
    node.fs.hang("rename", "claimed/w1", lambda: made.pass_time(13))
    made.step("w1")
    assert is_frozen(node)
    made.step("w1")
    assert (is_frozen(node), rest(made)) == (False, 2)


def test_what_ends_while_its_move_is_in_doubt_is_committed_under_the_name_it_has() -> None:
    made, node = frozen(freeze_s=5)
    node.fs.off = False
    node.fs.fail("rename", "claimed/w1", errno.EIO, how="done")
    node.fs.fail("list", "claimed/w1", errno.EIO, after=1, times=1)
    made.step("w1")
    assert is_frozen(node)
    made.pass_time(5)
    made.step("w1")
    made.step("w1")
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (made.state("t0"), name.attempt, name.failures, name.crashes) == ("returned", 2, 0, 0)


@pytest.mark.parametrize("turns_up", ["", "r1"])
def test_a_claim_that_is_gone_while_its_move_is_in_doubt_holds_no_slot(turns_up: str) -> None:
    """One that turns up after all, by either name, is an attempt that was here and is over."""
    made, node = frozen()
    node.fs.off = False
    node.fs.fail("rename", "claimed/w1", errno.EIO)
    node.fs.fail("list", "claimed/w1", errno.EIO, after=1, times=1)
    made.step("w1")
    assert is_frozen(node)
    token = made.find("t0").path
    made.fs.mkdir(lane := "waiting/type=command,run=command")
    made.fs.rename(token, aside := token.replace("claimed/w1", lane))
    for _ in range(3):
        made.pass_time(1.5)
        made.step("w1")
    assert node.worker.running == []
    made.fs.rename(aside, token.replace("c0.json", f"c0{turns_up}.json"))
    for _ in range(3):
        made.pass_time(1.5)
        made.step("w1")
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (made.state("t0"), name.attempt) == ("returned", 2)


def test_a_leader_that_lists_the_new_name_looks_at_the_beats_again_before_it_takes_it() -> None:
    made = Cluster()
    leader = made.master("m1").actor
    assert isinstance(leader, Master)
    made.submit("t0.json", '{"id": "t0", "command": ["work"]}')
    node = made.worker("w1")
    made.settle()
    made.nodes["m1"].frozen = True
    node.fs.off = True
    made.advance(14)
    node.fs.off = False
    made.step("w1")
    assert not is_frozen(node)
    # It had counted enough silence by then, and lists the claims only now: it sees the new name.
    desk = leader.desk
    assert desk is not None
    desk.view.refresh(desk.store.fs, Wanted(beats=False))
    assert [name.delay_ms for name in desk.view.claimed["w1"].values()] == [1]
    reaping.reap(desk, ["w1"])
    assert (made.state("t0"), rest(made)) == ("claimed", 1)
    reaping.reap(desk, ["w1"])
    assert made.state("t0") == "returned", "the beat has not changed since that look"
