"""What the leader tells people: the snapshot, its numbers and its warnings."""

import errno
import json
import re
from typing import Any

import pytest

from spoold.master.report.forecast import LANES_NAMED
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
        "waiting": 3,
        "skipped": 0,
        "ready": 0,
        "claimed": 1,
        "completed": 1,
        "failed": 1,
        "rejected": 1,
    }
    assert found.workers.model_dump() == {"alive": 2, "idle": 1, "working": 1, "draining": 0, "asleep": 0, "dead": 0}
    assert (found.master.leader, found.master.epoch, found.master.standbys) == ("m1", 1, ("m2",))
    assert found.types == {
        "command": {"waiting": 2, "ready": 0, "running": 0, "active": 0},
        "mail": {"waiting": 1, "ready": 0, "running": 1, "active": 1},
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
    assert any("no worker can run type=command,run=command,gpu=1 (2 workers awake)" in line for line in warnings)
    assert len(warnings) == 2


def test_however_many_drops_may_not_be_moved_a_snapshot_names_the_first_few_and_counts_the_others() -> None:
    made = Cluster()
    made.master("m1")
    made.nodes["m1"].fs.fail("rename", "pending/", errno.EACCES, times=100_000)
    for number in range(60):
        made.submit(f"closed-{number:02}.json", '{"command": ["true"]}')
    made.advance(20)
    warnings = snapshot(made).warnings
    assert sum("pending/closed-" in line for line in warnings) == 20
    assert "warnings that are not shown here, and may be of the same kind: 40" in warnings


def test_a_full_share_and_the_workers_own_notes_are_told() -> None:
    made = busy()
    made.nodes["w1"].frozen = True
    made.nodes["w2"].frozen = True
    submit(made, "late")
    made.settle()
    made.fs.write("somebody-elses-file", bytes(1 << 22), durable=False)
    made.fs.capacity = made.fs.usage().total_bytes - made.fs.usage().free_bytes + (1 << 17)
    made.nodes["w1"].frozen = False
    made.nodes["w2"].frozen = False
    made.advance(20)
    warnings = snapshot(made).warnings
    assert any(
        re.match(r"the share is 9\d % full; no drop is admitted and no task starts", line) for line in warnings
    )
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


def test_a_dead_worker_is_counted_until_it_is_reaped() -> None:
    """The number and the rows are of the same nodes: of a worker that was taken back, neither shows anything."""
    made = busy()
    made.crash("w2")
    made.nodes["m1"].fs.fail("rmdir", "claimed/w2", errno.EACCES, times=10**6)
    made.advance(25)
    found = snapshot(made)
    assert (found.workers.alive, found.workers.dead) == (1, 1)
    assert [node.worker for node in found.nodes if node.state == "dead"] == ["w2"]
    made.nodes["m1"].fs.faults.clear()
    made.advance(10)
    found = snapshot(made)
    assert not [name for name in made.fs.list("heartbeats") if name.startswith("w2.")]
    assert (found.workers.alive, found.workers.dead) == (1, 0)
    assert [node.worker for node in found.nodes] == ["w1"]


def test_a_master_that_is_dead_and_cannot_be_reaped_does_not_stand_by() -> None:
    made = busy()
    assert snapshot(made).master.standbys == ("m2",)
    made.crash("m2")
    made.nodes["m1"].fs.fail("unlink", "heartbeats/m2", errno.EACCES, times=10**6)
    made.advance(25)
    assert [name for name in made.fs.list("heartbeats") if name.startswith("m2.")]
    assert snapshot(made).master.standbys == ()


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


def paced(*, tasks: int, done: int, settings: str = "") -> Cluster:
    """A worker of one slot that completes some of the tasks, one a second."""
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1")
    made.settle()
    for number in range(tasks):
        submit(made, f"t{number}")
    made.settle()
    for number in range(done):
        made.finish(f"t{number}")
        made.settle()
        made.advance(1)
    return made


def test_rates_of_few_tasks_are_counted_over_at_least_a_minute() -> None:
    assert snapshot(paced(tasks=10, done=4)).rates.completed_per_min == 4.0
    rates = snapshot(paced(tasks=10, done=6)).rates
    assert (rates.completed_per_min, rates.failed_per_min) == (60.0, 0.0), "one a second"
    assert rates.eta_s is not None
    assert 2 <= rates.eta_s <= 10


def test_no_end_is_foretold_from_old_or_few_samples_or_for_what_no_worker_can_run() -> None:
    assert snapshot(paced(tasks=10, done=3)).rates.eta_unknown == "too few tasks have completed lately"
    made = paced(tasks=10, done=6)
    submit(made, "gpu", requires={"gpus": 1})
    made.settle()
    made.advance(3)
    assert snapshot(made).rates.eta_unknown == "no worker can run 1 of 5 tasks"
    made = paced(tasks=10, done=6)
    made.fs.write("control/halt.+all.k3j2-1.json", b"{}", durable=False)
    made.settle()
    made.advance(3)
    assert snapshot(made).rates.eta_unknown == "the spool is halted"
    made = paced(tasks=10, done=6)
    made.advance(130)
    rates = snapshot(made).rates
    assert (rates.completed_per_min, rates.eta_s, rates.eta_unknown) == (0, None, "no task has completed lately")


def test_what_went_wrong_lately_is_counted_by_cause() -> None:
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.worker("w2")
    made.settle()
    made.submit("bad.json", '{"comand": 1}')
    for task_id in ("a", "b"):
        submit(made, task_id, max_retries=0)
    made.settle()
    made.advance(1)
    for task_id in ("a", "b"):
        made.finish(task_id, exit_code=3)
    submit(made, "child", after="a")
    made.settle()
    made.advance(11)
    recent = snapshot(made).recent
    assert recent.failed_attempts == {"EXIT_NONZERO": 2, "DEPENDENCY_FAILED": 1}
    assert list(recent.rejections.values()) == [1]
    assert "comand" in next(iter(recent.rejections))
    made.advance(700)
    recent = snapshot(made).recent
    assert (recent.failed_attempts, recent.rejections) == ({}, {})


def test_a_new_leader_takes_the_snapshots_of_the_old_one_away() -> None:
    made = busy()
    made.crash("m1")
    made.advance(20)
    assert {name.epoch for name in snapshots.list_snapshots(made.fs)} == {2}
    assert snapshot(made).master.leader == "m2"


def test_no_end_is_foretold_while_tasks_wait_for_a_closed_limit() -> None:
    made = paced(tasks=10, done=6, settings="[limits.llm]\nmax = 1\n")
    made.fs.write("control/close.llm.x-1.json", b"{}", durable=False)
    made.settle()
    made.advance(3)
    assert snapshot(made).rates.eta_unknown == "", "no task uses it"
    submit(made, "l", uses=["llm"])
    made.settle()
    made.advance(3)
    assert snapshot(made).rates.eta_unknown == "limit llm is closed"


def test_a_worker_that_is_halted_can_run_what_waits_for_the_end_of_the_halt() -> None:
    made = paced(tasks=1, done=0)
    made.fs.write("control/halt.+all.x-1.json", b"", durable=False)
    submit(made, "t")
    made.settle()
    made.advance(10)
    picture = snapshot(made)
    assert {node.state for node in picture.nodes} == {"halted"}
    assert [line for line in picture.warnings if "no worker can run" in line] == []
    assert picture.rates.eta_unknown == "the spool is halted"


def test_of_many_lanes_that_nobody_serves_the_first_are_named_and_the_rest_counted() -> None:
    made = paced(tasks=0, done=0)
    for number in range(LANES_NAMED + 2):
        submit(made, f"t{number}", requires={"labels": [f"l{number}"]})
    made.settle()
    made.advance(10)
    told = [line for line in snapshot(made).warnings if "no worker can run" in line]
    assert len(told) == LANES_NAMED + 1
    assert told[-1] == "no worker can run 2 tasks in 2 more lanes"


@pytest.mark.parametrize("host", [None, {}, {"hostname": ""}, {"hostname": " \n"}, {"machine_id": "m"}])
def test_a_wrong_clock_of_a_node_that_names_no_host_is_told_by_the_nodes_name(host: dict[str, str] | None) -> None:
    """Names-d: the warning was of the clock of nobody, and of two such nodes it told of one."""
    made = Cluster()
    made.master("m1")
    for node, ahead_s in (("x1", -1e11), ("x2", 3600)):
        beat = {"role": "worker", "clock_ahead_s": ahead_s, **({} if host is None else {"host": host})}
        made.fs.write(f"heartbeats/{node}.1.json", json.dumps(beat).encode(), durable=False)
    made.advance(10)
    told = [line for line in snapshot(made).warnings if line.startswith("the clock of")]
    assert [line.split(";")[0] for line in told] == [
        "the clock of x1 is 100,000,000,000 s behind the other machines'",
        "the clock of x2 is 3,600 s ahead of the other machines'",
    ]
