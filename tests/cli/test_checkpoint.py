"""`spool checkpoint`: saves and prints, within a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.commands import Done, spool


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "s"
    assert spool("init", str(root)).code == 0
    for name, value in (("ROOT", str(root)), ("TASK_ID", "t"), ("ATTEMPT", "1")):
        monkeypatch.setenv(f"SPOOL_{name}", value)
    return root


def run(root: Path, *words: str) -> Done:
    """The verb, within the task t."""
    return spool("checkpoint", *words, root=root)


def test_what_was_saved_last_is_printed(root: Path, tmp_path: Path) -> None:
    assert (run(root).code, run(root).out) == (4, "")
    assert run(root, "half way").out == "1\n"
    assert run(root).out == "half way\n"
    (tmp_path / "state").write_text('{"b": 1, "a": "é"}')
    assert run(root, f"@{tmp_path}/state").out == "2\n"
    assert run(root).out == '{"b": 1, "a": "é"}\n'
    assert run(root, "17").out == "3\n"
    assert run(root).out == "17\n"


def test_what_cannot_be_saved(root: Path, tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"\xff")
    assert run(root, f"@{tmp_path}/state").code == 2
    assert run(root, "@/not/there").code == 2
    assert run(root).code == 4


def test_outside_of_a_task_there_is_nothing_to_save(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPOOL_TASK_ID")
    done = run(root, "x")
    assert done.code != 0
    assert "no task of this spool" in done.err
