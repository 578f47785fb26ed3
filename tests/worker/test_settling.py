"""An ended attempt becomes a result and a commit; each form of ending, each form of output."""

import errno
import json
import random
import threading
from typing import Any

import pytest

from spoold.protocol import codec
from spoold.protocol.names import TaskName, parse_ended, parse_returned
from spoold.protocol.result import Code, Result, Total
from spoold.runner.job import Kind
from spoold.store import snapshots
from spoold.worker.attempts import attempt_output, settling
from spoold.worker.attempts.attempt_output import LOSS_REMEMBERED_S
from spoold.worker.attempts.settling import Writers
from tests.support.cluster import Cluster, Node
from tests.support.faults import How

SETTINGS = "[retry]\nbackoff_s = 10\njitter = 0\n"


class Bench:
    """One worker with one running task `a`, and what becomes of it."""

    def __init__(self, **task: Any) -> None:
        self.cluster = Cluster(SETTINGS)
        self.cluster.master("m1")
        self.node: Node = self.cluster.worker("w1", config={"log_max_mb": 1})
        self.cluster.submit("a.json", json.dumps({"id": "a", "command": ["work"], **task}))
        self.cluster.step("m1")
        self.cluster.step("w1")

    def put(self, name: str, data: bytes) -> None:
        """The command writes a file."""
        assert self.node.scratch is not None
        self.node.scratch.write("a.1", name, data)

    def end(self, **ending: Any) -> dict[str, Any]:
        """The command ends, the worker settles; the result that it wrote."""
        self.cluster.finish("a", **ending)
        self.cluster.step("w1")
        return self.result()

    def result(self) -> dict[str, Any]:
        """What stands in results/ for the first attempt."""
        value = json.loads(self.cluster.fs.read("results/a.1.w1.json"))
        assert isinstance(value, dict)
        return value

    def returned(self) -> TaskName:
        """The name under which it was handed back."""
        (name,) = self.cluster.fs.list("returned")
        parsed = parse_returned(name)
        assert parsed is not None
        return parsed[0]

    def log(self) -> bytes:
        """Its log on the share."""
        return self.cluster.fs.read("logs/a.1.w1.log")


def test_a_result_has_every_field() -> None:
    bench = Bench(type="mail", batch="night")
    bench.cluster.pass_time(2.5)
    result = bench.end(output="hello\n", max_rss_bytes=3 << 20, cpu_s=0.25)
    assert result == {
        "task_id": "a",
        "attempt": 1,
        "worker_id": "w1",
        "status": "success",
        "started_at": "2025-10-09T08:53:20.000Z",
        "completed_at": "2025-10-09T08:53:22.500Z",
        "duration_s": 2.5,
        "exit_code": 0,
        "output": "hello\n",
        "output_format": None,
        "output_problem": None,
        "error": None,
        "tokens_used": None,
        "cost_usd": None,
        "log": "a.1.w1.log",
        "type": "mail",
        "instead_of": None,
        "batch": "night",
        "budgets": [],
        "budget": {},
        "partial": False,
        "max_rss_mb": 3.0,
        "cpu_s": 0.25,
        "frozen_s": None,
        "estimated": False,
        "changed_files": None,
        "files_overlap": None,
        "total": None,
        "approval": None,
        "questions": None,
        "uses": None,
    }
    assert result.keys() == Result.model_fields.keys()
    assert bench.log() == b"hello\n"
    assert bench.cluster.state("a") == "completed"


def test_a_command_without_output_leaves_no_log() -> None:
    bench = Bench()
    assert bench.end()["log"] is None
    assert bench.cluster.fs.list("logs") == []


def test_what_the_command_wrote_as_json_is_its_output() -> None:
    bench = Bench()
    bench.put("result.json", b'{"answer": 42, "tokens_used": 7, "cost_usd": 0.5}')
    result = bench.end(output="chatter")
    assert result["output"] == {"answer": 42, "tokens_used": 7, "cost_usd": 0.5}
    assert (result["tokens_used"], result["cost_usd"]) == (7, 0.5)


@pytest.mark.parametrize("text", [b'["a", 1]', b'"text"', b"3", b"false"])
def test_any_json_will_do(text: bytes) -> None:
    bench = Bench()
    bench.put("result.json", text)
    assert bench.end()["output"] == json.loads(text)


@pytest.mark.parametrize("count", [0, 7, 5.7, 10**12, None])
def test_what_an_attempt_cost_is_told_as_it_told_it(count: float | None) -> None:
    bench = Bench()
    bench.put("result.json", json.dumps({"tokens_used": count, "cost_usd": count}).encode())
    result = bench.end()
    assert (result["tokens_used"], result["cost_usd"], bench.cluster.state("a")) == (count, count, "completed")
    assert codec.load_model(Result, json.dumps(result).encode(), "r").tokens_used == count


@pytest.mark.parametrize("count", ['"many"', "true", "-1", "[]", "1e308", "1000000000001"])
@pytest.mark.parametrize("name", ["tokens_used", "cost_usd"])
def test_a_cost_that_is_no_amount_is_unknown_and_told(name: str, count: str) -> None:
    """N8, G33: the task has done its work, and to run it again would cost the same once more."""
    bench = Bench()
    bench.put("result.json", f'{{"{name}": {count}, "answer": 1}}'.encode())
    result = bench.end()
    assert (result["status"], result["error"], result[name]) == ("success", None, None)
    assert f"{name}: is {json.loads(count)!r}, which is no number from 0 to" in result["output_problem"]
    assert (result["output"]["answer"], result["output_format"]) == (1, None)


@pytest.mark.parametrize("exit_code", [0, 1, 75])
def test_every_wrong_field_of_a_result_is_named_in_its_record(exit_code: int) -> None:
    """Names-b: a wrong backoff, quota or list of files, and a wrong cost in the progress, were dropped in silence."""
    bench = Bench()
    wrong = {"retry_after_s": "soon", "quota": {"limit": 7}, "changed_files": [3, "a.py"], "cost_usd": 2}
    bench.put("result.json", json.dumps(wrong).encode())
    bench.put("progress.json", b'{"tokens_used": -5, "cost_usd": "never asked", "served": "yes"}')
    result = bench.end(exit_code=exit_code)
    for field in ("retry_after_s", "quota", "changed_files[0]"):
        assert f"SPOOL_RESULT_FILE: {field}: is " in result["output_problem"], field
    for field in ("tokens_used: is -5", "served: is 'yes'"):
        assert f"SPOOL_PROGRESS_FILE: {field}" in result["output_problem"], field
    assert "never asked" not in result["output_problem"]
    assert result["output_problem"].count(" Fix: ") == 5
    assert (result["cost_usd"], result["changed_files"], result["output"]) == (2, ["a.py"], wrong)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" * 300 + b"]" * 300, "nested deeper than 200 levels"),
        (b'{"id": 36893488147419103233}', "of more than 64 bits"),
        (b'{"cost_usd": 1e999}', "is not JSON"),
        (b'{"loss": NaN}', "is not JSON"),
        (b'{"loss": Infinity}', "is not JSON"),
        (b'{"text": "\\ud800"}', "is not JSON"),
        (b'"\xff"', "is not UTF-8"),
        (b'{"half": ', "is not JSON"),
    ],
)
@pytest.mark.parametrize("exit_code", [0, 3])
def test_what_is_no_json_is_kept_as_text_and_changes_no_end(text: bytes, why: str, exit_code: int) -> None:
    """N14: such a task ran again to its last retry, and what it wrote was kept nowhere."""
    bench = Bench()
    bench.put("result.json", text)
    result = bench.end(exit_code=exit_code, output="printed")
    assert (result["output"], result["output_format"]) == (text.decode(errors="replace"), "text")
    assert result["output_problem"].startswith("SPOOL_RESULT_FILE: ")
    assert why in result["output_problem"]
    assert " Fix: " in result["output_problem"]
    assert result["partial"] == bool(exit_code)
    assert bench.cluster.state("a") == ("returned" if exit_code else "completed")
    if exit_code:
        assert (result["error"]["code"], bench.returned().failures) == (Code.EXIT_NONZERO, 1)


@pytest.mark.parametrize("value", [2**100, float("nan"), "half a \ud800 pair", {"a": [1]}, "text", 0, False])
def test_no_value_of_a_call_can_stop_the_commit(value: object) -> None:
    bench = Bench()
    result = bench.end(value=value, output="printed")
    assert bench.cluster.state("a") == "completed"
    if value in ({"a": [1]}, "text", 0, False):
        assert result["output"] == value


def test_a_call_that_returned_nothing_has_nothing_for_its_output() -> None:
    assert Bench().end(returned=True, output="printed")["output"] is None
    assert Bench().end(output="printed")["output"] == "printed"


def test_what_a_task_said_that_is_no_utf_8_stops_neither_the_commit_nor_the_journal() -> None:
    bench = Bench()
    bench.end(exit_code=1, message="x \ud800")
    assert bench.cluster.state("a") == "returned"
    bench.cluster.settle()
    assert "w1" in bench.cluster.nodes


def test_of_a_result_that_is_too_large_the_beginning_is_kept_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_output, "RESULT_MAX", 10)
    bench = Bench()
    bench.put("result.json", b'"0123456789"')
    result = bench.end()
    assert (result["output"], result["output_format"]) == ('"012345678', "text")
    assert "more than 10 bytes" in result["output_problem"]


@pytest.mark.parametrize("levels", [66, 250, 1000, 2000])
def test_a_progress_report_of_many_levels_is_a_text(levels: int) -> None:
    """N7: 1,000 of them ended the worker, which compares each beat with the one before, and then the next worker."""
    bench = Bench()
    for _ in range(2):
        bench.put("progress.json", b"[" * levels + b"]" * levels)
        bench.cluster.pass_time(5)
        bench.cluster.step("w1")
    assert "w1" in bench.cluster.nodes
    bench.put("result.json", b"1")
    assert bench.end()["output"] == 1


def test_output_of_an_attempt_that_failed_anyway_changes_nothing() -> None:
    bench = Bench()
    bench.put("result.json", b"{")
    assert bench.end(exit_code=3)["error"]["code"] == Code.EXIT_NONZERO


@pytest.mark.parametrize(
    ("kind", "exit_code", "code", "status", "failures"),
    [
        ("exited", 3, Code.EXIT_NONZERO, "failure", 1),
        ("exited", 75, Code.TRY_LATER, "failure", 0),
        ("signaled", None, Code.SIGNALED, "failure", 1),
        ("timeout", None, Code.TIMEOUT, "timeout", 1),
        ("timeout", 143, Code.TIMEOUT, "timeout", 1),
        ("timeout", 75, Code.TRY_LATER, "failure", 0),
        ("oom", None, Code.OOM_KILLED, "failure", 1),
        ("stalled", None, Code.STALLED, "failure", 1),
        ("spawn_failed", 127, Code.SPAWN_FAILED, "failure", 1),
        ("spawn_failed", None, Code.HANDED_BACK, "handed_back", 0),
        ("fenced", None, Code.HANDED_BACK, "handed_back", 0),
        ("stopped", None, Code.HANDED_BACK, "handed_back", 0),
    ],
)
def test_every_ending_is_told_and_charged_as_it_deserves(
    kind: Kind, exit_code: int | None, code: Code, status: str, failures: int
) -> None:
    bench = Bench()
    result = bench.end(kind=kind, exit_code=exit_code, message="why")
    assert (result["status"], result["error"]["code"], result["exit_code"]) == (status, code, exit_code)
    name = bench.returned()
    assert (name.attempt, name.failures, name.crashes) == (2, failures, 0)
    assert (name.delay_ms > 0) == (code is not Code.HANDED_BACK or kind == "spawn_failed")


def test_a_task_that_must_never_be_tried_later_is_not_at_its_timeout_either() -> None:
    bench = Bench(retry={"never": [75]})
    result = bench.end(kind="timeout", exit_code=75, message="why")
    assert (result["error"]["code"], bench.returned().failures) == (Code.TIMEOUT, 1)


def test_a_supervisor_that_vanished_is_charged_as_a_crash() -> None:
    bench = Bench()
    assert bench.end(kind="lost", exit_code=None)["status"] == "worker_died"
    assert (bench.returned().crashes, bench.returned().failures) == (1, 0)


def test_a_task_may_say_when_to_try_again() -> None:
    bench = Bench()
    bench.put("result.json", b'{"retry_after_s": 90}')
    bench.end(exit_code=75)
    assert bench.returned().delay_ms == 90_000
    bench = Bench()
    bench.put("result.json", b'{"retry_after_s": -5}')
    bench.end(exit_code=1)
    assert bench.returned().delay_ms == 0


def test_a_log_grows_while_the_task_runs_and_every_byte_comes_once() -> None:
    bench = Bench()
    bench.put("output", b"one\n")
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    assert bench.log() == b"one\n"
    bench.put("output", b"one\ntwo\n")
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    bench.cluster.step("w1")
    assert bench.log() == b"one\ntwo\n"
    bench.end(output="one\ntwo\nthree\n")
    assert bench.log() == b"one\ntwo\nthree\n"


def test_a_long_log_comes_in_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempt_output, "LOG_CHUNK", 4)
    bench = Bench()
    bench.end(output="0123456789")
    assert bench.log() == b"0123456789"


def test_a_log_says_what_was_left_out_of_it() -> None:
    bench = Bench()
    bench.put("output", b"the beginning")
    bench.end(output_dropped=500, output_bytes=600, tail="the end")
    assert bench.log() == b"the beginning\n[500 bytes left out here: log_max_mb of the worker]\nthe end"


def test_a_log_is_never_longer_than_the_worker_keeps() -> None:
    """A task that put 4 TiB in the place of its output had them copied to the share, and its slot for ever."""
    bench = Bench()
    bench.put("output", b"x" * (3 << 20))
    for _ in range(3):
        bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
        bench.cluster.step("w1")
    assert 0 < len(bench.log()) <= 1 << 20
    assert bench.end(output_bytes=5)["status"] == "success"
    assert len(bench.log()) == 1 << 20


@pytest.mark.parametrize("begun", [b"the beginning", b""])
def test_a_log_that_the_disk_cut_does_not_blame_a_setting(begun: bytes) -> None:
    bench = Bench()
    if begun:
        bench.put("output", begun)
    why = "the output could not be kept: No space left on device"
    bench.end(output_dropped=500, output_bytes=600, tail="the end", output_trouble=why)
    assert bench.log() == begun + f"\n[500 bytes left out here: {why}]\nthe end".encode()


@pytest.mark.parametrize("running", [True, False])
def test_a_log_whose_directory_was_removed_is_brought_anew(running: bool) -> None:
    bench = Bench()
    bench.put("output", b"one\n")
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    assert bench.log() == b"one\n"
    for name in bench.cluster.fs.list("logs"):
        bench.cluster.fs.unlink(f"logs/{name}")
    bench.cluster.fs.rmdir("logs")
    if running:
        bench.put("output", b"one\ntwo\n")
        bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
        bench.cluster.step("w1")
        assert bench.log() == b"one\ntwo\n"
    bench.end(output="one\ntwo\nthree\n")
    assert bench.log() == b"one\ntwo\nthree\n"


def test_no_directory_is_made_where_the_spool_is_not_seen() -> None:
    bench = Bench()
    for name in ("logs", "spool.json"):
        bench.cluster.fs.rename(name, f"tmp/{name}")
    bench.put("output", b"one\n")
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    assert "logs" not in bench.cluster.fs.list("")


def test_a_log_is_not_worth_a_task() -> None:
    bench = Bench()
    bench.node.fs.fail("append", "logs/", 5, times=1)
    result = bench.end(output="lost")
    assert bench.cluster.state("a") == "completed"
    assert (result["log"], result["output"]) == (None, "lost")


def test_output_that_is_missing_from_a_log_for_good_is_reported_for_a_while(caplog: pytest.LogCaptureFixture) -> None:
    """The attempt that lacked it is over within a step, and its notes with it."""
    bench = Bench()
    bench.cluster.fs.rename("logs", "logs.old")
    bench.cluster.fs.make_symlink("logs", "elsewhere")
    bench.end(output="one\n")
    assert bench.cluster.state("a") == "completed"
    (told,) = bench.node.worker.notes
    assert "output of 1 task is missing from the logs: logs is a link where a directory should be" in told
    assert [line for line in caplog.messages if "output of a.1 is missing from its log: logs is a link" in line]
    bench.cluster.advance(LOSS_REMEMBERED_S + 1)
    assert not bench.node.worker.notes


def test_what_stood_in_the_way_of_the_logs_is_told_only_as_long_as_it_stands() -> None:
    bench = Bench()
    bench.cluster.fs.rename("logs", "logs.old")
    bench.cluster.fs.make_symlink("logs", "elsewhere")
    bench.end(output="one\n")
    bench.cluster.advance(30)
    assert "logs is a link" in "".join(bench.node.worker.notes)
    bench.cluster.fs.unlink("logs")
    bench.cluster.fs.rename("logs.old", "logs")
    bench.cluster.advance(60)
    assert not bench.node.worker.notes
    found = snapshots.latest(bench.cluster.fs)
    assert found is not None
    assert "logs is a link" not in found[1].model_dump_json()


def test_a_log_that_can_be_written_again_is_no_more_warned_of_while_its_task_runs() -> None:
    bench = Bench()
    bench.node.fs.fail("append", "logs", errno.EIO, times=2)
    bench.put("output", b"one\n")
    bench.cluster.advance(1)
    assert "the log of a.1 cannot be written" in "".join(bench.node.worker.notes)
    bench.cluster.advance(3)
    assert not bench.node.worker.notes
    assert bench.log() == b"one\n"


def test_output_that_comes_late_is_not_missing() -> None:
    bench = Bench()
    bench.node.fs.fail("append", "logs", errno.EIO, times=2)
    bench.put("output", b"one\n")
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    assert ["the log of a.1 cannot be written" in note for note in bench.node.worker.notes] == [True]
    bench.cluster.pass_time(2 * attempt_output.LOCAL_LOGS_S)
    bench.cluster.step("w1")
    bench.end(output="one\ntwo\n")
    assert (bench.log(), bench.node.worker.notes) == (b"one\ntwo\n", ())


@pytest.mark.parametrize("verb", ["write", "sync"])
def test_a_result_that_cannot_be_written_is_tried_again_before_anything_else(verb: str) -> None:
    bench = Bench()
    bench.node.fs.fail(verb, "results", 28, times=2)
    bench.cluster.finish("a", output="precious")
    for _ in range(2):
        bench.cluster.step("w1")
        assert bench.cluster.state("a") == "claimed"
        assert any("the result of a.1" in note for note in bench.node.worker.notes)
    bench.cluster.step("w1")
    assert bench.cluster.state("a") == "completed"
    assert bench.result()["output"] == "precious"


def test_a_result_that_cannot_be_written_is_told_once_for_each_error(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.node.fs.fail("write", "results", errno.ENOSPC, times=3)
    bench.node.fs.fail("write", "results", errno.EIO)
    bench.node.fs.fail("write", "results", errno.ENOSPC)
    bench.cluster.finish("a")
    for _ in range(6):
        bench.cluster.step("w1")
    assert bench.cluster.state("a") == "completed"
    assert [line for line in caplog.messages if "result" in line] == [
        "the result of a.1 cannot be written: No space left on device; it is tried again",
        "the result of a.1 cannot be written: Input/output error; it is tried again",
    ]


def test_the_result_is_out_before_the_task_is_committed() -> None:
    bench = Bench()
    seen: list[bool] = []
    fs = bench.cluster.fs
    bench.cluster.during("w1", "rename", "completed/", lambda: seen.append("a.1.w1.json" in fs.list("results")))
    bench.end()
    assert seen == [True]


def test_a_commit_that_is_refused_is_told_and_tried_again() -> None:
    bench = Bench()
    bench.node.fs.fail("rename", "completed/", 30)
    bench.cluster.finish("a")
    bench.cluster.step("w1")
    assert bench.cluster.state("a") == "claimed"
    assert any("cannot be committed yet" in note for note in bench.node.worker.notes)
    bench.cluster.step("w1")
    assert bench.cluster.state("a") == "completed"


def test_what_is_committed_leaves_nothing_in_the_scratch() -> None:
    bench = Bench()
    bench.end(output="x")
    assert bench.node.scratch is not None
    assert bench.node.scratch.files == {}


def several(remote: bool = False) -> tuple[Cluster, Node]:
    """A worker that runs a, b and c."""
    made = Cluster(remote=remote)
    made.master("m1")
    node = made.worker("w1", 3)
    for task_id in ("a", "b", "c"):
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"]}))
    made.step("m1")
    made.step("w1")
    return made, node


def test_results_are_written_at_once_and_each_is_committed_or_stays_by_itself() -> None:
    made, node = several(remote=True)
    node.worker._settling._writers = writers = Writers(3)
    together = threading.Barrier(3, timeout=30)
    for task_id in ("a", "b", "c"):
        node.fs.hang("write", f"results/{task_id}.1.w1.json", together.wait)
        made.finish(task_id)
    node.fs.fail("write", "results/b.1.w1.json", errno.EIO)
    made.step("w1")
    assert [made.state(task_id) for task_id in ("a", "b", "c")] == ["completed", "claimed", "completed"]
    made.step("w1")
    assert made.state("b") == "completed"
    writers.close()


def test_where_the_disk_is_at_hand_results_wait_for_it_together() -> None:
    made, node = several()
    for task_id in ("a", "b", "c"):
        made.finish(task_id)
    node.fs.fail("flush", "", errno.EIO)
    made.step("w1")
    assert [made.state(task_id) for task_id in ("a", "b", "c")] == ["claimed"] * 3
    assert any("cannot be made durable" in note for note in node.worker.notes)
    before = node.fs.asked["write"]
    made.step("w1")
    assert [made.state(task_id) for task_id in ("a", "b", "c")] == ["completed"] * 3
    assert (node.fs.asked["write"] - before, node.fs.asked["flush"], node.fs.asked["sync"]) == (3, 2, 0)


def test_after_a_long_wait_for_what_others_wrote_each_result_waits_for_itself() -> None:
    made, node = several()
    node.fs.hang("flush", "", lambda: made.pass_time(settling.LONG_S * 2))
    for task_id in ("a", "b", "c"):
        made.finish(task_id)
    made.step("w1")
    for task_id in ("d", "e", "f"):
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"]}))
    made.step("m1")
    made.step("w1")
    for task_id in ("d", "e", "f"):
        made.finish(task_id)
    made.step("w1")
    assert [made.state(task_id) for task_id in ("a", "d", "e", "f")] == ["completed"] * 4
    assert (node.fs.asked["flush"], node.fs.asked["sync"]) == (1, 1)


@pytest.mark.parametrize(
    ("number", "state", "code", "failures"),
    [
        (errno.E2BIG, "failed", Code.INVALID_TASK, None),
        (0, "failed", Code.INVALID_TASK, None),
        (errno.EAGAIN, "returned", Code.HANDED_BACK, 0),
        (errno.ETXTBSY, "returned", Code.HANDED_BACK, 0),
        (errno.EACCES, "returned", Code.SPAWN_FAILED, 1),
    ],
)
def test_a_program_that_never_began_costs_what_its_error_says(
    number: int, state: str, code: Code, failures: int | None
) -> None:
    bench = Bench()
    shell = None if number == errno.EAGAIN else 126
    result = bench.end(kind="spawn_failed", exit_code=shell, refusal=number, message="why")
    assert (bench.cluster.state("a"), result["error"]["code"]) == (state, code)
    if failures is not None:
        assert bench.returned().failures == failures


def test_a_machine_that_has_no_process_for_a_program_claims_nothing_for_a_while() -> None:
    bench = Bench()
    bench.end(kind="spawn_failed", exit_code=None, refusal=errno.EAGAIN, message="why")
    (note,) = bench.node.worker.notes
    assert "no task can be started here" in note
    assert "raise how many this user or unit may have" in note
    bench.cluster.advance(40)
    bench.cluster.finish("a")
    bench.cluster.step("w1")
    assert bench.node.worker.notes == ()
    assert bench.cluster.state("a") == "completed"


def test_a_record_whose_earlier_attempts_could_not_be_read_claims_no_total() -> None:
    """A total of this attempt alone would hide the cost of all before it from every later reader."""
    bench = Bench(retry={"backoff_s": 0})
    for attempt in (1, 2, 3):
        assert bench.node.scratch is not None
        bench.node.scratch.write(f"a.{attempt}", "result.json", b'{"tokens_used": 500}')
        bench.cluster.finish("a", exit_code=attempt != 3)
        if attempt == 2:
            bench.node.fs.fail("list", "results", errno.EIO)
        bench.cluster.settle()
        bench.cluster.advance(1)
    results = [json.loads(bench.cluster.fs.read(f"results/a.{attempt}.w1.json")) for attempt in (1, 2, 3)]
    assert results[1]["total"] is None
    assert results[2]["total"]["attempts"] == 3
    assert results[2]["total"]["tokens_used"] == 1500


def test_a_later_record_sums_up_all_attempts() -> None:
    bench = Bench(retry={"backoff_s": 0})
    for attempt in (1, 2, 3):
        assert bench.node.scratch is not None
        bench.node.scratch.write(f"a.{attempt}", "result.json", b'{"tokens_used": 500, "cost_usd": 0.25}')
        bench.cluster.pass_time(2)
        bench.cluster.finish("a", exit_code=attempt != 3, cpu_s=1.5)
        bench.cluster.settle()
        bench.cluster.advance(1)
    results = [json.loads(bench.cluster.fs.read(f"results/a.{attempt}.w1.json")) for attempt in (1, 2, 3)]
    assert results[0]["total"] is None
    assert results[2]["tokens_used"] == 500
    own = sum(result["duration_s"] for result in results)
    total = {"attempts": 3, "duration_s": own, "cpu_s": 4.5, "tokens_used": 1500, "cost_usd": 0.75}
    assert results[2]["total"] == pytest.approx(total)
    bench.cluster.advance(20)
    told = snapshots.latest(bench.cluster.fs)
    assert told is not None
    assert told[1].spent == Total.model_validate(results[2]["total"])


@pytest.mark.parametrize("seed", range(24))
def test_each_attempt_from_which_a_task_went_on_has_its_record(seed: int) -> None:
    """Commits whose replies are lost or that are carried out late, while the leader moves on what they committed."""
    chance = random.Random(f"commits {seed}")
    made = Cluster("[retry]\nbackoff_s = 0\njitter = 0\nmax = 9\n")
    made.master("m1")
    node = made.worker("w1")
    made.submit("a.json", json.dumps({"id": "a", "command": ["work"]}))
    made.settle()
    for _ in range(3):
        how: How = chance.choice(["refused", "done", "late"])
        node.fs.fail("rename", "claimed/w1", errno.EIO, how=how, times=chance.randint(1, 2))
        if made.running()["w1"]:
            made.finish("a", exit_code=chance.choice([1, 7, 75]))
        for turn in chance.choices(["w1", "m1", "network", "time"], [4, 4, 2, 1], k=12):
            if turn == "network":
                node.fs.deliver()
            elif turn == "time":
                made.pass_time(0.5)
            else:
                made.step(turn)
    node.fs.faults.clear()
    node.fs.deliver()
    made.advance(20)
    token = made.find("a").name
    kept = [parse_ended(name) for name in made.fs.list("results")]
    assert {one.attempt for one in kept if one is not None} >= set(range(1, token.attempt)), made.fs.list("results")
    assert token.attempt > 1, "else nothing was tried"
