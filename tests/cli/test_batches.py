"""`spool status --batch`: how far one batch is, and why its tasks failed."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read.task_groups import Batch
from spoold.protocol import layout
from spoold.protocol.names import EndedName
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put
from tests.client.trees import Tree


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    end(root, "good", tokens_used=100, cost_usd=0.5)
    for number in range(7):
        end(root, f"bad{number}", "failed", tokens_used=10)
    end(root, "late", "failed", error={"code": "MAX_RETRIES", "message": "after 10 s", "cause": "TIMEOUT"})
    put(root, "ready/type=t/5000.0000000001-1.open.a1f0c0.json", {"id": "open", "type": "t", "batch": "b1"})
    put(root, "ready/type=t/5000.0000000001-1.other.a1f0c0.json", {"id": "other", "type": "t", "batch": "b2"})
    put(root, "pending/x.jsonl", {"id": "line", "type": "t", "batch": "b1"})
    return root


def test_a_batch_is_counted_alone(root: Path) -> None:
    told = json.loads(spool("status", "--batch", "b1", "--json", root=root).out)
    assert (told["total"], told["ended"]) == (11, 9)
    assert {state: count for state, count in told["tasks"].items() if count} == {
        "pending": 1,
        "ready": 1,
        "completed": 1,
        "failed": 8,
    }
    most, least = told["causes"]
    assert (most["code"], most["message"], most["count"]) == ("EXIT_NONZERO", "exit code 3", 7)
    assert (len(most["ids"]), least["code"], least["count"]) == (5, "TIMEOUT", 1)
    assert (told["spent"]["tokens_used"], told["spent"]["cost_usd"]) == (170, 0.5)


def test_people_read_it_in_lines(root: Path) -> None:
    done = spool("status", "--batch", "b1", root=root)
    assert done.code == 0
    assert done.lines[0] == "batch b1: 9 of 11 tasks ended, 81 %"
    assert "7 failed: EXIT_NONZERO: exit code 3 (bad" in done.out
    assert "and 2 more)" in done.out
    assert "170 tokens" in done.out


def test_a_batch_that_is_not_there_is_exit_4_with_the_nearest(root: Path) -> None:
    done = spool("status", "--batch", "b11", root=root)
    assert (done.code, done.out, "Did you mean --batch b1?" in done.err) == (4, "", True)


def test_the_case_of_a_batch_does_not_count(root: Path) -> None:
    assert json.loads(spool("status", "--batch", "B1", "--json", root=root).out)["total"] == 11
    assert spool("trace", "export", "B1", root=root).code == 0
    assert len(spool("ls", "--batch", "B1", "-q", root=root).lines) == 11


def test_the_archive_is_counted_on_request(root: Path) -> None:
    ended = EndedName("old", 1, "w-aaaaa")
    put(root, f"{layout.bucket('old')}/{ended.archived('completed')}", {"id": "old", "type": "t", "batch": "gone"})
    record = {"task_id": "old", "attempt": 1, "worker_id": "w-aaaaa", "status": "success", "duration_s": 1.5}
    put(root, f"{layout.bucket('old')}/{ended.archived('result')}", record)
    without = spool("status", "--batch", "gone", root=root)
    assert (without.code, "With --all, the archive is looked at, too." in without.err) == (4, True)
    told = json.loads(spool("status", "--batch", "gone", "--all", "--json", root=root).out)
    assert (told["total"], told["ended"], told["spent"]["attempts"]) == (1, 1, 1)
    alone = spool("status", "--all", root=root)
    assert (alone.code, "--all needs --batch" in alone.err) == (2, True)


def test_a_second_look_reads_only_what_is_new() -> None:
    tree = Tree()
    tree.ends("a")
    for name in list(tree.fs.list("completed")):
        tree.put(f"completed/{name}", {"id": "a", "type": "t", "batch": "b"})
    read: list[str] = []
    with tree.spool() as spool:
        look = spool.store.fs.read

        def spy(path: str, *more: Any, **said: Any) -> bytes:
            read.append(path)
            return look(path, *more, **said)

        spool.store.fs.read = spy  # type: ignore[method-assign]
        batch = Batch(spool.store, "b")
        first = batch.look()
        assert (first.ended, len(read)) == (1, 2)
        assert batch.look() == first
    assert len(read) == 2
