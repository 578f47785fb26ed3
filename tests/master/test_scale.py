"""What is huge costs what it must and no more: long listings keep the token, ends are listed by measure."""

import json
from collections import Counter

import pytest

from spoold.master.intake import drops
from spoold.protocol.names import TaskName
from tests.support.cluster import Cluster

LANE = "type=command,run=command"
LANES = [f"type=t{number},run=command" for number in range(4)]


def waiting(made: Cluster, lane: str, task_id: str) -> str:
    """A task that waits, put there by a leader of before; its name."""
    made.fs.make_dirs(f"waiting/{lane}")
    name = TaskName(5000, f"{1:010d}-1", task_id).encode()
    made.fs.write(f"waiting/{lane}/{name}", json.dumps({"id": task_id, "command": ["work"]}).encode(), durable=False)
    return name


def ended(made: Cluster, count: int) -> None:
    """So many tasks that have completed some time ago."""
    for directory in ("results", "completed"):
        for number in range(count):
            body: dict[str, object] = {"id": f"old{number}", "command": ["work"]}
            if directory == "results":
                body = {"task_id": f"old{number}", "attempt": 1, "worker_id": "w9", "status": "success"}
            made.fs.write(f"{directory}/old{number}.1.w9.json", json.dumps(body).encode(), durable=False)


def test_a_leader_that_reads_for_long_keeps_its_token_and_its_beat() -> None:
    """Each lane takes ten seconds to list, and the lease is over after fifteen: a standby looks all the while."""
    made = Cluster()
    for number, lane in enumerate(LANES):
        waiting(made, lane, f"t{number}")
    made.master("m1")
    made.master("m2")

    def slow() -> None:
        made.pass_time(10)
        made.step("m2")

    for lane in LANES:
        made.nodes["m1"].fs.hang("list", f"waiting/{lane}", slow)
    assert made.step("m1")
    assert made.clock.monotonic() >= 1040, "the listings were slow"
    assert made.fs.list("master")[0].startswith("1.m1.")
    assert not made.nodes["m2"].master.leading
    made.settle()
    assert {made.state(f"t{number}") for number in range(4)} == {"ready"}


def test_a_leader_that_lost_its_token_while_it_read_plans_nothing() -> None:
    made = Cluster()
    for number, lane in enumerate(LANES):
        waiting(made, lane, f"t{number}")
    made.master("m1")

    def overthrown() -> None:
        made.pass_time(10)
        made.fs.rename("master/1.m1.0", "master/2.m2.0")

    made.nodes["m1"].fs.hang("list", f"waiting/{LANES[0]}", overthrown)
    assert made.step("m1"), "that somebody else leads is no trouble of the share"
    assert {made.state(f"t{number}") for number in range(4)} == {"waiting"}
    made.step("m1")
    assert not made.nodes["m1"].master.leading


def test_many_ends_are_listed_by_measure_and_none_is_taken_for_lost() -> None:
    """The more has ended, the rarer it is read; what has left its place meanwhile is neither missed nor forgotten."""
    made = Cluster()
    ended(made, 1000)
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.submit("b.json", '{"id": "b", "command": ["work"], "after": "a"}')
    made.settle()

    def listings() -> int:
        fs = made.nodes["m1"].fs
        before = fs.asked["list"]
        made.step("m1")
        return fs.asked["list"] - before

    made.advance(5)
    made.finish("a")
    made.pass_time(0.5)
    assert listings() == listings() + len(("returned", "completed", "failed"))
    made.step("w1")
    assert made.state("a") == "completed"
    made.step("m1")
    assert made.state("b") == "waiting", "the ends were listed a moment ago"
    due = made.nodes["m1"].master.step().next_due
    assert due is not None
    assert due < made.nodes["m1"].clock.monotonic() + 0.01, "they are looked at again soon: something is on its way"
    made.pass_time(0.01)
    made.step("m1")
    assert made.state("b") == "ready"


def test_the_waiting_tasks_that_a_relisting_does_not_show_are_missed_and_the_others_are_not() -> None:
    made = Cluster("[ready]\nwindow = 1\n")
    names = [waiting(made, LANES[0], f"t{number}") for number in range(5)]
    made.master("m1")
    made.witness.losses_allowed = True
    made.settle()
    made.fs.unlink(f"waiting/{LANES[0]}/{names[3]}")
    late = waiting(made, LANES[1], "late")
    made.advance(60)
    journal = made.fs.read("events/m1.0.jsonl").decode()
    assert [json.loads(line)["task"] for line in journal.splitlines() if "VANISHED" in line] == ["t3"]
    assert late in made.fs.list(f"ready/{LANES[1]}")
    assert len(made.fs.list(f"waiting/{LANES[0]}")) == 3


def test_a_heap_of_drops_is_listed_by_measure_and_worked_off(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    for state in ("ready", "waiting"):
        made.fs.make_dirs(f"{state}/{LANE}")
    count = 4 * drops.PER_STEP
    for number in range(count):
        made.submit(f"{number:04d}.json", '{"command": ["work"]}')
    fs, listed = made.nodes["m1"].fs, Counter[str]()

    def list_and_count(path: str) -> list[str]:
        listed[path] += 1
        return type(fs).list(fs, path)

    monkeypatch.setattr(fs, "list", list_and_count)
    for _ in range(4):
        made.step("m1")
    tokens = sum(len(made.fs.list(f"{state}/{LANE}")) for state in ("ready", "waiting"))
    assert tokens == count
    assert listed["pending"] == 2, "at first, and when next to nothing was left of that"
    assert listed["control"] == 4


def test_a_leader_looks_less_often_as_long_as_that_keeps_nobody_waiting() -> None:
    """Nothing to do: at once when something comes. Work under way: after a moment. Much stands ready: by the pace."""
    made = Cluster("[ready]\nwindow = 8\n")
    made.master("m1")
    made.settle()
    master = made.nodes["m1"].master
    assert master.step().rest_s == 0
    made.submit("0.json", '{"command": ["work"]}')
    under_way = master.step().rest_s
    for number in range(1, 20):
        made.submit(f"{number:02d}.json", '{"command": ["work"]}')
    nobody_takes = master.step().rest_s
    assert 0 < under_way < nobody_takes < 0.1
    made.worker("w1", 4)
    made.step("w1")
    made.pass_time(0.004)
    by_the_pace = master.step().rest_s
    assert by_the_pace == pytest.approx(0.004 * 8 / (4 * 4))
    assert under_way < by_the_pace < nobody_takes
    assert len(made.fs.list(f"ready/{LANE}")) == 8
