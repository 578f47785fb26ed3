"""`after_failed` and `after_batch`: over a change of leader, for a batch in the door, and what they cost others."""

from __future__ import annotations

import json

from spoold.master.listing import batch_members
from spoold.protocol.names import encode_order
from spoold.store import dependency_results
from tests.support.cluster import Cluster
from tests.support.counting import CountingFileSystem

LANE = "type=command,run=command"
SETTINGS = "[heartbeat]\ninterval_s = 1\nmisses = 3\n"


def pool(workers: int = 1) -> Cluster:
    made = Cluster(SETTINGS)
    made.master("m1")
    for number in range(workers):
        made.worker(f"w{number}", slots=8)
    made.settle()
    return made


def submit(made: Cluster, task_id: str, **fields: object) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"], **fields}))


def line(task_id: str, **fields: object) -> str:
    return json.dumps({"id": task_id, "command": ["work"], **fields}) + "\n"


def test_a_batch_in_the_door_is_not_over_though_its_first_lines_have_ended() -> None:
    made = pool()
    submit(made, "report", after_batch="B")
    many = 700  # more than a leader makes into tasks in one step
    made.submit("b.whole.jsonl", "".join(line(f"t{n}", batch="b") for n in range(many)))
    runner, ended = made.nodes["w0"].runner, 0
    assert runner is not None
    for _ in range(400):
        made.advance(0.2)
        if "report.1" in runner.live:
            break
        for task in list(runner.live):
            runner.finish(task)
            ended += 1
    assert "report.1" in runner.live
    assert ended == many


def test_a_drop_that_was_there_when_the_last_task_ended_is_waited_for() -> None:
    made = pool()
    submit(made, "a", batch="b")
    made.settle()
    submit(made, "report", after_batch="b")
    made.settle()
    made.submit("young.json", '{"id": "late", "command": ["work"], "batch": "b"')
    made.finish("a")
    made.advance(3)
    assert made.state("report") == "waiting"
    made.submit("young.json", line("late", batch="b"))
    made.advance(1)
    assert made.state("late") == "claimed"
    assert made.state("report") == "waiting"
    made.finish("late")
    made.advance(5)
    assert made.state("report") == "claimed"


def test_a_new_leader_reads_what_it_did_not_admit_and_finds_a_batch_that_has_ended() -> None:
    made = pool()
    for number in range(3):
        submit(made, f"a{number}", batch="b", **({"retry": {"backoff_s": 30}} if number == 1 else {}))
    submit(made, "gone", batch="gone")
    made.settle()
    made.finish("gone")
    made.finish("a1", exit_code=1)
    made.advance(1)
    submit(made, "gone-report", after_batch="gone")
    submit(made, "report", after_batch="b")
    submit(made, "never", after_batch="nothing")
    made.crash("m1")
    made.master("m2")
    made.advance(10)
    assert made.state("gone-report") == "claimed"
    assert made.state("report") == "waiting"
    made.finish("a0")
    made.finish("a2")
    made.advance(5)
    assert made.state("report") == "waiting", "one of the batch rests before its next attempt"
    made.advance(30)
    made.finish("a1")
    made.advance(5)
    assert made.state("report") == "claimed"
    assert made.state("never") == "waiting"


def test_an_archived_batch_is_found_and_its_outcomes_are_told() -> None:
    made = Cluster(SETTINGS + "[retention]\ncompleted_s = 1\nfailed_s = 1\n")
    made.master("m1")
    made.worker("w0", slots=8)
    made.settle()
    submit(made, "a", batch="b", max_retries=0)
    submit(made, "c", batch="b", after_failed=["d"])
    submit(made, "d", batch="other")
    made.settle()
    made.finish("a", exit_code=1)
    made.finish("d")
    made.advance(5)
    assert made.find("a").branch == "archive"
    made.crash("m1")
    made.master("m2")
    made.advance(5)
    submit(made, "report", after_batch="B")
    made.advance(5)
    assert made.state("report") == "claimed"
    scratch = made.nodes["w0"].scratch
    assert scratch is not None
    told = scratch.read("report.1", f"deps/{dependency_results.OUTCOMES_NAME}")
    assert told is not None
    said = sorted((one["id"], one["state"]) for one in map(json.loads, told.splitlines()))
    assert said == [("a", "failed"), ("c", "skipped")]


def test_a_skipped_task_that_is_archived_is_skipped_to_a_later_one_too() -> None:
    made = Cluster(SETTINGS + "[retention]\ncompleted_s = 1\nfailed_s = 1\n")
    made.master("m1")
    made.worker("w0", slots=8)
    submit(made, "a")
    submit(made, "undo", after_failed="a")
    made.settle()
    made.finish("a")
    made.advance(5)
    assert made.find("undo").branch == "archive"
    for leader in ("m1", "m2"):
        if leader == "m2":
            made.crash("m1")
            made.master("m2")
            made.advance(5)
        submit(made, f"child-{leader}", after="undo")
        submit(made, f"tidy-{leader}", after_any="undo")
        submit(made, f"amend-{leader}", after_failed="undo")
        made.settle()
        assert made.find(f"child-{leader}").result["error"]["code"] == "SKIPPED"  # type: ignore[index]
        assert made.state(f"tidy-{leader}") == "claimed"
        assert made.find(f"amend-{leader}").result["error"]["message"] == "undo did not fail"  # type: ignore[index]


def test_retry_of_a_skipped_task_asks_the_gates_anew() -> None:
    made = pool()
    submit(made, "a", max_retries=0)
    submit(made, "undo", after_failed="a")
    made.settle()
    made.finish("a")
    made.settle()
    assert made.state("undo") == "failed"
    made.fs.write("control/retry.undo.x1.json", b"", durable=False)
    made.settle()
    assert made.find("undo").name.attempt == 2
    assert made.state("undo") == "failed"


def test_without_a_task_that_waits_for_a_batch_no_file_is_read_and_with_one_only_so_many_a_step() -> None:
    made = Cluster(SETTINGS)
    made.fs.make_dirs(f"waiting/{LANE}")
    many = 2 * batch_members.PER_STEP + 50
    for number in range(many):
        name = f"5000.{encode_order(number + 1, 0)}.t{number}.a1f0c0.json"
        made.fs.write(f"waiting/{LANE}/{name}", line(f"t{number}", batch="b").encode(), durable=False)
    made.master("m1")
    fs = CountingFileSystem(made.nodes["m1"].fs)
    made.nodes["m1"].master.store.fs = fs
    made.advance(3)
    assert not any(verb == "read" and where in ("waiting", "ready") for verb, where in fs.calls)
    submit(made, "report", after_batch="b")
    reads = []
    for _ in range(6):
        fs.clear()
        made.step("m1")
        reads.append(fs.calls["read", "waiting"] + fs.calls["read", "ready"])
    assert sum(reads) == many
    assert max(reads) <= batch_members.PER_STEP
    assert made.state("report") == "waiting"
