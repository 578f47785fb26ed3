"""`spool status --batch`: how far one batch is, and why its tasks failed."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read.task_groups import Batch
from spoold.client.spool_client import SpoolClient
from spoold.protocol import layout
from spoold.protocol.names import EndedName, SnapshotName
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


def archive(root: Path, task_id: str, batch: str, state: str = "completed") -> None:
    ended = EndedName(task_id, 1, "w-aaaaa")
    put(root, f"{layout.bucket(task_id)}/{ended.archived(state)}", {"id": task_id, "type": "t", "batch": batch})
    record = {"task_id": task_id, "attempt": 1, "worker_id": "w-aaaaa", "status": "success", "duration_s": 1.5}
    put(root, f"{layout.bucket(task_id)}/{ended.archived('result')}", record)


def test_archived_tasks_of_a_batch_count(root: Path) -> None:
    """N18: after `spool gc`, "0 of 1" where 14 of 15 were done."""
    for number in range(14):
        archive(root, f"done{number}", "b2")
    told = json.loads(spool("status", "--batch", "b2", "--json", root=root).out)
    assert (told["ended"], told["total"], told["archived"], told["unread"]) == (14, 15, 14, 0)
    assert spool("status", "--batch", "b2", root=root).lines[0] == "batch b2: 14 of 15 tasks ended, 93 %"


def test_what_is_archived_between_two_looks_still_counts(root: Path) -> None:
    with SpoolClient(str(root)) as client:
        batch = Batch(client.store, "b1")
        assert (batch.look().ended, batch.look().total) == (9, 11)
        for path in (root / "completed").iterdir():
            path.unlink()
        archive(root, "good", "b1")
        assert (batch.look().ended, batch.look().total, batch.look().archived) == (9, 11, 1)


def stuck(root: Path, **more: Any) -> dict[str, Any]:
    picture = {"generated_at": "2026-02-02T09:00:00.000Z", "spool_id": "s", "durations": {"t": {"n": 9, "mean_s": 3}}}
    node = {"worker": "w", "host": "h", "state": "idle", "slots": 4, "running": 0, "cpus": 1, "mem_mb": 1}
    node |= {"mem_available_mb": 1, "load": 0}
    put(root, f"status/{SnapshotName(1, 1).encode()}", {**picture, "nodes": [node], **more})
    told: dict[str, Any] = json.loads(spool("status", "--batch", "b2", "--json", root=root).out)
    return told


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"gates": {"worker": {"type=t": {"tasks": 1}}}}, "no worker can run 1 of 1 task"),
        ({"halted": True}, "the spool is halted"),
        ({"paused": ["t"]}, "tasks are paused"),
        ({"paused": ["u"]}, ""),
    ],
)
def test_no_time_is_told_for_what_does_not_start(root: Path, more: dict[str, Any], why: str) -> None:
    """N18: "about 3 s to go" for a task that no worker can run."""
    told = stuck(root, **more)
    assert (told["eta_s"], told["eta_unknown"]) == (None if why else 3.0, why)


def test_a_large_archive_is_counted_on_request(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive(root, "old", "gone")
    monkeypatch.setattr("spoold.client.read.task_groups.ARCHIVE_READ", 0)
    without = spool("status", "--batch", "gone", root=root)
    assert (without.code, "With --all, the archive is looked at, too." in without.err) == (4, True)
    assert "1 archived task of any batch is" in spool("status", "--batch", "b1", root=root).out
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


def test_ls_says_how_many_more_are_in_the_archive(root: Path) -> None:
    """N19: after `spool gc`, `ls --state failed` was empty while `status` counted 15."""
    for number in range(3):
        archive(root, f"old{number}", "b1", "failed")
    archive(root, "fine", "b1")
    for path in (root / "failed").iterdir():
        path.unlink()
    done = spool("ls", "--state", "failed", "-q", root=root)
    assert (done.code, done.out, done.err) == (0, "", "3 failed tasks in the archive; --all lists them, too\n")
    assert len(spool("ls", "--state", "failed", "--all", "-q", root=root).lines) == 3
    assert spool("ls", "--state", "failed", "--all", root=root).err == ""
    assert spool("ls", "--state", "ready", root=root).err == ""
    assert spool("ls", root=root).err == "", "it lists what there is"
