"""Closed and full standard streams: no verb dies of them, and none blames the spool for them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from spoold.faces.cli.panels import VERBS
from tests.cli.commands import environment, spool

PATIENCE_S = 60
# A sound call of each verb that prints at once and ends; those of daemons end at the end of their stdin.
CALLS: dict[str, tuple[str, ...]] = {
    "submit": ("submit", "--", "true"),
    "run": ("run", "--help"),
    "agent": ("agent", "coder", "Fix it."),
    "agents": ("agents",),
    "plan": ("plan", "--help"),
    "status": ("status",),
    "web": ("web", "--help"),
    "top": ("top",),
    "metrics": ("metrics",),
    "ls": ("ls", "--json"),
    "show": ("show", "known"),
    "explain": ("explain", "known"),
    "result": ("result", "known"),
    "logs": ("logs", "known"),
    "wait": ("wait", "known", "--timeout", "0.1"),
    "cancel": ("cancel", "known"),
    "retry": ("retry", "known"),
    "priority": ("priority", "high", "known"),
    "history": ("history", "known"),
    "events": ("events",),
    "workers": ("workers",),
    "drain": ("drain", "--all"),
    "pause": ("pause", "t"),
    "resume": ("resume",),
    "limits": ("limits",),
    "config": ("config", "show"),
    "hold": ("hold", "known"),
    "asks": ("asks",),
    "tell": ("tell", "known", "Use v2."),
    "approve": ("approve", "known"),
    "reject": ("reject", "known", "--reason", "no"),
    "ask": ("ask", "Deploy?"),
    "checkpoint": ("checkpoint", "--help"),
    "tree": ("tree", "known"),
    "graph": ("graph", "known"),
    "timeline": ("timeline",),
    "report": ("report", "known", "-o", "-"),
    "trace": ("trace", "export"),
    "halt": ("halt",),
    "budget": ("budget",),
    "reserve": ("reserve", "../x"),
    "release": ("release",),
    "locks": ("locks",),
    "merge": ("merge", "known", "--repo", "/srv/r", "--id", "merged"),
    "workspace": ("workspace", "ls"),
    "context": ("context", "ls", "--batch", "b"),
    "mcp": ("mcp", "--print-config", "claude"),
    "init": ("init", "--help"),
    "up": ("up", "--until-eof"),
    "master": ("master", "--until-eof"),
    "worker": ("worker", "--until-eof"),
    "gc": ("gc",),
    "fsck": ("fsck",),
    "doctor": ("doctor", "--help"),
    "install-units": ("install-units", "--help"),
}
STREAMS = (">&-", ">&- 2>&- <&-", ">/dev/full", "2>/dev/full")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("streams") / "s"
    assert spool("init", str(root)).code == 0
    assert spool("submit", "--id", "known", "--", "true", root=root).code == 0
    return root


def call(root: Path, words: tuple[str, ...], streams: str = "") -> subprocess.CompletedProcess[bytes]:
    line = f'exec "$0" -m spoold "$@" {streams}'
    command = ["sh", "-c", line, sys.executable, *words]
    quiet = {name: value for name, value in environment(root).items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        command, env=quiet, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PATIENCE_S
    )


def test_every_verb_is_called() -> None:
    assert CALLS.keys() == VERBS.keys()


@pytest.mark.turns
@pytest.mark.parametrize("verb", sorted(CALLS))
def test_no_verb_dies_of_its_streams_or_blames_the_spool(root: Path, verb: str) -> None:
    plain = call(root, CALLS[verb])
    assert b"Traceback" not in plain.stderr
    for streams in STREAMS:
        done = call(root, CALLS[verb], streams)
        said = done.stdout + done.stderr
        assert b"Traceback" not in said, (streams, said)
        assert str(root).encode() not in said or b"No space" not in said, (streams, said)
        assert b"retention" not in done.stderr, (streams, said)
        unwritten = ">/dev/full" in streams.split() and plain.stdout
        assert done.returncode == (74 if unwritten else plain.returncode), (streams, said)
        if unwritten and streams == ">/dev/full":
            assert b"stdout cannot be written: No space left on device. The spool is not the cause" in done.stderr


def test_a_closed_stdout_is_not_replaced_by_a_file_of_the_spool(root: Path) -> None:
    before = len(json.loads(spool("ls", "--json", root=root).out))
    assert call(root, ("submit", "--id", "unseen", "--", "true"), ">&-").returncode == 0
    after = json.loads(spool("ls", "--json", root=root).out)
    assert (len(after), "unseen" in {task["id"] for task in after}) == (before + 1, True)
    for path in root.rglob("*.json"):
        json.loads(path.read_bytes())


def test_an_output_that_fails_is_no_reason_to_think_the_task_was_not_submitted(root: Path) -> None:
    done = call(root, ("submit", "--id", "unprinted", "--", "true"), ">/dev/full")
    assert (done.returncode, b"may have been carried out" in done.stderr) == (74, True)
    assert spool("show", "unprinted", root=root).code == 0


@pytest.mark.parametrize(
    "words", [("submit", "-"), ("run", "--stdin", "--", "cat"), ("submit", "--type", "t", "--input", "@-")]
)
def test_an_input_that_cannot_be_read_is_named_and_is_no_fault_of_the_spool(
    root: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = call(root, words, f"0>{tmp_path}/write-only")
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.startswith(b"spool: stdin: cannot be read: Bad file descriptor. Fix: "), done.stderr


def test_a_closed_input_is_empty(root: Path) -> None:
    done = call(root, ("submit", "-"), "<&-")
    assert (done.returncode, b"stdin: is empty" in done.stderr) == (2, True)
