"""What the leader tells people: the snapshot, its numbers and its warnings."""

import json
import re
from typing import Any

from spoold.protocol.snapshot import Snapshot
from spoold.store import snapshots
from tests.support.cluster import Cluster


def snapshot(made: Cluster) -> Snapshot:
    """The newest one."""
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1]


def submit(made: Cluster, task_id: str, **fields: Any) -> None:
    """Drop a task."""
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))


def busy() -> Cluster:
    """Two masters, two workers, and a task in nearly every state."""
    made = Cluster("[types.mail]\nmax_concurrent = 1\n")
    for name in ("m1", "m2"):
        made.master(name)
    made.worker("w1", 2, config={"labels": ["ssd"]})
    made.worker("w2")
    made.settle()
    for task_id in ("done", "broken"):
        submit(made, task_id, max_retries=0)
        made.settle()
        made.finish(task_id, exit_code=task_id == "broken")
        made.settle()
    submit(made, "mail1", type="mail")
    submit(made, "mail2", type="mail")
    submit(made, "child", after="mail1")
    submit(made, "gpu", requires={"gpus": 1})
    made.submit("bad.json", '{"comand": 1}')
    made.submit("half.json", '{"id": "ha')
    made.settle()
    made.advance(6)
    return made


def test_the_numbers_are_right() -> None:
    made = busy()
    found = snapshot(made)
    assert found.tasks.model_dump() == {
        "pending": 1,
        "waiting": 2,
        "ready": 1,
        "claimed": 1,
        "completed": 1,
        "failed": 1,
        "rejected": 1,
    }
    assert found.workers.model_dump() == {"alive": 2, "idle": 1, "working": 1, "draining": 0, "asleep": 0, "dead": 0}
    assert (found.master.leader, found.master.epoch, found.master.standbys) == ("m1", 1, ("m2",))
    assert found.types == {
        "command": {"waiting": 1, "active": 1},
        "mail": {"waiting": 1, "active": 1},
    }
    assert (found.source, found.spool_id, found.halted, found.paused) == ("leader", "spool", False, ())


def test_a_node_shows_what_it_says_and_what_it_holds() -> None:
    made = busy()
    nodes = {node.worker: node for node in snapshot(made).nodes}
    one = nodes["w1"]
    assert (one.state, one.slots, one.running, one.cpus, one.labels) == ("working", 2, 1, 8, ("ssd",))
    assert (one.tasks[0]["id"], one.tasks[0]["type"]) == ("mail1", "mail")
    assert (nodes["w2"].state, nodes["w2"].tasks) == ("idle", ())
    submit(made, "new")
    made.settle()
    made.pass_time(0.3)
    made.step("m1")
    held = {node.worker: node for node in snapshot(made).nodes}["w1"]
    assert {"id": "new", "attempt": 1} in held.tasks  # claimed since the last beat


def test_warnings_say_what_is_wrong_and_what_to_do() -> None:
    made = busy()
    warnings = snapshot(made).warnings
    assert any("half.json: is not JSON" in line for line in warnings)
    assert any("workers can run type=command,run=command,gpu=1" in line for line in warnings)
    assert len(warnings) == 2


def test_a_full_share_and_the_workers_own_notes_are_told() -> None:
    made = busy()
    made.fs.write("somebody-elses-file", bytes(1 << 22), durable=False)
    made.fs.capacity = made.fs.usage().total_bytes - made.fs.usage().free_bytes + (1 << 17)
    submit(made, "late")
    made.advance(20)
    warnings = snapshot(made).warnings
    assert any(re.match(r"the share is 9\d % full; no new task starts", line) for line in warnings)
    assert any(line == "w1: the share is full: nothing new is started" for line in warnings)


def test_pauses_and_halts_are_told() -> None:
    made = busy()
    for name in ("pause.mail.1.json", "pause.+all.1.json", "halt.+all.1.json"):
        made.fs.write(f"control/{name}", b"{}", durable=False)
    made.settle()
    made.advance(6)
    found = snapshot(made)
    assert (found.paused, found.halted) == (("+all", "mail"), True)
    assert found.workers.draining == 2  # halted workers take nothing either


def test_dead_workers_are_shown_for_a_while() -> None:
    made = busy()
    made.crash("w2")
    made.advance(25)
    assert snapshot(made).workers.model_dump() == {
        "alive": 1,
        "idle": 0,
        "working": 1,
        "draining": 0,
        "asleep": 0,
        "dead": 1,
    }
    made.pass_time(590)
    made.advance(20)
    assert snapshot(made).workers.dead in (0, 1)


def test_something_that_happened_shows_soon_and_an_idle_leader_writes_rarely() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    made.advance(10)
    before = snapshots.list_snapshots(made.fs)[0]
    made.advance(10)
    assert snapshots.list_snapshots(made.fs)[0].seq - before.seq <= 3
    submit(made, "a")
    made.pass_time(0.3)
    made.step("m1")
    assert snapshot(made).tasks.ready == 1


def test_rates_are_counted_over_at_least_a_minute() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.settle()
    for number in range(4):
        submit(made, f"t{number}")
    made.settle()
    for number in range(3):
        made.finish(f"t{number}")
        made.settle()
        made.advance(1)
    made.advance(5)
    rates = snapshot(made).rates
    assert (rates.completed_per_min, rates.failed_per_min) == (3.0, 0.0)
    assert rates.eta_s == 20.0


def test_a_new_leader_takes_the_snapshots_of_the_old_one_away() -> None:
    made = busy()
    made.crash("m1")
    made.advance(20)
    assert {name.epoch for name in snapshots.list_snapshots(made.fs)} == {2}
    assert snapshot(made).master.leader == "m2"
