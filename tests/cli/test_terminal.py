"""Goal: nothing that a member puts into a spool reaches the terminal as more than letters.

Method: a spool full of names and messages with control characters, and every verb that reads it.
"""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spoold.faces.cli.output import harmless, within
from spoold.faces.cli.status import render
from spoold.protocol.snapshot import Snapshot
from tests.cli.command import make, spool, told
from tests.house.sources import modules

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\x7f"
FORGED = "x\nOK: all is well" + EVIL
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


@pytest.fixture(name="directory")
def _directory(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    beat = {"role": "worker", "host": {"hostname": FORGED}, "status": FORGED, "notes": [FORGED], "slots": 1}
    beat |= {"capabilities": {"labels": [FORGED]}, "running": [{"id": FORGED}]}
    (root / "heartbeats" / "evil-1.1.json").write_text(json.dumps({"node": "evil-1", "beat": 1, **beat}))
    for state in ("rejected", "completed", "failed", "pending", "waiting"):
        (root / state / f"{FORGED}.json").write_text("{")
    reason = {"drop": FORGED, "problem": FORGED, "mend": FORGED, "file": FORGED, "field": ""}
    (root / "rejected" / "bad.json").write_text("{")
    (root / "rejected" / "bad.json.reason.json").write_text(json.dumps(reason))
    task = {"id": "t1", "command": ["true"], "retry_count": 0, "batch": "b1"}
    (root / "failed" / "t1.1.w-1.json").write_text(json.dumps(task))
    error = {"code": FORGED, "message": FORGED}
    said = {"task_id": "t1", "attempt": 1, "worker_id": "w-1", "status": "failure", "error": error, "output": None}
    (root / "results" / "t1.1.w-1.json").write_text(json.dumps(said))
    (root / "control" / "pause.command.x-1.json").write_text(
        json.dumps({"by": FORGED, "at": FORGED, "reason": FORGED})
    )
    event = {"at": "2026-01-01T00:00:00Z", "writer": "w-1", "seq": 1, "event": FORGED, "detail": {FORGED: FORGED}}
    (root / "events" / "w-1.jsonl").write_text(json.dumps(event) + "\n")
    return root


@pytest.mark.parametrize(
    "words",
    [
        "status",
        "workers",
        "fsck",
        "fsck --repair",
        "ls",
        "ls --all",
        "ls --long --all",
        "ls --state rejected",
        "events",
    ]
    + [f"{verb} --state rejected,failed,completed" for verb in ("show", "wait", "cancel", "retry", "logs")]
    + [f"{verb} {of}" for verb in ("show", "explain", "result", "wait", "logs") for of in ("t1", "bad.json", FORGED)],
)
def test_no_verb_lets_a_control_character_or_a_forged_line_through(directory: Path, words: str) -> None:
    verb, _, rest = words.partition(" ")
    found = spool(directory, verb, *(rest.split() if rest.startswith("--") else filter(None, [rest])))
    said = found.stdout + found.stderr
    assert not CONTROL.search(said), (found.stdout, found.stderr)
    assert not any(line.startswith("OK: all is well") for line in said.splitlines())


def _fail(_: object) -> None:
    raise RuntimeError(FORGED)


@pytest.mark.parametrize("bug", [False, True])
def test_where_an_error_came_from_is_shown_without_its_escapes(
    directory: Path, bug: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if bug:
        monkeypatch.setattr("spoold.faces.cli.choosing.states_of", _fail)
    found = spool(directory, *(["ls"] if bug else ["--debug", "show", f"nobody{EVIL}"]))
    assert "Traceback" in found.stderr
    assert not CONTROL.search(found.stderr)


def test_what_programs_read_is_exact(directory: Path) -> None:
    (directory / "completed" / "t2.1.w-1.json").write_text(json.dumps({"id": "t2", "command": ["true"]}))
    said = {"task_id": "t2", "attempt": 1, "worker_id": "w-1", "status": "success", "output": FORGED}
    (directory / "results" / "t2.1.w-1.json").write_text(json.dumps(said))
    assert spool(directory, "result", "t2").stdout == f"{FORGED}\n"
    assert told(directory, "result", "t2")["output"] == FORGED
    assert told(directory, "workers")["workers"][0]["host"] == FORGED


def fill(value: Any) -> Any:
    """The same, with every text in it forged; names of fields are left."""
    if isinstance(value, dict):
        return {name: fill(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [fill(inner) for inner in value]
    return f"{FORGED}[/red]" if isinstance(value, str) else value


@pytest.mark.parametrize("figure", [1e308, -1e308])
def test_a_forged_snapshot_forges_no_line_and_keeps_the_colours(figure: float) -> None:
    node = {"worker": "", "host": "", "state": "", "slots": -5, "running": 1, "cpus": figure, "mem_mb": 1}
    node |= {"mem_available_mb": 1, "load": figure, "labels": [""], "since": "", "tasks": [{"id": ""}], "notes": [""]}
    said = {
        "generated_at": "",
        "spool_id": "",
        "source": "",
        "master": {"leader": "", "standbys": [""]},
        "nodes": [node],
        "rates": {"eta_s": figure},
        "spent": {"attempts": 1, "duration_s": figure, "tokens_used": 1e308},
        "paused": [""],
        "warnings": [""],
    }
    kinds = {
        "types": {FORGED: {FORGED: 1}, "[/red]": {"[/b]": 1}},
        "recent": {"failed_attempts": {FORGED: 1}, "rejections": {FORGED: 1}},
    }
    picture = Snapshot.model_validate({**fill(said), **kinds})
    for terminal, narrow in ((False, False), (True, False), (True, True)):
        console = Console(width=400, force_terminal=terminal, color_system="standard" if terminal else None)
        with console.capture() as captured:
            console.print(render(picture, narrow=narrow))
        shown = captured.get()
        plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
        assert (plain == shown) is not terminal
        assert not CONTROL.search(plain)
        assert not re.search(r"^\s*OK|\d{50}", plain, re.MULTILINE)


def test_only_output_writes() -> None:
    """Whatever else wrote to a stream would have to think of all this anew."""
    writers = {"print", "echo", "secho", "write", "writelines", "print_exc", "print_exception"}
    found = set()
    for path, _, tree in modules():
        for node in ast.walk(tree):
            if path.startswith("spoold/faces/cli/") and isinstance(node, ast.Call):
                name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                found |= {(path.rpartition("/")[2], name)} if name in writers | {"print_exactly", "Text"} else set()
    assert found == {
        ("output.py", "write"),
        ("output.py", "print"),  # remark, and a question
        ("output.py", "print_exactly"),  # JSON, and a line that is harmless
        ("workspace.py", "print_exactly"),
        ("streams.py", "print"),  # stdout is broken
        ("streams.py", "write"),
        ("screen.py", "print"),  # rich's, of what `_text` made
        ("screen.py", "Text"),
        ("screen.py", "print_exactly"),
        ("result.py", "print_exactly"),
        ("mcp.py", "print_exactly"),  # a configuration to paste
        ("metrics.py", "print_exactly"),  # its labels are printable
        ("local_file.py", "write"),  # a file, and no stream
        ("saving.py", "write"),  # a file that the caller named
        *((verb, "write") for verb in ("graph.py", "timeline.py", "report.py")),  # a text is made, which saving takes
        ("ask.py", "print_exactly"),  # an answer, as JSON or harmless
    }


def test_a_name_is_shown_as_it_is_but_for_what_a_terminal_obeys() -> None:
    assert harmless("plain\n\tünï 日本 \x1b[2J") == "plain\n\tünï 日本 \\x1b[2J"
    assert harmless("\udcff") == r"\udcff"
    assert within("a\nb\tc\x07") == "a\\nb\\tc\\x07"


def test_a_log_on_a_terminal_keeps_its_colours_and_nothing_else(tmp_path: Path) -> None:
    import os
    import pty
    import subprocess
    import sys

    root = make(tmp_path / "s")
    task = {"id": "t1", "command": ["true"]}
    (root / "completed" / "t1.1.w-1.json").write_text(json.dumps(task))
    data = "\x1b[31mred\x1b[0m \x1b]52;c;QUJD\x07\x1b[2J\u202e\nend\n".encode()
    (root / "logs" / "t1.1.w-1.log").write_bytes(data)
    command = [sys.executable, "-m", "spoold", "--spool", str(root), "logs", "t1"]
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == data
    ours, theirs = pty.openpty()
    try:
        subprocess.run(command, stdin=theirs, stdout=theirs, stderr=theirs, check=True, timeout=60)
        shown = os.read(ours, 10_000)
    finally:
        os.close(ours)
        os.close(theirs)
    assert shown == b"\x1b[0;31mred\x1b[0m \\u202e\r\nend\r\n"
