"""Goal: a kill -9 at any step of a merge leaves the branch as before or as after, and the next one finishes it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.agents.merge.lanes import land, work
from tests.agents.workspace.repos import Remote

WITHIN_S = 240


@pytest.mark.parametrize(("what", "stride", "least"), [("alone", "1", 15), ("batch", "9", 5)])
def test_killed_before_a_command_main_holds_only_what_was_tested(
    tmp_path: Path, what: str, stride: str, least: int
) -> None:
    """One piece of work, at every command; a batch that is halved, at every ninth."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.agents.merge.kills", str(tmp_path), what, stride],
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > least


def test_killed_in_the_middle_of_its_push_main_is_as_before_or_as_after(tmp_path: Path) -> None:
    """The merge and its push die together while the remote judges; the remote goes on or does not."""
    remote = Remote(tmp_path)
    one = work(remote, tmp_path, "one", {"b.txt": "x\n"})
    hook = remote.path / "hooks" / "pre-receive"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/pushing\nwhile ! test -e {tmp_path}/go; do sleep 0.02; done\n")
    hook.chmod(0o755)
    code = (
        "import sys; from pathlib import Path; from spoold.agents.merge.candidates import Candidate;"
        "from tests.agents.merge.lanes import land; from tests.agents.workspace.repos import Remote;"
        "land(Remote.at(Path(sys.argv[1])), Path(sys.argv[1]), Candidate('one', sys.argv[2], sys.argv[3]))"
    )
    words = [sys.executable, "-c", code, str(tmp_path), one.commit, one.ref]
    with subprocess.Popen(words) as merging:
        until = time.monotonic() + 60
        while not (tmp_path / "pushing").exists():
            assert merging.poll() is None
            assert time.monotonic() < until
            time.sleep(0.02)
        merging.kill()
    (tmp_path / "go").touch()
    hook.unlink()
    while (tip := remote.commit("main")) == remote.first and time.monotonic() < until and _runs(remote):
        time.sleep(0.02)
    outcome = land(remote, tmp_path, one)
    assert outcome.whole
    assert remote.read("main", "b.txt") == "x\n"
    assert tip in (remote.first, outcome.after)


def _runs(remote: Remote) -> bool:
    """Whether the remote still judges the push of the killed merge."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(str(remote.path) in word for word in process.cmdline()):
                return True
    return False
