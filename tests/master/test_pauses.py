"""A pause that ends by itself: by the pool's clock, and never too early."""

import errno
from datetime import UTC, datetime

import pytest

from spoold.store.journal import Reader
from tests.support.cluster import Cluster


def stamp(made: Cluster, after_s: float) -> str:
    return datetime.fromtimestamp(made.clock.wall() + after_s, UTC).isoformat()


def paused(body: str = "{}", *, settled: bool = True) -> Cluster:
    """A leader, a worker, a pause of type `a` with this body, and a task of the type."""
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.fs.write("control/pause.a.1.json", body.replace("IN_60_S", stamp(made, 60)).encode(), durable=False)
    made.submit("t.json", '{"id": "t", "type": "a", "command": ["work"]}')
    if settled:
        made.settle()
    return made


def test_it_ends_at_its_moment_and_the_leader_wakes_for_it() -> None:
    made = paused('{"by": "ada", "until": "IN_60_S"}')
    assert made.state("t") == "waiting"
    made.advance(58)
    assert made.state("t") == "waiting"
    assert made.fs.list("control") == ["pause.a.1.json"]
    made.pass_time(1.5)
    master, left_s = made.nodes["m1"].master, 0.5
    step = master.step()
    assert step.next_due is not None
    assert step.next_due - master.store.clock.monotonic() == pytest.approx(left_s)
    made.pass_time(left_s + 0.1)
    made.step("m1")
    assert made.fs.list("control") == []
    assert made.state("t") == "ready"
    events = {event.event: event.detail for event in Reader(made.fs).read()}
    assert events["PAUSE_ENDED"] == {"target": "a"}
    assert events["ASKED"]["by"] == "ada"
    assert datetime.fromisoformat(events["ASKED"]["until"]).tzinfo is not None


@pytest.mark.parametrize("body", ["{}", "", '{"by": "ada", "reason": "quota"}'])
def test_one_of_an_older_release_stands_until_a_resume(body: str) -> None:
    made = paused(body)
    made.advance(1000)
    assert made.state("t") == "waiting"
    made.fs.write("control/resume.a.2.json", b"{}", durable=False)
    made.settle()
    assert made.state("t") != "waiting"
    assert made.fs.list("control") == []


@pytest.mark.parametrize("until", ['"tomorrow"', "7", '"2026-02-02T09:05:00"', "[]"])
def test_a_moment_that_cannot_be_read_is_told_and_the_pause_stands(until: str) -> None:
    made = paused(f'{{"until": {until}}}')
    made.advance(1000)
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    assert made.state("t") == "waiting"
    (told,) = [notice for notice in desk.report.notices if "pause.a.1.json" in notice]
    assert "until" in told
    assert "`spool resume`" in told
    made.fs.write("control/pause.a.1.json", f'{{"until": "{stamp(made, 5)}"}}'.encode(), durable=False)
    made.advance(30)
    assert made.state("t") != "waiting"


def test_one_that_may_not_be_read_stands_is_told_and_read_again() -> None:
    made = paused('{"until": "IN_60_S"}', settled=False)
    made.nodes["m1"].fs.fail("read", "control/pause", errno.EACCES, times=10_000)
    made.settle()
    made.advance(100)
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    assert made.state("t") == "waiting"
    assert [n for n in desk.report.notices if n.startswith("control/pause.a.1.json: ")]
    made.nodes["m1"].fs.faults.clear()
    made.advance(30)
    assert made.state("t") != "waiting"


def test_one_that_cannot_be_removed_is_over_all_the_same() -> None:
    made = paused('{"until": "IN_60_S"}')
    made.nodes["m1"].fs.fail("unlink", "control/", errno.EACCES, times=10_000)
    made.advance(70)
    assert made.state("t") != "waiting"
    assert made.fs.list("control") == ["pause.a.1.json"]
    assert [event.event for event in Reader(made.fs).read()].count("PAUSE_ENDED") == 1


def test_a_longer_pause_holds_what_a_shorter_one_lets_go() -> None:
    made = paused('{"until": "IN_60_S"}')
    made.fs.write("control/pause.+all.1.json", f'{{"until": "{stamp(made, 120)}"}}'.encode(), durable=False)
    made.advance(100)
    assert (made.state("t"), made.fs.list("control")) == ("waiting", ["pause.+all.1.json"])
    made.advance(30)
    assert (made.state("t") != "waiting", made.fs.list("control")) == (True, [])


def test_the_next_leader_knows_when_it_ends() -> None:
    made = paused('{"until": "IN_60_S"}')
    made.master("m2")
    made.stop("m1")
    made.advance(45)
    assert made.state("t") == "waiting"
    made.advance(30)
    assert made.state("t") != "waiting"
