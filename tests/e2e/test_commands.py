"""The `spool` command against a living cluster: exit codes, logs that stream, the archive, strange paths."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.pool import Pool, wait_for


def test_ids_come_out_one_a_line_and_can_be_waited_for(shared: Pool) -> None:
    lines = "".join(json.dumps({"command": ["echo", str(n)]}) + "\n" for n in range(3)).encode()
    ids = shared.cli("submit", "-", stdin=lines).split()
    assert len(ids) == 3
    shared.cli("wait", *ids, "--timeout", "40")
    assert [shared.cli("result", one) for one in ids] == ["0\n", "1\n", "2\n"]


def test_run_behaves_like_the_command(shared: Pool) -> None:
    done = shared.run("run", "--", "sh", "-c", "echo out; echo err >&2; exit 7")
    assert done.returncode == 7
    assert set(done.stdout.split()) == {"out", "err"}
    assert shared.run("run", "--", "true").returncode == 0


def test_exit_codes_that_scripts_rely_on(shared: Pool, tmp_path: Path) -> None:
    bad = shared.cli("submit", "--retries", "0", "--", "false").strip()
    shared.cli("wait", bad, code=1)
    shared.cli("result", bad, code=1)
    shared.cli("submit", "--retries", "0", "--wait", "--", "false", code=1)
    shared.cli("show", "no-such-task", code=4)
    shared.cli("wait", "no-such-task", code=4)
    shared.cli("submit", "--no-such-option", code=2)
    shared.cli("submit", str(tmp_path / "absent.json"), code=2)
    shared.cli("submit", "-", stdin=b'{"comand": ["true"]}', code=2)
    waiting = shared.cli("submit", "--after", "not-there", "--", "true").strip()
    shared.cli("result", waiting, code=4)
    shared.cli("wait", waiting, "--timeout", "0.2", code=124)
    shared.cli("cancel", waiting)
    shared.cli("--spool", str(tmp_path / "nowhere"), "status", code=69)
    shared.cli("--spool", str(tmp_path), "status", code=69)
    assert not os.listdir(tmp_path), "nothing is made on the fly"


def test_no_spool_named(shared: Pool, tmp_path: Path) -> None:
    done = shared.run("status", env={"SPOOL_DIR": "", "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)})
    assert done.returncode == 2
    assert "SPOOL_DIR" in done.stderr


@pytest.mark.parametrize("verb", ["wait", "run"])
def test_an_interrupt_is_130(shared: Pool, verb: str) -> None:
    if verb == "wait":
        shared.submit("never-ends", ["true"], after="nothing-like-it")
        wait_for(lambda: shared.tokens("never-ends"), "it is in the spool")
        client = shared.spawn("client-wait", "wait", "never-ends")
        sleeping = _asleep(client.process.pid)
    else:
        client = shared.spawn("client-run", "run", "--id", "interrupted", "--", "sleep", f"50.{shared.mark}")
        shared.claimed("interrupted")
        sleeping = _asleep(client.process.pid)
    wait_for(sleeping, "the client waits")
    client.signal(signal.SIGINT)
    assert client.ends() == 130
    if verb == "run":
        assert shared.finish("interrupted")["status"] == "cancelled"
    else:
        shared.cli("cancel", "never-ends")


def _asleep(pid: int) -> Callable[[], bool]:
    """Whether a process has been through its imports: it sleeps, and has used no time since it was last asked."""
    import psutil

    used: list[float] = []

    def look() -> bool:
        times = psutil.Process(pid).cpu_times()
        used.append(times.user + times.system)
        return len(used) > 10 and used[-1] - used[-10] < 0.01 and used[-1] > 0.1

    return look


def test_logs_stream_while_the_task_runs(shared: Pool) -> None:
    go = shared.path("stream.go")
    script = f"echo early; while [ ! -e '{go}' ]; do sleep 0.05; done; echo late"
    shared.submit("talker", ["sh", "-c", script])
    shared.claimed("talker")
    follower = shared.spawn("follower", "logs", "-f", "talker")
    wait_for(lambda: follower.log.read_text() == "early\n", "the first line is there while the task runs")
    assert shared.ended("talker") is None
    go.touch()
    assert follower.ends() == 0
    assert follower.log.read_text() == "early\nlate\n"
    assert shared.cli("logs", "talker") == "early\nlate\n"


def test_events_tell_the_life_of_a_task(shared: Pool) -> None:
    shared.submit("storied", ["true"])
    shared.finish("storied")

    def told() -> bool:
        lines = [json.loads(line) for line in shared.cli("events", "--json").splitlines()]
        return {"ADMITTED", "CLAIMED", "STARTED", "COMPLETED"} <= {
            e["event"] for e in lines if e.get("task") == "storied"
        }

    wait_for(told, "the whole life is in the journal")


def test_archived_tasks_can_be_asked_for(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool("[heartbeat]\ninterval_s = 0.75\nmisses = 4\n\n[retention]\nkeep = 5\n")
    pool.master()
    pool.worker("archivist")
    for number in range(12):
        pool.submit(f"old-{number:02}", ["sh", "-c", f"echo {number}"])
    pool.submit("old-bad", ["sh", "-c", "exit 65"])
    wait_for(lambda: len([n for n in pool.files("archive") if n.endswith(".completed.json")]) == 7, "keep = 5 holds")
    pool.cli("gc")
    wait_for(lambda: not pool.listing("completed") + pool.listing("failed") + pool.listing("results"), "gc archives")
    assert len([name for name in pool.files("archive") if name.endswith(".completed.json")]) == 12
    assert pool.cli("result", "old-00") == "0\n"
    assert pool.cli("result", "old-11") == "11\n"
    pool.cli("wait", "old-00", "old-11", "--timeout", "20")
    pool.cli("wait", "old-bad", "--timeout", "20", code=1)
    assert pool.cli("logs", "old-07") == "7\n"
    assert pool.json("show", "old-03")["state"] == "completed"
    # A dependency that was archived long ago still counts.
    pool.submit("young", ["true"], after=["old-00", "old-11"])
    assert pool.finish("young")["status"] == "success"
    pool.submit("doomed", ["true"], after="old-bad")
    assert pool.finish("doomed")["error"]["code"] == "DEPENDENCY_FAILED"
    pool.fsck()


def test_a_spool_may_have_any_path(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(name="my spool ‘ünïcödé’ $(x) %s {y} 'q' [z]")
    pool.spawn("up", "up", "--slots", "2", "--name", "odd", "--allow-command")
    pool.ready("odd")
    out = pool.cli("run", "--", "sh", "-c", 'ls "$SPOOL_ROOT/spool.json" && pwd && cat "$SPOOL_TASK_FILE"')
    assert str(pool.root) in out
    assert pool.cli("submit", "--wait", "--", "true")
    pool.fsck()


def test_a_pipe_that_is_closed_early_is_no_error(shared: Pool) -> None:
    line = f"{sys.executable} -m spoold ls --all --json | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"], capture_output=True, env=shared.env, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_became_of_a_drop_is_not_told_from_the_task_that_has_its_id(shared: Pool) -> None:
    shared.finish(shared.submit("mine", ["echo", "1"]))
    refused = shared.run("run", "--id", "mine", "--", "echo", "9")
    assert (refused.returncode != 0, refused.stdout) == (True, "")
    assert "'mine' is taken by a task with other content" in refused.stderr
    assert "is taken" in shared.run("submit", "--wait", "--id", "mine", "--", "sh", "-c", "exit 5").stderr
    shared.drop("other.json", {"id": "mine", "command": ["echo", "7"]})
    wait_for(lambda: "other.json" in shared.listing("rejected"), "it is rejected")
    waited = shared.run("wait", "other.json")
    assert (waited.returncode, "is taken" in waited.stderr) == (1, True)
    assert "was rejected" in shared.run("cancel", "other.json").stderr
    assert shared.run("run", "--id", "mine", "--", "true").returncode != 0
    assert shared.json("show", "mine")["state"] == "completed"
