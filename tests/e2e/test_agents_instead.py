"""Another account when one is out, in a real pool: two agents in one repository, and a quota that is spent midway.

The agents are scripts behind the adapter `generic`; git and the repository are real.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from tests.agents.workspace.repos import Remote, git
from tests.e2e.conftest import MakePool
from tests.e2e.pool import SETTINGS, Pool, wait_for

# The first account writes half of the work and is out; so it says of every task from then on.
FIRST = """
import json, os, sys
name = sys.stdin.read().split()[1]
open(name + ".half", "w").write(os.environ["SPOOL_TASK_TYPE"])
print("SPOOL:SESSION " + json.dumps({"session": "of-the-first"}))
print("SPOOL:FAILED " + json.dumps({"fault": "quota", "reason": "spent", "retry_after_s": 3600}))
"""
SECOND = """
import json, os, sys
name = sys.stdin.read().split()[1]
half = open(name + ".half").read() if os.path.exists(name + ".half") else "nothing"
open(name + ".txt", "w").write("after " + half)
print("SPOOL:COMPLETED " + json.dumps({"text": os.environ["SPOOL_TASK_TYPE"] + " found " + half}))
"""
LIMITS = """
[limits.account]
quota_max_s = 7200
[limits.other]
max = 1
[types.coder]
uses = ["account"]
[types.coder-b]
uses = ["other"]
"""
WORKER = """
[agents.coder]
cli = "generic"
command = ["{python}", "{folder}/first.py"]
limit = "account"
instead = ["coder-b"]
workspace = {{repo = "{repo}", dir = "{folder}/workspaces"}}
must_change = true
concurrent = 1

[agents.coder-b]
cli = "generic"
command = ["{python}", "{folder}/second.py"]
limit = "other"
workspace = {{repo = "{repo}", dir = "{folder}/workspaces"}}
must_change = true
"""


def test_work_goes_on_by_another_account_within_seconds_from_what_was_done(
    make_pool: MakePool, tmp_path: Path
) -> None:
    pool, remote = make_pool(SETTINGS + LIMITS), Remote(tmp_path)
    begin(pool, remote)
    began = time.monotonic()
    path = pool.path("tasks.jsonl")
    tasks = [{"id": name, "agent": "coder", "prompt": f"write {name}"} for name in ("begun", "fresh", "later")]
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    pool.cli("submit", str(path))
    for name in ("begun", "fresh", "later"):
        assert pool.finish(name)["status"] == "success"
    assert time.monotonic() - began < 60, "nobody waits for the hour"
    before, after = pool.results("begun")
    assert (before["type"], before["instead_of"], before["exit_code"]) == ("coder", None, 75)
    assert (after["type"], after["instead_of"], after["uses"]) == ("coder-b", "coder", {"other": 1})
    assert after["output"]["text"] == "coder-b found coder", "the work so far was there"
    assert sorted(after["output"]["changed_files"]) == ["begun.half", "begun.txt"]
    for name in ("fresh", "later"):
        (only,) = pool.results(name)
        assert (only["attempt"], only["output"]["text"]) == (1, "coder-b found nothing")
    tip = next(ref for ref in remote.refs() if ref.endswith("begun/2"))
    assert git("show", f"{tip}:begun.txt", cwd=remote.path) == "after coder"
    assert "coder-b" in pool.cli("show", "begun")
    assert len(pool.json("ls", "--state", "completed", "--type", "coder")) == 3
    assert "ready for a worker as coder-b: a limit is closed for coder" in pool.cli("history", "begun")
    assert pool.json("limits")[0]["closed"]
    assert "while its limit is closed, tasks go to coder-b" in pool.cli("agents")
    pool.fsck()


def begin(pool: Pool, remote: Remote) -> None:
    """A master, and a worker with both accounts."""
    pool.path("first.py").write_text(FIRST)
    pool.path("second.py").write_text(SECOND)
    said = {"python": sys.executable, "folder": pool.path("first.py").parent, "repo": remote.path}
    pool.path("worker.toml").write_text(WORKER.format(**said))
    pool.master()
    pool.worker("w", "--config", str(pool.path("worker.toml")), slots=3)
    pool.ready("w")
    wait_for(lambda: pool.json("status")["workers"]["alive"] == 1, "the leader has heard of the worker")
