"""Goal: whoever asks is answered, also when the share never is, and Ctrl-C leaves nothing behind.

Method: the real process that touches the share, on a real directory.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spoold.doctor.child import Order
from spoold.doctor.examine import examine
from spoold.protocol.errors import Unavailable, WaitTimeout
from tests.cli.command import make
from tests.doctor.examination import files_in


def order(root: Path, **more: object) -> Order:
    return Order(str(root), "doctor-a-00000", quick=True, **more)  # type: ignore[arg-type]


def test_the_report_of_the_other_process(tmp_path: Path) -> None:
    report = examine(order(tmp_path))
    assert (report.verdict, report.node, report.directory) == ("safe with rename", "doctor-a-00000", str(tmp_path))
    assert "spoold" in report.line


def test_a_share_that_does_not_answer_is_not_waited_for(tmp_path: Path) -> None:
    """Not even the interpreter is up within that time; a share that hangs tells no more."""
    report = examine(order(tmp_path), silent_s=0.001)
    assert report.verdict == "not safe"
    assert "the share has not answered for 0.001 s" in report.reason
    assert "when the server is back" in report.remarks[0].mend


def test_what_is_not_there_cannot_be_examined(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="No such file or directory"):
        examine(order(tmp_path / "gone"))


def test_when_nobody_comes_that_is_said_and_nothing_stays(tmp_path: Path) -> None:
    said: list[str] = []
    with pytest.raises(WaitTimeout, match=r"only 1 of 2 machines came.*--with 2"):
        examine(order(tmp_path, peers=2, wait_s=0.5), said.append)
    assert "waiting up to 0 s for 1 more" in said[0]
    assert files_in(tmp_path) == []


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    before = files_in(root)
    command = [sys.executable, "-m", "spoold", "doctor", str(root), "--with", "2", "--json"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        until = time.monotonic() + 30
        while not list((root / "doctor").glob("here.*")) and time.monotonic() < until:
            time.sleep(0.01)
        assert files_in(root) != before
        os.kill(process.pid, signal.SIGINT)
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 130
    assert files_in(root) == before


def test_two_processes_find_each_other(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    command = [
        sys.executable,
        "-m",
        "spoold",
        "doctor",
        str(root),
        "--with",
        "2",
        "--quick",
        "--files",
        "50",
        "--json",
    ]
    processes = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) for _ in range(2)]
    told = [json.loads(process.communicate(timeout=120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert [report["machines"] for report in told] == [2, 2]
    assert told[0]["together"] == told[1]["together"]
    assert told[0]["together"]["claims"]["files"] == sum(told[0]["together"]["claims"]["won"].values()) == 50
    kept = sorted((root / "doctor").iterdir())
    assert len(kept) == 1  # both are of one kind of mount
    assert json.loads(kept[0].read_bytes()) in told
