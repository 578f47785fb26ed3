"""A server that, with its power, undoes moves that it has answered for, while the leader and the workers live on."""

import errno
import json
from typing import Any

import pytest

from spoold.master.report.status_report import UNDONE
from spoold.store import snapshots
from tests.support.cluster import Cluster


def share(*, forgets: bool = True) -> Cluster:
    """A leader on a share, and one task that stands ready."""
    made = Cluster("[heartbeat]\ninterval_s = 1\nmisses = 3\n", remote=True)
    made.fs.forgets = forgets
    made.master("m1")
    made.step("m1")
    made.submit("a.json", json.dumps({"id": "a", "command": ["work"]}))
    made.advance(2)
    assert made.state("a") == "ready"
    return made


def undo(made: Cluster, before: str) -> None:
    """The task's token stands in this directory of the same lane, or in the lane, again, under the same name."""
    path = made.find("a").path
    lane = "type=command,run=command"
    made.fs.make_dirs(f"{before}/{lane}")
    made.fs.rename(path, f"{before}/{lane}/{path.rpartition('/')[2]}")


def warnings(made: Cluster) -> str:
    """What people read."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return "\n".join(found[1].warnings)


def events(made: Cluster, name: str) -> list[dict[str, Any]]:
    """The lines of all journals that tell of this."""
    lines = [line for path, data in made.fs.files("events").items() for line in data.splitlines() if path]
    return [event for event in map(json.loads, lines) if event["event"] == name]


def test_a_promotion_that_was_undone_is_made_again_and_people_are_told() -> None:
    made = share()
    undo(made, "waiting")
    made.advance(5)
    assert made.state("a") == "ready"
    assert UNDONE.format(1) in warnings(made)


def test_where_no_server_forgets_nobody_says_that_one_did() -> None:
    """Somebody's hand has moved it, or another leader."""
    made = share(forgets=False)
    undo(made, "waiting")
    made.advance(5)
    assert made.state("a") == "ready"
    assert "undone" not in warnings(made)


def test_a_claim_that_was_undone_is_told_and_the_task_runs_again() -> None:
    made = share()
    made.worker("w1")
    made.advance(3)
    assert made.state("a") == "claimed"
    undo(made, "ready")
    made.advance(8)
    assert UNDONE.format(1) in warnings(made)
    assert made.state("a") == "claimed"
    made.finish("a")
    made.advance(5)
    assert made.state("a") == "completed"


def test_a_claim_that_was_undone_between_a_look_that_failed_and_the_next_is_no_task_that_is_gone() -> None:
    """What the first look found missing stands where it stood."""
    made = share()
    made.worker("w1")
    made.nodes["w1"].frozen = True
    made.advance(1)
    made.step("w1")
    assert made.state("a") == "claimed"
    made.nodes["m1"].fs.fail("list", "claimed", errno.EIO)
    made.pass_time(1)
    made.step("m1")
    assert made.troubles
    undo(made, "ready")
    made.nodes["w1"].frozen = False
    made.crash("w1")
    made.advance(8)
    assert events(made, "VANISHED") == []
    made.submit("again.json", json.dumps({"id": "a", "command": ["work"]}))
    made.advance(3)
    assert made.state("a") == "ready"


def test_a_claim_that_was_undone_before_ready_was_listed_again_is_no_task_that_is_gone() -> None:
    """No listing of ready/ ever showed that it had left, so none shows that it came back."""
    made = share()
    worker = made.worker("w1")
    made.nodes["m1"].fs.hang("list", "claimed", worker.actor.step)
    made.pass_time(3)
    made.step("m1")
    assert made.state("a") == "claimed"
    undo(made, "ready")
    made.crash("w1")
    made.advance(8)
    assert events(made, "VANISHED") == []
    assert UNDONE.format(1) in warnings(made)


def test_a_task_that_is_to_fail_and_whose_admission_was_undone_is_admitted_again_at_once() -> None:
    """It is not where it waited, which only a listing of waiting/ would show else, and that may be minutes off."""
    made = share()
    made.worker("w1", slots=2)
    made.submit("p.json", json.dumps({"id": "p", "command": ["work"], "max_retries": 0}))
    made.submit("b.json", json.dumps({"id": "b", "command": ["work"], "after": ["p"]}))
    made.advance(3)
    waiting = made.find("b").path
    (door,) = made.fs.list("admitting")
    made.witness.losses_allowed = True  # it knows no tasks in doors
    made.fs.rename(waiting, f"admitting/{door}/{waiting.rpartition('/')[2]}")
    made.finish("p", exit_code=1)
    made.advance(15)
    assert made.state("b") == "failed"


@pytest.mark.parametrize("times", [1, 40])
def test_no_line_tells_of_a_promotion_that_did_not_happen(times: int) -> None:
    """The leader's client believes that the token is in ready/ still: every rename there is refused."""
    made = share()
    undo(made, "waiting")
    made.nodes["m1"].fs.fail("rename", "waiting/", errno.EEXIST, times=times)
    made.advance(10)
    assert len(events(made, "ADMITTED")) + len(events(made, "READY")) <= 2
    made.advance(60)
    assert made.state("a") == "ready"
    assert len(events(made, "READY")) == 1
    assert made.troubles == []


def test_no_line_tells_of_a_claim_that_did_not_happen_and_others_are_claimed() -> None:
    made = share()
    worker = made.worker("w1", 2)
    worker.fs.fail("rename", "ready/type=command,run=command/" + made.find("a").path.rpartition("/")[2], errno.EEXIST,
                   times=1000)  # fmt: skip
    made.submit("b.json", json.dumps({"id": "b", "command": ["work"]}))
    made.advance(6)
    assert (made.state("a"), made.state("b")) == ("ready", "claimed")
    assert [event["task"] for event in events(made, "CLAIMED")] == ["b"]
    assert "task a cannot be claimed" in warnings(made)


@pytest.fixture(name="completed", params=["ready", "claimed"])
def completed_once(request: pytest.FixtureRequest) -> tuple[Cluster, str]:
    """A task that has completed under the leader's eyes, its worker dead since, and where it stood before."""
    made = share()
    before = {"ready": made.find("a").path}
    made.worker("w1")
    made.advance(3)
    before["claimed"] = made.find("a").path
    made.finish("a")
    made.advance(5)
    assert made.state("a") == "completed"
    made.crash("w1")
    return made, before[request.param]


def test_a_commit_that_was_undone_leaves_no_claim_of_a_dead_worker_behind(completed: tuple[Cluster, str]) -> None:
    made, before = completed
    made.fs.rename(made.find("a").path, before)
    made.worker("w2")
    made.advance(15)
    assert made.state("a") == "claimed"
    made.finish("a", on="w2")
    made.advance(5)
    assert made.state("a") == "completed"
    assert made.troubles == ["w1: crashed"]
    assert UNDONE.format(1) in warnings(made)
    assert events(made, "VANISHED") == []


def test_the_id_of_a_task_whose_commit_was_undone_is_still_taken(completed: tuple[Cluster, str]) -> None:
    made, before = completed
    made.fs.rename(made.find("a").path, before)
    made.advance(5)
    made.submit("again.json", json.dumps({"id": "a", "command": ["other"]}))
    made.advance(5)
    assert len(made.fs.files("rejected")) == 2
    assert made.find("a").name.id == "a"


@pytest.mark.parametrize("after_failing", [False, True])
def test_a_task_that_was_undone_while_waiting_is_listed_is_no_copy(*, after_failing: bool) -> None:
    """The ends were listed before the server lost its power, and what waits after it."""
    made = share()
    before = made.find("a").path
    made.worker("w1")
    made.advance(3)
    made.finish("a", exit_code=64 if after_failing else 0)
    made.advance(5)
    assert made.state("a") == ("failed" if after_failing else "completed")
    back = before.replace("ready/", "waiting/")
    made.fs.make_dirs(back.rpartition("/")[0])
    made.during("m1", "list", "waiting", lambda: made.fs.rename(made.find("a").path, back))
    made.advance(35)
    assert made.fs.files("rejected") == {}
    assert made.state("a") == "claimed"


def test_no_child_fails_for_a_failure_that_the_server_forgot() -> None:
    """The leader remembers that it had failed the parent, and hears of a child before it has listed anything anew."""
    made = share()
    ready = made.find("a").path
    made.fs.write("control/cancel.a.1.json", b"{}", durable=True)
    made.advance(1)
    assert made.state("a") == "failed"
    made.fs.rename(made.find("a").path, ready)
    made.submit("b.json", json.dumps({"id": "b", "command": ["work"], "dependencies": ["a"]}))
    made.worker("w1")
    made.advance(10)
    made.finish("a")
    made.advance(10)
    assert (made.state("a"), made.state("b")) == ("completed", "claimed")
