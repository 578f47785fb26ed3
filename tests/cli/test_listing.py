"""`spool ls`: what there is to know of each task, and what it costs to say so."""

import json
import re
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read.long_listing import describe
from spoold.client.spool_client import SpoolClient
from spoold.protocol.names import encode_order
from spoold.store.task_location import iter_tasks
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put
from tests.client.trees import Tree


def ago(seconds: float) -> str:
    return datetime.fromtimestamp(time.time() - seconds, UTC).isoformat()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    order = encode_order(int((time.time() - 3600) * 1e6), 1)
    put(root, f"claimed/w-aaaaa/5000.{order}.runs.a2f1c0.json", {"id": "runs", "type": "Review"})
    running = {"id": "runs", "attempt": 2, "since": ago(600)}
    put(root, "heartbeats/w-aaaaa.1.json", {"node": "w-aaaaa", "beat": 1, "at": ago(70), "running": [running]})
    (root / "logs" / "runs.1.w-aaaaa.log").write_bytes(b"of the first attempt\n")
    (root / "logs" / "runs.2.w-aaaaa.log").write_bytes(b"x" * 9000 + b"\nread a.py\r  12 %\rwrote \x1b[2Jb.py\n\n")
    end(root, "bad", "failed", tokens_used=1200, cost_usd=0.25)
    put(root, f"waiting/type=t/5000.{order}.held.a1f0c0d.json", {"id": "held", "type": "t", "after": ["runs"]})
    put(root, f"ready/type=p/5000.{order}.open.a1f0c0.json", {"id": "open", "type": "p"})
    put(root, "control/pause.p.x-1.json", {})
    first = {"task_id": "runs", "attempt": 1, "worker_id": "w-aaaaa", "status": "timeout", "tokens_used": 500}
    put(root, "results/runs.1.w-aaaaa.json", {**first, "error": {"code": "TIMEOUT", "message": "after 10 s"}})
    return root


def rows(root: Path, *words: str) -> dict[str, dict[str, Any]]:
    done = spool("ls", "--long", "--json", *words, root=root)
    assert done.code == 0, done.err
    return {row["id"]: row for row in json.loads(done.out)}


def test_each_task_says_what_it_does_and_why(root: Path) -> None:
    found = rows(root)
    runs = found["runs"]
    assert (runs["type"], runs["attempt"], runs["failures"], runs["crashes"]) == ("Review", 2, 1, 0)
    assert runs["last_line"] == "wrote \x1b[2Jb.py"
    assert 3600 <= runs["age_s"] < 3700
    assert 600 <= runs["running_s"] < 700
    assert 70 <= runs["silence_s"] < 170
    assert (runs["tokens_used"], runs["reason"]) == (500, "attempt 1 ended with TIMEOUT: after 10 s")
    bad = found["bad"]
    assert (bad["tokens_used"], bad["cost_usd"], bad["reason"]) == (1200, 0.25, "EXIT_NONZERO: exit code 3")
    assert "runs" in found["held"]["reason"]
    assert "paused" in found["open"]["reason"]


def test_people_see_the_same_in_columns(root: Path) -> None:
    header, *lines = spool("ls", "--long", root=root).lines
    names = "ID STATE TYPE AGE RUNS ATTEMPT CHARGED WORKER SILENT TOKENS COST REASON LAST LINE"
    assert " ".join(header.split()) == names
    shown = next(line for line in lines if line.startswith("runs"))
    assert "1 h" in shown
    assert "10 m" in shown
    assert shown.endswith("wrote [2Jb.py")
    assert spool("ls", "--long", "-q", "--limit", "1", root=root).lines == ["held"]


@pytest.mark.parametrize(
    ("content", "kind", "shown"),
    [
        ({"command": ["sh", "-c", "echo 'a b'\nls"]}, "command", """sh -c 'echo '"'"'a b'"'"' ls'"""),
        ({"command": "make test"}, "command", "make test"),
        ({"python": "jobs:clean", "args": [1]}, "python", "jobs:clean"),
        ({"agent": "coder", "prompt": "Fix it.\nThen test."}, "coder", "Fix it. Then test."),
        ({"type": "coder", "input": {"prompt": "Fix it."}}, "coder", "Fix it."),
        ({"type": "review", "input": {"path": "ä.py"}}, "review", '{"path": "ä.py"}'),
        ({"type": "tick"}, "tick", "-"),
    ],
)
def test_a_list_says_what_a_task_runs_and_how_old_it_is(
    tmp_path: Path, content: dict[str, Any], kind: str, shown: str
) -> None:
    root = make(tmp_path / "s")
    put(root, f"waiting/type=t/5000.{encode_order(int((time.time() - 3600) * 1e6), 1)}.one.a1f0c0.json", content)
    put(root, "pending/new.json", {"id": "new", **content, "created_at": ago(120)})
    (root / "pending" / "torn.json").write_text("{")
    rows = {line.split()[0]: re.split(r" {2,}", line) for line in spool("ls", root=root).lines}
    assert rows["ID"] == ["ID", "STATE", "TYPE", "AGE", "COMMAND"]
    assert (rows["one"][1], rows["one"][2], rows["one"][4]) == ("waiting", kind, shown)
    assert rows["one"][3].startswith("1 h")
    assert rows["new"][3].startswith("2 m")
    assert rows["torn.json"][1:3] == ["pending", "-"]


def test_a_wrong_clock_of_a_worker_makes_it_neither_silent_nor_young(root: Path) -> None:
    running = {"id": "runs", "attempt": 2, "since": ago(600 - 5000)}
    beat = {"node": "w-aaaaa", "beat": 2, "at": ago(70 - 5000), "running": [running], "clock_ahead_s": 5000}
    put(root, "heartbeats/w-aaaaa.2.json", {**beat, "host": {"hostname": "other"}})
    runs = rows(root, "--state", "claimed")["runs"]
    assert 70 <= runs["silence_s"] < 170
    assert 600 <= runs["running_s"] < 700


def test_a_plain_list_opens_no_file_and_a_long_one_only_what_it_shows() -> None:
    tree = Tree()
    for task in ("a", "b", "c"):
        tree.waits(task)
        tree.put(f"logs/{task}.1.w-aaaaa.log", b"line\n")
    read: list[str] = []
    with tree.spool() as opened:
        assert isinstance(opened, SpoolClient)
        store = opened.store
        look = store.fs.read

        def spy(path: str, *more: Any, **said: Any) -> bytes:
            read.append(path)
            return look(path, *more, **said)

        store.fs.read = spy  # type: ignore[method-assign]
        found = list(iter_tasks(store))
        assert (len(found), read) == (3, [])
        (row,) = describe(store, found[:1], "here")
    assert row.last_line == "line"
    assert [path for path in read if not path.startswith("status/")] == [f"logs/{row.id}.1.w-aaaaa.log"]
