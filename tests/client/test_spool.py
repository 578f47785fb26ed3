"""What a program can ask of a spool: all about a task, its logs, requests, events."""

import orjson
import pytest

from spoold.client.spool_client import SpoolClient
from spoold.protocol import layout
from spoold.protocol.errors import BadName, NotFound, SpoolError, Unavailable
from spoold.protocol.names import is_node
from spoold.protocol.result import Code
from spoold.store.control import list_requests
from tests.client.cluster import Cluster
from tests.client.trees import WORKER, Tree, soon


@pytest.fixture
def tree() -> Tree:
    return Tree()


def asked(tree: Tree) -> list[tuple[str, str]]:
    return [(request.verb.value, request.target) for request in list_requests(tree.fs)]


def test_all_about_a_task_that_was_tried_twice(tree: Tree) -> None:
    tree.result("a", 1, code=Code.EXIT_NONZERO)
    tree.result("a", 2, code=Code.TIMEOUT)
    tree.put(layout.waiting("type=t", tree.name("a", 3, failures=2).encode()), {"type": "t", "batch": "b", "id": "a"})
    with tree.spool() as spool:
        info = spool.show("a")
    assert (info.state, info.attempt, info.reason) == ("waiting", 3, "attempt 2 ended with TIMEOUT: it broke")
    assert (info.type, info.batch, info.priority, info.lane) == ("t", "b", 0, "type=t")
    assert (info.failures, info.crashes, info.worker) == (2, 0, None)
    assert [attempt.attempt for attempt in info.attempts] == [1, 2]
    assert info.task == {"type": "t", "batch": "b", "id": "a"}
    assert info.admitted_at == "2025-10-09T08:53:20.000Z"


def test_the_attempt_that_counts_comes_last_in_the_history(tree: Tree) -> None:
    """A fenced attempt may leave its record after the one that won."""
    tree.ends("a", 1)
    tree.result("a", 2, code=Code.HANDED_BACK)
    with tree.spool() as spool:
        assert [(r.attempt, r.status) for r in spool.show("a").attempts] == [(2, "failure"), (1, "success")]


def test_why_a_task_failed_or_was_rejected(tree: Tree) -> None:
    tree.ends("a", code=Code.MAX_RETRIES, completed_at="2026-02-03T04:05:06Z")
    tree.rejects("bad.json", "b")
    tree.ends_archived("c")
    with tree.spool() as spool:
        failed, rejected, archived = (spool.show(task_id) for task_id in "abc")
    assert (failed.state, failed.reason) == ("failed", "MAX_RETRIES: it broke")
    assert failed.completed_at == "2026-02-03T04:05:06Z"
    assert (rejected.state, rejected.attempt) == ("rejected", 0)
    assert rejected.reason == "bad.json: tpye: unknown field. Fix: type?"
    assert (archived.state, archived.archived, archived.reason, len(archived.attempts)) == ("completed", True, "", 1)


def test_a_running_task_shows_what_its_worker_says_of_it(tree: Tree) -> None:
    tree.claimed("a")
    running = {"id": "a", "attempt": 1, "type": "t", "since": "2026-01-01T00:00:00Z", "progress": {"done": 3}}
    running["progress_problem"] = "is a directory"
    beat = {"node": WORKER, "role": "worker", "beat": 4, "at": "", "host": {"hostname": "h"}, "pid": 1}
    beat |= {"process_start": 1, "version": "1", "status": "working", "running": [running]}
    tree.put(f"heartbeats/{WORKER}.4.json", beat)
    with tree.spool() as spool:
        info = spool.show("a")
    assert (info.worker, info.started_at, info.progress) == (WORKER, "2026-01-01T00:00:00Z", {"done": 3})
    assert info.progress_problem == "is a directory"


def test_logs_are_of_the_last_attempt_unless_one_is_named(tree: Tree) -> None:
    tree.log("a", b"first\n", 1)
    tree.log("a", b"second\n", 2)
    tree.log("ab", b"another\n", 1)
    tree.ends("a", 2)
    with tree.spool() as spool:
        assert list(spool.logs("a")) == [b"second\n"]
        assert list(spool.logs("a", attempt=1)) == [b"first\n"]
        with pytest.raises(NotFound, match="no log of attempt 3"):
            list(spool.logs("a", attempt=3))


def test_a_task_that_wrote_nothing_has_an_empty_log(tree: Tree) -> None:
    tree.ends("a")
    with tree.spool() as spool:
        assert list(spool.logs("a")) == []


def test_followed_logs_come_in_pieces_until_the_end(tree: Tree) -> None:
    tree.claimed("a")
    tree.log("a", b"one ")
    with tree.spool() as spool:
        pieces = spool.logs("a", follow=True, attempt=0)
        assert next(pieces) == b"one "
        tree.log("a", b"one two ")
        assert next(pieces) == b"two "
        tree.log("a", b"three", 2)

        def end() -> None:
            tree.log("a", b"three four", 2)
            tree.ends("a", 2)

        thread = soon(end)
        assert b"".join(pieces) == b"three four"
        thread.join()


def test_following_an_archived_task_ends_at_once(tree: Tree) -> None:
    tree.ends_archived("a")
    tree.put(f"{layout.bucket('a')}/a.1.{WORKER}.log", b"old")
    with tree.spool() as spool:
        assert list(spool.logs("a", follow=True)) == [b"old"]


def test_requests_are_files_that_say_who_asked_and_why(tree: Tree) -> None:
    tree.claimed("a-long-id")
    with tree.spool() as spool:
        assert spool.cancel(["a-long-id", "A-long-id"], reason="wrong input") == ["a-long-id"]
    (name,) = tree.fs.list(layout.CONTROL)
    body = orjson.loads(tree.fs.read(layout.join(layout.CONTROL, name)))
    assert name.startswith("cancel.a-long-id.")
    assert body["reason"] == "wrong input"
    assert "@" in body["by"]


def test_every_request_has_its_verb_and_target(tree: Tree) -> None:
    tree.ends("f", code=Code.TIMEOUT)
    tree.put("heartbeats/lap1-aaaaa.3.json", {})
    tree.put("heartbeats/lap1-bbbbb.3.json", {})
    with tree.spool() as spool:
        spool.retry("f")
        spool.pause(" Review")
        spool.pause()
        spool.resume()
        assert spool.drain("lap1") == ["lap1-aaaaa", "lap1-bbbbb"]
        assert spool.drain() == []
        assert spool.undrain("lap1-bbbbb") == ["lap1-bbbbb"]
        spool.halt(reason="stop")
        spool.gc()
    assert sorted(asked(tree)) == [
        ("drain", "+all"),
        ("drain", "lap1-aaaaa"),
        ("drain", "lap1-bbbbb"),
        ("gc", "+all"),
        ("halt", "+all"),
        ("pause", "+all"),
        ("pause", "review"),
        ("resume", "+all"),
        ("retry", "f"),
        ("undrain", "lap1-bbbbb"),
    ]


@pytest.mark.parametrize("target", ["m-desk", "m-desk-00001"])
def test_a_master_is_not_drained_and_says_so(target: str) -> None:
    cluster = Cluster()
    cluster.master("m-desk-00001")
    cluster.worker("desk-00001")
    with SpoolClient("spool", filesystem=cluster.fs) as spool:
        with pytest.raises(SpoolError, match="m-desk-00001 is a master, which runs no tasks"):
            spool.drain(target)
        assert spool.drain("Desk") == ["desk-00001"]


def test_what_cannot_be_asked_is_said(tree: Tree) -> None:
    tree.waits("w")
    tree.ends("f", code=Code.TIMEOUT)
    tree.rejects("bad.json", "r")
    tree.put("pending/nameless.json", {"type": "t"})
    with tree.spool() as spool:
        with pytest.raises(NotFound):
            spool.cancel("nope")
        with pytest.raises(NotFound, match="has no id yet"):
            spool.cancel("nameless.json")
        with pytest.raises(SpoolError, match="only a failed task"):
            spool.retry(["f", "w"])
        with pytest.raises(SpoolError, match="submit it again"):
            spool.retry("r")
        with pytest.raises(NotFound, match="no worker 'nobody'"):
            spool.drain("nobody")
        with pytest.raises(BadName):
            spool.pause("no/type")
    assert asked(tree) == []


def test_events_of_all_writers_in_one_order(tree: Tree) -> None:
    def line(at: str, writer: str) -> bytes:
        return orjson.dumps({"at": at, "writer": writer, "seq": 1, "event": "X"}) + b"\n"

    tree.put("events/w1-aaaaa.0.jsonl", line("2", "w1-aaaaa"))
    tree.put("events/m-1-aaaaa.0.jsonl", line("1", "m-1-aaaaa") + line("3", "m-1-aaaaa"))
    with tree.spool() as spool:
        assert [event.at for event in spool.iter_events()] == ["1", "2", "3"]


def test_a_share_that_goes_away_is_unavailable(tree: Tree) -> None:
    def gone(path: str) -> list[str]:
        raise OSError(116, "Stale file handle", path)

    with tree.spool() as spool:
        tree.fs.list = gone  # type: ignore[method-assign]
        with pytest.raises(Unavailable, match="Stale file handle"):
            spool.state("a")
        del tree.fs.list


def test_each_client_is_a_writer_of_its_own(tree: Tree) -> None:
    writers = {tree.spool().store.writer for _ in range(5)}
    assert len(writers) == 5
    assert all(is_node(writer) and writer.startswith("cli-") for writer in writers)


def test_a_client_that_was_silent_for_so_long_that_its_directory_is_gone_begins_again(tree: Tree) -> None:
    with tree.spool() as spool:
        spool.submit(command="true")
        writer = spool.store.writer
        for again in (lambda: spool.submit(command="true"), spool.gc):
            tree.fs.rmdir(f"tmp/{spool.store.writer}")
            again()
        assert spool.store.writer != writer
    assert len(tree.fs.list("pending")) == 2
    assert asked(tree) == [("gc", "+all")]
    assert tree.fs.list("tmp") == []


def test_a_drop_that_was_rejected_without_a_reason_says_so(tree: Tree) -> None:
    tree.put("rejected/odd.json", b'{"problem": "forged"}')
    with tree.spool() as spool:
        assert spool.show("odd.json").reason.startswith("rejected without a reason beside it. Fix: put it into pend")
        found = spool.result("odd.json")
    assert found.error is not None
    assert "has no reason beside it. Fix: put it into pending/" in found.error.message


def test_a_rejected_drop_cannot_be_cancelled_nor_the_task_whose_id_it_named(tree: Tree) -> None:
    tree.ready("a")
    tree.rejects("again.json", "a")
    with tree.spool() as spool:
        with pytest.raises(SpoolError, match=r"rejected/again\.json was rejected"):
            spool.cancel("again.json")
        assert asked(tree) == []
        spool.cancel("a")
        assert asked(tree) == [("cancel", "a")]


@pytest.mark.parametrize("verb", ["cancel", "retry"])
def test_what_changes_a_task_takes_no_beginning_of_another_ones_id(tree: Tree, verb: str) -> None:
    tree.ends("job-10", code=Code.TIMEOUT)
    with tree.spool() as spool:
        with pytest.raises(NotFound, match=r"no task 'job-1' in this spool; at least 1 id begins with it: job-10"):
            getattr(spool, verb)(["JOB-10", "job-1"])
        assert asked(tree) == []
        assert getattr(spool, verb)("JOB-10") == ["job-10"]
