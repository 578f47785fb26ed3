"""Breakers over whole clusters: who may start after failures in a row, who tries, and what a new leader knows."""

from __future__ import annotations

import json

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.long_listing import describe
from spoold.client.spool.spool_status import status
from spoold.faces.cli.verbs.status import blocks
from spoold.protocol.errors import BadFile
from spoold.protocol.names import TaskName
from spoold.store.journal import Reader
from spoold.store.settings_change import publish_change
from spoold.store.store import Store, open_store
from spoold.store.task_location import locate
from tests.support.cluster import Cluster

SETTINGS = """
[retry]
backoff_s = 0
jitter = 0
[types.t]
breaker = {failures = 3, open_s = 60}
[types.u]
timeout = 60
"""


def cluster(workers: int = 1, slots: int = 2, settings: str = SETTINGS) -> Cluster:
    made = Cluster(settings)
    made.master("m1")
    for number in range(workers):
        made.worker(f"w{number + 1}", slots)
    made.settle()
    return made


def submit(made: Cluster, count: int, first: int = 0, **fields: object) -> None:
    for number in range(first, first + count):
        task = {"id": f"t{number}", "type": "t", "command": ["work"], "max_retries": 0, **fields}
        made.submit(f"{number:04}.json", json.dumps(task))
    made.settle()


def running(made: Cluster) -> list[str]:
    return sorted(key.rpartition(".")[0] for keys in made.running().values() for key in keys)


def end(made: Cluster, *tasks: str, exit_code: int = 1) -> None:
    for task in tasks:
        made.finish(task, exit_code=exit_code)
        made.settle()


def told(made: Cluster, event: str, of: str = "pool") -> list[dict[str, object]]:
    found = [said.detail for said in Reader(made.fs).read() if said.event == event]
    return [detail for detail in found if str(detail["of"]).startswith(of)]


def rises(made: Cluster) -> list[str]:
    """What the journals say of the alert of the breaker."""
    return [event.event for event in Reader(made.fs).read() if (event.detail or {}).get("name") == "breaker_open"]


def reader(made: Cluster) -> Store:
    return open_store(made.fs, made.clock, "reader", "/spool")


def writer(made: Cluster) -> Store:
    store = open_store(made.fs, made.clock, "cli-1", "/spool")
    store.open_tmp()
    return store


def words(made: Cluster, task: str) -> str:
    made.advance(6)  # until the next snapshot
    answer = explain(reader(made), made.nodes["m1"].host, made.clock, task, sleep=made.clock.advance)
    return " ".join(f"{reason.reason} {reason.change}" for reason in answer.reasons)


def opened(made: Cluster, count: int = 8) -> None:
    """Let three tasks fail in a row, each on a worker of its own: only the pool counts so many. Others wait then."""
    submit(made, 4)
    end(made, *running(made)[:3])
    submit(made, count - 4, 4)


def test_so_many_failures_in_a_row_keep_the_type_back_and_others_flow_past() -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    assert len(running(made)) == 1, "what runs goes on"
    assert [made.state(f"t{n}") for n in range(4, 8)] == ["waiting"] * 4
    assert made.fs.list("ready/type=t,run=command") == []
    submit(made, 2, 20, type="u")
    assert running(made) == ["t20", "t21", *running(made)[2:]]
    said = words(made, "t5")
    assert "3 failures in a row of type t (last: task t2, attempt 1, exit code 1), so nothing of it starts" in said
    assert "more, until" in said
    assert "time: then one task tries; or, once it is fixed, `spool config set types.t.breaker.failures 4`" in said
    assert "3 failures in a row" in describe(reader(made), [locate(reader(made), "t5")])[0].reason
    name = made.find("t5").name
    assert isinstance(name, TaskName)
    assert (name.attempt, name.failures, name.crashes) == (1, 0, 0), "no retry is spent"
    (event,) = told(made, "BREAKER_OPENED")
    assert (event["type"], event["failures"]) == ("t", 3)
    picture = status(reader(made), made.nodes["m1"].host, made.clock)
    shown = picture.gates["breaker"]["t"]
    assert (shown["failures"], shown["until"]) == (3, event["until"])
    lines = [str(block) for block in blocks(picture)]
    assert any("breaker of type t is open, until" in line and "3 failures in a row" in line for line in lines)


def test_an_open_breaker_is_told_of_once_also_by_the_next_leader() -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    made.advance(6)
    assert rises(made) == ["ALERT_RAISED"]
    made.crash("m1")
    made.master("m2")
    made.advance(20)
    end(made, *running(made), exit_code=0)
    made.advance(60)
    assert rises(made) == ["ALERT_RAISED"]
    end(made, *running(made), exit_code=0)
    made.advance(10)
    assert rises(made) == ["ALERT_RAISED", "ALERT_CLEARED"]


def test_one_task_tries_and_the_others_follow_only_when_it_ended_well() -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    end(made, *running(made), exit_code=0)  # it began before, so it says nothing
    made.advance(50)
    assert running(made) == []
    made.advance(11)
    assert running(made) == ["t4"], "one goes first"
    made.advance(30)
    assert running(made) == ["t4"]
    assert "task t4 is trying, and the others wait for it" in words(made, "t5")
    end(made, "t4")
    made.advance(50)
    assert running(made) == [], "it failed, so the breaker opened again"
    made.advance(11)
    assert running(made) == ["t5"]
    end(made, "t5", exit_code=0)
    assert running(made) == ["t6", "t7"]
    assert [len(told(made, f"BREAKER_{event}")) for event in ("OPENED", "CLOSED")] == [1, 1]


def test_a_task_that_no_worker_takes_keeps_no_other_from_trying() -> None:
    made = cluster(workers=4, slots=1)
    made.worker("b", 1, labels=("gpu",))
    made.settle()
    made.submit("z.json", json.dumps({"id": "z", "command": ["work"], "requires": {"labels": ["gpu"]}}))
    made.settle()
    opened(made)
    end(made, *(task for task in running(made) if task != "z"), exit_code=0)
    submit(made, 1, 90, priority="high", requires={"labels": ["gpu"]})
    made.advance(61)
    made.settle()
    assert (running(made), made.state("t90")) == (["z"], "ready")
    assert "task t90, which stands ready, is to try it, and the others wait for it" in words(made, "t5")
    made.advance(10)
    assert (running(made), made.state("t90")) == (["t4", "z"], "waiting")
    assert "task t4 is trying, and the others wait for it" in words(made, "t90")


def test_the_time_of_a_breaker_begins_when_the_failure_was_read_however_long_the_step_took() -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    end(made, *running(made), exit_code=0)
    made.advance(61)
    assert running(made) == ["t4"]
    made.during("m1", "read", "results/t4", lambda: made.pass_time(10))
    made.finish("t4", exit_code=1)
    made.settle()
    made.advance(55)
    assert running(made) == []
    made.advance(7)
    assert len(running(made)) == 1


@pytest.mark.parametrize("how", ["later", "cancelled", "lost"])
def test_a_task_that_tried_and_says_nothing_is_followed_by_another(how: str) -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    end(made, *running(made), exit_code=0)
    made.advance(61)
    assert running(made) == ["t4"]
    if how == "later":
        end(made, "t4", exit_code=75)
    elif how == "cancelled":
        made.fs.write("control/cancel.t4.x.json", b"", durable=False)
    else:
        made.crash(next(name for name, keys in made.running().items() if keys))
    made.advance(30)
    assert len(running(made)) == 1
    assert told(made, "BREAKER_CLOSED") == []


def test_a_success_in_between_and_what_says_nothing_open_no_breaker() -> None:
    made = cluster(workers=1, slots=1)
    submit(made, 9)
    for code in (1, 1, 0, 1, 75, 1, 0):
        end(made, *running(made), exit_code=code)
    assert running(made)
    assert told(made, "BREAKER_OPENED", of="") == []


def test_each_attempt_of_one_task_counts() -> None:
    made = cluster(workers=1, slots=1)
    submit(made, 1, max_retries=9)
    for _ in range(3):
        end(made, "t0")
        made.advance(1)
    assert running(made) == []
    assert [event["failures"] for event in told(made, "BREAKER_OPENED")] == [3]


@pytest.mark.parametrize("way", ["kill", "leave"])
def test_a_new_leader_holds_it_open_and_sends_one_first(way: str) -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    if way == "leave":
        made.nodes["m1"].actor.close()
    made.crash("m1")
    made.master("m2")
    end(made, *running(made), exit_code=0)
    made.advance(40)
    assert running(made) == []
    made.advance(45)
    assert running(made) == ["t4"]
    end(made, "t4", exit_code=0)
    made.advance(1)
    assert running(made) == ["t5", "t6", "t7"]


def test_a_new_leader_counts_what_ended_before_it_came() -> None:
    made = cluster(workers=4, slots=1)
    submit(made, 8)
    end(made, "t0", "t1")
    made.crash("m1")
    made.finish("t2", exit_code=1)
    made.master("m2")
    made.advance(25)
    assert [event["failures"] for event in told(made, "BREAKER_OPENED")] == [3]
    end(made, *running(made), exit_code=0)
    assert running(made) == []


def test_one_worker_that_fails_leaves_the_type_to_the_others_and_then_tries_once() -> None:
    made = cluster(workers=2, slots=1)
    submit(made, 40)
    for _ in range(3):
        (bad,), (good,) = made.running()["w1"], made.running()["w2"]
        end(made, bad.rpartition(".")[0])
        end(made, good.rpartition(".")[0], exit_code=0)
    assert made.running()["w1"] == []
    assert made.running()["w2"] != [], "the others go on"
    assert told(made, "BREAKER_OPENED") == []
    (event,) = told(made, "BREAKER_OPENED", of="w1")
    assert event["failures"] == 3
    made.advance(3)
    beat = made.nodes["w1"].worker._offering.now
    assert "3 failures in a row here" in beat.shuns["type=t"]
    submit(made, 1, 90, type="u")
    assert made.running()["w1"] != [], "it takes other types"
    end(made, "t90", exit_code=0)
    made.advance(61)
    (tries,) = made.running()["w1"]
    end(made, tries.rpartition(".")[0])
    assert made.running()["w1"] == [], "it failed, so it leaves them again"
    made.advance(61)
    (tries,) = made.running()["w1"]
    end(made, tries.rpartition(".")[0], exit_code=0)
    assert made.running()["w1"] != []
    assert len(told(made, "BREAKER_CLOSED", of="w1")) == 1


def test_a_worker_with_many_slots_tries_with_one_task_alone() -> None:
    made = cluster(workers=1, slots=4)
    submit(made, 12)
    end(made, *running(made)[:3])
    for task in running(made):
        end(made, task, exit_code=0)
    made.advance(70)
    assert len(running(made)) == 1
    end(made, *running(made), exit_code=0)
    made.advance(1)
    assert len(running(made)) == 4


def test_a_worker_with_many_slots_tries_with_one_while_the_others_go_on() -> None:
    made = cluster(workers=2, slots=3)
    submit(made, 60)
    for _ in range(3):
        end(made, made.running()["w1"][0].rpartition(".")[0])
        end(made, made.running()["w2"][0].rpartition(".")[0], exit_code=0)
    for key in made.running()["w1"]:
        end(made, key.rpartition(".")[0], exit_code=0)
    assert (made.running()["w1"], len(made.running()["w2"])) == ([], 3)
    made.advance(61)
    (tries,) = made.running()["w1"]
    end(made, tries.rpartition(".")[0], exit_code=0)
    assert len(made.running()["w1"]) == 3


def test_a_larger_number_of_failures_closes_what_is_open() -> None:
    made = cluster(workers=4, slots=1)
    opened(made)
    publish_change(writer(made), {"types": {"t": {"breaker": {"failures": 4}}}}, by="ada")
    made.advance(20)
    assert len(running(made)) == 4
    assert len(told(made, "BREAKER_CLOSED")) == 1


def test_the_same_closes_that_of_a_worker() -> None:
    made = cluster(workers=1, slots=1)
    submit(made, 8)
    end(made, "t0", "t1", "t2")
    assert running(made) == []
    publish_change(writer(made), {"types": {"t": {"breaker": {"failures": 4}}}}, by="ada")
    made.advance(20)
    assert len(running(made)) == 1
    assert len(told(made, "BREAKER_CLOSED", of="w1")) == 1


def test_a_mistake_in_a_change_names_the_field_and_the_fix() -> None:
    made = cluster()
    with pytest.raises(BadFile, match=r"types\.t\.breaker\.failures"):
        publish_change(writer(made), {"types": {"t": {"breaker": {"failures": 0}}}}, by="ada")
