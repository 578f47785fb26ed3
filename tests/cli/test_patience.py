"""Goal: whoever waits in vain is told why, once; whoever sees things happen is not disturbed.

Method: the time after which it is said is over at once.
"""

import json
import threading
import time
from pathlib import Path

import pytest

from spoold.client.spool_client import SpoolClient
from spoold.faces.cli.terminal import wait_progress
from spoold.protocol.lifecycle import State
from spoold.rules.answers.task_facts import Explanation
from tests.cli.command import make, opened
from tests.cli.commands import spool

WHY = "spool: a has not begun: no node leads the spool"


class AtOnce(threading.Timer):
    def start(self) -> None:
        self.function(*self.args)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A spool in which nobody works, and the task `a`."""
    monkeypatch.setattr(wait_progress, "Timer", AtOnce)
    root = make(tmp_path / "s")
    with SpoolClient(root) as client:
        client.submit({"id": "a", "type": "review"})
    return root


def test_a_wait_in_vain_says_why_in_one_line_and_what_would_change_it(root: Path) -> None:
    done = spool("wait", "a", "--timeout", "0.01", root=root)
    assert (done.code, done.out) == (124, "")
    said = [line for line in done.err.splitlines() if line.startswith(WHY)]
    assert len(said) == 1
    assert "What would change it: " in said[0]


def test_a_command_that_nobody_runs_says_why(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SpoolClient, "logs", lambda *_, **__: iter(()))  # as if it had been waited for
    done = spool("run", "--", "true", root=root)
    assert "has not begun: no node leads the spool" in done.err
    assert done.out == ""


def test_once_one_of_them_has_begun_nothing_is_said(root: Path) -> None:
    store = opened(root, "w-0001")
    store.fs.mkdir("claimed/w-0001")
    (drop,) = store.fs.list("pending")
    store.fs.rename(f"pending/{drop}", "claimed/w-0001/5000.hoeoz6rvdo-4.a.a1f0c0.json")
    with SpoolClient(root) as client:
        client.submit({"id": "b", "type": "review"})
    assert "has not begun" not in spool("wait", "a", "b", "--timeout", "0.01", root=root).err


def test_a_wait_for_an_agent_says_each_attempt_that_another_follows(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(wait_progress, "LOOK_S", 0.01)
    store = opened(root, "w-0001")
    store.fs.mkdir("claimed/w-0001")
    (drop,) = store.fs.list("pending")
    store.fs.rename(f"pending/{drop}", "claimed/w-0001/5000.hoeoz6rvdo-4.a.a3f2c0.json")
    for number in (1, 2, 3):
        error = {"code": "EXIT_NONZERO", "message": f"exit code {number}"}
        record = {"task_id": "a", "attempt": number, "worker_id": "w-0001", "status": "failure", "error": error}
        (root / "results" / f"a.{number}.w-0001.json").write_text(json.dumps(record))
    said, until = "", time.monotonic() + 30
    with wait_progress.saying_attempts(SpoolClient(root), "a"):
        while "exit code 2" not in said and time.monotonic() < until:
            said += capsys.readouterr().err
    said += capsys.readouterr().err
    assert said.splitlines() == [
        f"a: attempt {number} ended, another follows: EXIT_NONZERO: exit code {number}" for number in (1, 2)
    ]


def test_a_share_that_is_away_is_told_by_the_wait_alone(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wait_progress.saying_why(SpoolClient(root), ["nobody"]):
        pass
    client = SpoolClient(root)
    root.rename(root.with_name("elsewhere"))
    with wait_progress.saying_why(client, ["a"]):
        pass
    assert capsys.readouterr().err == ""


def test_a_task_that_begins_while_it_is_looked_at_is_not_said_not_to_have_begun(
    root: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`a has not begun: it runs on w-0001` was said of a task that began between two looks."""
    runs = Explanation("a", State.CLAIMED.value, 1, "it runs on w-0001")
    monkeypatch.setattr(SpoolClient, "explain", lambda *_: runs)
    wait_progress._say(str(root), ["a"])
    assert capsys.readouterr().err == ""
