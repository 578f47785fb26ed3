"""Alerts of a leader: one event, one line and one task for each rise, and of a full share no drop is admitted."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.protocol.snapshot import Snapshot
from spoold.store import snapshots
from spoold.store.journal import Reader
from spoold.store.store import open_store
from spoold.system.host import FakeHost, Load
from tests.support.cluster import Cluster

NOTIFY = '[alerts]\ntask = {type = "notify"}\n'


def snapshot(made: Cluster) -> Snapshot:
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1]


def alerts(made: Cluster) -> list[tuple[str, str]]:
    return [(alert.name, alert.subject) for alert in snapshot(made).alerts]


def events(made: Cluster) -> list[tuple[str, str, str]]:
    """Who noted which rise or fall."""
    found = [event for event in Reader(made.fs).read() if event.event.startswith("ALERT_")]
    about = [" ".join((event.detail["name"], event.detail["subject"])).strip() for event in found]
    return [(e.writer, e.event.removeprefix("ALERT_"), what) for e, what in zip(found, about, strict=True)]


def submit(made: Cluster, task_id: str, **fields: Any) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))


def below(made: Cluster, path: str) -> list[str]:
    if made.fs.stat(path).kind != "dir":
        return [path]
    return [found for name in made.fs.list(path) for found in below(made, f"{path}/{name}")]


def notices(made: Cluster) -> list[str]:
    """The paths of all tasks that tell of an alert, wherever they are."""
    trees = ("pending", "waiting", "ready", "claimed", "returned", "completed", "failed", "rejected")
    return sorted(path for tree in trees for path in below(made, tree) if "alert-" in path)


def led(settings: str = "", *workers: str, masters: tuple[str, ...] = ("m1",), **can: Any) -> Cluster:
    made = Cluster(settings)
    for name in masters:
        made.master(name)
    for name in workers:
        made.worker(name, 4, **can)
    made.settle()
    return made


def test_a_dead_node_is_told_of_once_by_an_event_a_line_and_a_task() -> None:
    made = led(NOTIFY, "w1", "w2", handlers=("notify",), config={"handlers": {"notify": {"command": ["tell"]}}})
    made.crash("w1")
    made.advance(25)
    [alert] = snapshot(made).alerts
    assert (alert.name, alert.subject, alert.threshold) == ("node_dead", "w1", 15)
    assert (
        alert.text
        == "w1 on w1 is dead; it ran no task at its last beat; one that it began since is tried again elsewhere"
    )
    assert events(made) == [("m1", "RAISED", "node_dead w1")]
    [task] = [run for runs in made.running().values() for run in runs]
    token = made.find(alert.task)
    assert task == f"{alert.task}.1"
    told = json.loads(made.fs.read(token.path))
    assert told["type"] == "notify"
    assert told["input"] == alert.model_dump(exclude={"task"})
    made.finish(alert.task)
    made.advance(500)
    assert alerts(made) == [("node_dead", "w1")]
    made.advance(100)
    assert alerts(made) == []
    assert events(made)[1:] == [("m1", "CLEARED", "node_dead w1")]
    assert len([path for path in notices(made) if path.startswith("completed/")]) == 1


def test_the_alert_of_a_dead_node_falls_when_its_successor_lives() -> None:
    """P12: it stood for 600 s more, and each restart made another task."""
    made = led(NOTIFY, "desk-aaaaa", "laptop-aaaaa")
    made.crash("desk-aaaaa")
    made.advance(25)
    assert alerts(made) == [("node_dead", "desk-aaaaa")]
    assert (
        snapshot(made)
        .alerts[0]
        .text.endswith("it ran no task at its last beat; one that it began since is tried again elsewhere")
    )
    made.worker("desk-bbbbb", 4)
    made.advance(10)
    assert alerts(made) == []
    assert events(made)[1:] == [("m1", "CLEARED", "node_dead desk-aaaaa")]
    made.crash("desk-bbbbb")
    made.advance(2)
    made.worker("desk-ccccc", 4)
    made.advance(40)
    assert "desk-bbbbb" not in made.fs.list("claimed")
    assert len(events(made)) == 2, "a restart within the time after which a node is dead is none"


def test_one_of_two_workers_of_the_same_name_that_dies_is_told_of() -> None:
    made = led("", "desk-aaaaa", "desk-bbbbb")
    made.crash("desk-aaaaa")
    made.advance(25)
    assert alerts(made) == [("node_dead", "desk-aaaaa")]


def test_without_a_type_an_alert_becomes_no_task() -> None:
    made = led("", "w1")
    made.crash("w1")
    made.advance(25)
    assert [alert.task for alert in snapshot(made).alerts] == [""]
    assert notices(made) == []


def test_requests_about_what_does_not_exist_raise_no_alert() -> None:
    """Anybody could have the pool told that a limit is closed, or a node dead, that there never was."""
    made = led("[limits.llm]\nmax = 1\n", "w1")
    for name in ("quota.ghost.a-1", "quota.llm.a-1", "reap.ghost-0a1b.a-1"):
        made.fs.write(f"control/{name}.json", b"{}", durable=False)
    made.advance(5)
    assert alerts(made) == [("limit_closed", "llm")]
    closed = [event.detail["limit"] for event in Reader(made.fs).read() if event.event == "LIMIT_CLOSED"]
    assert closed == ["llm"]


def test_a_worker_that_leaves_or_sleeps_is_not_dead() -> None:
    made = led(NOTIFY, "w1", "w2")
    made.stop("w1")
    made.nodes["w2"].worker.fall_asleep()
    made.advance(60)
    assert events(made) == []


@pytest.mark.parametrize("how", ["crash", "stop"])
def test_the_next_leader_does_not_tell_again(how: str) -> None:
    made = led(NOTIFY + "[limits.api]\nmax = 1\n", masters=("m1", "m2"))
    made.fs.write("control/close.api.1.json", b"{}", durable=False)
    made.advance(6)
    assert alerts(made) == [("limit_closed", "api")]
    [task] = notices(made)
    getattr(made, how)("m1")
    made.advance(40)
    assert snapshot(made).master.leader == "m2"
    assert ("limit_closed", "api") in alerts(made)
    assert [path for path in notices(made) if "limit_closed" in path] == [task]
    assert events(made)[0] == ("m1", "RAISED", "limit_closed api")
    made.fs.write("control/open.api.1.json", b"{}", durable=False)
    made.advance(10)
    assert ("limit_closed", "api") not in alerts(made)
    assert [event for event in events(made) if "api" in event[2]][1:] == [("m2", "CLEARED", "limit_closed api")]


def test_a_leader_that_dies_before_it_drops_the_task_leaves_that_to_the_next_one() -> None:
    made = led(NOTIFY + "[limits.api]\nmax = 1\n", masters=("m1", "m2"))
    made.fs.write("control/close.api.1.json", b"{}", durable=False)
    made.nodes["m1"].fs.crash_at("rename", "pending/")
    made.advance(6)
    assert "m1" in made.gone
    assert [alert.task for alert in snapshot(made).alerts] == [""]
    assert notices(made) == []
    made.advance(40)
    [task] = [path for path in notices(made) if "limit_closed" in path]
    [alert] = [alert for alert in snapshot(made).alerts if alert.name == "limit_closed"]
    assert alert.task in task


def test_a_leader_that_dies_just_after_the_drop_leaves_one_task() -> None:
    made = led(NOTIFY + "[limits.api]\nmax = 1\n", masters=("m1", "m2"))
    made.fs.write("control/close.api.1.json", b"{}", durable=False)
    made.nodes["m1"].fs.crash_at("rename", "status/", 2)
    made.advance(6)
    assert "m1" in made.gone
    made.advance(40)
    assert len([path for path in notices(made) if "limit_closed" in path]) == 1


def test_a_type_that_is_set_later_is_told_of_what_stands() -> None:
    made = led("[limits.api]\nmax = 1\n")
    made.fs.write("control/close.api.1.json", b"{}", durable=False)
    made.advance(6)
    assert notices(made) == []
    change = {"settings": {"alerts": {"task": {"type": "notify"}}}}
    made.fs.write("settings/1.cli.json", json.dumps(change).encode(), durable=False)
    made.advance(30)
    assert len(notices(made)) == 1


def run(made: Cluster, number: int, *, failing: bool, **fields: Any) -> None:
    """So many tasks, one after the other."""
    for _ in range(number):
        task_id = f"t{len(made.fs.list('logs')) + len(list(Reader(made.fs).read()))}"
        submit(made, task_id, **fields)
        made.settle()
        made.finish(task_id, exit_code=int(failing))
        made.settle()


def test_too_many_failures_are_told_of_once_and_those_of_notices_do_not_count() -> None:
    made = led('[alerts]\nfailure_rate = 0.1\ntask = {type = "notify"}\n', "w1")
    run(made, 17, failing=False)
    run(made, 3, failing=True, max_retries=0, type="notify")
    run(made, 2, failing=True, max_retries=0)
    made.advance(6)
    assert alerts(made) == []
    run(made, 1, failing=True, max_retries=0)
    made.advance(6)
    assert [(alert.name, alert.value) for alert in snapshot(made).alerts] == [("failure_rate", 0.15)]
    run(made, 14, failing=False)
    made.advance(6)
    assert alerts(made) == [], "3 of 34"
    assert [event for _, event, _ in events(made)] == ["RAISED", "CLEARED"]


def test_each_attempt_counts_and_what_a_person_cancels_does_not() -> None:
    made = led("[alerts]\nfailure_rate = 0.5\n", "w1")
    submit(made, "again", max_retries=30, retry={"backoff_s": 0})
    for number in range(12):
        made.settle()
        made.finish("again", exit_code=1)
        submit(made, f"c{number}")
        made.settle()
        made.fs.write(f"control/cancel.c{number}.1.json", b"{}", durable=False)
        made.advance(2)
    run(made, 7, failing=False)
    made.advance(2)
    assert alerts(made) == [], "19 attempts are too few"
    run(made, 1, failing=False)
    made.advance(2)
    assert [(alert.name, alert.value) for alert in snapshot(made).alerts] == [("failure_rate", 0.6)]


def test_a_long_queue_and_a_lonely_leader_are_told_of_when_they_last() -> None:
    made = led("[alerts]\nqueue = 3\nfollowers = 1\n")
    for number in range(4):
        submit(made, f"t{number}")
    made.settle()
    made.advance(6)
    assert alerts(made) == []
    made.advance(10)
    assert alerts(made) == [("followers", ""), ("queue", "")]
    made.worker("w1", 4)
    made.advance(10)
    assert alerts(made) == []
    made.stop("w1")
    made.master("m2")
    made.advance(30)
    assert ("followers", "") not in alerts(made), "a standby follows, too"


def test_memory_is_told_of_by_node() -> None:
    made = led("[alerts]\nmemory = 0.8\n", "w1", "w2", mem_mb=10_000)
    machine = made.hosts["w1"].machine
    machine.load = Load(load1=0, mem_available_mb=1900, disk_free_mb=1)
    made.advance(8)
    assert alerts(made) == []
    made.advance(40)
    [alert] = snapshot(made).alerts
    assert (alert.subject, alert.value) == ("w1", 0.81)
    machine.load = Load(load1=0, mem_available_mb=2100, disk_free_mb=1)
    made.advance(20)
    assert alerts(made) == [("memory", "w1")]
    made.stop("w1")
    made.advance(10)
    assert alerts(made) == []


def test_a_worker_that_takes_nothing_is_told_of_also_by_the_next_leader() -> None:
    made = led("[alerts]\nstuck_s = 60\ndead_s = 0\n", "w1", "w2", masters=("m1", "m2"))
    submit(made, "gpu", requires={"gpus": 1})
    made.advance(100)
    assert alerts(made) == [], "no worker can run it, which is no mystery"
    for name in ("w1", "w2"):
        made.nodes[name].fs.fail("rename", "ready/", errno.EIO, times=10**6)
    submit(made, "t")
    made.advance(50)
    assert alerts(made) == []
    made.advance(40)
    assert alerts(made) == [("stuck", "")]
    made.crash("m1")
    made.advance(30)
    assert snapshot(made).master.leader == "m2"
    assert alerts(made) == [("stuck", "")]
    made.advance(90)
    for name in ("w1", "w2"):
        made.nodes[name].fs.faults.clear()
    made.advance(10)
    assert made.state("t") == "claimed"
    assert alerts(made) == []
    assert events(made) == [("m1", "RAISED", "stuck"), ("m2", "CLEARED", "stuck")]


def test_a_worker_that_waits_for_a_limit_of_its_own_is_no_mystery() -> None:
    limit = '[limits.own]\nper = "worker"\nrate = {count = 1, per_s = 3600}\n'
    made = led(f"[alerts]\nstuck_s = 60\n{limit}", "w1")
    submit(made, "first", uses=["own"])
    submit(made, "second", uses=["own"])
    made.settle()
    made.finish("first")
    made.advance(200)
    assert (made.state("first"), made.state("second")) == ("completed", "ready")
    assert alerts(made) == []


def full(made: Cluster) -> None:
    made.fs.write("somebody-elses-file", bytes(1 << 22), durable=False)
    made.fs.capacity = made.fs.usage().total_bytes - made.fs.usage().free_bytes + (1 << 17)


def test_a_full_share_admits_nothing_until_there_is_room() -> None:
    made = led("", "w1")
    submit(made, "runs")
    made.settle()
    full(made)
    made.advance(2)
    submit(made, "late")
    made.submit("bad.json", '{"comand": 1}')
    made.advance(10)
    assert sorted(made.fs.list("pending")) == ["bad.json", "late.json"]
    assert made.fs.list("rejected") == []
    assert alerts(made) == [("disk", ""), ("disk_full", "")]
    assert any("no drop is admitted" in line for line in snapshot(made).warnings)
    store = open_store(made.fs, made.clock, "cli", "/spool")
    said = explain(store, FakeHost("desk"), made.clock, "late", sleep=made.advance)
    assert "the share is full, so no drop is admitted" in [reason.reason for reason in said.reasons]
    made.finish("runs")
    made.advance(2)
    assert made.state("runs") == "completed"
    made.fs.capacity = None
    made.advance(3)
    assert made.state("late") == "claimed"
    assert made.fs.list("pending") == []
    assert alerts(made) == []


def test_the_share_is_asked_for_its_room_once_a_second_at_most() -> None:
    made = led("")
    asked = made.nodes["m1"].fs.asked
    full(made)
    before = asked["usage"]
    for number in range(30):
        submit(made, f"t{number}")
        made.step("m1")
        made.pass_time(0.1)
        made.step("m1")
    assert 2 <= asked["usage"] - before <= 4
