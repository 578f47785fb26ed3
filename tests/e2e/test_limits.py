"""Limits with real processes: units, quotas and rates hold while leaders and workers die, and others flow past."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import pytest

from tests.e2e.pool import SETTINGS, Daemon, Pool, wait_for

RUN = 'a=$SPOOL_TASK_ID.$SPOOL_ATTEMPT; date +%s.%N > "$1/begin.$a"; sleep {}; date +%s.%N > "$1/end.$a"'
ONCE = (
    'if mkdir "$1/used-up" 2>/dev/null; then printf \'{{"quota": {{"limit": "account", "retry_after_s": {}}}}}\' '
    '> "$SPOOL_RESULT_FILE"; exit 75; fi; sleep 0.2'
)


def command(pool: Pool, script: str, seconds: float) -> list[str]:
    """A command that runs the script, which writes beside the spool."""
    return ["sh", "-c", script.format(seconds), "-", str(pool.desk)]


def stamps(pool: Pool, kind: str, prefix: str) -> dict[str, float]:
    """When each attempt began, or ended, by its own word."""
    found = {}
    for path in pool.desk.glob(f"{kind}.{prefix}*"):
        text = path.read_text().strip()
        if text:
            found[path.name.partition(".")[2]] = float(text)
    return found


def events(pool: Pool, event: str) -> Iterator[tuple[float, dict[str, Any]]]:
    """When each such event was, and the event."""
    for name in pool.listing("events"):
        for line in (pool.root / "events" / name).read_text().splitlines():
            if line.strip():
                told = json.loads(line)
                if told["event"] == event:
                    yield datetime.fromisoformat(told["at"]).timestamp(), told


def most_within(moments: list[float], seconds: float) -> int:
    """The most moments within any window of so many seconds."""
    ordered = sorted(moments)
    return max((sum(first <= other < first + seconds for other in ordered) for first in ordered), default=0)


def most_at_once(begun: dict[str, float], ended: dict[str, float], seconds: float) -> int:
    """The most attempts that ran at one moment; one that wrote no end was killed before it had run so long."""
    changes = [(at, 1) for at in begun.values()]
    changes += [(ended.get(name, at + seconds), -1) for name, at in begun.items()]
    return max(itertools.accumulate(by for _, by in sorted(changes)))


def masters(pool: Pool, count: int) -> dict[str, Daemon]:
    """Start so many masters."""
    found = {f"m{number}": pool.master(f"m{number}") for number in range(count)}
    wait_for(lambda: all(pool.nodes(f"m-{name}") for name in found), "all masters beat")
    return found


def kill_leader(pool: Pool, there: dict[str, Daemon]) -> None:
    """Kill -9 the leader and start it again."""
    leader = wait_for(pool.leader, "somebody leads")
    name = leader.removeprefix("m-").rpartition("-")[0]
    there[name].kill()
    there[name] = pool.master(name)


def units(make_pool: Callable[..., Pool], tasks: int, others: int, kills: int) -> str:
    """Tasks that use a limit of 3 beside others that do not, while leaders and a worker die; the figures."""
    pool = make_pool(SETTINGS + "\n[limits.anthropic]\nmax = 3\n")
    there = masters(pool, 3)
    workers = {name: pool.worker(name, slots=8) for name in ("a", "b", "c")}
    pool.ready("a", "b", "c")
    for number in range(tasks):
        pool.submit(f"llm-{number}", command(pool, RUN, 0.3), uses=["anthropic"])
    for number in range(others):
        pool.submit(f"plain-{number}", command(pool, RUN, 1.5))
    for number in range(kills):
        wait_for(lambda n=number: len(stamps(pool, "begin", "llm-")) > 4 * (n + 1), "tasks began")  # type: ignore[misc]
        kill_leader(pool, there)
        if number == 0:
            workers["a"].kill()
            workers["a2"] = pool.worker("a2", slots=8)
    wait_for(lambda: len(pool.listing("completed")) >= tasks + others, "all have completed", 240)
    assert pool.listing("failed") == []
    most = most_at_once(stamps(pool, "begin", "llm-"), stamps(pool, "end", "llm-"), 0.3)
    plain = most_at_once(stamps(pool, "begin", "plain-"), stamps(pool, "end", "plain-"), 1.5)
    assert most <= 3
    assert plain >= min(others, 14), "what uses no limit has the other slots"
    pool.fsck()
    return f"{most} at most at once; {plain} of the others"


def quota(make_pool: Callable[..., Pool], tasks: int, seconds: float, per: str) -> str:
    """An account that is used up for so long; the figures."""
    pool = make_pool(SETTINGS + f'\n[limits.account]\nper = "{per}"\n')
    pool.master()
    for name in ("a", "b", "c"):
        pool.worker(name, slots=4)
    pool.ready("a", "b", "c")
    script = f'date +%s.%N > "$1/begin.$SPOOL_TASK_ID.$SPOOL_ATTEMPT"; {ONCE}'
    for number in range(tasks):
        pool.submit(f"t{number}", command(pool, script, seconds), uses=["account"], max_retries=0)
    wait_for(lambda: len(pool.listing("completed")) >= tasks, "all have completed", 240)
    assert pool.listing("failed") == []
    begun = sorted(stamps(pool, "begin", "t").values())
    results = [json.loads((pool.root / "results" / name).read_text()) for name in pool.listing("results")]
    refused = [r for r in results if r["exit_code"] == 75]
    back = [r for r in results if r["status"] == "handed_back"]
    assert len(refused) == 1
    [reported] = [at for at, told in events(pool, "RETURNED") if told["detail"].get("exit_code") == 75]
    if per == "pool":
        silent = max((b - a, a) for a, b in itertools.pairwise(begun) if a > reported - 1)
        assert silent[0] > seconds / 2, "nothing began while the limit was closed"
        first = [at for at in begun if at > silent[1]]
        assert first[1] - first[0] > 0.2, "one task goes first"
    else:
        assert any(reported < at < reported + seconds for at in begun), "the other workers go on at once"
        node = refused[0]["worker_id"]
        kept = [at for at, told in events(pool, "STARTED") if told["writer"] == node]
        assert not [at for at in kept if reported < at < reported + seconds - 0.5]
    assert len(back) <= 24, "no task goes round and round"
    return f"{len(refused)} refused, {len(back)} handed back, {len(begun)} attempts"


def rate(make_pool: Callable[..., Pool], tasks: int, count: int, seconds: float) -> str:
    """Starts of tasks under a rate, while the leader dies; the figures."""
    pool = make_pool(SETTINGS + f"\n[limits.api]\nrate = {{count = {count}, per_s = {seconds}}}\n")
    there = masters(pool, 2)
    for name in ("a", "b"):
        pool.worker(name, slots=8)
    pool.ready("a", "b")
    for number in range(tasks):
        pool.submit(f"t{number}", ["true"], uses=["api"])
    wait_for(lambda: len(pool.listing("completed")) >= count, "the first window is full")
    kill_leader(pool, there)
    wait_for(lambda: len(pool.listing("completed")) >= tasks, "all have completed", 240)
    figures = {event: most_within([at for at, _ in events(pool, event)], seconds) for event in ("CLAIMED", "STARTED")}
    assert max(figures.values()) <= count
    return f"at most {figures} within {seconds} s"


def test_units_are_never_exceeded_though_leaders_and_workers_die(make_pool: Callable[..., Pool]) -> None:
    units(make_pool, tasks=15, others=16, kills=1)


@pytest.mark.parametrize("per", ["pool", "worker"])
def test_a_quota_that_is_used_up_stops_all_and_one_task_tries_again(make_pool: Callable[..., Pool], per: str) -> None:
    quota(make_pool, tasks=30, seconds=3, per=per)


def test_no_window_of_a_rate_holds_more_starts_across_a_change_of_leader(make_pool: Callable[..., Pool]) -> None:
    rate(make_pool, tasks=12, count=5, seconds=2)
