"""Goal: nothing that a member puts into a spool reaches the terminal as more than letters.

Method: a spool full of names and messages with control characters, and every verb that reads it.
"""

from __future__ import annotations

import ast
import contextlib
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from spoold.faces.cli.terminal.output import harmless, within
from spoold.faces.cli.verbs.status import render
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


@pytest.mark.turns
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
        monkeypatch.setattr("spoold.faces.cli.terminal.task_selection.states_of", _fail)
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
        ("task_control.py", "print_exactly"),  # columns of a held task, each harmless
        ("mcp.py", "print_exactly"),  # a configuration to paste
        ("metrics.py", "print_exactly"),  # its labels are printable
        ("local_files.py", "write"),  # a file that the caller named, and no stream
        ("app.py", "write"),  # the rows of the help, whose words are ours
        ("drawings.py", "write"),  # a text is made, which is saved as a file
    }


def test_a_name_is_shown_as_it_is_but_for_what_a_terminal_obeys() -> None:
    assert harmless("plain\n\tünï 日本 \x1b[2J") == "plain\n\tünï 日本 \\x1b[2J"
    assert harmless("\udcff") == r"\udcff"
    assert within("a\nb\tc\x07") == "a\\nb\\tc\\x07"


def on_terminal(*command: str) -> str:
    """What a command writes to a terminal, its stderr as well."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "rb", 0) as screen:
        with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs) as process:
            os.close(theirs)
            shown = bytearray()
            with contextlib.suppress(OSError):  # EIO: nobody has the terminal open any more
                while piece := screen.read(65536):
                    shown += piece
        assert process.returncode is not None
    return shown.decode().replace("\r\n", "\n")


def spoken(root: Path, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "spoold", "--spool", str(root), *words)


def test_a_log_on_a_terminal_keeps_its_colours_and_nothing_else(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    task = {"id": "t1", "command": ["true"]}
    (root / "completed" / "t1.1.w-1.json").write_text(json.dumps(task))
    data = "\x1b[31mred\x1b[0m \x1b]52;c;QUJD\x07\x1b[2J\u202e\nend\n".encode()
    (root / "logs" / "t1.1.w-1.log").write_bytes(data)
    command = spoken(root, "logs", "t1")
    assert subprocess.run(command, capture_output=True, check=True, timeout=60).stdout == data
    assert on_terminal(*command) == "\x1b[0;31mred\x1b[0m \\u202e\nend\n"


@pytest.mark.parametrize(
    "words",
    [
        "result t2",
        "result t3",
        "result t2 --json",
        "show t2 --json",
        "logs t2",
        "ls --json --all",
        "events --json",
        "context get c1 --batch b1",
    ],
)
def test_nothing_that_a_task_wrote_reaches_a_terminal_but_text_and_colours(directory: Path, words: str) -> None:
    """N11: `spool result` wrote the escape sequences of a task as they were."""
    evil = f"\x1b[31mred\x1b[0m {FORGED}"
    for task, output in (("t2", evil), ("t3", {evil: evil})):
        (directory / "completed" / f"{task}.1.w-1.json").write_text(json.dumps({"id": task, "command": ["true"]}))
        said = {"task_id": task, "attempt": 1, "worker_id": "w-1", "status": "success", "output": output}
        (directory / "results" / f"{task}.1.w-1.json").write_text(json.dumps(said))
    (directory / "logs" / "t2.1.w-1.log").write_text(evil)
    (directory / "source").write_text(evil)
    done = subprocess.run(
        spoken(directory, "context", "put", "c1", str(directory / "source"), "--batch", "b1"), check=False
    )
    assert done.returncode == 0
    shown = on_terminal(*spoken(directory, *words.split()))
    assert not CONTROL.search(re.sub(r"\x1b\[[0-9;]*m", "", shown)), repr(shown)


@pytest.mark.parametrize("verb", ["explain", "history", "show", "logs", "tree"])
def test_the_beginning_of_an_id_is_completed_on_a_terminal_alone(tmp_path: Path, verb: str) -> None:
    """N16: where a program or an exit code uses the answer, an id is a whole one."""
    root = make(tmp_path / "s")
    (root / "completed" / "shard-11.1.w-1.json").write_text(json.dumps({"id": "shard-11", "command": ["true"]}))
    (root / "logs" / "shard-11.1.w-1.log").write_text("done\n")
    command = spoken(root, verb, "shard-1")
    piped = subprocess.run(command, capture_output=True, check=False, timeout=60, text=True)
    assert (piped.returncode, piped.stdout) == (4, "")
    assert "at least 1 id begins with it: shard-11. Give the whole id" in piped.stderr
    shown = on_terminal(*command)
    assert shown.startswith("shard-1 is the beginning of shard-11\n")
    assert len(shown.splitlines()) > 1


@pytest.mark.parametrize("verb", ["wait", "result"])
def test_an_exit_code_is_never_that_of_another_task(tmp_path: Path, verb: str) -> None:
    """N16: `wait deploy-1 && ship` passed on the task deploy-11, also on a terminal."""
    root = make(tmp_path / "s")
    (root / "completed" / "deploy-11.1.w-1.json").write_text(json.dumps({"id": "deploy-11", "command": ["true"]}))
    said = {"task_id": "deploy-11", "attempt": 1, "worker_id": "w-1", "status": "success", "output": "shipped"}
    (root / "results" / "deploy-11.1.w-1.json").write_text(json.dumps(said))
    assert spool(root, verb, "deploy-11").exit_code == 0
    assert spool(root, verb, "deploy-1").exit_code == 4
    assert "shipped" not in on_terminal(*spoken(root, verb, "deploy-1"))
