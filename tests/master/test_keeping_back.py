"""A task that needs several scarce things comes to its turn in a real pool, and everybody is told why he waits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spoold.client.read.explanation import explain
from spoold.protocol.snapshot import Snapshot
from spoold.rules.answers.task_facts import Explanation
from spoold.rules.gates.lock_holders import locks_seen
from spoold.store import snapshots
from spoold.store.store import Store, open_store
from tests.support.cluster import Cluster
from tests.support.loans import FakeLoans

SETTINGS = """
[limits.a]
max = 1
[limits.b]
max = 1
[limits.r]
rate = {count = 1, per_s = 5}
[types.narrow]
max_concurrent = 1
[classes.k]
slots = 1
[classes.default]
borrow = true
[budgets.purse]
cost_usd = 10
[budgets.other]
cost_usd = 1000
"""


def cluster(slots: int = 8, loans: FakeLoans | None = None) -> Cluster:
    made = Cluster(SETTINGS)
    made.master("m1")
    made.worker("w1", slots, loans=loans or FakeLoans())
    made.settle()
    return made


def submit(made: Cluster, task_id: str, priority: int = 0, **fields: Any) -> None:
    made.submit(f"{task_id}.json", json.dumps({"id": task_id, "priority": priority, "command": ["work"], **fields}))
    made.settle()


def reader(made: Cluster) -> Store:
    return open_store(made.fs, made.clock, "reader", "/spool")


def picture(made: Cluster) -> Snapshot:
    made.advance(6)
    made.settle()
    found = snapshots.latest(made.fs)
    assert found is not None
    return found[1]


def why(made: Cluster, task_id: str) -> Explanation:
    picture(made)
    return explain(reader(made), made.nodes["m1"].host, made.clock, task_id, sleep=made.clock.advance)


Fields = dict[str, Any]
ONE: Fields = {"uses": ["a"]}
OTHER: Fields = {"uses": ["b"]}
BOTH: Fields = {"uses": ["a", "b"]}
LOCKED: Fields = {"locks": {"write": ["x/a"]}}
DEAR: Fields = {"budgets": ["purse"], "budget": {"cost_usd": 9}}


@pytest.mark.parametrize(
    ("streams", "needs"),
    [
        ((ONE, OTHER), BOTH),
        ((ONE, LOCKED), {**ONE, "locks": {"write": ["x/**"]}}),
        (({"type": "narrow"}, LOCKED), {"type": "narrow", **LOCKED}),
        (({"class": "k"}, ONE), {"class": "k", **ONE}),
        (({"budgets": ["purse", "other"], "budget": {"cost_usd": 2}}, ONE), {**DEAR, **ONE}),
        (({"budgets": ["purse", "other"], "budget": {"cost_usd": 2}}, LOCKED), {**DEAR, **LOCKED}),
    ],
    ids=["two limits", "limit and lock", "type and lock", "class and limit", "budget and limit", "budget and lock"],
)
def test_it_has_its_turn_after_those_that_ran_before(
    streams: tuple[dict[str, Any], ...], needs: dict[str, Any]
) -> None:
    made, came = cluster(), dict[int, list[str]]()

    def fill() -> None:
        for stream, fields in enumerate(streams):
            mine = came.setdefault(stream, [])
            while sum(made.state(task) in ("waiting", "ready") for task in mine) < 2:
                mine.append(f"s{stream}-{len(mine)}")
                submit(made, mine[-1], -5, **fields)

    fill()
    submit(made, "urgent", 20, **needs)
    ended = 0
    while made.state("urgent") == "waiting":
        running = [key.rpartition(".")[0] for keys in made.running().values() for key in keys]
        assert ended < 8, f"it waits behind {running}, and lies {picture(made).gates}"
        made.finish(running[ended % len(running)])  # never two at once
        ended += 1
        made.settle()
        fill()
    assert made.state("urgent") == "claimed"


def test_everybody_is_told_what_is_kept_and_for_whom() -> None:
    made = cluster()
    submit(made, "low", -5, **OTHER)
    submit(made, "urgent", 20, **BOTH, **LOCKED)
    assert made.state("urgent") == "waiting"
    submit(made, "later", -5, **ONE)
    submit(made, "locking", -5, **LOCKED)
    assert [made.state(task) for task in ("later", "locking")] == ["waiting", "waiting"]
    submit(made, "first", 30, **ONE)
    assert made.state("first") == "claimed", "what comes before it is not kept back"
    assert made.state("locking") == "claimed", "while it waits for that, too, nothing is kept"
    made.finish("first")
    made.finish("locking")
    made.settle()
    submit(made, "locking-too", -5, **LOCKED)
    said = picture(made)
    [row] = said.gates["kept"]["limit:a"]
    assert (row["file"].split(".")[2], row["units"]) == ("urgent", 1)
    assert "b runs at its limit" in why(made, "urgent").verdict
    later = why(made, "later")
    assert "for task urgent, which comes first and still lacks something else, 1 of it is kept" in later.verdict
    assert "waited for longer by task urgent" in why(made, "locking-too").verdict
    [waits, behind] = locks_seen(picture(made).gates)["waiters"]
    assert (waits["task"], waits["told"]) == ("urgent", "nobody: it lacks something else, which later tasks have")
    assert behind["told"] == "task urgent"
    made.finish("low")
    made.settle()
    assert made.state("urgent") == "claimed"
    assert "kept" not in picture(made).gates


def test_a_task_below_a_waiting_one_passes_who_waits_for_that() -> None:
    loans = FakeLoans()
    made = cluster(loans=loans)
    submit(made, "above", locks={"read": ["x/a"]}, budgets=["purse"], budget={"cost_usd": 5})
    submit(made, "Urgent", 20, **LOCKED)
    submit(made, "Dear", 20, **DEAR)
    below: dict[str, Any] = {"parent": "above", "depth": 1, "priority": -5}
    submit(made, "reads", locks={"read": ["x/**"]}, **below)
    submit(made, "costs", budgets=["purse"], budget={"cost_usd": 3}, **below)
    assert made.state("reads") == "waiting", "nobody waits for it yet"
    assert "waited for longer by task Urgent" in why(made, "reads").verdict
    loans.lend("above.1")
    picture(made)
    assert [made.state(task) for task in ("reads", "costs", "Urgent", "Dear")] == ["claimed"] * 2 + ["waiting"] * 2


def test_once_a_task_has_waited_for_long_nobody_waits_for_who_waits_for_it() -> None:
    loans = FakeLoans()
    made = cluster(loans=loans)
    submit(made, "above", **LOCKED)
    submit(made, "urgent", 20, **ONE, locks={"write": ["x/**"]})
    submit(made, "uses", -5, **ONE)
    submit(made, "locks", -5, locks={"write": ["x/b"]})
    loans.lend("above.1")
    picture(made)
    assert [made.state(task) for task in ("uses", "locks")] == ["waiting", "waiting"]
    for _ in range(10):
        picture(made)
    said = picture(made)
    assert [made.state(task) for task in ("uses", "locks")] == ["claimed", "claimed"], (
        "above may wait for one of them"
    )
    assert [row.get("waits") for row in said.gates["locks"]["holders"] if row["key"] == "above"] == ["long"]
    assert made.state("urgent") == "waiting"


FIRST = """
[limits.x]
max = 4
[limits.r]
rate = {count = 4, per_s = 600}
[budgets.purse]
cost_usd = 10
"""


def first() -> Cluster:
    """A pool in which a and z run; b, which came next, finds too little left of what c would find enough of."""
    made = Cluster(FIRST)
    made.master("m1")
    made.worker("w1", 8)
    made.settle()
    return made


@pytest.mark.parametrize(
    ("much", "little", "said", "change"),
    [
        (
            {"uses": {"x": 3}},
            {"uses": ["x"]},
            "task b, which is before it, waits for 3 of limit x: 3 of [limits.x] max = 4 are in use",
            "it goes on once task b has had its turn; or raise it: `spool config set limits.x.max …`",
        ),
        (
            {"uses": {"r": 3}},
            {"uses": ["r"]},
            (
                "task b, which is before it, waits for 3 of limit r: "
                "3 of [limits.r] rate.count = 4 have started or may now"
            ),
            "time; or raise it: `spool config set limits.r.rate.count …`",
        ),
        (
            {"budgets": ["purse"], "budget": {"cost_usd": 7}},
            {"budgets": ["purse"], "budget": {"cost_usd": 1}},
            "task b, which is before it, waits for 7.00 USD of budget purse: 7.00 of 10.00 USD are spent or reserved",
            "it goes on once task b has had its turn; or `spool budget raise`",
        ),
    ],
    ids=["limit", "rate", "budget"],
)
def test_one_behind_a_task_that_waits_for_more_is_told_who_is_before_it(
    much: Fields, little: Fields, said: str, change: str
) -> None:
    made = first()
    submit(made, "a", **much)
    submit(made, "b", **much)
    submit(made, "c", **little)
    submit(made, "urgent", 20, command=["work"])
    assert [made.state(task) for task in ("a", "b", "c", "urgent")] == ["claimed", "waiting", "waiting", "claimed"]
    told = why(made, "c")
    assert told.verdict.startswith(said)
    assert told.reasons[0].change == change
    assert "before it" not in why(made, "b").verdict
