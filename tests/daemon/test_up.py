"""`spool up` outlives what its machine refuses for a while, and ends when its own files stand in the way."""

from __future__ import annotations

import errno
import subprocess
import sys
import time
from pathlib import Path

import pytest

from spoold.daemon import up
from spoold.daemon.up import Child, _Family


def test_a_child_that_cannot_be_started_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    child = Child("w", [sys.executable, "-c", "pass"])
    family = _Family([child])
    start, refused = Child.start, [OSError(errno.EAGAIN, "no process to spare")]

    def fork(self: Child) -> None:
        if refused:
            raise refused.pop()
        start(self)

    monkeypatch.setattr(Child, "start", fork)
    monkeypatch.setattr(up, "AGAIN_AFTER_S", 0.05)
    until = time.monotonic() + 30
    while child.process is None and time.monotonic() < until:
        family._tend(child)
    assert not refused
    assert child.process is not None
    child.process.communicate(timeout=30)


FAMILY = """
import sys
from spoold.daemon.up import Child, _Family
lives = [sys.executable, "-c", "import sys; sys.stdin.read()"]
wrong = ["sh", "-c", 'echo "$0" >> {log}; exit 2']
sys.exit(_Family([Child(label, wrong + [label] if label in {wrong} else lives) for label in {all}]).run(False))
"""


@pytest.mark.parametrize(("wrong", "said"), [(["w1", "w2"], "no worker can start"), (["m"], "no master can start")])
def test_what_cannot_read_its_configuration_is_not_started_again(wrong: list[str], said: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = FAMILY.format(log=log, wrong=wrong, all=["m", "w1", "w2"])
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2, done.stderr
    assert sorted(log.read_text().split()) == wrong
    assert said in done.stderr


def test_those_that_can_go_on_without_the_one_that_cannot(tmp_path: Path) -> None:
    log = tmp_path / "log"
    script = FAMILY.format(log=log, wrong=["w1"], all=["m", "w1", "w2"])
    process = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "w1 ended with status 2" in process.stderr.readline()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(2 * up.AGAIN_AFTER_S + 0.5)  # in which it would have been started again
    process.terminate()
    _, _ = process.communicate(timeout=60)
    assert process.returncode == 0
    assert log.read_text().split() == ["w1"]
