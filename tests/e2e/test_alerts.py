"""A worker is killed, and then the leader: each death is told of once, by a task that a real handler runs."""

from __future__ import annotations

import json
from collections.abc import Callable

from tests.e2e.pool import SETTINGS, Pool, wait_for

TOLD = SETTINGS + '\n[alerts]\ntask = {type = "notify"}\n'


def test_each_death_is_told_of_once_whoever_leads(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(TOLD)
    told, config = pool.path("told"), pool.path("notify.toml")
    config.write_text(f'[handlers.notify]\ncommand = ["sh", "-c", \'cat >> "$1"; echo >> "$1"\', "sh", "{told}"]\n')
    first = pool.master("one")
    victim = pool.worker("victim")
    pool.worker("teller", "--config", str(config))
    pool.ready("victim", "teller")
    pool.submit("work", "sleep 0.1")
    pool.finish("work")
    [dead] = pool.nodes("victim")

    def subjects() -> list[str]:
        return [json.loads(line)["subject"] for line in told.read_text().splitlines()] if told.exists() else []

    victim.kill()
    wait_for(lambda: subjects() == [dead], "the death of the worker is told of")

    def about_it() -> list[tuple[str, bool]]:
        alerts = [alert for alert in pool.json("status")["alerts"] if alert["subject"] == dead]
        return [(alert["name"], alert["task"].startswith(f"alert-node_dead-{dead}-")) for alert in alerts]

    # The snapshot that first shows an alert is written before its task is dropped: only a later one names the task.
    wait_for(lambda: about_it() == [("node_dead", True)], "a snapshot names the task that told of the death")
    assert f"ALERT node_dead: {dead} on " in " ".join(pool.cli("status").split())
    leader = pool.leader()
    assert leader is not None
    first.kill()
    pool.master("two")
    wait_for(lambda: len(subjects()) > 1, "the death of the leader is told of")
    pool.submit("more", "sleep 0.1")
    pool.finish("more")
    wait_for(lambda: len(pool.listing("completed")) == 4, "all tasks have ended")
    assert subjects() == [dead, leader]
    raised = [event for event in pool.cli("events", "--json").splitlines() if '"ALERT_RAISED"' in event]
    assert len(raised) == 2
    pool.fsck()
