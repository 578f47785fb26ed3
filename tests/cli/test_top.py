"""`spool top` on no terminal, without its extra, and on a real terminal beside a real pool."""

from __future__ import annotations

import builtins
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from spoold.faces.cli.verbs import top
from tests.cli.commands import environment, spool

PATIENCE_S = 60


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    assert spool("submit", "--id", "known-1", "--type", "review", root=root).code == 0
    return root


def test_without_a_terminal_it_says_what_serves_a_pipe(root: Path) -> None:
    done = spool("top", root=root)
    assert (done.code, done.out) == (2, "")
    assert "`spool top` needs a terminal. Fix: `spool status --watch`, or `spool status --json`." in done.err


def test_an_unknown_scheme_is_named(root: Path) -> None:
    done = spool("top", "--colour", "pink", root=root)
    assert done.code == 2
    assert "--colour pink" in done.err
    assert "auto, dark, light, none" in done.err


def test_without_the_extra_it_names_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def absent(name: str, *more: Any, **named: Any) -> Any:
        if name.partition(".")[0] == "textual":
            raise ModuleNotFoundError("No module named 'textual'", name="textual")
        return real(name, *more, **named)

    for name in [name for name in sys.modules if name.startswith(("textual", "spoold.faces.top"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", absent)
    monkeypatch.setattr(top, "_on_terminal", lambda: True)
    done = spool("top", root=root)
    assert done.code == 2
    assert "needs the extra spoold[tui]: " in done.err
    assert "pip install 'spoold[tui]'" in done.err


def read_until(terminal: int, word: bytes, seen: bytes = b"") -> bytes:
    give_up_at = time.monotonic() + PATIENCE_S
    while word not in seen:
        assert time.monotonic() < give_up_at, seen[-2000:]
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536)
    return seen


@contextmanager
def on_terminal(root: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Open it on a terminal of its own; yield our end of that, and the process."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    env = {**environment(root), "TERM": "xterm-256color", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "spoold", "top", "--read-only"]
    with subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=env) as process:
        os.close(theirs)
        try:
            yield ours, process
        finally:
            process.kill()
            os.close(ours)


def test_on_a_terminal_it_shows_the_pool_and_ends_with_q(root: Path) -> None:
    with on_terminal(root) as (ours, process):
        read_until(ours, b"pending")
        os.write(ours, b"2")
        seen = read_until(ours, b"known-1")
        assert b"\x1b[38" not in seen  # NO_COLOR
        assert b"\x1b[?1000h" not in seen  # the mouse is the terminal's
        os.write(ours, b"q")
        read_until(ours, b"\x1b[?1049l")
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_end_leaves_the_terminal_as_it_was(root: Path, number: signal.Signals) -> None:
    with on_terminal(root) as (ours, process):
        read_until(ours, b"pending")
        process.send_signal(number)
        read_until(ours, b"\x1b[?1049l")
        assert process.wait(PATIENCE_S) == 128 + number
