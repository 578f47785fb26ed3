"""Goal: what is gathered of a task is what the leader and the workers know of it, so that the explanation is theirs.

Method: a real master on a spool in memory; workers that only beat; the answers are read as a person reads them.
"""

from __future__ import annotations

import errno
import json

import pytest

from spoold.client.read.explanation import explain
from spoold.client.read.histories import history
from spoold.client.read.preconditions import warnings_of_retry
from spoold.client.read.task_info import describe
from spoold.client.spool.fsck_and_repair import StillAlive, check, mend
from spoold.client.spool.spool_status import status
from spoold.client.spool.waiting import read_result
from spoold.master.master import Master
from spoold.protocol.errors import NotFound
from spoold.protocol.heartbeat import Capabilities
from spoold.protocol.request import Verb
from spoold.protocol.result import Error
from spoold.protocol.snapshot import Snapshot
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.attempts.end_conditions import UNKNOWN_FOR_S
from spoold.store import control, snapshots, task_location
from spoold.store.heartbeats import list_beats
from spoold.store.own_heartbeat import Presence
from spoold.store.store import open_store, stamp
from spoold.store.task_location import locate
from spoold.system.clock import ManualClock
from spoold.system.filesystem import Usage
from spoold.system.host import FakeHost
from tests.client.cluster import Cluster
from tests.support.faults import FaultyFileSystem


def ask(cluster: Cluster, task: str) -> Explanation:
    """The answer."""
    return explain(cluster.store, cluster.host, cluster.clock, task, sleep=cluster.sleep)


def gates(answer: Explanation) -> list[str]:
    """The gates that it names."""
    return [reason.gate for reason in answer.reasons]


@pytest.mark.parametrize("waits", [True, False])
def test_a_child_that_locks_what_its_waiting_parent_locks_is_told_that_neither_goes_on(waits: bool) -> None:
    """It was told to wait for the end of its parent, which waits for it."""
    cluster = Cluster()
    master = cluster.master()
    cluster.worker(running=[{"id": "Top", "attempt": 1, "lent": waits}])
    cluster.drop("Top", locks={"write": ["src/"]})
    cluster.steps(master)
    cluster.claim("top")
    cluster.drop("mid", parent="Top", depth=1)
    cluster.drop("low", parent="mid", depth=2, locks={"read": ["src/a"]})
    cluster.steps(master)
    reason = next(one for one in ask(cluster, "low").reasons if one.gate == "locks")
    assert reason.change.startswith("never, if top" if waits else "it goes on when that task has ended")


def test_dependencies_unknown_open_and_done() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.drop("b")
    cluster.drop("c", dependencies=["a", "b", "ghost"])
    cluster.steps(master)
    cluster.claim("a")
    cluster.claim("b")
    cluster.end("b", "completed")
    cluster.steps(master)
    answer = ask(cluster, "c")
    assert answer.verdict == "it waits for ghost, which this spool does not know"
    assert answer.reasons[1].change == "a is claimed by w-0001 (`spool explain a`)"
    assert gates(answer) == ["dependencies", "dependencies"]


def test_a_pause_of_a_type_and_a_limit() -> None:
    cluster = Cluster("[types.review]\nmax_concurrent = 1\n")
    master = cluster.master()
    cluster.worker()
    for name in ("a", "b"):
        cluster.drop(name)
    cluster.steps(master)
    answer = ask(cluster, "b")
    assert answer.verdict.startswith("type review runs at its limit: 1 of [types.review] max_concurrent = 1")
    control.post(cluster.open("cli-here-0002"), Verb.PAUSE, "review", "1")
    cluster.steps(master)
    for name in ("a", "b"):
        answer = ask(cluster, name)
        assert answer.state == "waiting"
        said = "type review is paused; `spool resume review` lets it go on; asked for by cli-here-0002 since "
        assert answer.verdict.startswith(said)


def test_a_halt_without_content_was_asked_for_by_an_unknown_user() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.drop("a")
    cluster.fs.write("control/halt.+all.x-1.json", b"", durable=False)
    cluster.steps(master)
    answer = ask(cluster, "a")
    assert answer.verdict == "the spool is halted; `spool resume` lets it go on; asked for by an unknown user"


def test_after_the_end_of_a_leader_a_standby_is_named_and_there_is_nothing_to_do() -> None:
    cluster = Cluster("[budgets.purse]\ncost_usd = 1\n")
    gone = cluster.host.another()
    master = cluster.master("m-0001", gone)
    cluster.master("m-0002")
    cluster.steps(master)
    gone.die()
    cluster.drop("a", budgets=["purse"])
    answer, picture = ask(cluster, "a"), status(cluster.store, cluster.host, cluster.clock, sleep=cluster.sleep)
    (reason,) = answer.reasons
    said = "no node leads the spool just now, so nothing is admitted, retried or taken back"
    assert (answer.verdict, reason.change) == (said, "nothing: m-0002 stands by, and leads within about 15 s")
    (warning,) = picture.warnings
    assert warning == (
        "no leader is seen, so nothing is admitted, retried or taken back; these figures were counted just now. "
        "m-0002 stands by, and leads within about 15 s"
    )


def test_a_drop_behind_many_others_is_told_how_many_come_before_it() -> None:
    cluster = Cluster()
    cluster.master()
    for number in range(150):
        cluster.drop(f"d{number:03}")
    cluster.fs.write("pending/.d000", b"no drop", durable=False)
    answer = ask(cluster, "d140")
    assert answer.verdict == "before it in pending/: 140 drops"
    (reason,) = answer.reasons
    assert reason.change == "nothing: m-0001 admits drops in the order of their names"
    assert ask(cluster, "d001").verdict == "nothing stands in its way: m-0001 admits it within moments"


def test_who_waits_for_a_lock_is_told_how_many_in_line_come_before_it() -> None:
    """The fifth and the 20,000th were told of 1 task in line."""
    cluster = Cluster("[limits.x]\nmax = 9\n")
    master = cluster.master()
    cluster.worker()
    cluster.drop("a", locks={"write": ["src/"]})
    cluster.steps(master)
    cluster.claim("a")
    for task in "bcde":
        cluster.drop(task, locks={"write": ["src/"]}, uses=["x"] if task == "d" else [])
    cluster.drop("f", locks={"write": ["docs/"]})
    cluster.steps(master, 6)

    def line(task: str) -> str:
        return next(one.reason for one in ask(cluster, task).reasons if one.gate == "locks").rpartition("; ")[2]

    assert [line(task) for task in "bcde"] == [
        "4 tasks in line, none of them before it",
        "4 tasks in line, at most 1 of them before it",
        "4 tasks in line, at most 3 of them before it",
        "4 tasks in line, at most 3 of them before it",
    ]


def test_those_in_line_for_other_locks_come_before_nobody() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    for task, path in (("a", "src/"), ("h", "docs/")):
        cluster.drop(task, locks={"write": [path]})
        cluster.steps(master)
        cluster.claim(task)
    for task, path in (("g", "docs/"), ("b", "src/"), ("c", "src/")):
        cluster.drop(task, locks={"write": [path]}, requires={"cpu": 1} if task == "g" else {})
        cluster.steps(master)
    said = {one.gate: one.reason for one in ask(cluster, "c").reasons}["locks"]
    assert said.endswith("3 tasks in line, at most 1 of them before it")


def test_who_waits_for_a_budget_is_told_how_many_of_its_lane_come_before_it() -> None:
    cluster = Cluster("[budgets.purse]\ncost_usd = 1\n")
    master = cluster.master()
    cluster.worker()
    for task in "abcd":
        cluster.drop(task, budgets=["purse"], budget={"cost_usd": 1})
        cluster.steps(master)
    assert ask(cluster, "d").verdict.endswith("; before it in its lane: 2 tasks")
    assert "before it" not in ask(cluster, "b").verdict


def test_a_limit_that_only_a_ready_task_holds_names_that_task() -> None:
    cluster = Cluster("[types.review]\nmax_concurrent = 1\n")
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.drop("b")
    cluster.steps(master)
    full = "type review runs at its limit: 1 of [types.review] max_concurrent = 1"
    answer = ask(cluster, "b")
    assert answer.verdict == f"{full}; none of it runs yet: a stands ready"
    change = "it goes on when a has run (`spool explain a` says why no worker takes it); or raise it: "
    assert answer.reasons[0].change.startswith(change)
    cluster.claim("a")
    cluster.steps(master)
    answer = ask(cluster, "b")
    assert answer.verdict == full
    assert answer.reasons[0].change.startswith("it goes on when one of them ends; or raise it: ")


def test_who_waits_for_a_limit_is_told_how_many_that_use_it_come_before_it() -> None:
    cluster = Cluster("[limits.x]\nmax = 1\n[classes.k]\nslots = 1\n")
    master = cluster.master()
    cluster.worker()
    cluster.drop("a", uses=["x"])
    cluster.steps(master)
    cluster.claim("a")
    for task, fields in {"b": {}, "c": {"class": "k"}, "d": {"priority": "low"}, "e": {}}.items():
        cluster.drop(task, uses=["x"], **fields)
    cluster.drop("other", type="other")
    cluster.steps(master)
    full = "limit x runs at its limit: 1 of [limits.x] max = 1"
    assert ask(cluster, "b").verdict == full
    assert ask(cluster, "c").verdict == f"{full}; before it in waiting/: 1 task that uses it"
    assert ask(cluster, "e").verdict == f"{full}; before it in waiting/: 2 tasks that use it"
    assert ask(cluster, "d").verdict == f"{full}; before it in waiting/: 3 tasks that use it"


def test_no_worker_with_a_gpu_and_then_one_whose_gpu_is_taken() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a", requires={"gpus": 1})
    cluster.drop("b", requires={"gpus": 1})
    cluster.steps(master)
    answer = ask(cluster, "a")
    assert answer.verdict == "no worker alive can run it: w-0001: it has 0 gpus, the task requires 1"
    can = {"cpus": 4, "mem_mb": 8192, "gpus": 1, "handlers": ["review"]}
    cluster.worker("w-0002", capabilities=can)
    assert ask(cluster, "a").verdict == "no worker that the leader knows to be awake can run it"
    cluster.steps(master)
    assert ask(cluster, "a").verdict == "it is ready: a worker takes it within moments"
    cluster.claim("a", "w-0002")
    assert ask(cluster, "b").verdict == "no worker has type=review gpu=1 free just now: w-0002"


def test_a_worker_that_does_not_say_what_it_can_serve_is_named() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker("w-0001", capabilities=None)
    cluster.drop("a")
    cluster.steps(master)
    answer = ask(cluster, "a")
    assert gates(answer) == ["capability"]
    assert "w-0001: its heartbeat does not say what it can run" in answer.verdict
    cluster.worker("w-0002")
    assert ask(cluster, "a").verdict == "it is ready: a worker takes it within moments"


def test_busy_draining_and_dead_workers() -> None:
    cluster = Cluster()
    master = cluster.master()
    host = cluster.host.another()
    cluster.worker(host=host)
    for name in ("a", "b", "c"):
        cluster.drop(name)
    cluster.steps(master)
    cluster.claim("a")
    cluster.claim("b")
    assert ask(cluster, "c").verdict == "every worker that can run it is busy: w-0001 (2 of 2 slots)"
    request = control.post(cluster.open("cli-here-0002"), Verb.DRAIN, "w", "1")
    assert gates(ask(cluster, "c")) == ["drain"]
    cluster.fs.unlink(control.path(request))
    host.die()
    assert gates(ask(cluster, "c")) == ["workers"]
    answer = ask(cluster, "a")
    assert answer.verdict == "worker w-0001 holds it and has not been heard of lately"


def test_a_task_that_a_draining_worker_handed_back_says_so() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.steps(master)
    file = cluster.claim("a").encode()
    cluster.result(
        "a.1.w-0001.json",
        "a",
        1,
        status="handed_back",
        error={"code": "HANDED_BACK", "message": "its worker was drained"},
    )
    cluster.fs.rename(f"claimed/w-0001/{file}", f"returned/{file.replace('a1f0c0.json', 'a2f0c0.w-0001.json')}")
    for state in ("waiting", "ready"):
        answer = ask(cluster, "a")
        assert (answer.state, answer.attempt, gates(answer)) == (state, 2, ["handed_back"])
        assert answer.reasons[0].reason == "attempt 1 was handed back by w-0001: its worker was drained"
        assert answer.verdict != answer.reasons[0].reason
        cluster.steps(master)


@pytest.mark.parametrize("told", ["by the result", "by the journal", "by nobody"])
def test_a_retry_delay_ends_when_the_leader_lets_it(told: str) -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.steps(master)
    file = cluster.claim("a").encode()
    if told == "by the result":
        error = {"code": "EXIT_NONZERO", "message": "exit code 1"}
        cluster.result("a.1.w-0001.json", "a", 1, status="failure", error=error)
    back = file.replace("a1f0c0.json", "a2f1c0r9000.w-0001.json")
    cluster.fs.rename(f"claimed/w-0001/{file}", f"returned/{back}")
    master.step()
    if told == "by nobody":
        for path in cluster.tree("events"):
            cluster.fs.unlink(path)
    cluster.clock.advance(4)
    master.step()
    answer = ask(cluster, "a")
    (reason,) = answer.reasons
    left_s = 9 if told == "by nobody" else 5
    assert (reason.gate, answer.attempt) == ("retry_delay", 2)
    assert f": {left_s} s more, until " in reason.reason
    assert ("attempt 1 ended as EXIT_NONZERO: exit code 1" in reason.reason) == (told == "by the result")
    cluster.clock.advance(5.5)
    master.step()
    assert ask(cluster, "a").state == "ready"


def test_a_task_that_runs_and_one_that_ended() -> None:
    cluster = Cluster()
    master = cluster.master()
    presence = cluster.worker()
    cluster.drop("a")
    cluster.drop("b", dependencies=["a"])
    cluster.steps(master)
    cluster.claim("a")
    run = {"id": "a", "attempt": 1, "type": "review", "since": "2025-10-09T08:00:00Z", "progress": "42 %"}
    run["progress_problem"] = "SPOOL_PROGRESS_FILE: is no JSON object."
    presence.beat(0, "working", running=[run], slots=2)
    answer = ask(cluster, "a")
    assert answer.verdict == "it runs on w-0001 since 2025-10-09T08:00:00Z, attempt 1"
    assert [reason.reason for reason in answer.reasons] == ["it last reported: 42 %", run["progress_problem"]]
    cluster.end("a", "failed", status="failure", error={"code": "EXIT_NONZERO", "message": "exit code 65"})
    cluster.steps(master)
    assert ask(cluster, "a").verdict.endswith("attempt 1: EXIT_NONZERO: exit code 65")
    failed = ask(cluster, "b")
    assert failed.verdict == "it never started: DEPENDENCY_FAILED: dependency a failed"
    assert failed.reasons[0].change == "fix the cause (`spool explain a`), then `spool retry a b`"
    control.post(cluster.open("cli-here-0003"), Verb.RETRY, "b", "1")
    cluster.steps(master)
    held = ask(cluster, "b").reasons
    assert [reason.reason for reason in held] == ["a retry was asked for, and waits for a retry of a"]
    assert held[0].change == "`spool retry a` within 10 s, or b fails again"
    cluster.clock.advance(UNKNOWN_FOR_S)
    presence.beat(0, "working", slots=2)
    cluster.steps(master, 4)
    again = ask(cluster, "b")
    assert again.verdict == "attempt 2 never started: DEPENDENCY_FAILED: dependency a failed"
    assert gates(again) == ["failed"]
    control.post(cluster.open("cli-here-0002"), Verb.RETRY, "a", "1")
    cluster.steps(master, 4)
    assert ask(cluster, "b").reasons[0].change == "a has not ended yet: `spool retry b`, and it waits for that"
    cluster.claim("a")
    cluster.end("a", "completed")
    cluster.steps(master)
    assert ask(cluster, "b").reasons[0].change == "a has completed since: `spool retry b`"


@pytest.mark.parametrize(
    ("batch", "change"),
    [
        ("B", "`spool retry --batch B --state failed`"),
        ("", "`spool retry T0 … t99`; `spool retry --state failed` retries every failed task"),
    ],
)
def test_the_end_of_a_long_chain_names_the_task_with_which_its_failure_began(batch: str, change: str) -> None:
    """It named its own dependency, a retry of which failed again."""
    cluster, fields = Cluster(), {"batch": batch} if batch else {}
    master = cluster.master()
    cluster.worker()
    cluster.drop("T0", **fields)
    for number in range(1, 100):
        cluster.drop(f"t{number}", dependencies=["T0" if number == 1 else f"t{number - 1}"], **fields)
    cluster.steps(master)
    cluster.claim("t0")
    cluster.end("T0", "failed", status="failure", error={"code": "EXIT_NONZERO", "message": "exit code 65"})
    cluster.steps(master)
    failed = ask(cluster, "t99")
    assert failed.verdict == "it never started: DEPENDENCY_FAILED: dependency t98 failed; it began with T0"
    assert failed.reasons[0].change.startswith("fix the cause (`spool explain T0`), then ")
    assert failed.reasons[0].change.endswith(change)
    error = result_of(cluster, "t99")
    assert (error.code, error.origin) == ("DEPENDENCY_FAILED", "T0")
    assert result_of(cluster, "t1").message == "dependency T0 failed"
    (warning,) = warnings_of_retry(cluster.store, [locate(cluster.store, "t99")])
    assert "and failed since T0 did" in warning


def test_the_next_leader_finds_in_records_with_which_task_a_failure_began() -> None:
    cluster = Cluster()
    host = cluster.host.another()
    master = cluster.master("m-0001", host)
    cluster.worker()
    cluster.drop("a")
    cluster.drop("b", dependencies=["a"])
    cluster.steps(master)
    cluster.claim("a")
    cluster.end("a", "failed", status="failure", error={"code": "EXIT_NONZERO", "message": "exit code 65"})
    cluster.steps(master)
    host.die()
    cluster.clock.advance(20)
    master = cluster.master("m-0002")
    cluster.drop("c", dependencies=["b"])
    cluster.steps(master, 4)
    assert result_of(cluster, "c").message == "dependency b failed; it began with a"


def result_of(cluster: Cluster, task: str) -> Error:
    """Why a task failed."""
    error = read_result(cluster.store, locate(cluster.store, task)).error
    assert error is not None
    return error


def test_a_claim_on_a_share_without_inodes(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.drop("b")
    cluster.steps(master)
    cluster.claim("a")
    monkeypatch.setattr(cluster.fs, "usage", lambda: Usage(total_bytes=1 << 40, free_bytes=1 << 40, free_inodes=0))
    assert ask(cluster, "a").verdict.endswith("the share is out of inodes, so no result can be written")
    assert ask(cluster, "b").verdict == "the share is out of inodes, so workers start nothing"


def test_a_failure_is_followed_to_the_task_with_which_it_began() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("root")
    cluster.drop("left", dependencies=["root"])
    cluster.drop("right", dependencies=["root"])
    cluster.drop("top", dependencies=["left", "right"])
    cluster.steps(master)
    cluster.claim("root")
    cluster.end("root", "failed", status="failure", error={"code": "EXIT_NONZERO", "message": "exit code 65"})
    cluster.steps(master, 4)
    change = (
        "fix the cause (`spool explain root`), then retry root, the tasks that failed because of that and top "
        "by one command: `spool retry root … top`; `spool retry --state failed` retries every failed task"
    )
    assert ask(cluster, "top").reasons[0].change == change
    for path in cluster.tree("results"):
        if "/left" in path or "/right" in path:
            cluster.fs.write(path, b"?", durable=False)
    assert ask(cluster, "top").reasons[0].change.endswith("then `spool retry left right top`")
    for path in cluster.tree("failed"):
        if "/top" in path:
            cluster.fs.write(path, b"?", durable=False)
    assert ask(cluster, "top").reasons[0].change == "fix its dependencies, then `spool retry top`"


def test_drops_that_are_young_wrong_well_and_rejected() -> None:
    cluster = Cluster()
    cluster.fs.write("pending/young.json", b'{"type": "rev', durable=False)
    cluster.fs.write("pending/wrong.json", b'{"tpye": "review"}', durable=False)
    cluster.fs.write("pending/many.jsonl", b'{"type": "review", "id": "m1"}\n{', durable=False)
    cluster.fs.write("pending/bad.jsonl", b'{"type": "review"}\n{"type": "review", "id": "m2", }\n', durable=False)
    cluster.drop("well")
    assert gates(ask(cluster, "young.json")) == ["leader", "young"]
    assert gates(ask(cluster, "wrong.json")) == ["leader", "drop"]
    assert gates(ask(cluster, "many.jsonl")) == ["leader", "young"]
    assert gates(ask(cluster, "well")) == ["leader"]
    cluster.fs.writers.add(cluster.fs.stat("pending/young.json").inode)
    assert gates(ask(cluster, "young.json")) == ["leader", "writer", "young"]
    cluster.fs.mkdir("pending/folder.json")
    master = cluster.master()
    cluster.steps(master)
    answer = ask(cluster, "wrong.json")
    assert answer.state == "rejected"
    assert answer.verdict == "it was rejected: tpye: unknown field."
    assert answer.reasons[0].change == "did you mean 'type'?"
    line = "bad.jsonl line 2: is not JSON: trailing comma is not allowed (column 30)."
    assert ask(cluster, "bad.jsonl").verdict == f"it was rejected: {line}"
    assert describe(cluster.store, "bad.jsonl").reason.startswith(f"{line} Fix: fix it there; ")


@pytest.mark.parametrize("drop", ["closed.json", "closed.jsonl"])
def test_a_drop_that_the_asker_may_not_read_is_called_so(drop: str) -> None:
    cluster = Cluster()
    cluster.fs.write(f"pending/{drop}", b'{"type": "review"}\n', durable=False)
    mount = FaultyFileSystem(cluster.fs)
    mount.fail("read", f"pending/{drop}", errno.EACCES, times=100)
    cluster.store = open_store(mount, cluster.clock, "cli-here-0002", "spool")
    answer = ask(cluster, drop)
    assert gates(answer) == ["leader", "hidden"]
    assert (answer.reasons[1].change or "").startswith("its owner (or root) lets the group read it (`chmod -R g+rwX ")


def test_without_a_leader_nothing_waiting_moves() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a", not_before="2030-01-01T00:00:00Z")
    cluster.steps(master)
    master.close()
    assert gates(ask(cluster, "a")) == ["not_before", "leader"]


def test_without_a_token_nobody_is_told_to_start_a_master() -> None:
    cluster = Cluster()
    cluster.steps(cluster.master())
    cluster.drop("a")
    for path in cluster.tree("master"):
        cluster.fs.unlink(path)
    (reason,) = ask(cluster, "a").reasons
    assert (reason.gate, reason.change) == ("leader", "stop all nodes and run `spool fsck --repair`")


def test_an_unknown_task_is_not_found() -> None:
    with pytest.raises(NotFound):
        ask(Cluster(), "nobody")


def test_a_spool_in_use_is_audited_and_not_repaired() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.drop("a")
    cluster.steps(master)
    (ready,) = cluster.tree("ready")
    cluster.fs.write(ready.replace("ready/", "waiting/"), b"{}", durable=False) if cluster.fs.list(
        "waiting"
    ) else None
    cluster.fs.mkdir("ready/type=other")
    cluster.fs.rename(ready, ready.replace("type=review", "type=other"))
    report = check(cluster.store, sleep=cluster.sleep)
    assert (report.broken, report.verdict) == (True, "1 error")
    with pytest.raises(StillAlive, match="m-0001"):
        mend(cluster.store, cluster.host, cluster.clock, report, sleep=cluster.sleep)
    master.close()
    (step,) = mend(cluster.store, cluster.host, cluster.clock, report, sleep=cluster.sleep)
    assert step.done
    assert check(cluster.store, sleep=cluster.sleep).verdict == "clean"
    assert mend(cluster.store, cluster.host, cluster.clock, check(cluster.store)) == []


def test_a_token_on_the_move_is_no_finding() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker(host=FakeHost("there"))
    cluster.drop("a")
    cluster.steps(master)
    (ready,) = cluster.tree("ready")
    listed = cluster.fs.list
    slept: list[float] = []

    class Moving:
        """Moves the task once, after ready/ was listed and before claimed/ is."""

        def __getattr__(self, name: str) -> object:
            return getattr(cluster.fs, name)

        def list(self, path: str) -> list[str]:
            if path == "claimed" and cluster.tree("ready"):
                cluster.claim("a")
            return listed(path)

    cluster.store.fs = Moving()  # type: ignore[assignment]
    report = check(cluster.store, sleep=slept.append)
    assert (report.verdict, report.counts["claimed"], report.counts["ready"]) == ("clean", 1, 0)
    assert len(slept) == 1
    assert not cluster.tree(ready.rpartition("/")[0])


def test_a_claim_that_no_beat_tells_of_yet_is_in_the_workers_journal() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.steps(master)
    cluster.claim("a")
    assert ask(cluster, "a").verdict == "it runs on w-0001, attempt 1"
    line = b'{"at": "%s", "writer": "w-0001", "seq": %d, "event": "CLAIMED", "task": "a", "attempt": %d}\n'
    lines = [line % (b"2025-10-09T08:00:00Z", 1, 1), line % (b"later", 2, 2), b'{"task": "a", "event": "CLAIMED"\n']
    cluster.fs.append("events/w-0001.0.jsonl", b"".join(lines))
    assert ask(cluster, "a").verdict == "it runs on w-0001 since 2025-10-09T08:00:00Z, attempt 1"


CAN = Capabilities(cpus=4, mem_mb=8192, handlers=("review",), allow_command=True)
FROZEN_THERE = "the task is frozen there if its lease is over"


def claimed(host: FakeHost | None = None) -> tuple[Cluster, Presence, Master]:
    """A task on a worker that has just beaten."""
    cluster = Cluster()
    master = cluster.master()
    presence = cluster.worker(host=host)
    cluster.drop("a")
    cluster.steps(master)
    cluster.claim("a")
    return cluster, presence, master


def test_a_worker_that_cannot_write_to_the_share_is_not_said_to_run_the_task() -> None:
    cluster, _, _ = claimed()
    cluster.clock.advance(12)
    assert ask(cluster, "a").verdict == "it runs on w-0001, attempt 1"
    cluster.clock.advance(8)
    before = cluster.clock.monotonic()
    answer = ask(cluster, "a")
    assert answer.verdict == f"w-0001 holds it, attempt 1, and was last heard of 24 s ago; {FROZEN_THERE}"
    assert cluster.clock.monotonic() - before < 4, "the leader is watched for; on this host no worker need be"
    cluster.host.machine.running.clear()
    assert FROZEN_THERE not in ask(cluster, "a").verdict, "its process is gone, and so is what it ran"


def test_a_beat_that_was_renewed_since_it_was_written_is_no_silence() -> None:
    cluster, presence, _ = claimed()
    for _ in range(4):
        cluster.clock.advance(3.5)
        presence.beat(cluster.clock.monotonic(), "idle", slots=2, capabilities=CAN)
    assert [name.beat - name.content for name in list_beats(cluster.fs).values() if name.node == "w-0001"] == [4]
    assert ask(cluster, "a").verdict == "it runs on w-0001, attempt 1"


@pytest.mark.parametrize("beats", [True, False])
def test_a_worker_elsewhere_is_watched_before_it_is_called_silent(beats: bool) -> None:
    """Its clock may be wrong by more than a lease, and nobody has noticed."""
    cluster, presence, master = claimed(FakeHost("there"))

    def beat() -> None:
        cluster.clock.set_wall(cluster.clock.wall() - 3600)
        presence.beat(cluster.clock.monotonic(), "working", clock_ahead_s=None)
        cluster.clock.set_wall(cluster.clock.wall() + 3600)

    def sleep(seconds: float) -> None:
        cluster.clock.advance(seconds)
        master.step()
        if beats and presence.due(cluster.clock.monotonic()):
            beat()

    beat()
    cluster.steps(master)
    answer = explain(cluster.store, cluster.host, cluster.clock, "a", sleep=sleep)
    assert answer.verdict.startswith("it runs on w-0001") is beats
    assert (FROZEN_THERE in answer.verdict) is not beats


def test_drops_of_the_wrong_kind_and_batches() -> None:
    cluster = Cluster("[drop]\nmax_bytes = 1024\n")
    cluster.fs.write("pending/huge.json", b" " * 1025, durable=False)
    cluster.fs.write("pending/many.whole.jsonl", b'{"type": "review", "id": "m1"}\n', durable=False)
    assert "over the limit" in ask(cluster, "huge.json").reasons[1].reason
    assert gates(ask(cluster, "m1")) == ["leader"]
    cluster.fs.mkdir("admitting/1.m-0001.1")
    cluster.fs.rename("pending/many.whole.jsonl", "admitting/1.m-0001.1/0123456789-1.many.jsonl")
    assert gates(ask(cluster, "m1")) == ["leader"]


def test_a_rejection_whose_reason_cannot_be_read() -> None:
    cluster = Cluster()
    cluster.fs.write("rejected/x.json", b"?", durable=False)
    cluster.fs.write("rejected/x.json.reason.json", b"", durable=False)
    assert ask(cluster, "x.json").verdict == "it was rejected, and no reason is beside it"


def test_a_file_in_rejected_without_a_reason_is_explained_and_never_taken_for_its_own_reason() -> None:
    cluster = Cluster()
    cluster.fs.write("rejected/y.json", b'{"id": "z", "problem": "forged"}', durable=False)
    answer = ask(cluster, "y.json")
    assert (answer.state, answer.verdict) == ("rejected", "it was rejected, and no reason is beside it")
    assert answer.reasons[0].change == "put it into pending/ again and it is judged anew"


def test_a_task_that_cannot_be_read_is_explained_by_its_lane() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.drop("a")
    cluster.steps(master)
    (ready,) = cluster.tree("ready")
    cluster.fs.write(ready, b"", durable=False)
    assert gates(ask(cluster, "a")) == ["file", "workers"]
    back = ready.rpartition("/")[2].replace(".json", ".w-0001.json")
    cluster.fs.rename(ready, f"returned/{back}")
    assert ask(cluster, "a").verdict == f"its file returned/{back}: is empty."


def test_a_result_that_is_lost_is_said_to_be() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("a")
    cluster.steps(master)
    cluster.claim("a")
    ended = cluster.end("a", "failed", status="failure")
    cluster.fs.unlink(f"results/{ended}")
    assert ask(cluster, "a").verdict == "it failed, and its result cannot be read"


def test_a_task_that_keeps_moving_is_not_looked_for_for_ever() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.drop("a")
    cluster.steps(master)
    (ready,) = cluster.tree("ready")

    class Fleeting:
        """Shows a task that is gone whenever it is opened."""

        def __getattr__(self, name: str) -> object:
            return getattr(cluster.fs, name)

        def read(self, path: str, limit: int | None = None) -> bytes:
            if path == ready:
                raise FileNotFoundError(2, "No such file or directory", path)
            return cluster.fs.read(path, limit)

    cluster.store.fs = Fleeting()  # type: ignore[assignment]
    with pytest.raises(NotFound, match="keeps moving"):
        ask(cluster, "a")


@pytest.mark.parametrize("skew_s", [86_400.0, -86_400.0])
def test_whoever_asks_with_a_wrong_clock_is_told_what_the_leader_does(skew_s: float) -> None:
    cluster = Cluster()
    master = cluster.master()
    moment = cluster.clock.wall()
    cluster.drop("later", not_before=stamp(moment + 3600))
    cluster.drop("soon", deadline=stamp(moment + 3600), after="nobody")
    cluster.steps(master)
    mine = ManualClock(wall=moment + skew_s)

    def sleep(seconds: float) -> None:
        for clock in (mine, cluster.clock):
            clock.advance(seconds)
        master.step()

    for task, gate in (("later", "not_before"), ("soon", "dependencies")):
        answer = explain(cluster.store, cluster.host, mine, task, sleep=sleep)
        assert gates(answer)[0] == gate
    mine.set_wall(moment + 4000)
    assert gates(explain(cluster.store, cluster.host, mine, "later", sleep=sleep))[0] == "not_before"


def test_a_line_of_a_rejected_batch_is_known_by_its_id() -> None:
    cluster = Cluster()
    master = cluster.master()
    lines = [{"id": "x-1", "type": "review"}, {"id": "x-2", "typ": "review"}, {"type": "review", "id": "x-3"}]
    data = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    cluster.fs.write("pending/night.whole.jsonl", data, durable=False)
    cluster.steps(master)
    for task_id in ("x-1", "X-2", "x-3"):
        answer = ask(cluster, task_id)
        assert (answer.state, "night.whole.jsonl line 2: typ: unknown field" in answer.verdict) == ("rejected", True)
    assert [found.id for found in task_location.iter_tasks(cluster.store)] == ["night.whole.jsonl"]
    cluster.drop("x-1")
    cluster.steps(master)
    assert ask(cluster, "x-1").state != "rejected"


def test_a_task_whose_file_another_program_removed_is_told_everywhere() -> None:
    """N31: after `rm -r ready`, only a line of a journal told of the tasks that had been there."""
    cluster = Cluster()
    master = cluster.master()
    cluster.drop("a")
    cluster.drop("b", after="a")
    cluster.steps(master)
    path = task_location.locate(cluster.store, "a").path
    cluster.fs.unlink(path)
    for _ in range(20):
        cluster.clock.advance(1)
        cluster.steps(master)
    (told,) = [said for said in seen(cluster).warnings if "vanished" in said]
    assert f"1 task vanished, since another program removed the file: a (it was {path})" in told
    answer = ask(cluster, "b")
    assert answer.verdict == "it waits for a, which this spool does not know"
    assert f"a (it was {path}, and another program removed its file)" in answer.reasons[0].change
    told_of = history(cluster.store, "A")
    assert (told_of.state, told_of.attempt) == ("vanished", 1)
    assert [chapter.event for chapter in told_of.chapters][-1] == "VANISHED"
    with pytest.raises(NotFound):
        history(cluster.store, "nobody")
    cluster.drop("a")
    cluster.steps(master)
    cluster.clock.advance(5)
    cluster.steps(master)
    assert not [said for said in seen(cluster).warnings if "vanished" in said]
    assert ask(cluster, "b").verdict == "it waits for a to complete"
    assert history(cluster.store, "a").state == "ready"


def seen(cluster: Cluster) -> Snapshot:
    found = snapshots.latest(cluster.fs)
    assert found is not None
    return found[1]


def test_a_merge_that_nobody_serves_is_told_with_its_repository() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("m", type="merge", command=None, input={"repo": "/srv/git/r.git", "tasks": ["a"]})
    cluster.steps(master)
    assert any('`repos = ["/srv/git/r.git"]`' in reason.change for reason in ask(cluster, "m").reasons)
