"""Goal: every figure of a look is exposed once, by a name that is bounded, and what cannot be read is left out."""

from __future__ import annotations

import re
from typing import Any

from spoold.client.spool.metrics_source import Figures, Room, measure
from spoold.faces.metrics import exposition as f
from spoold.faces.metrics.exposition import OTHER, Histogram, bounded, text_of
from spoold.faces.metrics.gauges import samples
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.snapshot import Snapshot
from tests.client.cluster import Cluster
from tests.docs.manual import CHECKOUT

AT = "2026-02-02T09:05:00.000Z"
MOMENT = 1770023100.0


def seen(**said: Any) -> str:
    """The page of a snapshot."""
    picture = Snapshot.model_validate({"generated_at": AT, "spool_id": "s", **said})
    return text_of(samples(Figures(snapshot=picture)))


def values(page: str, name: str) -> dict[str, float]:
    """The rows of one name: labels → value."""
    rows = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", page, re.MULTILINE)
    return {labels: float(value) for labels, value in rows}


def test_a_leaders_figures_are_those_of_its_snapshot() -> None:
    cluster = Cluster()
    master = cluster.master()
    cluster.worker()
    cluster.drop("r")
    cluster.drop("w", dependencies=["x"])
    cluster.steps(master)
    figures = measure(cluster.store)
    assert figures.snapshot is not None
    page = text_of(samples(figures))
    assert values(page, "spoold_tasks")['state="ready"'] == figures.snapshot.tasks.ready == 1
    assert values(page, "spoold_tasks")['state="waiting"'] == 1
    assert values(page, "spoold_leader_epoch") == {"": 1}
    assert values(page, "spoold_node_slots").keys() <= {f'node="{node}"' for node in figures.beats}
    (since,) = values(page, "spoold_oldest_ready_timestamp_seconds").values()
    assert abs(since - cluster.clock.wall()) < 60
    assert values(page, "spoold_share_size_bytes")[""] > 0


def test_looking_writes_nothing() -> None:
    cluster = Cluster()
    cluster.steps(cluster.master())
    before = {place: cluster.fs.list(place) for place in ("", "tmp", "status", "heartbeats", "events")}
    measure(cluster.store)
    assert before == {place: cluster.fs.list(place) for place in before}


def test_a_spool_that_nobody_has_led_has_no_figures_of_tasks() -> None:
    figures = measure(Cluster().store)
    page = text_of(samples(figures))
    assert "spoold_build_info" in page
    assert "spoold_share_free_bytes" in page
    assert "spoold_tasks" not in page
    assert "spoold_snapshot_timestamp_seconds" not in page


def test_gates_and_budgets_are_exposed() -> None:
    def day(number: int, spent: float, waits: str | None = None) -> dict[str, Any]:
        return {"period": f"day:2026-02-0{number}", "spent": {"cost_usd": spent, "tokens": 0}, "waits": waits}

    page = seen(
        gates={
            "limit": {"api": {"max": 5, "used": 2, "doubtful": 1}, "shut": {"max": 1, "used": 0, "doubtful": 0}},
            "rate": {"slow": {"count": 9, "per_s": 60, "used": 3, "doubtful": 0}},
            "quota": {"shut": {"until": None, "by": "request"}},
            "class": {"critical": {"slots": 2, "borrow": False, "used": 1}},
            "breaker": {"flaky": {"failures": 5, "until": AT}, "fine": {"failures": 1, "until": None}},
            "budget": {
                "daily": {"per": "day", "limits": {"cost_usd": 10}, "periods": [day(1, 9), day(2, 4, "t")]},
                "new": {"per": "total", "limits": {"tokens": 5}, "periods": []},
            },
            "hold": {"waiting": 2, "oldest": {"id": "a", "admitted_at": AT}},
            "approval": {"waiting": 1, "oldest": None, "questions": 3},
            "locks": {"held": 1, "waiting": 4},
            "worker": {"type=a": {"tasks": 2}, "type=b": {"tasks": 3}},
        }
    )
    assert values(page, "spoold_limit_used") == {'limit="api"': 3, 'limit="shut"': 0}
    assert values(page, "spoold_limit_closed") == {'limit="api"': 0, 'limit="shut"': 1}
    assert values(page, "spoold_rate_max_starts") == {'limit="slow"': 9}
    assert values(page, "spoold_class_used_slots") == {'class="critical"': 1}
    assert values(page, "spoold_breaker_open") == {'type="flaky"': 1, 'type="fine"': 0}
    assert values(page, "spoold_budget_spent_ratio") == {
        'budget="daily",figure="cost_usd"': 0.4,  # of the last day
        'budget="new",figure="tokens"': 0,
    }
    assert values(page, "spoold_budget_waiting_periods")['budget="daily"'] == 1
    assert values(page, "spoold_parked_tasks") == {'gate="hold"': 2, 'gate="approval"': 1}
    assert values(page, "spoold_oldest_parked_timestamp_seconds") == {'gate="hold"': MOMENT}
    assert values(page, "spoold_questions") == {"": 3}
    assert values(page, "spoold_locks_waiting") == {"": 4}
    assert values(page, "spoold_unserved_tasks") == {"": 5}


def test_what_cannot_be_read_is_left_out() -> None:
    strange = {"a": 1, "b": {"max": "many", "used": True}, "c": {"max": None}}
    budget = {"x": {"limits": 3, "periods": 4}, "y": {"limits": {"tokens": 0}, "periods": [1, {"spent": "all"}]}}
    page = seen(generated_at="yesterday", gates={"limit": strange, "budget": budget, "hold": {"oldest": {}}})
    assert "spoold_snapshot_timestamp_seconds" not in page
    assert values(page, "spoold_limit_max") == {}
    assert values(page, "spoold_limit_used") == {'limit="b"': 0, 'limit="c"': 0}
    assert "spoold_budget_spent_ratio" not in page


def test_alerts_are_counted_by_name_and_each_name_is_there() -> None:
    page = seen(
        alerts=[{"name": "node_dead", "subject": "a"}, {"name": "node_dead", "subject": "b"}, {"name": "new"}]
    )
    found = values(page, "spoold_alerts")
    assert (found['name="node_dead"'], found['name="new"'], found['name="disk"']) == (2, 1, 0)


def test_the_names_of_alerts_are_those_of_the_protocol() -> None:
    table = (CHECKOUT / "docs/spec/alerts.md").read_text().partition("| alert | subject |")[2].partition("\n\n")[0]
    assert tuple(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == f.ALERT_NAMES


def test_nodes_are_exposed_with_time_stamps_and_counters() -> None:
    worker = Heartbeat.model_validate(
        {"node": "w-1", "beat": 3, "at": AT, "status": "working", "host": {"hostname": "laptop"}, "version": "1"}
        | {"endings": {"TIMEOUT": 2}, "clock_ahead_s": -1.5}
        | {"spent": {"attempts": 7, "duration_s": 3.25, "cpu_s": None, "tokens_used": 12, "cost_usd": 0.5}}
    )
    master = Heartbeat.model_validate({"node": "m-1", "role": "master", "beat": 1, "status": "leader"})
    fresh = Heartbeat.model_validate({"node": "w-2", "beat": 1})
    page = text_of(samples(Figures(beats={"w-1": worker, "m-1": master, "w-2": fresh})))
    assert values(page, "spoold_node_heartbeat_timestamp_seconds") == {'node="w-1"': MOMENT}
    assert values(page, "spoold_node_info")['node="w-1",host="laptop",role="worker",version="1"'] == 1
    assert values(page, "spoold_node_attempts_total") == {'node="w-1"': 7, 'node="w-2"': 0}
    assert values(page, "spoold_node_failed_attempts_total") == {'node="w-1",code="TIMEOUT"': 2}
    assert values(page, "spoold_node_tokens_total") == {'node="w-1"': 12, 'node="w-2"': 0}
    assert values(page, "spoold_node_clock_ahead_seconds") == {'node="w-1"': -1.5}


def test_labels_have_a_bounded_number_of_values() -> None:
    assert bounded({f"t{n}": 1 for n in range(5)}, 3) == {"t0": 1, "t1": 1, "t2": 1, OTHER: 2}
    page = seen(types={f"t{n:04}": {"waiting": 1, "ready": 0, "running": 0} for n in range(500)})
    found = values(page, "spoold_type_tasks")
    assert len(found) == 3 * (f.TYPES_MOST + 1)
    assert sum(found.values()) == 500
    oldest = text_of(samples(Figures(ready_since={f"t{n:04}": 1000.0 - n for n in range(500)})))
    assert values(oldest, "spoold_oldest_ready_timestamp_seconds")[f'type="{OTHER}"'] == 501


def test_no_label_names_a_task_a_user_or_a_path() -> None:
    labels = {label for one in vars(f).values() if isinstance(one, f.Family) for label in one.labels}
    assert labels == {
        *("budget", "class", "code", "figure", "gate", "host", "limit", "name", "node", "result", "role", "state"),
        *("type", "version"),
    }


def test_names_follow_the_conventions() -> None:
    found = [one for one in vars(f).values() if isinstance(one, f.Family)]
    assert len({one.name for one in found}) == len(found) > 50
    for one in found:
        assert re.fullmatch(r"spoold_[a-z0-9_]+", one.name)
        assert (one.kind == "counter") == one.name.endswith("_total"), one.name
        assert not re.search(r"_(ms|minutes|hours|days|mb|kb|percent|age)(_|$)", one.name), one.name
        assert one.help.endswith("."), one.name


def test_a_hostile_value_ends_no_line_and_no_quotation() -> None:
    evil = 'a"} 1\nspoold_tasks{state="x"} 9\\\x1b[2J' + "x" * 1000
    page = seen(recent={"failed_attempts": {evil: 1}})
    (row,) = [line for line in page.splitlines() if line.startswith("spoold_recent_failed_attempts")]
    assert row.startswith('spoold_recent_failed_attempts{code="a\\"} 1 spoold_tasks{state=\\"x\\"} 9\\\\ [2Jxxx')
    assert len(row) < 300
    assert values(page, "spoold_tasks").keys().isdisjoint({'state="x"'})


def test_a_histogram_is_cumulative_and_reaches_a_day() -> None:
    found = Histogram()
    for value in (0.1, 2.0, 86_400.0, 90_000.0):
        found.add(value)
    page = text_of({f.WAIT: {("t",): found}})
    rows = values(page, "spoold_task_wait_seconds_bucket")
    assert rows['type="t",le="0.1"'] == 1
    assert rows['type="t",le="5"'] == 2
    assert rows['type="t",le="86400"'] == 3
    assert rows['type="t",le="+Inf"'] == 4 == values(page, "spoold_task_wait_seconds_count")['type="t"']
    assert values(page, "spoold_task_wait_seconds_sum") == {'type="t"': 176402.1}


def test_room_without_inodes_says_nothing_of_them() -> None:
    page = text_of(samples(Figures(room=Room(100, 7, None))))
    assert values(page, "spoold_share_free_bytes") == {"": 7}
    assert "inodes" not in page
