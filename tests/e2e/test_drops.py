"""What people put into pending/: the task of the documentation, slow copies, and everything that is no task."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.pool import Pool, wait_for

VERBATIM = """{"id": "550e8400-e29b-41d4-a716-446655440000", "type": "code_review", "priority": 1,
 "created_at": "2025-10-17T10:30:00Z", "timeout": 300, "input": {"code": "...", "language": "python"},
 "dependencies": [], "retry_count": 0, "max_retries": 3}
"""
FIELDS = {
    "task_id", "attempt", "worker_id", "status", "started_at", "completed_at", "duration_s", "exit_code", "output",
    "error", "tokens_used", "cost_usd", "log",
}  # fmt: skip


def test_the_documented_task_dropped_by_cp_completes(shared: Pool, tmp_path: Path) -> None:
    (tmp_path / "task.json").write_text(VERBATIM)
    shutil.copy(tmp_path / "task.json", shared.root / "pending" / "task.json")
    result = shared.finish("550e8400-e29b-41d4-a716-446655440000")
    assert result.keys() >= FIELDS
    assert (result["status"], result["attempt"], result["exit_code"], result["error"]) == ("success", 1, 0, None)
    assert result["output"] == '{"code": "...", "language": "python"}python reviewed'
    assert result["worker_id"].rpartition("-")[0] in ("left", "right")
    assert result["started_at"] < result["completed_at"]
    assert (shared.root / "logs" / result["log"]).read_text() == result["output"]
    assert shared.json("result", result["task_id"]) == result


def test_a_file_written_in_five_pieces_over_five_seconds_runs_once(shared: Pool) -> None:
    runs = shared.path("slow.runs")
    text = json.dumps({"id": "slow-copy", "command": ["sh", "-c", f"echo run >> '{runs}'"]}).encode()
    cuts = [len(text) * part // 5 for part in range(6)]
    with (shared.root / "pending" / "slow-copy.json").open("wb", buffering=0) as file:
        for begin, end in itertools.pairwise(cuts):
            file.write(text[begin:end])
            time.sleep(1.0)  # this is the drop, not a wait: five pieces over five seconds
    shared.finish("slow-copy")
    assert runs.read_text() == "run\n"
    assert len(shared.tokens("slow-copy")) == 1
    assert shared.reason("slow-copy.json") is None


def test_a_batch_runs_whole(shared: Pool) -> None:
    lines = [{"id": f"line-{n}", "command": ["true"], "after": f"line-{n - 1}" if n else []} for n in range(5)]
    shared.drop("batch.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    for line in lines:
        assert shared.finish(str(line["id"]))["status"] == "success"


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.write(b'{"command":["')
        for _ in range(100):
            file.write(b"a" * 1_000_000)


def _link(path: Path) -> None:
    outside = path.parent.parent.parent / "outside.json"
    outside.write_text('{"id": "outside", "command": ["true"]}')
    path.symlink_to(outside)


Put = Callable[[Path], Any]
EVIL: dict[str, tuple[Put, str]] = {
    "empty": (lambda path: path.touch(), "empty"),
    "truncated": (lambda path: path.write_text('{"command": ["tr'), "JSON"),
    "no-json": (lambda path: path.write_text("hello"), "JSON"),
    "no-utf8": (lambda path: path.write_bytes(b'{"name": "\xff\xfe", "command": ["true"]}'), "UTF-8"),
    "array": (lambda path: path.write_text("[1, 2]"), "object"),
    "huge": (_huge, "large"),
    "deep": (lambda path: path.write_text("[" * 100_000), "nest"),
    "deep-object": (lambda path: path.write_text('{"meta":' * 100_000), "nest"),
    "link": (_link, "link"),
    "fifo": (os.mkfifo, "pipe"),
    "directory": (lambda path: path.mkdir(), "directory"),
    "escape": (lambda path: path.write_text('{"id": "../../x", "command": ["true"]}'), "id"),
    "unknown-field": (lambda path: path.write_text('{"comand": ["true"]}'), "command"),
    "nothing": (lambda path: path.write_text("{}"), "run"),
    "nul": (lambda path: path.write_text('{"command": ["a\\u0000b"]}'), "NUL"),
    "infinite": (lambda path: path.write_text('{"command": ["true"], "priority": 1e999}'), ""),
}


def test_every_drop_that_is_no_task_is_rejected_with_its_mend_while_good_tasks_run(shared: Pool) -> None:
    began = time.monotonic()
    for name, (put, _) in EVIL.items():
        put(shared.root / "pending" / f"{name}.json")
    for number in range(10):
        shared.submit(f"good-{number}", ["true"])
    for number in range(10):
        assert shared.finish(f"good-{number}")["status"] == "success"
    for name, (_, word) in EVIL.items():
        drop = f"{name}.json"
        reason = wait_for(lambda drop=drop: shared.reason(drop), f"{drop} is rejected")  # type: ignore[misc]
        assert reason["problem"], reason
        assert reason["mend"], reason
        told = f"{reason['field']} {reason['problem']} {reason['mend']}"
        assert word.lower() in told.lower(), f"{drop}: {told}"
    assert time.monotonic() - began < 20, "within seconds"
    assert not [name for name in shared.listing("pending") if name.removesuffix(".json") in EVIL]
    assert not shared.tokens("outside"), "a link leads nowhere"


def test_a_typo_is_named_with_what_was_meant(shared: Pool) -> None:
    shared.drop("typo.json", {"comand": ["true"]})
    reason = wait_for(lambda: shared.reason("typo.json"), "the typo is rejected")
    assert "comand" in reason["field"] + reason["problem"]
    assert "command" in reason["mend"] + reason["problem"]


def test_the_same_id_again_is_nothing_new_and_with_other_content_an_error(shared: Pool) -> None:
    runs = shared.path("twice.runs")
    task = {"id": "twice", "command": ["sh", "-c", f"echo run >> '{runs}'"]}
    shared.drop("twice-1.json", task)
    shared.finish("twice")
    again = shared.drop("twice-2.json", task)
    other = shared.drop("twice-3.json", {"id": "TWICE", "command": ["false"]})
    reason = wait_for(lambda: shared.reason(other.name), "other content under the same id is rejected")
    assert "twice" in (reason["problem"] + reason["mend"]).lower()
    wait_for(lambda: not again.exists(), "the copy is taken away")
    assert runs.read_text() == "run\n"
    assert len(shared.tokens("twice")) == 1


def test_a_cycle_fails_with_its_members_named(shared: Pool) -> None:
    for one, needs in (("ring-a", "ring-b"), ("ring-b", "ring-c"), ("ring-c", "ring-a")):
        shared.submit(one, ["true"], after=needs)
    for one in ("ring-a", "ring-b", "ring-c"):
        result = shared.finish(one)
        assert result["status"] == "failure"
        message = result["error"]["message"]
        if result["error"]["code"] != "DEPENDENCY_FAILED":
            assert all(member in message for member in ("ring-a", "ring-b", "ring-c")), message
    named = [r for one in ("ring-a", "ring-b", "ring-c") for r in shared.results(one)]
    assert any("cycle" in result["error"]["message"] for result in named)


GENERATE = 'for n in 1 2 3; do echo \'{"id": "\'$0-$n\'", "command": ["true"]}\'; sleep 3; done'


def test_a_program_that_writes_a_batch_with_pauses_loses_no_line(shared: Pool) -> None:
    """Longer pauses than a batch has to be still: that the program has the file open is what counts."""
    drop = shared.root / "pending" / "generated.jsonl"
    with drop.open("wb") as file:
        program = subprocess.Popen(["sh", "-c", GENERATE, "generated"], stdout=file)
    while program.poll() is None:
        assert drop.exists(), "it is admitted when it is whole"
        assert not shared.reason(drop.name)
        time.sleep(0.1)
    for number in (1, 2, 3):
        assert shared.finish(f"generated-{number}")["status"] == "success"


def _in_pieces(path: Path, text: str) -> None:
    with path.open("w") as file:
        for piece in (text[:9], text[9:]):
            file.write(piece)
            file.flush()
            time.sleep(0.5)


def _renamed(path: Path, text: str, name: str) -> None:
    other = path.with_name(name)
    other.write_text(text)
    time.sleep(1)
    other.rename(path)


def _with_backup(path: Path, text: str) -> None:
    probe, backup = path.with_name("4913"), path.with_name(f"{path.name}~")
    probe.touch()
    backup.write_text("what was here before")
    time.sleep(1)
    probe.unlink()
    path.write_text(text)
    backup.unlink()


EDITORS: dict[str, Callable[[Path, str], None]] = {
    "in-place": _in_pieces,
    "sed": lambda path, text: _renamed(path, text, "sedAbC123"),
    "rsync": lambda path, text: _renamed(path, text, f".{path.name}.Ab3dE9"),
    "vim": _with_backup,
}


@pytest.mark.parametrize("editor", EDITORS)
def test_what_editors_write_on_the_way_is_left_alone(shared: Pool, editor: str) -> None:
    task = {"id": f"by-{editor}", "command": ["true"]}
    EDITORS[editor](shared.root / "pending" / f"{editor}.json", json.dumps(task))
    assert shared.finish(f"by-{editor}")["status"] == "success"
    assert not [name for name in shared.listing("rejected") if name.startswith((editor, "4913"))]


@pytest.mark.parametrize("name", ["ünï cödé.json", 'quote "q" $(x).json', "-rf.json", "UPPER.JSON"])
def test_a_drop_may_be_called_anything(shared: Pool, name: str) -> None:
    out = shared.path(f"called.{abs(hash(name))}")
    (shared.root / "pending" / name).write_text(json.dumps({"command": ["touch", str(out)]}))
    wait_for(out.exists, f"{name} ran")
