"""`priority` in control/: tasks become more or less urgent wherever they are, and nothing else of them changes."""

from __future__ import annotations

import json
import random
from collections import Counter

import pytest

from spoold.master.people import requests
from spoold.protocol.names import TaskName, key, rank_of
from spoold.store.journal import Reader
from tests.support.cluster import Cluster

HIGH, LOW = rank_of(10), rank_of(-10)


def ask(made: Cluster, rank: int, task_id: str, unique: str = "1") -> None:
    made.fs.write(f"control/priority.{task_id}.{rank:04d}-{unique}.json", b"", durable=False)


def drop(made: Cluster, task_id: str, **more: object) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **more}))


def rank(made: Cluster, task_id: str) -> int:
    name = made.find(task_id).name
    assert isinstance(name, TaskName)
    return name.rank


def ranked(made: Cluster) -> list[str | None]:
    return [event.task for event in Reader(made.fs).read() if event.event == "RANKED"]


@pytest.mark.parametrize("more", [{}, {"not_before": "2001-01-01T00:00:00Z"}, {"hold": "later"}])
def test_a_task_that_has_not_started_gets_it_at_once(more: dict[str, object]) -> None:
    made = Cluster()
    made.master("m1")
    for task_id in "abc":
        drop(made, task_id, **more)
    made.settle()
    before = made.find("b")
    ask(made, HIGH, "B")
    made.settle()
    after = made.find("b")
    assert after.path == before.path.replace(f"{rank_of(0):04d}.", f"{HIGH:04d}.")
    assert [rank(made, task_id) for task_id in "abc"] == [rank_of(0), HIGH, rank_of(0)]
    assert (made.fs.list("control"), ranked(made)) == ([], ["b"])


def test_the_more_urgent_one_starts_first() -> None:
    made = Cluster("[ready]\nwindow = 1\n")
    made.master("m1")
    for task_id in "abcd":
        drop(made, task_id)
    made.settle()
    ask(made, HIGH, "d")
    made.settle()
    node = made.worker("w1", slots=1)
    made.settle()
    assert node.runner is not None
    assert node.runner.running() == {"d.1"}


def test_one_that_runs_has_it_when_it_waits_again_and_one_that_has_ended_needs_none() -> None:
    made = Cluster("[retry]\nbackoff_s = 0\njitter = 0\nmax = 3\n")
    made.master("m1")
    made.worker("w1", slots=1)
    drop(made, "a")
    made.settle()
    ask(made, HIGH, "a")
    made.settle()
    assert (rank(made, "a"), len(made.fs.list("control"))) == (rank_of(0), 1)
    made.finish("a", exit_code=1)
    made.advance(3)
    assert (made.find("a").name.attempt, rank(made, "a"), made.fs.list("control")) == (2, HIGH, [])
    ask(made, LOW, "a", "2")
    made.settle()
    made.finish("a")
    made.advance(3)
    assert (made.state("a"), made.fs.list("control"), ranked(made)) == ("completed", [], ["a"])


def test_the_last_of_several_counts_however_they_are_listed() -> None:
    made = Cluster()
    made.master("m1")
    drop(made, "a")
    made.settle()
    ask(made, HIGH, "a", "a-1")
    ask(made, LOW, "a", "b-1")
    ask(made, rank_of(3), "a", "a-2")
    made.settle()
    assert (rank(made, "a"), made.fs.list("control"), ranked(made)) == (LOW, [], ["a"])


@pytest.mark.parametrize("unique", ["1", "0000-1", "123-1", "5000-", "high-1"])
def test_one_that_names_no_priority_is_told_and_removed(unique: str) -> None:
    made = Cluster()
    made.master("m1")
    drop(made, "a")
    made.settle()
    made.fs.write(f"control/priority.a.{unique}.json", b"", durable=False)
    made.settle()
    ignored = [event.detail["why"] for event in Reader(made.fs).read() if event.event == "IGNORED"]
    assert (ignored, made.fs.list("control")) == (["its name says no priority"], [])


def test_one_for_an_unknown_task_waits_for_that_a_while() -> None:
    made = Cluster()
    made.master("m1")
    ask(made, HIGH, "a")
    made.advance(3)
    drop(made, "a")
    made.settle()
    assert rank(made, "a") == HIGH
    ask(made, HIGH, "nobody")
    made.advance(15)
    assert made.fs.list("control") == []


@pytest.mark.parametrize("seed", range(12))
def test_among_claims_limits_and_a_second_leader_no_task_is_lost_or_counted_twice(seed: int) -> None:
    """Seeded: priorities change while workers claim under a limit, and leaders die and come."""
    chance = random.Random(f"priorities {seed}")
    made = Cluster("[types.slow]\nmax_concurrent = 2\n")
    made.master("m1")
    made.master("m2")
    made.worker("w1", slots=4)
    tasks = [f"{'slow' if number % 2 else 'quick'}-{number}" for number in range(8)]
    for number, task_id in enumerate(tasks):
        after = {"after": tasks[:1]} if number % 3 == 2 else {}
        drop(made, task_id, type="slow" if number % 2 else "command", **after)
    for turn in range(60):
        ask(made, rank_of(chance.randint(-20, 20)), chance.choice(tasks), f"{turn:03d}")
        for name in chance.sample(sorted(made.nodes), len(made.nodes)):
            made.step(name)
        running = made.running()["w1"]
        assert sum(one.startswith("slow") for one in running) <= 2
        if running and chance.random() < 0.5:
            made.finish(chance.choice(running).rpartition(".")[0])
        if turn == 30:
            made.crash("m1")
        made.pass_time(0.5)
    for _ in range(40):
        for one in made.running()["w1"]:
            made.finish(one.rpartition(".")[0])
        made.advance(2)
    assert {made.state(task_id) for task_id in tasks} == {"completed"}
    assert made.troubles == ["m1: crashed"]


def test_what_it_costs_does_not_grow_with_the_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each request looked through all of them for a later one about its task."""
    asked, each = Counter[str](), []
    monkeypatch.setattr(requests, "key", lambda name: (asked.update([name]), key(name))[1])
    for count in (50, 400):
        made = Cluster()
        made.master("m1")
        for number in range(count):
            drop(made, f"t{number}")
        made.settle()
        for number in range(count):
            ask(made, HIGH, f"t{number}")
        asked.clear()
        made.settle()
        assert made.fs.list("control") == []
        each.append(asked.total() / count)
    assert each[1] <= 2 * each[0]
