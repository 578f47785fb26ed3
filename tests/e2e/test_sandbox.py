"""A task whose program runs an agent in a sandbox: its boxes work, and its end is the agent's end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator

import pytest

from tests.agents.sandbox.stage import prepared
from tests.e2e.pool import SETTINGS, Pool, processes, wait_for

PROGRAM = """
import os, subprocess, sys
from spoold.agents.process.confinement import mailbox
from spoold.agents.sandbox.launch import entered
from spoold.agents.sandbox.sandbox_policy import SandboxPolicy, SandboxRun

top = os.environ["SPOOL_WORK_DIR"]
for name in ("ws", "home"):
    os.mkdir(f"{top}/{name}")
box = mailbox({**os.environ, "SPOOL_CONTEXT_DIR": "", "SPOOL_WORK_DIR": ""}, f"{top}/out")
env = {**box.env, "SPOOL": os.environ["SPOOL_ROOT"]}
scene = SandboxRun(f"{top}/ws", f"{top}/home", env, box.shown, box.writable, hidden=(os.environ["SPOOL_ROOT"],))
with entered(SandboxPolicy("bwrap"), scene) as inside:
    wrapped = inside.wrap(["sh", "-c", sys.argv[1]])
    code = subprocess.run(wrapped.argv, env=wrapped.env, stdin=subprocess.DEVNULL).returncode
box.deliver()
sys.exit(code)
"""


@pytest.fixture
def pool(make_pool: Callable[..., Pool]) -> Iterator[Pool]:
    """A pool whose worker runs such programs."""
    if reason := prepared("bwrap", "bubblewrap"):
        pytest.skip(reason)
    pool = make_pool(SETTINGS)
    pool.master()
    pool.worker("w", "--allow-command")
    pool.ready("w")
    yield pool
    print(pool.report())


def agent(pool: Pool, name: str, script: str) -> None:
    """Submit a task whose agent is a script of the shell."""
    pool.submit(name, [sys.executable, "-c", PROGRAM, script], max_retries=0)


def test_it_reads_its_task_and_writes_its_result(pool: Pool) -> None:
    agent(pool, "works", 'ls "$SPOOL" 2>&1; grep -q works "$SPOOL_TASK_FILE" && echo 7 >"$SPOOL_RESULT_FILE"')
    ended = pool.finish("works")
    assert ended["output"] == 7
    assert "No such file" in pool.cli("logs", "works")


def test_its_exit_code_is_that_of_the_task(pool: Pool) -> None:
    agent(pool, "fails", "exit 7")
    assert pool.finish("fails")["exit_code"] == 7


def test_a_cancel_leaves_nothing_of_it(pool: Pool) -> None:
    agent(pool, "hangs", f"setsid sleep {pool.mark} & trap '' TERM; sleep {pool.mark}; sleep {pool.mark}")
    wait_for(lambda: len(processes(pool.mark)) > 3, "it runs")
    pool.cli("cancel", "hangs")
    assert pool.finish("hangs")["status"] == "cancelled"
    assert not processes(pool.mark)
