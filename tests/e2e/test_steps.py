"""A task that saves how far it has come goes on from there, after kill -9 of its worker and on another one."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

from tests.e2e.pool import SETTINGS, Pool, wait_for

PROGRAM = """
import os, sys, time
from spoold import task
done = task.restore([])
print("begins after", done, flush=True)
for number in range(len(done), 4):
    done.append([number, os.environ["SPOOL_ATTEMPT"]])
    task.checkpoint(done)
    if number == 1 and os.environ["SPOOL_ATTEMPT"] == "1":
        time.sleep(600)
import json
with open(os.environ["SPOOL_RESULT_FILE"], "w") as file:
    json.dump(done, file)
"""


def test_a_killed_worker_costs_no_step(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS)
    pool.master()
    first = pool.worker("first", "--allow-command")
    pool.ready("first")
    pool.submit("long", [sys.executable, "-c", PROGRAM])
    wait_for(lambda: len(list(pool.root.glob("steps/long/*"))) == 2, "two steps are saved")
    pool.worker("second", "--allow-command")
    pool.ready("second")
    first.signal(signal.SIGKILL)
    assert pool.finish("long")["output"] == [[0, "1"], [1, "1"], [2, "2"], [3, "2"]]


def test_a_shell_may_do_the_same(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS)
    pool.master()
    pool.worker("w", "--allow-command")
    pool.ready("w")
    spool = f"{sys.executable} -m spoold"
    script = f'said=$({spool} checkpoint) || said=new; {spool} checkpoint "half way"; echo $said; test "$said" != new'
    pool.submit("again", script, max_retries=1, retry={"backoff_s": 0})
    assert "half way" in str(pool.finish("again")["output"])
