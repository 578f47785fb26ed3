"""An agent that hides a wait behind its own log: the attempt reads it there, and is ended as `later`."""

from __future__ import annotations

import time
from collections import UserDict
from collections.abc import ItemsView
from pathlib import Path

import psutil
import pytest

from spoold.agents.process.program import Program
from tests.agents.attempts import Desk

# As the real program does: `latest` is a link to the log of the session, beside it.
QWEN = """
cat >/dev/null
mkdir -p "$QWEN_HOME/debug"
ln -sf s-1.txt "$QWEN_HOME/debug/latest"
at=$(date -u +%Y-%m-%dT%H:%M:%S.000Z)
echo "$at [ERROR] [OPENAI_ERROR] OpenAI API Error: 429 Rate limit reached. {" >"$QWEN_HOME/debug/s-1.txt"
echo "$at [WARN] [RETRY] Attempt 1 failed with status 429. Retrying with explicit delay of 3600000ms... {" \
    >>"$QWEN_HOME/debug/s-1.txt"
exec sleep 600
"""
OPENCODE = """
cat >/dev/null
status='{"type": "retry", "message": "Rate limit reached.", "next": '$(($(date +%s) + 3600))'000}'
echo '{"at": '$(date +%s)'000, "properties": {"status": '"$status"'}}' >>"$SPOOL_AGENT_LOG"
exec sleep 600
"""


@pytest.mark.parametrize(("cli", "text"), [("qwen", QWEN), ("opencode", OPENCODE)])
def test_a_wait_that_only_its_log_tells_of_ends_the_attempt(tmp_path: Path, cli: str, text: str) -> None:
    program = tmp_path / "bin" / cli
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{text}")
    program.chmod(0o755)
    profile = {"cli": cli, "command": [], "limit": "account", "start_timeout": 30}
    ended = Desk(tmp_path, "", profile, env={"PATH": f"{program.parent}:/usr/bin:/bin"}).run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (75, "later"), ended.said
    assert ended.result["quota"]["limit"] == "account"
    assert "Rate limit reached." in ended.result["reasons"][0]


class Late(UserDict[str, str]):
    """The logs of a program; whoever reads of them while it runs waits until it has written."""

    def __init__(self, logs: dict[str, str], written: Path) -> None:
        super().__init__(logs)
        self._written, self._others = written, set(psutil.Process().children())

    def items(self) -> ItemsView[str, str]:
        give_up_at = time.monotonic() + 20
        while set(psutil.Process().children()) - self._others and not _holds(self._written):
            assert time.monotonic() < give_up_at
            time.sleep(0.01)
        return super().items()


def _holds(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def test_the_log_of_a_new_session_is_read_from_its_beginning(tmp_path: Path) -> None:
    """N37: also where it has written before its starter comes to anything else."""
    debug = tmp_path / "home" / "debug"
    debug.mkdir(parents=True)
    (debug / "s-1.txt").write_text("of the session before\n" * 3)
    (debug / "latest").symlink_to("s-1.txt")
    line = "a line that is longer than all of the log before, so that its length does not tell them apart"
    script = f"ln -sf s-2.txt latest; echo '{line}' >s-2.txt; exec sleep 600"
    logs = Late({str(debug / "latest"): str(tmp_path / "home")}, debug / "s-2.txt")
    program = Program(["sh", "-c", script], str(debug), {"PATH": "/usr/bin:/bin"}, "", logs)
    try:
        found: list[tuple[str, str]] = []
        give_up_at = time.monotonic() + 20
        while not found and time.monotonic() < give_up_at:
            found += program.heard(0.2)
        assert found == [("log", line)]
    finally:
        program.end()
