"""A worker from its first beat to its last, where the scenarios do not reach."""

import errno
import json
from typing import Any

import pytest

from spoold.protocol.errors import ShutOut
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import TaskName
from spoold.runner.job import NoSlot
from spoold.store import heartbeats
from tests.support.cluster import Cluster, Node


def ready(*tasks: dict[str, Any], settings: str = "") -> Cluster:
    """A leader, and tasks t0, t1… that are ready."""
    made = Cluster(settings)
    made.master("m1")
    made.step("m1")
    for number, task in enumerate(tasks):
        made.submit(f"{number}.json", json.dumps({"id": f"t{number}", "command": ["work"], **task}))
    made.step("m1")
    return made


def beat(made: Cluster, name: str = "w1") -> Heartbeat:
    """The newest beat of a node."""
    return heartbeats.read_all(made.fs)[name]


def ids(node: Node) -> list[str]:
    """What runs on a worker."""
    return sorted(attempt.name.id for attempt in node.worker.running)


def test_a_worker_that_shows_itself_can_be_given_work() -> None:
    made = Cluster()
    seen: list[list[str]] = []
    node = made.worker("w0")
    node.fs.hang("rename", "heartbeats/", lambda: seen.append(made.fs.list("claimed")))
    made.advance(4)
    assert seen == [["w0"]]
    found = beat(made, "w0")
    assert (found.role, found.status, found.slots, found.host.hostname) == ("worker", "idle", 1, "w0")
    assert found.capabilities is not None
    assert (found.capabilities.cpus, found.capabilities.allow_command) == (8, True)


def test_registering_twice_under_one_name_is_harmless() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.worker.register()
    made.step("w1")
    assert ids(node) == ["t0"]


def test_only_workers_of_this_host_that_are_gone_are_predecessors() -> None:
    made = Cluster()
    made.master("m-old", host="laptop")
    made.step("m-old")
    for name, host in (("w-lives", "laptop"), ("w-died", "laptop"), ("w-else", "desktop")):
        made.worker(name, host=host)
    for name in ("m-old", "w-died", "w-else"):
        made.crash(name)
    made.worker("w-new", host="laptop")
    assert made.fs.list("control") == ["reap.w-died.w-new.json"]


def test_the_heartbeat_tells_what_runs_and_how_far_it_is() -> None:
    made = ready({"type": "mail"}, {})
    node = made.worker("w1", 2)
    made.step("w1")
    assert node.scratch is not None
    assert node.runner is not None
    node.runner.memory["t0.1"] = 3 << 20
    node.scratch.write("t0.1", "progress.json", b' {"done": 3} ')
    node.scratch.write("t1.1", "progress.json", b"half way \xff")
    made.pass_time(4)
    made.step("w1")
    found = beat(made)
    assert found.status == "working"
    told = {run.id: run for run in found.running}
    assert (told["t0"].attempt, told["t0"].type, told["t0"].mem_mb) == (1, "mail", 3.0)
    assert told["t0"].since == "2025-10-09T08:53:20.000Z"
    assert told["t0"].progress == {"done": 3}
    assert told["t1"].progress == "half way �"
    assert (found.mem_available_mb, found.disk_free_mb) == (8192, 100_000)


def test_the_lease_is_counted_from_before_the_beat_was_written() -> None:
    """A beat that took long to write has used up its time already; whoever is cut off stops in time."""
    made = ready({}, settings="[heartbeat]\ninterval_s = 10\nmisses = 2\n")
    node = made.worker("w1")
    made.step("w1")
    made.pass_time(7)
    node.fs.hang("rename", "heartbeats/", lambda: made.pass_time(5))
    made.step("w1")
    node.fs.off = True
    made.pass_time(9.9)
    assert node.runner is not None
    assert "t0.1" in node.runner.live
    assert not node.runner.frozen()
    made.pass_time(0.2)  # 15.1 s after the beat was begun, of a lease of 15
    assert node.runner.frozen().keys() == {"t0.1"}


def test_a_beat_that_fails_extends_nothing() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.fs.fail("rename", "heartbeats/", errno.EIO, times=100)
    made.advance(13)
    assert node.runner is not None
    assert node.runner.frozen().keys() == {"t0.1"}


def test_what_was_stopped_when_its_lease_ran_out_is_handed_back_without_charge() -> None:
    made = ready({})
    node = made.worker("w1", config={"lost_share": "stop"})
    made.step("w1")
    node.fs.off = True
    made.nodes["m1"].frozen = True
    made.advance(14)
    node.fs.off = False
    made.step("w1")
    assert made.state("t0") == "returned"
    name: Any = made.find("t0").name
    assert (name.attempt, name.failures, name.crashes) == (2, 0, 0)


def test_a_suspended_worker_freezes_its_tasks_when_it_wakes() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.clock.suspend(60)
    assert node.runner is not None
    assert node.runner.frozen().keys() == {"t0.1"}


def test_an_unclear_error_ends_the_step_and_the_next_one_goes_on() -> None:
    made = ready({}, {})
    node = made.worker("w1")
    for verb, path in (("list", "claimed/w1"), ("list", "control"), ("list", "ready"), ("usage", "")):
        node.fs.fail(verb, path, errno.EIO)
        assert not made.step("w1")
    assert made.step("w1")
    assert ids(node) == ["t0"]


def test_a_worker_that_was_reaped_kills_and_leaves() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    token = made.find("t0").path
    made.fs.rename(token, token.replace("claimed/w1", "ready/type=command,run=command"))
    made.fs.rmdir("claimed/w1")
    with pytest.raises(ShutOut, match="taken for dead"):
        node.worker.step()
    assert node.runner is not None
    assert node.runner.live == {}


def test_an_unmounted_share_is_not_taken_for_a_reaping() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.fs.fail("list", "claimed/w1", errno.ENOENT)
    node.fs.fail("list", "claimed", errno.ENOENT)
    with pytest.raises(FileNotFoundError):
        node.worker.step()
    assert ids(node) == ["t0"], "the lease ends it, not a doubt"
    made.step("w1")
    assert made.state("t0") == "claimed"
    assert ids(node) == ["t0"]


def test_a_claim_that_cannot_be_read_yet_is_adopted_later() -> None:
    made = ready({})
    node = made.worker("w1")
    node.fs.fail("read", "claimed/w1/", errno.EIO, times=2)
    made.step("w1")
    assert made.state("t0") == "claimed"
    assert ids(node) == []
    made.step("w1")
    made.step("w1")
    assert ids(node) == ["t0"]


def test_foreign_files_in_its_directory_are_left_alone() -> None:
    made = ready({})
    node = made.worker("w1")
    made.fs.write("claimed/w1/notes.txt", b"", durable=False)
    made.settle()
    assert ids(node) == ["t0"]


def test_a_task_file_that_was_damaged_fails_and_says_so() -> None:
    made = ready({})
    path = made.find("t0").path
    made.fs.write(path, b'{"command": [', durable=False)
    made.worker("w1")
    made.settle()
    token = made.find("t0")
    assert token.state == "failed"
    assert token.result is not None
    assert token.result["error"]["code"] == "INVALID_TASK"
    assert "is not JSON" in token.result["error"]["message"]


def test_a_claim_without_a_slot_goes_back_and_is_no_fault_of_the_machine(caplog: pytest.LogCaptureFixture) -> None:
    made = ready({})
    node = made.worker("w1")
    assert node.runner is not None
    node.runner.refuses = NoSlot("no slot is free")
    made.step("w1")
    made.step("w1")
    made.step("m1")
    name: Any = made.find("t0").name
    assert (made.state("t0"), name.attempt, name.failures, name.delay_ms) == ("ready", 2, 0, 0)
    assert (node.worker.notes, caplog.messages) == ((), [])
    node.runner.refuses = None
    made.step("w1")
    assert ids(node) == ["t0"], "at once"


def test_a_task_that_cannot_be_started_just_now_is_somebody_elses() -> None:
    made = ready({})
    node = made.worker("w1")
    assert node.runner is not None
    node.runner.refuses = OSError(errno.EAGAIN, "no more processes")
    made.settle()
    name: Any = made.find("t0").name
    assert (made.state("t0"), name.attempt, name.failures, name.delay_ms > 0) == ("waiting", 2, 0, True)
    node.runner.refuses = None
    made.advance(4)
    assert made.state("t0") == "ready"  # for five seconds it lets others go first
    made.advance(2)
    assert ids(node) == ["t0"]


def test_a_worker_whose_machine_can_start_nothing_claims_ever_more_seldom(caplog: pytest.LogCaptureFixture) -> None:
    made = ready(*[{}] * 9)
    node = made.worker("w1", 3)
    assert node.runner is not None
    node.runner.refuses = OSError(errno.EAGAIN, "no more processes")
    made.step("w1")
    assert [made.state(f"t{number}") for number in range(9)].count("ready") == 8, "one is enough to know"
    made.advance(63)  # 1 + 2 + 4 + 8 + 16 + 32 s
    assert 5 <= len(made.fs.list("results")) <= 7
    (note,) = beat(made).notes
    assert "no task can be started here ([Errno 11] no more processes)" in note
    assert "end processes, or raise how many" in note
    assert [line for line in caplog.messages if "no task can be started here" in line] == caplog.messages[:1]
    node.runner.refuses = None
    made.advance(60)
    assert len(ids(node)) == 3
    made.advance(5)
    assert beat(made).notes == ()
    assert {made.find(f"t{number}").name.failures for number in range(9)} == {0}  # type: ignore[union-attr]


def test_a_result_that_cannot_be_read_keeps_only_the_task_that_needs_it() -> None:
    made = ready({}, {"after": ["t0"]}, {})
    node = made.worker("w1")
    made.step("w1")
    node.fs.fail("read", "results/t0", errno.EACCES, times=-1)
    made.finish("t0")
    made.advance(3)
    assert ids(node) == ["t2"], "its machine is as fit as ever"
    assert node.worker.notes == ()
    made.finish("t2")
    made.advance(60)
    name: Any = made.find("t1").name
    assert (name.failures, name.crashes) == (0, 0)
    assert 3 <= name.attempt <= 8


def test_a_module_that_is_allowed_in_another_case_costs_nothing_and_is_left_to_others() -> None:
    made = ready({"command": None, "python": "MyTools.x:f"})
    made.worker("w1", config={"python": {"allow": ["mytools"]}})
    made.advance(60)
    name: Any = made.find("t0").name
    assert (name.failures, name.crashes) == (0, 0)
    assert 3 <= name.attempt <= 5, "ever more seldom"
    error = json.loads(made.fs.read("results/t0.1.w1.json"))["error"]
    assert error["code"] == "HANDED_BACK"
    assert "has MyTools.x in another case only" in error["message"]
    node = made.worker("w2", config={"python": {"allow": ["MyTools"]}})
    made.settle()
    assert ids(node) == ["t0"]


def test_a_task_finds_its_own_file_and_the_results_of_its_dependencies() -> None:
    made = ready({}, {"after": ["t0"]})
    node = made.worker("w1")
    made.step("w1")
    made.finish("t0", output="for the child")
    made.settle()
    assert node.scratch is not None
    assert json.loads(node.scratch.files["t1.1", "task.json"])["id"] == "t1"
    assert json.loads(node.scratch.files["t1.1", "deps/t0.json"])["output"] == "for the child"


def test_a_drain_may_be_shortened_and_never_prolonged() -> None:
    made = ready({}, {})
    node = made.worker("w1")
    made.step("w1")
    node.worker.drain(30)
    node.worker.drain(300)
    node.worker.drain(10)
    made.step("w1")
    assert beat(made).status == "draining"
    made.advance(9)
    assert ids(node) == ["t0"]
    made.advance(3)
    assert made.gone["w1"] == "left"
    assert (made.state("t0"), made.state("t1")) == ("ready", "ready")


def test_a_drained_worker_takes_nothing_new_and_leaves_when_it_is_done() -> None:
    made = ready({}, {})
    node = made.worker("w1", 2)
    made.step("w1")
    node.worker.drain(30)
    made.submit("2.json", '{"id": "t2", "command": ["work"]}')
    made.finish("t0")
    made.settle()
    assert ids(node) == ["t1"]
    made.finish("t1")
    made.settle()
    assert made.gone["w1"] == "left"
    assert made.state("t2") == "ready"
    assert made.fs.list("claimed") == []
    assert heartbeats.list_beats(made.fs).keys() == {"m1"}


def test_drain_all_and_drain_by_own_name() -> None:
    for target in ("+all", "laptop", "laptop-1"):
        made = Cluster()
        node = made.worker("laptop-1")
        made.fs.write(f"control/drain.{target}.1.json", b"{}", durable=False)
        assert node.worker.step().done


def test_halted_is_told_at_once_and_costs_nothing() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    made.fs.write("control/halt.+all.1.json", b"{}", durable=False)
    made.step("w1")
    made.step("w1")
    assert beat(made).status == "halted"
    assert ids(node) == []
    assert made.state("t0") == "returned"
    made.step("w1")
    assert ids(node) == []


def test_leaving_with_a_claim_keeps_the_heartbeat_so_that_its_silence_tells() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.worker.close()
    assert "w1" in heartbeats.list_beats(made.fs)
    assert made.state("t0") == "claimed"
    made.nodes.pop("w1")
    made.advance(20)
    assert made.state("t0") == "ready"


def test_leaving_never_fails() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    node.fs.off = True
    node.worker.close()
    assert node.runner is not None
    assert node.runner.live == {}


def test_a_stuck_commit_is_tried_again_soon() -> None:
    made = ready({})
    node = made.worker("w1")
    made.step("w1")
    made.finish("t0")
    node.fs.fail("rename", "completed/", errno.EIO)
    step = node.worker.step()
    assert step.next_due is not None
    assert step.next_due <= node.clock.monotonic() + 0.5
    assert any("t0.1 cannot be committed yet" in note for note in node.worker.notes)
    made.pass_time(4)
    assert node.worker.step().busy


def test_a_journal_that_cannot_be_written_stops_nothing() -> None:
    made = ready({})
    node = made.worker("w1")
    node.fs.fail("append", "events/", errno.EACCES, times=1000)
    made.settle()
    made.finish("t0")
    made.settle()
    assert made.state("t0") == "completed"


def test_a_task_that_this_worker_may_not_read_costs_an_attempt_and_is_not_held_for_ever() -> None:
    made = ready({})
    node = made.worker("w1")
    node.fs.fail("read", "claimed/", errno.EACCES, times=-1)
    made.advance(4)
    assert made.state("t0") == "claimed", "a share may refuse for a moment"
    made.advance(4)
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (name.attempt, name.failures, name.crashes) == (2, 1, 0)
    assert "may not read" in json.loads(made.fs.read("results/t0.1.w1.json"))["error"]["message"]


@pytest.mark.parametrize("code", [errno.EIO, errno.ESTALE, errno.ENOENT])
def test_a_task_whose_file_is_damaged_costs_an_attempt_and_is_not_held_for_ever(code: int) -> None:
    made = ready({})
    node = made.worker("w1")
    node.fs.fail("read", "claimed/", code, times=-1)
    made.advance(110)
    assert made.state("t0") == "claimed", "a share may fail for a while"
    made.advance(15)
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (name.attempt, name.failures, name.crashes) == (2, 1, 0)
    assert "cannot be read" in json.loads(made.fs.read("results/t0.1.w1.json"))["error"]["message"]


def test_a_read_that_fails_before_a_silence_of_the_share_and_after_it_costs_nothing() -> None:
    made = ready({})
    node = made.worker("w1")
    made.nodes["m1"].frozen = True
    node.fs.fail("read", "claimed/", errno.ESTALE, times=5)
    made.advance(3)
    node.fs.off = True
    made.advance(150)
    node.fs.off = False
    made.advance(10)
    name = made.find("t0").name
    assert isinstance(name, TaskName)
    assert (made.state("t0"), name.attempt) == ("claimed", 1)
    assert ids(node) == ["t0"]


def test_what_is_ready_to_start_only_after_the_lease_is_not_started() -> None:
    """Reading the task took so long that others were given it meanwhile."""
    made = ready({})
    node = made.worker("w1")
    made.during("w1", "read", "claimed/", lambda: node.clock.suspend(60))
    made.step("w1")
    assert node.runner is not None
    assert node.runner.started == []
    assert ids(node) == []
    made.step("w1")
    assert ids(node) == ["t0"], "it is still its own, and the beat says that it lives"
