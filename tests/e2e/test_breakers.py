"""A breaker with real processes: it opens after failures in a row, one task tries, and then the others follow."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import pairwise

from tests.e2e.pool import SETTINGS, Pool, wait_for
from tests.e2e.test_limits import command, events, kill_leader, masters, stamps

FAILURES, OPEN_S, TASKS = 5, 4.0, 24
BREAKER = f"\n[types.flaky]\nbreaker = {{failures = {FAILURES}, open_s = {OPEN_S}}}\n"
# Each attempt fails until a person has mended what it needs.
SCRIPT = 'date +%s.%N > "$1/begin.$SPOOL_TASK_ID.$SPOOL_ATTEMPT"; sleep {}; test -e "$1/mended"'


def breaker(make_pool: Callable[..., Pool], *, kill: bool) -> str:
    """Tasks of a type that fails beside others that do not; the figures. kill: the leader, while it is open."""
    pool = make_pool(SETTINGS + BREAKER)
    there = masters(pool, 2)
    for name in ("a", "b", "c", "d"):
        pool.worker(name, slots=1)
    pool.ready("a", "b", "c", "d")
    for number in range(TASKS):
        pool.submit(f"flaky-{number}", command(pool, SCRIPT, 0.3), type="flaky", max_retries=0)
    wait_for(lambda: [*pool_events(pool, "BREAKER_OPENED")], "the breaker opened")
    pool.submit("plain", ["true"])
    wait_for(lambda: pool.ended("plain") == "completed", "others flow past")
    if kill:
        kill_leader(pool, there)
    before = set(stamps(pool, "begin", "flaky-"))
    assert len(before) < TASKS, "not all were burnt"
    first = wait_for(lambda: set(stamps(pool, "begin", "flaky-")) - before, "one task tried", 60)
    wait_for(lambda: any(name.startswith(first_of(first)) for name in pool.listing("failed")), "it failed")
    (pool.desk / "mended").touch()
    wait_for(lambda: len(pool.listing("completed")) + len(pool.listing("failed")) > TASKS, "all have ended", 120)
    begun = sorted(stamps(pool, "begin", "flaky-").values())
    (opened, *again), (closed,) = pool_events(pool, "BREAKER_OPENED"), pool_events(pool, "BREAKER_CLOSED")
    assert len(again) <= int(kill), "a leader that died before its checkpoint leaves it to the next to open it again"
    tried = [at for at in begun if opened + 1 < at < closed]
    assert 2 <= len(tried) <= (3 if kill else 2), f"one task tries at a time: {tried}"
    assert tried[0] - opened > OPEN_S - 0.5
    assert all(later - at > OPEN_S - 0.5 for at, later in pairwise(tried[-2:])), "and then again after `open_s`"
    assert len(begun) == TASKS, "no attempt was made in vain"
    failed = len(pool.listing("failed"))
    assert failed < TASKS - 4, "those that were ready when it opened, and the first trial"
    pool.fsck()
    return f"{failed} of {TASKS} failed; trials {[round(at - opened, 1) for at in tried]} s after it opened"


def first_of(names: set[str]) -> str:
    """The beginning of the files of one of these attempts, of which each has one."""
    return f"{min(names).rpartition('.')[0]}."


def pool_events(pool: Pool, event: str) -> list[float]:
    """When the leader noted such an event of the whole pool."""
    return [at for at, told in events(pool, event) if told["detail"]["of"] == "pool"]


def test_a_breaker_opens_after_five_failures_tries_once_and_closes(make_pool: Callable[..., Pool]) -> None:
    breaker(make_pool, kill=False)


def test_a_new_leader_holds_it_open_and_lets_one_task_try(make_pool: Callable[..., Pool]) -> None:
    breaker(make_pool, kill=True)


def test_one_broken_worker_leaves_the_type_to_the_others(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS + "\n[types.flaky]\nbreaker = {failures = 3, open_s = 120}\n")
    pool.master()
    for name in ("good", "bad"):
        pool.worker(name, slots=1)
    pool.ready("good", "bad")
    # The tasks in between keep the pool's own count low: the broken worker is slower than the other.
    script = 'case "$SPOOL_WORKER_ID" in bad*) sleep 1; exit 1;; esac; sleep {}'
    for number in range(80):
        pool.submit(f"flaky-{number}", command(pool, script, 0.15), type="flaky", max_retries=9)
    wait_for(lambda: len(pool.listing("completed")) == 80, "all have completed", 120)
    told = [told for _, told in events(pool, "BREAKER_OPENED")]
    assert [(one["detail"]["of"].partition("-")[0], one["detail"]["failures"]) for one in told] == [("bad", 3)]
    results = [json.loads((pool.root / "results" / name).read_text()) for name in pool.listing("results")]
    assert sum(result["status"] == "failure" for result in results) == 3
