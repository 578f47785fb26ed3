"""Approvals: asked once, answered once, by whoever is first; what expires, and what comes too late."""

import hashlib
import json
from datetime import datetime
from typing import Any

import pytest

from spoold.store.journal import Reader
from tests.master.test_holds import cluster, drop, events, request
from tests.support.cluster import Cluster

ASK = {"ask": "Deploy?", "choices": ["yes", "no"]}


def asks(made: Cluster) -> list[dict[str, Any]]:
    names = [name for name in made.fs.list("control") if name.startswith("ask.")]
    return [json.loads(made.fs.read(f"control/{name}")) for name in names]


def result(made: Cluster, task_id: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        made.fs.read(made.find(task_id).path.replace("failed", "results", 1).replace("completed", "results", 1))
    )
    return found


def waiting(worker: bool = True, **more: Any) -> Cluster:
    made = cluster(worker=worker)
    drop(made, "t", approval={**ASK, **more})
    made.settle()
    assert made.state("t") == "waiting"
    return made


def test_it_is_asked_for_once_and_the_answer_reaches_the_task_and_its_result() -> None:
    made = waiting()
    (asked,) = asks(made)
    assert (asked["ask"], asked["choices"]) == ("Deploy?", ["yes", "no"])
    made.advance(5)
    assert events(made, "APPROVAL_ASKED", "APPROVED") == [("APPROVAL_ASKED", "t")]
    request(made, "approve", "t", by="ada@desk", at="2026-02-02T09:00:00Z", answer="no", reason="well then")
    made.settle()
    assert made.state("t") == "claimed"
    assert asks(made) == []
    scratch = made.nodes["w1"].scratch
    assert scratch is not None
    assert json.loads(scratch.read("t.1", "answer.json", 0, 100)) == "no"
    assert events(made, "APPROVAL_ASKED", "APPROVED") == [("APPROVAL_ASKED", "t"), ("APPROVED", "t")]
    told = next(event.detail for event in Reader(made.fs).read() if event.event == "APPROVED")
    assert (told["by"], told["answer"], told["at"]) == ("ada@desk", "no", "2026-02-02T09:00:00Z")
    made.finish("t")
    made.advance(2)
    assert made.state("t") == "completed"
    assert made.fs.list("control") == []
    given = result(made, "t")["approval"]
    assert given == {
        "ask": "Deploy?",
        "answer": "no",
        "by": "ada@desk",
        "at": "2026-02-02T09:00:00Z",
        "reason": "well then",
        "rejected": False,
    }


@pytest.mark.parametrize("changed", [False, True])
def test_an_approve_of_one_content_of_the_file_starts_no_other(changed: bool) -> None:
    """G23, G24: an approve named the task alone, so another command could be put under it before the worker came."""
    made = waiting()
    path = made.find("t").path
    data = made.fs.read(path)
    request(made, "approve", "t", by="ada@desk", answer="yes", seen=hashlib.sha256(data).hexdigest())
    if changed:
        made.fs.unlink(path)
        made.fs.write(path, data.replace(b"work", b"evil"), durable=False)
    made.advance(2)
    assert made.state("t") == ("failed" if changed else "claimed")
    if changed:
        error = result(made, "t")["error"]
        assert error["code"] == "REJECTED"
        assert "its file is not the one that was approved by ada@desk" in error["message"]
        assert "`spool retry t` asks anew" in error["message"]


def test_a_leader_that_begins_its_epoch_anew_gives_no_question_a_name_that_another_had() -> None:
    """A listing may hide a question of a moment ago, and the leader asks again: two files, not one."""
    made = waiting()
    (before,) = [name for name in made.fs.list("control") if name.startswith("ask.")]
    made.fs.unlink(f"control/{before}")
    (door,) = made.fs.list("admitting")
    made.fs.rmdir(f"admitting/{door}")
    drop(made, "u")
    made.advance(10)
    (after,) = [name for name in made.fs.list("control") if name.startswith("ask.")]
    assert made.fs.list("admitting") != [door]
    assert after != before


def test_it_is_asked_for_when_nothing_else_is_in_the_way_and_may_be_answered_before() -> None:
    made = cluster()
    drop(made, "p")
    drop(made, "t", approval=ASK, dependencies=["p"])
    drop(made, "u", approval=ASK, dependencies=["p"])
    made.settle()
    assert asks(made) == []
    request(made, "approve", "u")
    made.settle()
    made.finish("p")
    made.advance(3)
    assert len(asks(made)) == 1
    assert (made.state("t"), made.state("u")) == ("waiting", "claimed")
    made.finish("u")
    made.advance(2)
    assert result(made, "u")["approval"]["answer"] == "yes", "the first choice"


def test_a_rejection_fails_it_and_says_who_and_why_and_a_retry_asks_again() -> None:
    made = waiting()
    request(made, "reject", "t", by="ada@desk", reason="on a Friday?")
    request(made, "approve", "t", "0", by="bob@desk")
    made.settle()
    assert made.state("t") == "failed"
    assert result(made, "t")["error"]["code"] == "REJECTED"
    assert "by ada@desk: on a Friday?" in result(made, "t")["error"]["message"]
    assert result(made, "t")["approval"]["rejected"] is True
    assert made.fs.list("control") == []
    request(made, "retry", "t")
    made.settle()
    assert made.state("t") == "waiting"
    assert len(asks(made)) == 1
    request(made, "approve", "t")
    made.settle()
    assert made.state("t") == "claimed"


def test_an_answer_to_an_earlier_round_is_no_answer() -> None:
    made = waiting()
    order = asks(made)[0]["order"]
    request(made, "reject", "t", order=order)
    made.settle()
    request(made, "retry", "t")
    made.settle()
    request(made, "approve", "t", "2", order=order)
    made.settle()
    assert made.state("t") == "waiting"
    assert ("IGNORED", "t") in events(made, "IGNORED")
    assert asks(made)[0]["order"] != order


def test_of_two_answers_the_first_counts_and_the_other_is_noted_and_removed() -> None:
    made = cluster(worker=False)
    drop(made, "t", approval=ASK)
    made.settle()
    request(made, "approve", "t", "b", by="ada", answer="yes")
    made.settle()
    assert made.state("t") == "ready"
    request(made, "approve", "t", "a", by="bob", answer="no")
    made.settle()
    assert list(made.fs.list("control")) == ["approve.t.b.json"]
    assert events(made, "IGNORED", "APPROVED") == [("APPROVED", "t"), ("IGNORED", "t")]
    made.worker("w1")
    made.settle()
    made.finish("t")
    made.advance(2)
    assert result(made, "t")["approval"]["by"] == "ada"


def test_an_answer_that_is_no_choice_is_none_and_so_is_one_to_a_task_that_asks_nothing() -> None:
    made = waiting()
    drop(made, "u", not_before="2100-01-01T00:00:00Z")
    made.settle()
    request(made, "approve", "t", answer="perhaps")
    request(made, "approve", "u")
    made.settle()
    assert made.state("t") == "waiting"
    assert events(made, "IGNORED") == [("IGNORED", "t"), ("IGNORED", "u")]
    assert len(made.fs.list("control")) == 1


@pytest.mark.parametrize(
    ("on_expire", "state"), [("reject", "failed"), ("approve", "completed"), ("no", "completed")]
)
def test_silence_ends_as_the_task_says_and_the_time_goes_on_over_a_change_of_leader(
    on_expire: str, state: str
) -> None:
    made = waiting(expires_s=100, on_expire=on_expire)
    made.advance(40)
    made.crash("m1")
    made.master("m2")
    made.advance(40)
    assert made.state("t") == "waiting"
    (asked,) = asks(made)
    assert datetime.fromisoformat(asked["until"]).timestamp() <= made.clock.wall() + 21
    made.advance(23)
    if state == "completed":
        made.finish("t")
        made.advance(2)
    assert made.state("t") == state
    assert events(made, "APPROVAL_EXPIRED") == [("APPROVAL_EXPIRED", "t")]
    if state == "failed":
        assert result(made, "t")["error"]["code"] == "REJECTED"
        assert "nobody answered 'Deploy?' within 1 m 40 s" in result(made, "t")["error"]["message"]
    else:
        given = result(made, "t")["approval"]
        assert (given["answer"], given["by"]) == ("no" if on_expire == "no" else "yes", "nobody")
    assert made.fs.list("control") == []


def test_an_answer_after_the_end_is_noted_and_removed() -> None:
    made = waiting(expires_s=10)
    made.advance(12)
    assert made.state("t") == "failed"
    request(made, "approve", "t")
    made.advance(2)
    assert made.fs.list("control") == []
    assert events(made, "IGNORED") == [("IGNORED", "t")]


def test_a_ready_task_that_is_rejected_fails_and_a_running_one_is_rejected_when_it_comes_back() -> None:
    made = cluster(worker=False)
    drop(made, "t", approval=ASK)
    drop(made, "u", approval=ASK)
    request(made, "approve", "t")
    made.settle()
    assert made.state("t") == "ready"
    request(made, "reject", "t", "2", by="ada")
    made.settle()
    assert made.state("t") == "failed"
    made.worker("w1")
    request(made, "approve", "u", "3")
    made.settle()
    assert made.state("u") == "claimed"
    request(made, "reject", "u", "4")
    made.advance(2)
    assert made.state("u") == "claimed"
    made.finish("u", exit_code=1)
    made.advance(3)
    assert made.state("u") == "failed"
    assert result(made, "u")["error"]["code"] == "REJECTED"


def test_a_worker_that_finds_no_answer_hands_the_task_back() -> None:
    """As where two leaders lead at once, or a person removes the answer."""
    made = cluster(worker=False)
    drop(made, "t", approval=ASK)
    made.settle()
    request(made, "approve", "t")
    made.settle()
    assert made.state("t") == "ready"
    made.fs.unlink("control/approve.t.1.json")
    made.worker("w1")
    made.nodes["m1"].frozen = True
    made.settle()
    assert made.state("t") == "returned"
    made.nodes["m1"].frozen = False
    made.advance(10)
    assert made.state("t") == "waiting"
    assert len(asks(made)) == 1
    request(made, "approve", "t")
    made.advance(5)
    assert made.state("t") == "claimed"


def test_an_answer_counts_for_every_attempt_and_over_a_change_of_leader() -> None:
    made = waiting()
    request(made, "approve", "t", answer="no")
    made.settle()
    made.finish("t", exit_code=1)
    made.crash("m1")
    made.master("m2")
    made.advance(20)
    assert made.state("t") == "claimed"
    made.finish("t")
    made.advance(2)
    assert result(made, "t")["approval"]["answer"] == "no"


def test_questions_of_a_running_task_stand_until_its_attempt_is_over() -> None:
    made = cluster()
    drop(made, "t")
    made.settle()
    request(made, "ask", "t", "q1", ask="Where?", choices=["here", "there"], attempt=1, by="t")
    request(made, "ask", "t", "q2", ask="Who?", attempt=1, by="t")
    made.settle()
    request(made, "approve", "t", "a0", about="q1", answer="nowhere", by="ada")
    request(made, "approve", "t", "a1", about="q1", answer="there", by="ada")
    request(made, "reject", "t", "a3", about="gone", by="ada")
    made.advance(12)
    standing = sorted(made.fs.list("control"))
    assert standing == ["approve.t.a1.json", "ask.t.q1.json", "ask.t.q2.json"]
    assert events(made, "ANSWERED") == [("ANSWERED", "t")]
    assert gates(made)["approval"]["questions"] == 1, "one of the two is answered"
    made.finish("t", exit_code=1)
    made.advance(3)
    assert made.fs.list("control") == []
    first = json.loads(made.fs.read("results/t.1.w1.json"))["questions"]
    assert [(one["ask"], one["answer"], one["by"]) for one in first] == [
        ("Where?", "there", "ada"),
        ("Who?", None, ""),
    ]


def gates(made: Cluster) -> dict[str, Any]:
    made.advance(1)
    newest = max(made.fs.list("status"), key=lambda name: int(name.partition("-")[2].partition(".")[0]))
    found: dict[str, Any] = json.loads(made.fs.read(f"status/{newest}"))["gates"]
    return {gate: found[gate] for gate in ("hold", "approval") if gate in found}


def test_the_snapshot_counts_what_waits_for_people_and_names_the_oldest() -> None:
    made = cluster()
    assert gates(made) == {}
    for task_id in ("h1", "h2"):
        drop(made, task_id, hold="why")
        made.advance(1)
    drop(made, "t", approval=ASK)
    made.settle()
    found = gates(made)
    assert (found["hold"]["waiting"], found["hold"]["oldest"]["id"]) == (2, "h1")
    assert (found["approval"]["waiting"], found["approval"]["questions"]) == (1, 1)
    assert datetime.fromisoformat(found["approval"]["oldest"]["admitted_at"]).tzinfo is not None


def crowd(monkeypatch: pytest.MonkeyPatch, room: int = 2, **more: Any) -> Cluster:
    """As many questions as may stand, of tasks of no urgency."""
    monkeypatch.setattr("spoold.master.people.task_requests.ASKED_MAX", room)
    made = cluster()
    for number in range(room):
        drop(made, f"low{number}", priority="low", approval={**ASK, **more})
        made.settle()
    return made


def asked_of(made: Cluster) -> set[str]:
    return {parts[1] for name in made.fs.list("control") if (parts := name.split("."))[0] == "ask"}


def test_a_more_urgent_question_takes_the_place_of_the_least_urgent(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: behind as many questions as may stand, even a critical one was never asked."""
    made = crowd(monkeypatch)
    drop(made, "normal", approval=ASK)
    made.settle()
    drop(made, "critical", priority="critical", approval=ASK)
    made.settle()
    assert asked_of(made) == {"normal", "critical"}
    drop(made, "late", approval=ASK)
    made.settle()
    assert asked_of(made) == {"normal", "critical"}, "it came later"
    for task_id in ("critical", "normal"):
        request(made, "approve", task_id)
        made.settle()
    assert asked_of(made) == {"late", "low0"}, "what gave way is asked again, in its turn"
    request(made, "approve", "low1")
    made.settle()
    assert made.state("low1") != "waiting", "an answer counts, whether the question stands or not"


@pytest.mark.parametrize(("on_expire", "state"), [("reject", "failed"), ("yes", "claimed")])
def test_the_time_of_a_question_ends_though_it_found_no_room(
    monkeypatch: pytest.MonkeyPatch, on_expire: str, state: str
) -> None:
    """P5: one that was never asked never expired."""
    made = crowd(monkeypatch)
    drop(made, "late", priority="background", approval={**ASK, "expires_s": 5, "on_expire": on_expire})
    made.settle()
    assert asked_of(made) == {"low0", "low1"}
    assert made.state("late") == "waiting"
    made.advance(4.0)
    assert made.state("late") == "waiting"
    made.advance(4.0)
    assert made.state("late") == state
    assert asked_of(made) == {"low0", "low1"}


def test_the_time_of_a_question_goes_on_while_it_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """P5: and it does not begin anew when the question is asked again."""
    made = crowd(monkeypatch, expires_s=30)
    made.advance(20.0)
    for name in ("h1", "h2"):
        drop(made, name, priority="high", approval=ASK)
    made.settle()
    assert asked_of(made) == {"h1", "h2"}
    made.advance(12.0)
    assert [made.state(name) for name in ("low0", "low1", "h1")] == ["failed", "failed", "waiting"]
