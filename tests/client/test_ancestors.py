"""Whose task a program is in that was started with few variables."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from spoold.client.in_task import GENERATIONS, adopt_task


@pytest.fixture
def proc(tmp_path: Path) -> Path:
    """A /proc in which this process has a parent, which has a parent, which is a worker."""
    return tmp_path


def process(proc: Path, number: int, parent: int, name: str = "sh", **variables: str) -> None:
    """Put a process into /proc."""
    (proc / str(number)).mkdir()
    pairs = "".join(f"{key}={value}\0" for key, value in variables.items())
    (proc / str(number) / "environ").write_bytes(pairs.encode())
    (proc / str(number) / "stat").write_bytes(f"{number} ({name}) S {parent} 1 1 0".encode())


def test_the_nearest_ancestor_in_a_task_says_which(proc: Path, tmp_path: Path) -> None:
    root = str(tmp_path)
    process(proc, os.getppid(), 900, name="a) S 7 (b", HOME="/h")
    process(proc, 900, 901, SPOOL_TASK_ID="mine", SPOOL_ROOT=root, SPOOL_ATTEMPT="2", HOME="/other")
    process(proc, 901, 1, SPOOL_TASK_ID="above", SPOOL_ROOT=root)
    environ = {"PATH": "/bin", "SPOOL_ROOT": root}
    assert adopt_task(root, environ, str(proc)) == "mine"
    assert environ == {"PATH": "/bin", "SPOOL_TASK_ID": "mine", "SPOOL_ROOT": root, "SPOOL_ATTEMPT": "2"}


def test_a_task_of_another_spool_is_none(proc: Path, tmp_path: Path) -> None:
    process(proc, os.getppid(), 1, SPOOL_TASK_ID="theirs", SPOOL_ROOT="/elsewhere")
    environ: dict[str, str] = {}
    assert adopt_task(str(tmp_path), environ, str(proc)) is None
    assert environ == {}


def test_what_is_said_already_counts(proc: Path, tmp_path: Path) -> None:
    root = str(tmp_path)
    process(proc, os.getppid(), 1, SPOOL_TASK_ID="above", SPOOL_ROOT=root)
    assert adopt_task(root, {"SPOOL_TASK_ID": "mine", "SPOOL_ROOT": root}, str(proc)) == "mine"
    assert adopt_task(root, {"SPOOL_TASK_ID": "theirs", "SPOOL_ROOT": "/elsewhere"}, str(proc)) is None


def test_a_circle_and_a_gap_end_the_search(proc: Path, tmp_path: Path) -> None:
    assert adopt_task(str(tmp_path), {}, str(proc)) is None
    process(proc, os.getppid(), 900)
    process(proc, 900, os.getppid())
    assert adopt_task(str(tmp_path), {}, str(proc)) is None
    assert GENERATIONS < 1000
