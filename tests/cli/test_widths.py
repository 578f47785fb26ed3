"""What people see on a narrow terminal: sentences broken between words, tables as blocks."""

import io
import os
import re
import time
from pathlib import Path

import pytest

from spoold.faces.cli.terminal import output
from spoold.protocol.names import encode_order
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put

COLUMNS = 40


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "width", lambda *_: COLUMNS)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make(tmp_path / "s")
    message = "the model answered with a sentence that is much longer than forty columns are"
    end(root, "bad", "failed", error={"code": "EXIT_NONZERO", "message": message})
    order = encode_order(int((time.time() - 7200) * 1e6), 1)
    put(root, f"ready/type=t/5000.{order}.open.a1f0c0.json", {"id": "open", "type": "t", "input": {"file": "a.py"}})
    return root


def words_of(text: str) -> list[str]:
    return re.findall(r"\S+", text)


@pytest.mark.parametrize("words", ["show bad", "explain bad", "explain open", "workers", "fsck", "cancel nope"])
def test_a_sentence_is_broken_between_words_only(root: Path, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wide = spool(*words.split(), root=root)
    monkeypatch.setattr(output, "width", lambda *_: COLUMNS)
    small = spool(*words.split(), root=root)
    assert set(words_of(small.err)) == set(words_of(wide.err))
    assert {word.strip(":").lower() for word in words_of(small.out)} <= {
        word.strip(":").lower() for word in words_of(wide.out)
    }
    for line in (small.out + small.err).splitlines():
        assert len(line) <= COLUMNS or len(words_of(line)) <= 2, line


@pytest.mark.usefixtures("narrow")
def test_a_table_is_a_block_for_each_row(root: Path) -> None:
    assert spool("ls", root=root).lines == [
        "id: open",
        "state: ready",
        "type: t",
        "age: 2 h",
        'command: {"file": "a.py"}',
        "",
        "id: bad",
        "state: failed",
        "type: t",
        "age: 0 s",
    ]


def test_a_command_is_cut_where_the_terminal_ends(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(root, "pending/long.json", {"id": "long", "command": ["echo", *("word" for _ in range(50))]})
    monkeypatch.setattr(output, "width", lambda *_: 80)
    lines = spool("ls", root=root).lines
    assert lines[1].endswith("word …")
    assert max(map(len, lines)) == len(lines[1]) in (79, 80)


def test_a_pipe_has_no_width() -> None:
    assert output.width(io.StringIO()) is None
    sentence = "word " * 50
    assert output.wrapped(sentence, None) == sentence


def test_an_indent_is_kept_and_a_long_word_is_left_whole() -> None:
    path = "/a" * 30
    assert output.wrapped(f"  see {path} now", 20, "    ") == f"  see\n    {path}\n    now"


@pytest.mark.parametrize("columns", [40, 59])
def test_status_on_a_narrow_terminal_cuts_no_word(root: Path, columns: int) -> None:
    put(root, "heartbeats/worker-with-a-long-name-aaaaa.1.json", {"capabilities": {"labels": ["a"]}, "slots": 2})
    shown = on_terminal(root, columns, "status")
    assert "…" not in shown
    assert "worker: worker-with-a-long-name-aaaaa" in shown
    assert "failed: 1" in shown
    assert "no leader is seen" in " ".join(shown.split())


def on_terminal(root: Path, columns: int, *words: str) -> str:
    """What a verb prints on a terminal of so many columns."""
    import pty
    import subprocess
    import sys

    from tests.cli.commands import environment

    ours, theirs = pty.openpty()
    env = {**environment(root), "COLUMNS": str(columns), "LINES": "50", "TERM": "dumb", "NO_COLOR": "1"}
    command = [sys.executable, "-m", "spoold", *words]
    with subprocess.Popen(command, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        process.wait(60)
    os.close(ours)
    return shown.decode()
