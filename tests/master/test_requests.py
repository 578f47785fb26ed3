"""Requests in control/, where the scenarios do not reach."""

import errno
import json
from typing import Literal

import pytest

from spoold.protocol.event import Event
from spoold.store import snapshots
from spoold.store.journal import Reader
from tests.support.cluster import Cluster

_numbers = iter(range(1, 10_000))


def ask(made: Cluster, verb: str, target: str, body: bytes = b"{}") -> str:
    """Put a request into control/."""
    name = f"{verb}.{target}.{next(_numbers)}.json"
    made.fs.write(f"control/{name}", body, durable=False)
    return name


def asked(made: Cluster) -> list[Event]:
    """What the journals tell of requests."""
    return [event for event in Reader(made.fs).read() if event.event == "ASKED"]


def cluster(*ids: str, slots: int = 1) -> Cluster:
    """A leader, a worker, and tasks."""
    made = Cluster()
    made.master("m1")
    made.worker("w1", slots)
    made.settle()
    for task_id in ids:
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], "max_retries": 0}))
        made.settle()
    return made


def test_retry_of_what_has_not_failed_changes_nothing() -> None:
    made = cluster("a", "b")
    ask(made, "retry", "a")
    ask(made, "retry", "b")
    made.settle()
    assert (made.state("a"), made.state("b")) == ("claimed", "ready")
    made.finish("a")
    made.settle()
    ask(made, "retry", "a")
    ask(made, "gc", "+all")
    made.settle()
    ask(made, "retry", "a")
    made.settle()
    assert made.state("a") == "completed"
    assert made.fs.list("control") == []


def share(*ids: str) -> Cluster:
    """As `cluster`, on a share, where lists are used for a while."""
    made = Cluster(remote=True)
    made.master("m1")
    made.worker("w1")
    made.advance(5)
    for task_id in ids:
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], "max_retries": 0}))
    while "a.1" not in made.running()["w1"]:
        briskly(made, 1)
    return made


def briskly(made: Cluster, rounds: int, *, failing: str = "") -> None:
    """Steps in quick succession; failing: a task whose every attempt fails at once."""
    for _ in range(rounds):
        made.pass_time(0.05)
        made.step_all()
        if failing and made.running()["w1"]:
            made.finish(failing, exit_code=1)


def test_on_a_share_a_retry_is_carried_out_once_however_quickly_the_task_fails_again() -> None:
    made = share("a")
    # Somebody waits for an end, so ends are looked for more often than requests.
    made.submit("later.json", '{"id": "later", "command": ["work"], "after": ["nobody"]}')
    made.finish("a", exit_code=1)
    briskly(made, 20)
    ask(made, "retry", "a")
    briskly(made, 400, failing="a")
    assert (made.state("a"), made.find("a").name.attempt) == ("failed", 2)
    assert made.fs.list("control") == []


def test_a_retry_that_cannot_be_removed_is_carried_out_once() -> None:
    made = cluster("a")
    made.finish("a", exit_code=1)
    made.settle()
    made.nodes["m1"].fs.fail("unlink", "control/", errno.EACCES, times=10_000)
    ask(made, "retry", "a")
    for _ in range(5):
        made.settle()
        if made.running()["w1"]:
            made.finish("a", exit_code=1)
    assert (made.state("a"), made.find("a").name.attempt) == ("failed", 2)
    made.nodes["m1"].fs.faults.clear()
    made.settle()
    assert made.fs.list("control") == []


def test_a_retry_of_what_the_leader_has_not_seen_fail_is_not_lost() -> None:
    made = share("a")
    briskly(made, 400)
    made.finish("a", exit_code=1)
    made.step("w1")
    assert made.state("a") == "failed"
    ask(made, "retry", "a")
    desk = made.nodes["m1"].master.desk
    assert desk is not None
    for what in ("ended", "everything"):
        desk.polling.take(what, 0.0)  # a moment ago, before it failed
    desk.polling.hasten("requests")
    briskly(made, 200)
    assert made.running() == {"w1": ["a.2"]}


def test_two_who_ask_for_one_retry_get_one() -> None:
    made = cluster("a")
    made.finish("a", exit_code=1)
    made.settle()
    ask(made, "retry", "a")
    ask(made, "retry", "A")
    made.settle()
    made.finish("a", exit_code=1)
    made.settle()
    assert (made.state("a"), made.find("a").name.attempt) == ("failed", 2)
    assert made.fs.list("control") == []


def failed_chain() -> Cluster:
    """`a` has failed, and with it `b`, which comes after it."""
    made = cluster("a")
    made.submit("b.json", '{"id": "b", "command": ["work"], "after": ["a"], "max_retries": 0}')
    made.settle()
    made.finish("a", exit_code=1)
    made.settle()
    assert (made.state("a"), made.state("b")) == ("failed", "failed")
    return made


def test_a_child_that_is_retried_before_its_parent_waits_for_it() -> None:
    made = failed_chain()
    ask(made, "retry", "b")
    made.settle()
    ask(made, "retry", "a")
    made.settle()
    assert (made.state("a"), made.state("b")) == ("claimed", "waiting")
    made.finish("a")
    made.settle()
    assert made.running() == {"w1": ["b.2"]}


@pytest.mark.parametrize("archived", [False, True])
def test_a_child_whose_parent_nobody_retries_fails_once_more(archived: bool) -> None:
    made = failed_chain()
    if archived:
        ask(made, "gc", "+all")
        made.settle()
    ask(made, "retry", "b")
    made.advance(9)
    assert made.find("b").name.attempt == 1
    made.advance(5)
    assert (made.state("b"), made.find("b").name.attempt) == ("failed", 2)
    assert made.fs.list("control") == []


def test_a_retry_frees_those_that_wait_for_it_and_begins_a_new_budget() -> None:
    made = cluster("a")
    made.finish("a", exit_code=1)
    made.settle()
    made.submit("c.json", '{"id": "c", "command": ["work"], "after_any": ["a"]}')
    made.settle()
    assert made.state("c") == "claimed"
    made.finish("c")
    made.settle()
    ask(made, "retry", "A")
    made.settle()
    assert made.find("a").name.attempt == 2
    made.finish("a")
    made.settle()
    assert made.state("a") == "completed"


def test_a_failed_task_whose_file_was_damaged_cannot_be_retried_and_says_so() -> None:
    made = cluster("a")
    made.finish("a", exit_code=1)
    made.settle()
    made.fs.write("failed/a.1.w1.json", b"{", durable=False)
    ask(made, "retry", "a")
    made.settle()
    assert made.fs.list("control") == []
    ignored = [event for event in Reader(made.fs).read() if event.event == "IGNORED"]
    assert "is not JSON" in ignored[0].detail["why"]


def test_cancelling_says_who_asked_and_why() -> None:
    made = cluster("a", "b", "c")
    ask(made, "cancel", "b", b'{"by": "ann", "reason": "wrong input"}')
    ask(made, "cancel", "c", b"not json")
    made.settle()
    for task_id, message in (("b", "asked for by ann: wrong input"), ("c", "asked for by an unknown user")):
        token = made.find(task_id)
        assert token.result is not None
        assert token.result["error"] == {"code": "CANCELLED", "message": message, "cause": None, "origin": None}
        assert token.result["status"] == "cancelled"


def test_a_task_that_runs_ends_with_who_cancelled_it_and_why() -> None:
    made = cluster("a")
    ask(made, "cancel", "a", b'{"by": "ann", "reason": "wrong input"}')
    made.settle()
    result = made.find("a").result
    assert result is not None
    assert result["error"]["message"] == "cancelled while it ran, as asked for by ann: wrong input"


@pytest.mark.parametrize(
    ("verb", "target"),
    [("pause", "mail"), ("halt", "+all"), ("drain", "w1"), ("resume", "mail"), ("undrain", "+all"), ("gc", "+all")],
)
def test_every_request_is_told_once_with_who_asked_and_why(verb: str, target: str) -> None:
    made = cluster()
    ask(made, verb, target, b'{"by": "ann", "reason": "quota used up"}')
    made.advance(30)
    assert [(event.task, event.detail) for event in asked(made)] == [
        (None, {"request": verb, "target": target, "by": "ann", "reason": "quota used up"})
    ]


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_what_is_asked_of_a_task_is_told_among_its_events(verb: str) -> None:
    made = cluster("a")
    ask(made, verb, "a", b"not json")
    made.settle()
    assert [(event.task, event.detail) for event in asked(made)] == [("a", {"request": verb, "target": "a"})]


def test_a_reap_is_told_by_what_comes_of_it_alone() -> None:
    made = cluster()
    made.crash("w1")
    ask(made, "reap", "w1")
    made.settle()
    assert asked(made) == []
    assert [event.detail["node"] for event in Reader(made.fs).read() if event.event == "REAPED"] == ["w1"]


def test_a_task_between_two_attempts_can_be_cancelled() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.finish("a", exit_code=1)
    made.step("w1")
    assert made.state("a") == "returned"
    ask(made, "cancel", "a")
    made.step("m1")
    made.step("m1")
    assert made.state("a") == "failed"


def test_a_cancel_that_could_not_be_carried_out_stands() -> None:
    made = cluster("a", "b")
    name = ask(made, "cancel", "b")
    made.nodes["m1"].fs.fail("rename", "failed/", errno.EIO)
    made.nodes["m1"].fs.fail("rename", "ready/", errno.EIO)
    made.step("m1")
    assert made.fs.list("control") == [name]
    made.settle()
    assert made.state("b") == "failed"
    assert made.fs.list("control") == []


@pytest.mark.parametrize("how", ["done", "refused"])
def test_a_record_is_not_replaced_once_the_move_was_made_that_it_is_for(how: Literal["done", "refused"]) -> None:
    """What depends on a cancelled task is to fail in the same step: what was committed keeps its record."""
    made = cluster("busy", "z")
    made.submit("a.json", json.dumps({"id": "a", "command": ["work"], "dependencies": ["z"]}))
    made.settle()
    ask(made, "cancel", "a")
    ask(made, "cancel", "z")
    fs = made.nodes["m1"].fs
    fs.fail("rename", "waiting/", errno.EIO, how)
    fs.fail("list", "waiting/", errno.EIO)
    made.step("m1")
    made.settle()
    token = made.find("a")
    assert (token.state, made.state("z")) == ("failed", "failed")
    assert token.result is not None
    assert token.result["error"]["code"] == ("CANCELLED" if how == "done" else "DEPENDENCY_FAILED")


def test_resume_of_one_type_lifts_that_pause_alone_and_resume_all_lifts_everything() -> None:
    made = cluster()
    kept = ask(made, "pause", "mail")
    ask(made, "pause", "review")
    ask(made, "resume", "review")
    made.settle()
    assert made.fs.list("control") == [kept]
    halt = ask(made, "halt", "+all")
    made.settle()
    assert set(made.fs.list("control")) == {kept, halt}
    ask(made, "resume", "+all")
    made.settle()
    assert made.fs.list("control") == []


def test_undrain_takes_a_drain_back_and_a_drain_of_nobody_is_done() -> None:
    made = cluster()
    ask(made, "drain", "w9")
    made.step("m1")
    assert made.fs.list("control") == []
    ask(made, "drain", "w1")
    made.step("m1")
    ask(made, "undrain", "w1")
    made.step("m1")
    assert made.fs.list("control") == []


@pytest.mark.parametrize(
    ("drained", "undrained", "left"),
    [
        ("lap-1", "lap", 0),
        ("lap", "lap-1", 0),
        ("LAP", "lap-1", 0),
        ("lap-1", "lap-2", 1),
        ("lap", "desk-1", 1),
        ("+all", "lap-1", 1),
        ("lap-1", "+all", 0),
    ],
)
def test_an_undrain_lifts_a_drain_of_the_same_worker_however_it_was_named(
    drained: str, undrained: str, left: int
) -> None:
    made = Cluster()
    made.master("m1")
    made.worker("lap-1")
    made.settle()
    ask(made, "drain", drained)
    ask(made, "undrain", undrained)
    made.step("m1")
    assert len([name for name in made.fs.list("control") if name.startswith("drain.")]) == left


def warnings(made: Cluster) -> tuple[str, ...]:
    """The warnings in the newest snapshot."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1].warnings


def test_foreign_files_in_control_are_left_alone_and_named() -> None:
    """Names-c: only fsck named them, so a request with a slip in its name was never answered."""
    made = cluster("a")
    names = ("notes.txt", "cancel.json", "explode.a.1.json", "cancel.a.b.UPPER.json")
    for name in (*names, ".nfs0001"):
        made.fs.write(f"control/{name}", b"", durable=False)
    made.advance(30)
    assert len(made.fs.list("control")) == 5
    assert made.state("a") == "claimed"
    told = [line for line in warnings(made) if line.startswith("control/")]
    assert [line.split()[0] for line in told] == sorted(f"control/{name}" for name in names)
    assert all(line.endswith("; it is passed over: rename it, or move it away") for line in told)
    for name in names:
        made.fs.unlink(f"control/{name}")
    made.advance(30)
    assert not [line for line in warnings(made) if line.startswith("control/")]


def test_of_many_foreign_files_in_control_a_few_are_named_and_the_rest_counted() -> None:
    made = cluster("a")
    for number in range(1000):
        made.fs.write(f"control/cancel.t{number}", b"", durable=False)
    made.advance(10)
    assert len([line for line in warnings(made) if line.startswith("control/")]) == 5
    assert any(line.startswith("995 more files with a wrong name") for line in warnings(made))


@pytest.mark.parametrize("config", [{"name": "laptop"}, {}], ids=["named", "called as its host"])
def test_a_drain_by_the_own_name_of_a_worker_stands_until_it_has_left(config: dict[str, str]) -> None:
    made = Cluster()
    made.master("m1")
    made.worker("laptop-0001", config=config)
    made.settle()
    name = ask(made, "drain", "laptop")
    made.step("m1")
    assert made.fs.list("control") == [name]
    made.settle()
    assert made.gone["laptop-0001"] == "left"
    assert made.fs.list("control") == []


def test_a_retry_of_an_archived_task_that_somebody_removed_is_told_and_forgotten() -> None:
    made = cluster("a")
    made.finish("a", exit_code=1)
    made.settle()
    ask(made, "gc", "+all")
    made.settle()
    made.witness.losses_allowed = True
    for path in made.fs.files("archive"):
        made.fs.unlink(path)
    ask(made, "retry", "a")
    made.advance(5)
    assert len(made.fs.list("control")) == 1
    made.advance(10)
    assert made.fs.list("control") == []
    ignored = [event for event in Reader(made.fs).read() if event.event == "IGNORED"]
    assert [event.detail["why"] for event in ignored] == ["there is no such task"]


def test_a_cancel_that_came_too_late_is_not_what_an_attempt_ended_with() -> None:
    """The leader wrote down that it was cancelled, a worker was quicker, and died later."""
    made = cluster("a", "b")
    made.nodes["w1"].frozen = True
    request = ask(made, "cancel", "b")
    made.nodes["m1"].fs.fail("rename", "ready/", errno.EIO)
    made.step("m1")
    assert made.fs.list("results") == ["b.1.m1.json"]
    made.fs.unlink(f"control/{request}")
    made.configure("[retry]\ncrash_limit = 1\n")
    made.worker("w2")
    made.step("w2")
    assert made.state("b") == "claimed"
    made.crash("w2")
    made.nodes["w1"].frozen = False
    made.advance(300)
    made.settle()
    results = [json.loads(made.fs.read(path)) for path in made.fs.files("results") if "/b.1." in path]
    assert [result["error"]["code"] for result in results] == ["WORKER_DIED"]
