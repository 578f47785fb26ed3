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
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spoold.doctor.examine import TIDY_S, bounds_of, examine
from spoold.doctor.trial_process import Order
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
    report = examine(order(tmp_path), bounds=replace(bounds_of(order(tmp_path)), silent=0.001))
    assert report.verdict == "not safe"
    assert "the share has not answered for 0.001 s" in report.reason
    assert "when the server is back" in report.remarks[0].mend


def scripted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: dict[str, Any]) -> None:
    """A process that says these lines in place of the one that touches the share, shows life, and does not end."""
    program = tmp_path / "child"
    said = "\n".join(json.dumps(line) for line in lines)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{said}\nEND\nwhile sleep 0.05; do echo '{{\"alive\": 1}}'; done\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))


def test_a_trial_that_does_not_end_is_named_though_the_share_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, figures = order(tmp_path), {"works": False, "reason": "no hint came for a new file"}
    scripted(tmp_path, monkeypatch, {"begin": "hints"}, {"figures": ["hints", figures]}, {"begin": "race"})
    report = examine(asked, bounds=replace(bounds_of(asked), trial=0.5))
    assert report.verdict == "not safe"
    assert "the trial ended with a timeout: race was not over within 0.5 s, though the share answers" in report.reason
    assert "server's log" in report.remarks[0].mend
    assert (report.measured["hints"], "late" in report.measured["race"]) == (figures, True)
    report = examine(asked, bounds=replace(bounds_of(asked), all=0.5))
    assert "race was not over within 0.5 s, with all trials before it, though the share answers" in report.reason


def test_the_time_in_which_the_others_may_come_is_not_the_trials(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = order(tmp_path, peers=2)
    scripted(tmp_path, monkeypatch, {"begin": "peers", "together": True})
    report = examine(asked, bounds=replace(bounds_of(asked), all=0.1, trial=0.1, peers=1.0))
    assert "peers was not over within 1 s" in report.reason


def test_twins_are_named_also_when_a_trial_of_theirs_never_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = order(tmp_path, peers=2)
    mount = {"known": True, "point": "/", "fstype": "nfs", "source": "", "network": True, "options": ["vers=3"]}
    host = {"hostname": "laptop", "machine_id": "m", "pid_namespace": "1"}
    people = {
        node: {"host": {**host, "boot_id": boot}, "measured": {"mount": mount}}
        for node, boot in ((asked.node, "b1"), ("doctor-b", "b2"))
    }
    scripted(
        tmp_path,
        monkeypatch,
        {"figures": ["locks", {"flock": "excludes", "ofd": "excludes"}]},
        {"people": people, "missed": []},
        {"begin": "locks", "together": True},
    )
    report = examine(asked, bounds=replace(bounds_of(asked), trial=0.5))
    assert (report.verdict, report.machines) == ("not safe", 2)
    assert "systemd-machine-id-setup" in "".join(remark.mend for remark in report.remarks)
    assert (report.measured["locks"]["flock"], "late" in report.together["locks"]) == ("excludes", True)


def test_a_report_comes_within_two_minutes_of_the_others(tmp_path: Path) -> None:
    bounds = bounds_of(Order(str(tmp_path), "doctor-a"))
    assert bounds.all + TIDY_S < 120
    assert max(bounds.silent, bounds.trial, bounds.examined, bounds.claims) < bounds.all


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
