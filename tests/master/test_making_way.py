"""What a task in ready/ holds is given back to a more urgent one: nobody waits behind what no worker takes."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from spoold.store.journal import Reader
from tests.support.cluster import Cluster

SETTINGS = """
[limits.one]
max = 1
[limits.pair]
max = 2
[limits.slow]
rate = {count = 1, per_s = 1000}
[limits.quota]
quota_max_s = 600
[types.shaky]
breaker = {failures = 1, open_s = 10}
[budgets.purse]
cost_usd = 1.0
"""
CLASSES = """
[classes.batch]
slots = 0
borrow = true
"""


def cluster(settings: str = SETTINGS, slots: int = 1) -> Cluster:
    made = Cluster(settings)
    made.master("m1")
    made.worker("w1", slots)
    made.settle()
    return made


def submit(made: Cluster, task_id: str, priority: str = "normal", **fields: object) -> None:
    task = {"id": task_id, "priority": priority, "command": ["work"], **fields}
    made.submit(f"{task_id}.json", json.dumps(task))
    made.settle()


def order(made: Cluster, stream: Iterable[str] = ()) -> list[str]:
    """Let whatever runs end, one at a time, until nothing runs; return the tasks in the order in which they ran.

    stream: a task of normal priority for each that ends, so that some always stand in ready/.
    """
    ran, more = [], iter(stream)
    while running := sorted(key.rpartition(".")[0] for keys in made.running().values() for key in keys):
        assert len(running) == 1, "there is one slot"
        ran.append(running[0])
        if (name := next(more, None)) is not None:
            submit(made, name)
        made.finish(running[0])
        made.settle()
    return ran


def held(made: Cluster) -> list[tuple[str | None, object]]:
    return [(said.task, said.detail.get("for")) for said in Reader(made.fs).read() if said.event == "HELD"]


@pytest.mark.parametrize(
    ("low", "high"),
    [
        ({"uses": ["one"]}, {"uses": ["one"]}),
        ({"uses": ["pair"]}, {"uses": {"pair": 2}}),
        ({"uses": ["slow"]}, {"uses": ["slow"]}),
        ({"locks": {"write": ["a/**"]}}, {"locks": {"read": ["a/b"]}}),
        ({"locks": {"write": ["a"]}, "uses": ["one"]}, {"locks": {"write": ["a"]}, "uses": ["one"]}),
        ({"budgets": ["purse"], "budget": {"cost_usd": 0.9}}, {"budgets": ["purse"], "budget": {"cost_usd": 0.5}}),
    ],
    ids=["limit", "units", "rate", "lock", "lock and limit", "budget"],
)
def test_an_urgent_task_does_not_wait_for_what_a_ready_one_holds(
    low: dict[str, object], high: dict[str, object]
) -> None:
    """P1: L stands in ready/ with what H needs, and normal tasks go past it without end."""
    made = cluster()
    submit(made, "busy")
    submit(made, "low", "low", **low)
    for number in range(12):
        submit(made, f"n{number}")
    assert made.state("low") == "ready"
    submit(made, "high", "critical", **high)
    assert (made.state("low"), made.state("high")) == ("waiting", "ready")
    assert held(made) == [("low", "high")]
    ran = order(made, (f"more{number}" for number in range(20)))
    assert ran[:3] == ["busy", "high", "n0"], "it starts within the length of one task"
    if "slow" not in low.get("uses", ()):  # type: ignore[operator]
        assert ran[-1] == "low", "and the low one after all others"


def test_who_waits_behind_a_task_that_made_way_is_not_forgotten() -> None:
    """The older task, which tries again, waits behind the younger; then both wait in one queue behind that."""
    made = cluster()
    submit(made, "older", "low", locks={"write": ["a"]}, max_retries=1)
    submit(made, "younger", "low", locks={"write": ["a"]})
    submit(made, "other")
    made.finish("older", exit_code=1)
    made.settle()
    assert (made.state("younger"), made.state("other")) == ("ready", "claimed")
    made.advance(60.0)
    submit(made, "high", "critical", locks={"read": ["a"]})
    assert held(made) == [("younger", "high")]
    assert order(made) == ["other", "high", "older", "younger"]


def test_nobody_makes_way_in_vain() -> None:
    """P1: a task that would wait all the same takes nothing from others; neither does one as urgent."""
    made = cluster(slots=2)
    submit(made, "holder", "low", uses=["pair"])
    submit(made, "other")
    submit(made, "low", "low", uses=["pair"])
    assert (made.state("holder"), made.state("low")) == ("claimed", "ready")
    submit(made, "two", "critical", uses={"pair": 2})
    submit(made, "same", "low", uses=["pair"])
    submit(made, "next")
    assert made.state("low") == "ready", "the holder runs, so there are no two units yet"
    made.finish("holder")
    made.settle()
    assert (made.state("two"), made.state("low"), made.state("same")) == ("ready", "waiting", "waiting")
    assert held(made) == [("low", "two")]


def test_only_as_many_make_way_as_must() -> None:
    """P1: of three that hold a unit each, the least urgent one makes way."""
    made = cluster(SETTINGS.replace("max = 2", "max = 3"))
    submit(made, "busy")
    for name, priority in (("a", "low"), ("b", "background"), ("c", "low")):
        submit(made, name, priority, uses=["pair"])
    submit(made, "high", "high", uses=["pair"])
    assert held(made) == [("b", "high")]
    assert [made.state(name) for name in ("a", "b", "c", "high")] == ["ready", "waiting", "ready", "ready"]


def test_nobody_goes_for_units_that_were_to_be_given_back_and_were_not() -> None:
    """Two tasks share what one ready task is to give back; a worker claims it just then."""
    made = cluster()
    submit(made, "busy")
    submit(made, "low", "low", uses={"pair": 2})
    (path,) = (path for path in made.fs.files("ready") if ".low." in path)
    claimed = f"claimed/w1/{path.rpartition('/')[2]}"
    made.nodes["m1"].fs.hang("rename", path, lambda: made.fs.rename(path, claimed))
    for name in ("high1", "high2"):
        task = {"id": name, "priority": "high", "command": ["work"], "uses": ["pair"]}
        made.submit(f"{name}.json", json.dumps(task))
    for _ in range(3):
        made.step("m1")
        assert [made.state(name) for name in ("low", "high1", "high2")] == ["claimed", "waiting", "waiting"]


def test_it_comes_back_when_the_urgent_one_is_cancelled() -> None:
    """P1: whoever made way is ready again as soon as nobody needs that."""
    made = cluster()
    submit(made, "busy")
    submit(made, "low", "low", uses=["one"])
    submit(made, "high", "critical", uses=["one"])
    made.fs.write("control/cancel.high.x-1.json", b"{}", durable=False)
    made.settle()
    assert (made.state("low"), made.state("high")) == ("ready", "failed")


def test_an_urgent_task_tries_a_quota_first() -> None:
    """P1: the trial of a quota stands in ready/, and nobody takes it: the more urgent one tries."""
    made = cluster()
    submit(made, "busy")
    made.fs.write("control/quota.quota.x-1.json", b'{"until": "1970-01-01T00:00:00Z"}', durable=False)
    made.settle()
    submit(made, "low", "low", uses=["quota"])
    assert made.state("low") == "ready"
    submit(made, "high", "critical", uses=["quota"])
    assert (made.state("low"), made.state("high")) == ("waiting", "ready")


def test_an_urgent_task_tries_a_breaker_first() -> None:
    """P1: so it is with the trial of a breaker."""
    made = cluster()
    submit(made, "bad", type="shaky", max_retries=0)
    made.finish("bad", exit_code=1)
    made.settle()
    submit(made, "low", "low", type="shaky")
    submit(made, "busy")
    made.advance(11.0)
    made.settle()
    assert (made.state("busy"), made.state("low")) == ("claimed", "ready")
    submit(made, "high", "critical", type="shaky")
    assert (made.state("low"), made.state("high")) == ("waiting", "ready")


def test_an_urgent_task_gets_a_slot_of_its_class_first() -> None:
    """P1: a ready task for a worker that is busy keeps no slot of a class from a more urgent one."""
    made = cluster(CLASSES, slots=2)
    made.worker("w2", 1, labels=("rare",))
    made.settle()
    submit(made, "a", requires={"labels": ["rare"]})
    submit(made, "low", "low", requires={"labels": ["rare"]})
    submit(made, "b")
    assert [made.state(name) for name in ("a", "low", "b")] == ["claimed", "ready", "claimed"]
    submit(made, "high", "critical")
    assert (made.state("low"), made.state("high")) == ("waiting", "claimed")


def test_a_holder_that_waited_long_gives_its_locks_back_if_no_worker_takes_it() -> None:
    """P1: no task is passed for ever in the line for a lock; but a holder that nobody takes keeps nobody back."""
    made = cluster()
    submit(made, "busy", timeout=100_000)
    submit(made, "low", "low", locks={"write": ["a"]})
    made.pass_time(60 * 60)
    submit(made, "high", "critical", locks={"write": ["a"]})
    assert (made.state("low"), made.state("high")) == ("ready", "waiting"), "its turn was earlier"
    made.pass_time(12.0)
    made.settle()
    assert (made.state("low"), made.state("high")) == ("waiting", "ready")


def test_a_holder_does_not_hide_those_that_cannot_move() -> None:
    """P1: H waits for a claimed task and for a ready one; when the claimed one has ended, the ready one makes way."""
    made = cluster(slots=2)
    submit(made, "runs", locks={"write": ["b"]})
    submit(made, "busy")
    submit(made, "low", "low", locks={"write": ["a"]})
    submit(made, "high", "critical", locks={"write": ["a", "b"]})
    submit(made, "n1")
    assert made.state("low") == "ready"
    made.finish("runs")
    made.settle()
    assert (made.state("n1"), made.state("low"), made.state("high")) == ("claimed", "waiting", "ready")


def test_a_paused_task_takes_nothing_from_others() -> None:
    """P1: an urgent task that waits for something else, too, leaves what less urgent ones hold to them."""
    made = cluster()
    submit(made, "busy")
    submit(made, "low", "low", uses=["one"])
    made.fs.write("control/pause.shaky.x-1.json", b"{}", durable=False)
    submit(made, "high", "critical", type="shaky", uses=["one"])
    assert (made.state("low"), made.state("high")) == ("ready", "waiting")
