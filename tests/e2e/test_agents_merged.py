"""Agents in repositories of their own, and a merge of their work, in a real pool: one file of tasks, and no script.

The agents are scripts behind the adapter `generic`; git and the repository are real.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.agents.workspace.repos import Remote, git
from tests.e2e.conftest import MakePool
from tests.e2e.pool import Daemon, Pool, wait_for

# It writes a file of its own. One of them waits in the middle of it, for good, in its first attempt.
CODER = """
import json, os, sys, time
name = sys.stdin.read().split()[1]
open(name + ".txt", "w").write(name + "\\n")
if name == "slow" and os.environ["SPOOL_ATTEMPT"] == "1":
    open(os.path.join(sys.argv[1], "slow"), "w").close()
    time.sleep(3600)
print("SPOOL:COMPLETED " + json.dumps({"text": "wrote " + name}))
"""
WORKER = """
[agents.coder]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]
workspace = {{repo = "{repo}", dir = "{dir}"}}
{more}

[handlers.merge]
command = ["{python}", "-m", "spoold.agents.merge", "--test", "ls *.txt", "--repo", "{repo}", "--dir", "{dir}"]
"""


def start(pool: Pool, name: str, remote: Remote, more: str = "must_change = true") -> tuple[Daemon, Path]:
    """A worker with its own folder for workspaces; returns it, and where the agents leave signs."""
    seen, script, file = pool.path("seen"), pool.path("coder.py"), pool.path(f"{name}.toml")
    seen.mkdir(exist_ok=True)
    script.write_text(CODER)
    own = pool.path(f"{name}-workspaces")
    said = {"python": sys.executable, "script": script, "seen": seen, "repo": remote.path, "dir": own, "more": more}
    file.write_text(WORKER.format(**said))
    daemon = pool.worker(name, "--config", str(file), slots=3)
    pool.ready(name)
    return daemon, seen


def test_the_work_of_agents_lands_together_also_of_one_whose_worker_was_killed(
    make_pool: MakePool, tmp_path: Path
) -> None:
    pool, remote = make_pool(), Remote(tmp_path)
    pool.master()
    first, seen = start(pool, "first", remote)
    tasks: list[dict[str, Any]] = [
        {"id": name, "agent": "coder", "prompt": f"write {name}"} for name in ("quick", "slow")
    ]
    lock = {"write": [f"merge:{remote.path}:main"]}
    merge = {"repo": str(remote.path), "into": "main", "tasks": ["quick", "slow"]}
    tasks.append({"id": "land", "type": "merge", "after": ["quick", "slow"], "input": merge, "locks": lock})
    tasks.append({"id": "deploy", "command": ["true"], "after": ["land"]})
    path = pool.path("dag.jsonl")
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    pool.cli("submit", str(path))
    quick = pool.finish("quick")
    assert quick["status"] == "success"
    assert quick["output"]["workspace"]["ref"] in remote.refs()
    wait_for((seen / "slow").exists, "the slow agent is in the middle of its work")
    first.kill()
    start(pool, "second", remote)
    assert pool.finish("slow")["attempt"] == 2
    assert pool.finish("land")["status"] == "success"
    assert pool.finish("deploy")["status"] == "success"
    assert git("ls-tree", "--name-only", "main", cwd=remote.path).split() == ["a.txt", "quick.txt", "slow.txt"]
    waited = pool.run("agent", "coder", "write more", "--id", "more", "--wait")
    assert (waited.returncode, waited.stdout) == (0, "wrote more\n"), waited.stderr
    assert f"more: done, 1 changed file, in refs/spool/more/1 of {remote.path}" in waited.stderr
    pool.fsck()


def test_work_is_merged_by_itself_where_its_profile_says_so(make_pool: MakePool, tmp_path: Path) -> None:
    pool, remote = make_pool(), Remote(tmp_path)
    pool.master()
    first, seen = start(pool, "first", remote, 'then = "merge"')
    tasks: list[dict[str, Any]] = [
        {"id": name, "agent": "coder", "prompt": f"write {name}", "batch": "b"} for name in ("quick", "slow")
    ]
    tasks.append({"id": "deploy", "command": ["true"], "after": ["quick-merge", "slow-merge"]})
    path = pool.path("dag.jsonl")
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    pool.cli("submit", str(path))
    assert pool.finish("quick")["output"]["merge"] == "quick-merge"
    wait_for((seen / "slow").exists, "the slow agent is in the middle of its work")
    first.kill()
    start(pool, "second", remote, 'then = "merge"')
    assert pool.finish("slow")["attempt"] == 2
    merged = pool.finish("slow-merge")
    assert merged["output"]["landed"][0]["task"] == "slow"
    assert pool.finish("deploy")["status"] == "success"
    assert "slow-merge" in pool.cli("tree", "slow")
    assert pool.json("show", "slow-merge")["batch"] == "b"
    assert git("ls-tree", "--name-only", "main", cwd=remote.path).split() == ["a.txt", "quick.txt", "slow.txt"]
    waited = pool.run("agent", "coder", "write more", "--id", "more", "--wait")
    assert (waited.returncode, waited.stdout) == (0, "wrote more\n"), waited.stderr
    commit = git("rev-parse", "main", cwd=remote.path).strip()
    assert f"more-merge: merged as {commit} into main" in waited.stderr
    assert f"merged as {commit} into main" in pool.json("explain", "more")["verdict"]
    pool.fsck()


def test_the_status_names_work_that_is_on_no_remote_until_it_is_pushed(make_pool: MakePool, tmp_path: Path) -> None:
    """Only the attempt of a task said so: a person who looked at the pool saw a failed task among others."""
    pool, remote = make_pool(), Remote(tmp_path)
    pool.master()
    first, _ = start(pool, "first", remote)
    hook = remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no pushes today\nexit 1\n")
    hook.chmod(0o755)
    path = pool.path("task.jsonl")
    path.write_text(json.dumps({"id": "quick", "agent": "coder", "prompt": "write quick"}) + "\n")
    pool.cli("submit", str(path))
    assert pool.finish("quick")["output"]["outcome"] == "blocked"
    own = pool.path("first-workspaces")
    what = f"the work of quick (attempt 1) is on no remote, only in {own}/work/quick."

    def warned(node: str) -> list[str]:
        """What the leader, and the listing without one, warn of first."""
        return [line for line in pool.json("status")["warnings"] if line.startswith(f"{node}-") and what in line]

    [line] = wait_for(lambda: warned("first"), "the status warns of it")
    push = line.partition("`")[2].partition("`")[0]
    assert push == f"spool workspace gc --dir {own}"
    assert f"! {line}" in " ".join(pool.cli("status").split())
    first.kill()
    (pool.path("again.toml")).write_text(pool.path("first.toml").read_text())
    pool.worker("again", "--config", str(pool.path("again.toml")))
    wait_for(lambda: warned("again"), "another worker of this machine says the same")
    hook.unlink()
    assert pool.run(*push.split()[1:]).returncode == 0
    wait_for(lambda: not warned("again"), "it is pushed")
    assert "refs/spool/quick/1" in remote.refs()
    pool.fsck()
