"""Workers that die, hang or come back: nothing they started survives, and exactly one attempt is committed."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import psutil

from tests.e2e.pool import DEAD_AFTER_S, Pool, processes, wait_for

# A tree that tries to get away: in the background, in a session of its own, orphaned, without its environment.
ESCAPE = "sleep {0} & setsid sleep {0} & (env -i setsid sh -c 'sleep {0}; :' &) ; sleep {0}; :"


def _escaping(pool: Pool) -> list[str]:
    return ["sh", "-c", ESCAPE.format(f"60.{pool.mark}")]


def _started(pool: Pool, count: int = 4) -> None:
    wait_for(lambda: len(_sleepers(pool)) == count, f"{count} processes of the task sleep")


def _sleepers(pool: Pool) -> list[int]:
    return [process.pid for process in processes(f"60.{pool.mark}") if process.name() == "sleep"]


def _nobody_left(pool: Pool, within_s: float = 2.0) -> None:
    wait_for(lambda: not processes(pool.mark), "nothing that the worker started is alive", within_s)


def test_a_killed_worker_leaves_nothing_and_its_task_runs_elsewhere(pool: Pool) -> None:
    pool.master()
    first = pool.worker("first")
    pool.ready("first")
    quick = pool.path("quick")
    # The second attempt finds the file and ends at once.
    pool.submit("long", ["sh", "-c", f"[ -e '{quick}' ] && exit 0; {_escaping(pool)[2]}"], timeout=60)
    assert pool.claimed("long").startswith("first-")
    _started(pool)
    pool.worker("second")
    pool.ready("second")
    quick.touch()
    killed_at = time.monotonic()
    first.kill()
    _nobody_left(pool)
    assert pool.claim("long", attempt=2) is None
    result = pool.finish("long")
    took = time.monotonic() - killed_at
    assert took > DEAD_AFTER_S / 2, "nobody takes a worker for dead before the misses"
    assert (result["attempt"], result["status"]) == (2, "success")
    assert result["worker_id"].startswith("second-")
    ends = {entry["attempt"]: entry["status"] for entry in pool.results("long")}
    assert ends.get(1, "worker_died") == "worker_died"
    assert [entry["attempt"] for entry in pool.results("long") if entry["status"] == "success"] == [2]
    assert len(pool.tokens("long")) == 1
    pool.fsck()


def test_a_worker_that_restarts_on_its_host_gives_the_task_back_at_once(make_pool: Callable[..., Pool]) -> None:
    # Misses that would take two minutes: whoever is quick here has not waited for them.
    pool = make_pool("[heartbeat]\ninterval_s = 1\nmisses = 120\n\n[retry]\nbackoff_s = 0.1\n")
    pool.master()
    worker = pool.worker("laptop", slots=1)
    pool.ready("laptop")
    pool.submit("long", _escaping(pool))
    pool.claimed("long")
    _started(pool)
    worker.kill()
    _nobody_left(pool)
    pool.worker("laptop", slots=1)
    pool.claimed("long", attempt=2, within_s=20)
    pool.cli("cancel", "long")
    assert pool.finish("long")["status"] == "cancelled"
    pool.fsck()


def test_a_worker_that_was_stopped_past_its_reaping_is_fenced_out(pool: Pool) -> None:
    pool.master()
    sleepy = pool.worker("sleepy")
    pool.ready("sleepy")
    go = pool.path("go")
    # Each attempt says who it is, and would succeed when told to go.
    pool.submit("contested", ["sh", "-c", f"while [ ! -e '{go}' ]; do sleep 0.05; done; echo $SPOOL_ATTEMPT"])
    assert pool.claimed("contested").startswith("sleepy-")
    sleepy.signal(signal.SIGSTOP)
    pool.worker("awake")
    second = pool.claimed("contested", attempt=2)
    assert second.startswith("awake-")
    sleepy.signal(signal.SIGCONT)
    go.touch()
    result = pool.finish("contested")
    assert (result["attempt"], result["worker_id"], result["output"]) == (2, second, "2\n")
    # It comes back under a new name and works again: whatever it had to say of the old attempt it has said by now.
    wait_for(lambda: len(pool.nodes("sleepy")) == 1 and pool.nodes("sleepy") != [], "the sleeper joins again")
    probes = [pool.submit(f"probe-{n}", ["true"]) for n in range(8)]
    assert all(pool.finish(probe)["status"] == "success" for probe in probes)
    assert [r["attempt"] for r in pool.results("contested") if r["status"] == "success"] == [2]
    assert len(pool.tokens("contested")) == 1
    pool.fsck()


def test_a_task_that_kills_its_workers_is_stopped_by_the_crash_limit(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool("[heartbeat]\ninterval_s = 0.75\nmisses = 4\n[retry]\nbackoff_s = 0.1\ncrash_limit = 2\n")
    pool.master()
    pool.submit("poison", ["sh", "-c", f"sleep 60.{pool.mark}"])
    for attempt in (1, 2):
        worker = pool.worker("victim", slots=1)
        pool.claimed("poison", attempt)
        worker.kill()
        _nobody_left(pool)
    pool.worker("victim", slots=1)
    result = pool.finish("poison")
    assert (result["status"], result["error"]["code"]) == ("worker_died", "WORKER_DIED")
    pool.fsck()


def test_a_supervisor_that_dies_costs_an_attempt_and_not_the_worker(pool: Pool) -> None:
    pool.master()
    worker = pool.worker("host", slots=1)
    pool.ready("host")
    pool.submit("orphan", ["sh", "-c", f"[ $SPOOL_ATTEMPT = 2 ] && exit 0; sleep 60.{pool.mark}; :"])
    pool.claimed("orphan")
    wait_for(lambda: _sleepers(pool), "the task sleeps")
    for process in psutil.Process(worker.process.pid).children():
        process.kill()
    _nobody_left(pool)
    assert pool.finish("orphan")["attempt"] == 2
    assert worker.running
    pool.fsck()


def test_who_begins_again_and_finds_settings_that_it_cannot_go_by_says_so_and_stays_down(pool: Pool) -> None:
    pool.master()
    worker = pool.worker("w1")
    pool.ready("w1")
    (pool.root / "spool.toml").write_text("[poll]\nbusy = 1\n")
    (node,) = pool.nodes("w1")
    (pool.root / "claimed" / node).rmdir()
    assert worker.ends() == 2
    assert "spool.toml" in worker.log.read_text()
    assert "bug in spoold" not in worker.log.read_text()
