"""Attempts that ran at the same time and changed the same files: the later one says so."""

from __future__ import annotations

import errno
import json
from typing import Any

from spoold.protocol import codec
from spoold.rules.attempts.reported_figures import FILES_MAX, Touched, common, files_in, touched_in
from tests.support.cluster import Cluster


def both_running() -> Cluster:
    """A task on each of two workers."""
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.worker("w2")
    for task_id in ("a", "b"):
        made.submit(f"{task_id}.json", json.dumps({"id": task_id, "command": ["work"]}))
    made.settle()
    made.advance(2)
    assert sorted(map(len, made.running().values())) == [0, 1, 1] or made.state("b") == "claimed"
    return made


def end(made: Cluster, task_id: str, changed: Any) -> dict[str, Any]:
    """The task ends, and says what it changed; its result."""
    for node in made.nodes.values():
        for key in node.runner.live if node.runner and node.scratch else ():
            if key.startswith(f"{task_id}."):
                assert node.scratch is not None
                node.scratch.write(key, "result.json", json.dumps({"changed_files": changed}).encode())
    made.finish(task_id)
    made.settle()
    (path,) = [path for path in made.fs.files() if path.startswith(f"results/{task_id}.")]
    found: dict[str, Any] = codec.load(made.fs.read(path), path)
    return found


def told(made: Cluster, event: str) -> int:
    """How often the journals tell of this."""
    made.advance(2)
    data = b"".join(content for path, content in made.fs.files().items() if path.startswith("events/"))
    return data.count(f'"event":"{event}"'.encode())


def test_the_later_of_two_that_changed_one_file_says_so() -> None:
    made = both_running()
    first = end(made, "a", ["./src/x", "src/y"])
    made.advance(1)
    second = end(made, "b", ["src/x", "z"])
    assert (first["changed_files"], first["files_overlap"]) == (["src/x", "src/y"], None)
    assert second["files_overlap"] == [{"task": "a", "attempt": 1, "files": ["src/x"]}]
    assert told(made, "FILES_OVERLAP") == 1


def test_tasks_that_ran_one_after_the_other_do_not_overlap() -> None:
    made = both_running()
    end(made, "a", ["src/x"])
    made.advance(1)
    made.submit("c.json", '{"id": "c", "command": ["work"]}')
    made.settle()
    made.advance(1)
    assert end(made, "c", ["src/x"])["files_overlap"] is None
    assert end(made, "b", ["other"])["files_overlap"] is None
    assert told(made, "FILES_OVERLAP") == 0


def test_journals_that_cannot_be_read_stop_nothing() -> None:
    made = both_running()
    end(made, "a", ["src/x"])
    for node in made.nodes.values():
        node.fs.fail("list", "events", errno.EIO, times=100)
        node.fs.fail("read", "events/", errno.EIO, times=100)
    found = end(made, "b", ["src/x"])
    assert (made.state("b"), found["files_overlap"]) == ("completed", None)


def test_a_task_that_lists_no_files_reads_no_journal() -> None:
    made = both_running()
    before = {name: node.fs.asked["read"] + node.fs.asked["stat"] for name, node in made.nodes.items()}
    made.fs.write("events/old.0.jsonl", b"", durable=False)
    for name in ("w1", "w2"):
        made.nodes[name].fs.fail("list", "events", errno.EPERM, times=1)
    made.finish("a")
    made.settle()
    assert before
    assert all(made.nodes[name].fs.faults[-1].times == 1 for name in ("w1", "w2")), "events/ was never listed"


def test_only_lists_of_texts_count() -> None:
    assert files_in(["./a//b", "a/b", 7, ""]) == ("a/b",)
    assert files_in("a") == files_in(None) == ()
    assert len(files_in([str(n) for n in range(FILES_MAX + 5)])) == FILES_MAX
    line = {"event": "FILES_CHANGED", "task": "t", "attempt": 1, "detail": {"began": 1, "ended": 2.5, "files": ["a"]}}
    assert touched_in(line) == Touched("t", 1, 1, 2.5, ("a",))
    wrong: list[Any] = [7, {}, {**line, "event": "READY"}, {**line, "detail": 7}, {**line, "task": 7}]
    wrong += [{**line, "attempt": None}, {**line, "detail": {"began": 1}}, {**line, "detail": {"ended": 1}}]
    assert [touched_in(one) for one in wrong] == [None] * len(wrong)


def test_times_that_touch_do_not_overlap_and_each_attempt_is_named_once() -> None:
    mine = Touched("me", 1, 5.0, 9.0, ("a", "b"))
    others = [
        Touched("x", 2, 8.0, 12.0, ("b", "a")),
        Touched("x", 2, 8.0, 12.0, ("b", "a")),
        Touched("me", 2, 8.0, 12.0, ("a",)),
        Touched("before", 1, 1.0, 5.0, ("a",)),
        Touched("after", 1, 9.0, 12.0, ("a",)),
        Touched("other", 1, 1.0, 12.0, ("c",)),
    ]
    assert common(mine, others) == ({"task": "x", "attempt": 2, "files": ["a", "b"]},)
