"""Alerts: once for each rise, whatever trembles, and whoever leads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from spoold.protocol.heartbeat import Capabilities, Heartbeat, HostId
from spoold.protocol.names import is_id
from spoold.protocol.settings import AlertSettings, DiskSettings
from spoold.protocol.snapshot import Alert
from spoold.protocol.task import Task
from spoold.rules.alerts import (
    LAST,
    LEAST,
    MOST,
    OVER_S,
    Board,
    Failures,
    Figures,
    Outcomes,
    Reading,
    Space,
    above,
    notice,
    reached,
    readings,
    succeeded,
    task_id,
    unsure,
)

NONE = Failures(0, 0, known=True)
GIB = 1 << 30


def by(**settings: Any) -> AlertSettings:
    """Settings of [alerts], of which all that has a default is off."""
    off: dict[str, Any] = {
        "budget": None,
        "stuck_s": 0,
        "dead_s": 0,
        "limits": False,
        "breakers": False,
        "disk": False,
    }
    return AlertSettings.model_validate({**off, **settings})


def seen(found: Iterable[Reading]) -> list[tuple[str, str, bool | None]]:
    return [(reading.name, reading.subject, reading.over) for reading in found]


def rise(board: Board, now: float, *found: Reading, **how: Any) -> list[str]:
    """What rises and falls, as +name and -name."""
    changes = board.look(found, now, f"at {now:g}", **how)
    return [f"+{alert.name}{alert.subject}" for alert in changes.raised] + [
        f"-{alert.name}{alert.subject}" for alert in changes.cleared
    ]


def worker(node: str, available: int | None, offered: int = 1000) -> Heartbeat:
    can = Capabilities(mem_mb=offered)
    return Heartbeat(node=node, beat=1, capabilities=can, mem_available_mb=available)


def test_a_figure_that_trembles_changes_nothing() -> None:
    assert [above(value, 100) for value in (101, 100, 91, 90)] == [True, None, None, False]
    assert [reached(value, 0.8) for value in (0.8, 0.79, 0.72)] == [True, None, False]


def test_an_alert_rises_once_and_falls_once() -> None:
    board = Board()
    up, between, down = (Reading("queue", "", over, 1, 2, "text") for over in (True, None, False))
    assert rise(board, 1, down) == []
    assert rise(board, 2, between) == []
    assert rise(board, 3, up) == ["+queue"]
    assert rise(board, 4, up) == []
    assert rise(board, 5, between) == []
    assert rise(board, 6, up) == []
    [alert] = board.standing
    assert alert == Alert(name="queue", since="at 3", value=1, threshold=2, text="text")
    assert rise(board, 7, down) == ["-queue"]
    assert board.standing == ()
    assert rise(board, 8, up) == ["+queue"], "the next rise is another one"
    assert rise(board, 9) == ["-queue"], "nobody asks for it any more"


def test_some_figures_have_to_last() -> None:
    board = Board()
    up, between, down = (Reading("memory", "w1", over, after_s=10) for over in (True, None, False))
    assert rise(board, 0, between) == []
    assert rise(board, 1, up) == []
    assert rise(board, 6, between) == []
    assert rise(board, 7, down) == []
    assert rise(board, 12, up) == [], "it was within bounds meanwhile"
    assert rise(board, 20, between) == []
    assert rise(board, 22, up) == ["+memoryw1"]


def test_a_new_leader_goes_on_with_what_stands() -> None:
    first, up = Board(), Reading("limit_closed", "api", True)
    rise(first, 1, up)
    second = Board()
    second.begin(first.standing)
    assert rise(second, 500, up) == []
    assert second.standing == first.standing
    assert rise(second, 501, Reading("limit_closed", "api", False)) == ["-limit_closedapi"]


def test_what_is_not_known_changes_nothing() -> None:
    board, up = Board(), Reading("budget", "nightly", True)
    rise(board, 1, up)
    assert rise(board, 2, unsure={"budget"}) == []
    assert rise(board, 3, unsure={"queue"}) == ["-budgetnightly"]


def test_the_alert_of_a_dead_node_stands_for_a_while() -> None:
    board, dead = Board(), Reading("node_dead", "w1", True, since="then")
    assert rise(board, 1, dead, dead_s=600) == ["+node_deadw1"]
    assert board.standing[0].since == "then"
    assert rise(board, 600, dead_s=600) == []
    assert rise(board, 700, dead, dead_s=600) == [], "it cannot be reaped"
    assert rise(board, 701, dead_s=600) == ["-node_deadw1"]


def test_a_rack_that_dies_is_not_told_of_without_end() -> None:
    board = Board()
    dead = [Reading("node_dead", f"w{number:04}", True) for number in range(MOST + 5)]
    assert len(rise(board, 1, *dead, Reading("queue", "", True))) == MOST + 1
    assert len(rise(board, 2, *dead)) == 1, "only that of the queue falls"


def test_the_task_is_the_same_for_every_leader_and_a_new_one_for_every_rise() -> None:
    alert = Alert(name="budget", subject="nightly day:2026-02-02", since="2026-02-02T09:00:00.000Z", text="x" * 500)
    assert task_id(alert) == task_id(alert.model_copy(update={"task": "t"}))
    others = [alert.model_copy(update={field: "other"}) for field in ("name", "subject", "since")]
    assert len({task_id(each) for each in (alert, *others)}) == 4
    assert is_id(task_id(alert))
    assert task_id(alert).startswith("alert-budget-nightly-day-2026-02-02-")
    drop = notice(alert, "notify")
    assert Task.model_validate(drop).kind == "notify"
    assert drop["input"] == {
        "name": "budget",
        "subject": "nightly day:2026-02-02",
        "since": "2026-02-02T09:00:00.000Z",
        "value": 0.0,
        "threshold": 0.0,
        "text": "x" * 500,
    }


def test_an_alert_knows_the_task_that_tells_of_it_until_it_rises_anew() -> None:
    board, up = Board(), Reading("queue", "", True)
    rise(board, 1, up)
    [first] = board.standing
    board.told(first, "t1")
    assert [alert.task for alert in board.standing] == ["t1"]
    rise(board, 2)
    board.told(first, "t1")
    assert not board.standing
    rise(board, 3, up)
    board.told(first, "t1")
    assert [alert.task for alert in board.standing] == [""]


def test_nothing_is_told_that_no_setting_asks_for() -> None:
    figures = Figures(
        Failures(100, 100, known=True),
        workers={"w1": worker("w1", 0)},
        dead={"w2": None},
        queue=10**6,
        ready=1,
        still_s=10**6,
        gates={"quota": {"api": {"until": None, "by": "request"}}},
        space=Space(100 * GIB, 0, 0, DiskSettings()),
    )
    assert seen(readings(figures, by())) == []
    names = {name for name, _, over in seen(readings(figures, AlertSettings())) if over}
    assert names == {"stuck", "node_dead", "limit_closed", "disk", "disk_full"}
    assert AlertSettings().kind is None
    assert by(task={"type": "notify"}).kind == "notify"


def test_a_healthy_spool_with_a_backlog_has_no_alerts() -> None:
    budgets = {"nightly": {"closed": "", "per": "total", "limits": {"cost_usd": 5.0}, "periods": []}}
    figures = Figures(
        NONE,
        workers={"w1": worker("w1", 10)},
        queue=10**6,
        ready=256,
        still_s=60,
        gates={"quota": {}, "budget": budgets},
        space=Space(100 * GIB, 50 * GIB, None, DiskSettings()),
    )
    assert [name for name, _, over in seen(readings(figures, AlertSettings())) if over is not False] == []


def test_failures_of_too_few_attempts_prove_nothing() -> None:
    for failures, over in (
        (Failures(LEAST - 1, LEAST - 1, known=True), False),
        (Failures(LEAST, 3, known=True), True),
        (Failures(LEAST, 2, known=True), None),
        (Failures(100, 9, known=True), False),
        (Failures(100, 100, known=False), None),
    ):
        assert seen(readings(Figures(failures), by(failure_rate=0.1))) == [("failure_rate", "", over)], failures
    [told] = readings(Figures(Failures(100, 34, known=True)), by(failure_rate=0.1))
    assert told.text == "34 of the last 100 attempts failed; more than 10 % is an alert"


def test_memory_is_of_each_worker_alone() -> None:
    workers = {
        "a": worker("a", 100),
        "b": worker("b", 250),
        "c": worker("c", 900),
        "d": None,
        "e": Heartbeat(node="e", beat=1),
        "unknown": worker("unknown", None),
        "f": worker("f", 0, offered=0),
        "g": worker("g", 64_000),
    }
    found = list(readings(Figures(NONE, workers=workers), by(memory=0.8)))
    assert seen(found) == [
        ("memory", "a", True),
        ("memory", "b", None),
        ("memory", "c", False),
        ("memory", "d", None),
        ("memory", "g", False),
    ]
    assert found[0].text == "90 % of the memory of a is in use: 100 of 1,000 MiB are available"
    assert (found[0].after_s, found[-1].value) == (10, 0)


def test_the_queue_and_the_followers() -> None:
    figures = Figures(NONE, queue=101, followers=1)
    found = list(readings(figures, by(queue=100, followers=2)))
    assert seen(found) == [("queue", "", True), ("followers", "", True)]
    assert found[0].text == "101 tasks wait or are ready; above 100 is an alert"
    assert found[1].text == "the leader has 1 worker on another host or standby; fewer than 2 is an alert"
    assert seen(readings(Figures(NONE, followers=2), by(followers=2))) == [("followers", "", False)]


@pytest.mark.parametrize(("still_s", "over"), [(None, None), (599, False), (600, True)])
def test_a_queue_is_stuck_when_nothing_starts_for_long(still_s: float | None, over: bool | None) -> None:
    [told] = readings(Figures(NONE, ready=1, still_s=still_s), by(stuck_s=600))
    assert (told.name, told.over) == ("stuck", over)
    if still_s is not None:
        assert "though 1 task is ready and a worker for it has" in told.text
        [many] = readings(Figures(NONE, ready=2, still_s=still_s), by(stuck_s=600))
        assert "though 2 tasks are ready and a worker for one has" in many.text


def test_of_a_dead_node_every_leader_says_the_same() -> None:
    beat = Heartbeat(node="w1", beat=7, at="2026-02-02T09:00:00.000Z", host=HostId(hostname="laptop1"))
    dead = {"w1": beat, "w2": None, "w3": Heartbeat(node="w3", beat=1)}
    maybe, *found = readings(Figures(NONE, dead=dead, silent=["w1", "w4"], dead_after_s=15), by(dead_s=600))
    assert (maybe.subject, maybe.over) == ("w4", None), "a step that has listed everything says so"
    assert [(told.subject, told.since, told.value, told.threshold, told.over) for told in found] == [
        ("w1", "2026-02-02T09:00:00.000Z", 15, 15, True),
        ("w2", "", 15, 15, True),
        ("w3", "", 15, 15, True),
    ]
    assert [told.text.partition(" is dead")[0] for told in found] == ["w1 on laptop1", "w2", "w3"]


def test_a_host_cannot_write_lines_of_its_own_into_the_sentence() -> None:
    beat = Heartbeat(node="w1", beat=7, host=HostId(hostname="laptop\n~!id\x1b" + "x" * 200))
    [told] = readings(Figures(NONE, dead={"w1": beat}), by(dead_s=600))
    last = "it ran no task at its last beat; one that it began since is tried again elsewhere"
    assert told.text == f"w1 on laptop ~!id {'x' * 88} is dead; {last}"


def test_what_a_dead_worker_ran_is_told_by_its_last_beat() -> None:
    """P12: it was said of idle workers, too, that what they ran is tried again elsewhere."""
    busy = Heartbeat.model_validate({"node": "w1", "beat": 7, "running": [{"id": "t"}]})
    dead = {"w1": busy, "w2": Heartbeat(node="w2", beat=7), "w3": None}
    told = [reading.text.partition("; ")[2] for reading in readings(Figures(NONE, dead=dead), by(dead_s=600))]
    again, last = "what it ran is tried again elsewhere", "it ran no task at its last beat"
    assert told == [again, f"{last}; one that it began since is tried again elsewhere", again]


def test_the_successor_of_a_node_has_its_own_name_and_has_begun_since() -> None:
    def begun(node: str, minute: int) -> Heartbeat:
        return Heartbeat(node=node, beat=1, started=f"2026-02-02T09:{minute:02}:00.000Z")

    gone = {"desk-aaaaa": "2026-02-02T09:10:00.000Z", "desk-bbbbb": "", "w1": "2026-02-02T09:10:00.000Z"}
    assert succeeded(gone, [begun("desk-ccccc", 9), begun("m-desk-ccccc", 11), begun("w2", 11)]) == set()
    assert succeeded(gone, [begun("desk-ccccc", 9), begun("desk-ddddd", 11)]) == {"desk-aaaaa"}
    assert succeeded(gone, [Heartbeat(node="desk-ddddd", beat=1)]) == set(), "an older release does not say it"
    dead = {"desk-aaaaa": begun("desk-aaaaa", 1)}
    figures = Figures(NONE, dead=dead, silent=["desk-aaaaa"], succeeded={"desk-aaaaa"})
    assert seen(readings(figures, by(dead_s=600))) == [("node_dead", "desk-aaaaa", False)]


def test_a_master_that_is_dead_ran_no_tasks() -> None:
    beat = Heartbeat(node="m1", beat=7, role="master", host=HostId(hostname="desk"))
    [told] = readings(Figures(NONE, dead={"m1": beat}), by(dead_s=600))
    assert told.text == "m1 on desk is dead; it ran no tasks"


def test_a_closed_limit_stands_until_its_trial_has_ended() -> None:
    quota = {
        "a": {"until": "2026-02-02T09:00:00.000Z", "by": "quota"},
        "b": {"until": None, "by": "request"},
        "c": {"trying": "t1"},
    }
    found = list(readings(Figures(NONE, gates={"quota": quota}), by(limits=True)))
    assert seen(found) == [("limit_closed", "a", True), ("limit_closed", "b", True), ("limit_closed", "c", None)]
    until = "until 2026-02-02T09:00:00.000Z, and then one task tries it"
    assert found[0].text == f"the limit a is closed {until}: its quota is used up", "it stands meanwhile"
    assert found[1].text == "the limit b is closed until `spool limits open b`: a person closed it"


def test_an_open_breaker_stands_until_a_task_has_tried() -> None:
    row = {"failures": 5, "last": "task t, attempt 1, TIMEOUT", "until": "2026-02-02T09:00:00.000Z"}
    rows = {"a": row, "b": {**row, "until": None}, "c": {**row, "trying": ""}}
    figures = Figures(NONE, gates={"breaker": rows})
    found = list(readings(figures, by(breakers=True)))
    assert seen(found) == [("breaker_open", "a", True), ("breaker_open", "b", False), ("breaker_open", "c", None)]
    first = "nothing of type a starts until 2026-02-02T09:00:00.000Z"
    said = (
        f"{first}, and then one task at a time, until one ends well: 5 failures in a row, task t, attempt 1, TIMEOUT"
    )
    assert (found[0].text, found[0].value) == (said, 5)
    assert set(unsure(figures)) == set()
    counting = replace(figures, counting=True)
    assert {over for _, _, over in seen(readings(counting, by(breakers=True)))} == {None}
    assert set(unsure(counting)) == {"breaker_open"}, "a new leader does not tell again of what it counts anew"


def test_a_budget_is_told_of_by_the_limit_that_is_spent_most() -> None:
    def period(name: str, **spent: float) -> dict[str, Any]:
        return {"period": name, "spent": spent}

    nightly: dict[str, Any] = {"closed": "", "per": "day", "limits": {"cost_usd": 5.0, "tokens": 100.0}}
    nightly |= {"periods": [period("day:2026-02-02", cost_usd=4.0, tokens=10.0), period("day:2026-02-01")]}
    total = {"closed": "", "per": "total", "limits": {"cost_usd": 0}, "periods": [period("total")]}
    none = {"closed": "", "per": "total", "limits": {}, "periods": [period("total")]}
    budgets = {"nightly": nightly, "nothing": total, "unlimited": none}
    figures = Figures(NONE, gates={"budget": budgets})
    found = list(readings(figures, by(budget=0.8)))
    assert seen(found) == [
        ("budget", "nightly day:2026-02-02", True),
        ("budget", "nightly day:2026-02-01", False),
        ("budget", "nothing", True),
    ]
    assert found[0].text == "80 % of budget nightly day:2026-02-02 is spent: 4.00 of 5.00 cost_usd"
    assert not unsure(figures)
    nightly["closed"] = "the leader still reads"
    assert unsure(figures) == {"budget"}
    assert seen(readings(figures, by(budget=0.8)))[0] == ("budget", "nightly day:2026-02-02", None)


def test_the_share_is_told_of_at_both_its_limits_and_does_not_tremble() -> None:
    limits = DiskSettings(enough_free_mb=1 << 30)
    for free, inodes, disk, full in (
        (50, None, False, False),
        (21, None, None, False),
        (20, None, True, False),
        (6, None, True, False),
        (5.1, None, True, None),
        (5, None, True, True),
        (50, 2000, False, False),
        (50, 1020, None, False),
        (50, 999, True, False),
        (50, 102, True, None),
        (50, 99, True, True),
    ):
        space = Space(100 * GIB, int(free * GIB), inodes, limits)
        found = list(readings(Figures(NONE, space=space), by(disk=True)))
        assert seen(found) == [("disk", "", disk), ("disk_full", "", full)], (free, inodes)
        assert [told.threshold for told in found] == [0.8, 0.95]
    most = Space(100 * GIB, 3 * GIB, None, limits)
    assert [told.text for told in readings(Figures(NONE, space=most), by(disk=True))] == [
        "the share is full: 97 % of it is in use; no drop is admitted and no task starts until some is free"
    ] * 2


def test_a_share_without_inodes_is_told_by_its_inodes() -> None:
    """N23: "out of inodes: 8 % of it is in use"."""
    limits = DiskSettings(warn=0.8, stop=0.95, enough_free_mb=5120)
    none = Space(100 * GIB, 92 * GIB, 3, limits)
    assert [told.text for told in readings(Figures(NONE, space=none), by(disk=True))] == [
        "the share is out of inodes: 3 inodes left; no drop is admitted and no task starts until some is free"
    ] * 2


def test_the_last_attempts_are_counted_and_no_others() -> None:
    outcomes = Outcomes()
    outcomes.ended(0, "before", failed=True)
    outcomes.watch(0)
    outcomes.watch(5)
    assert outcomes.now(0) == Failures(0, 0, known=False)
    outcomes.ended(1, "a", failed=False)
    outcomes.ended(1, "b", failed=True)
    outcomes.ended(1, "cancelled", failed=None)
    outcomes.returned(1, "c", 1)
    outcomes.returned(2, "c", 1)
    outcomes.returned(3, "c", 2)
    outcomes.charged("d", 1)
    outcomes.charged("e", 0)
    outcomes.returned(3, "d", 1)
    outcomes.returned(3, "e", 0)
    assert outcomes.now(3) == Failures(4, 3, known=False), "three of them were handed back"
    outcomes.ended(4, "c", failed=False)
    outcomes.returned(4, "c", 1)
    assert outcomes.now(4) == Failures(6, 4, known=False), "another task of that name"
    assert outcomes.now(OVER_S + 2) == Failures(3, 2, known=True), "an hour ago is long ago"
    for number in range(2 * LAST):
        outcomes.ended(OVER_S, f"t{number}", failed=number < LAST)
    assert outcomes.now(OVER_S) == Failures(LAST, 0, known=True)
    assert Failures(0, 0, known=True).rate == 0
