"""Holds: of a drop, and of people; they cost nothing, and touch nothing that runs."""

import json

import pytest

from spoold.store import snapshots
from spoold.store.journal import Reader
from tests.support.cluster import Cluster


def request(made: Cluster, verb: str, target: str, unique: str = "1", **body: object) -> None:
    made.fs.write(f"control/{verb}.{target}.{unique}.json", json.dumps(body).encode(), durable=False)


def drop(made: Cluster, task_id: str, **more: object) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **more}))


def cluster(*, worker: bool = True) -> Cluster:
    made = Cluster()
    made.master("m1")
    if worker:
        made.worker("w1", slots=4)
    made.settle()
    return made


def events(made: Cluster, *wanted: str) -> list[tuple[str, str | None]]:
    return [(event.event, event.task) for event in Reader(made.fs).read() if event.event in wanted]


def test_a_task_that_is_dropped_on_hold_waits_until_it_is_released() -> None:
    made = cluster()
    drop(made, "t", hold="the review is not done")
    made.settle()
    assert made.state("t") == "waiting"
    request(made, "unhold", "t", by="ada@desk")
    made.settle()
    assert made.state("t") == "claimed"
    assert made.fs.list("control") == ["unhold.t.1.json"], "a retry needs it, too"
    made.finish("t", exit_code=1)
    made.advance(3)
    assert made.state("t") == "claimed", "the second attempt is not held again"
    made.finish("t")
    made.advance(2)
    assert made.state("t") == "completed"
    assert made.fs.list("control") == []


@pytest.mark.parametrize("conditional", [False, True])
def test_a_ready_task_is_taken_back_and_goes_on_after_its_release(conditional: bool) -> None:
    made = cluster(worker=False)
    drop(made, "t", **({"not_before": "2001-01-01T00:00:00Z"} if conditional else {}))
    drop(made, "u")
    made.settle()
    assert made.state("t") == "ready"
    request(made, "hold", "T", by="ada@desk", reason="not yet")
    made.settle()
    assert (made.state("t"), made.state("u")) == ("waiting", "ready")
    assert ("ASKED", "T") in events(made, "ASKED")
    request(made, "unhold", "t", "2")
    made.settle()
    assert made.state("t") == "ready"
    assert made.fs.list("control") == []


def test_a_hold_touches_nothing_that_runs_and_counts_for_the_next_attempt() -> None:
    made = cluster()
    drop(made, "t")
    made.settle()
    request(made, "hold", "t")
    made.advance(3)
    assert made.state("t") == "claimed"
    made.finish("t", exit_code=1)
    made.advance(5)
    assert made.state("t") == "waiting"
    request(made, "unhold", "t", "2")
    made.settle()
    assert made.state("t") == "claimed"


def test_a_hold_that_overtakes_its_task_holds_it_and_one_of_no_task_is_dropped() -> None:
    made = cluster()
    request(made, "hold", "t")
    made.settle()
    drop(made, "t")
    made.settle()
    assert made.state("t") == "waiting"
    request(made, "hold", "nobody")
    made.advance(12)
    assert made.fs.list("control") == ["hold.t.1.json"]
    assert events(made, "IGNORED") == [("IGNORED", "nobody")]


def test_a_new_leader_holds_what_the_last_one_held() -> None:
    made = cluster(worker=False)
    drop(made, "t")
    drop(made, "u", hold="why")
    made.settle()
    request(made, "hold", "t")
    made.settle()
    made.crash("m1")
    made.master("m2")
    made.worker("w1", slots=4)
    made.advance(20)
    assert {made.state("t"), made.state("u")} == {"waiting"}
    request(made, "unhold", "t", "2")
    request(made, "unhold", "u", "2")
    made.settle()
    assert {made.state("t"), made.state("u")} == {"claimed"}


def test_of_a_hold_and_a_release_the_later_counts_and_by_name_where_a_leader_sees_both_first() -> None:
    made = cluster(worker=False)
    drop(made, "t", hold="why")
    made.settle()
    request(made, "unhold", "t", "b")
    made.settle()
    assert made.state("t") == "ready"
    request(made, "hold", "t", "a")  # by a clock that is behind
    made.settle()
    assert made.state("t") == "waiting"
    assert made.fs.list("control") == ["hold.t.a.json"]
    request(made, "unhold", "t", "c")
    request(made, "unhold", "t", "d")
    made.settle()
    assert made.state("t") == "ready"
    assert made.fs.list("control") == ["unhold.t.c.json"]
    drop(made, "u")
    request(made, "hold", "u", "2")
    request(made, "unhold", "u", "1")
    made.settle()
    assert made.state("u") == "waiting"


def test_after_spool_retry_a_task_that_was_dropped_on_hold_is_held_again() -> None:
    made = cluster()
    drop(made, "t", hold="why", max_retries=0)
    request(made, "unhold", "t")
    made.settle()
    made.finish("t", exit_code=1)
    made.advance(2)
    assert made.state("t") == "failed"
    request(made, "retry", "t", "2")
    made.settle()
    assert made.state("t") == "waiting"


@pytest.mark.parametrize("content", [b'{"reason":"cut', b"[]", b'{"reason": 5}'])
def test_a_hold_whose_content_cannot_be_read_holds_all_the_same(content: bytes) -> None:
    made = cluster()
    made.fs.write("control/hold.t.k1-1.json", content, durable=False)
    made.settle()
    drop(made, "t")
    made.settle()
    made.advance(12)
    made.settle()
    assert made.state("t") == "waiting"
    told = snapshots.latest(made.fs)
    assert told is not None
    assert any("It holds the task all the same." in warning for warning in told[1].warnings)
    request(made, "unhold", "t", "k2-1")
    made.settle()
    made.finish("t")
    made.advance(2)
    assert made.state("t") == "completed"
    assert made.fs.list("control") == []
