"""A task and all below it."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.client.read import selecting, task_groups
from spoold.client.read.task_groups import actionable, cancel_tree, tree
from spoold.master.master import Master
from spoold.protocol.errors import NotFound, WaitTimeout
from spoold.protocol.request import Verb
from spoold.store import control
from spoold.store.task_location import locate
from tests.client.cluster import Cluster


def family() -> tuple[Cluster, Master]:
    """The task plan runs, and lends its slot; below it a, b (after a) and, below a, leaf."""
    made = Cluster()
    master = made.master()
    made.worker(running=[{"id": "plan", "attempt": 1, "lent": True}])
    made.drop("plan")
    made.drop("a", parent="Plan", depth=1)
    made.drop("b", parent="plan", depth=1, dependencies=["a", "gone"])
    made.drop("leaf", parent="a", depth=2)
    made.drop("alone")
    made.drop("deep", parent="leaf", depth=9)
    made.steps(master)
    made.claim("plan")
    return made, master


def test_a_tree_says_who_waits_for_whom() -> None:
    made, _ = family()
    root = tree(made.store, "plan")
    assert [(one.id, one.state, one.blocked_on) for one in root.walk()] == [
        ("plan", "claimed", ("a", "b")),
        ("a", "ready", ()),
        ("leaf", "ready", ()),
        ("deep", "rejected", ()),
        ("b", "waiting", ("a", "gone")),
    ]
    assert root.est_completion is None
    assert "waits for" in next(one.reason for one in root.walk() if one.id == "b")
    assert [step.id for step in actionable(root)] == ["a", "leaf", "deep"]
    assert [one.id for one in tree(made.store, "a").walk()] == ["a", "leaf", "deep"]


def test_a_tree_that_has_ended_is_blocked_on_nothing() -> None:
    made, master = family()
    made.claim("a")
    made.end("a", "failed", status="failure", error={"code": "EXIT_NONZERO", "message": "no"})
    made.end("plan", "completed")
    made.steps(master)
    root = tree(made.store, "plan")
    told = {one.id: (one.state, one.blocked_on) for one in root.walk()}
    assert told["plan"] == ("completed", ())
    assert told["a"] == ("failed", ())
    assert next((step.id, step.reason) for step in actionable(root)) == ("a", "EXIT_NONZERO: no")


def test_a_branch_says_what_it_and_all_below_it_came_to() -> None:
    made, master = family()
    for task, more in (("a", {"tokens_used": 100, "cost_usd": 0.5}), ("leaf", {"tokens_used": 30})):
        made.claim(task)
        made.end(task, "completed", **more)
    made.end("plan", "completed", tokens_used=7, cost_usd=0.25)
    made.steps(master)
    root = tree(made.store, "plan")
    assert {one.id: one.tree for one in root.walk() if one.id != "deep"} == {
        "plan": (5, 137, 0.75),
        "a": (3, 130, 0.5),
        "leaf": (2, 30, None),
        "b": (1, None, None),
    }
    assert (root.tokens_used, root.cost_usd) == (7, 0.25)


def test_nobody_waits_for_a_task_that_was_skipped() -> None:
    """Such a child kept its parent blocked, and stood among what is next."""
    made, master = family()
    made.claim("a")
    file = made.end("a", "failed", status="skipped")
    for place in ("failed", "results"):
        made.fs.rename(f"{place}/{file}", f"{place}/{file.replace('w-0001', 'w-0001_skipped')}")
    made.steps(master)
    root = tree(made.store, "plan")
    assert (root.blocked_on, next(one.state for one in root.walk() if one.id == "a")) == ((), "skipped")
    assert "a" not in [step.id for step in actionable(root)]


def test_tasks_that_name_each_other_as_parents_are_no_circle() -> None:
    made = Cluster()
    master = made.master()
    made.drop("x", parent="y")
    made.drop("y", parent="x")
    made.steps(master)
    assert [one.id for one in tree(made.store, "x").walk()] == ["x", "y", "x"]


def test_an_unknown_task_has_no_tree() -> None:
    with pytest.raises(NotFound):
        tree(Cluster().store, "nobody")


def test_a_task_that_moves_while_it_is_read_is_looked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made, _ = family()
    candidates = selecting.candidates

    def unread(*args: Any, **options: Any) -> Any:
        for located, content in candidates(*args, **options):
            yield located, (dict[str, Any] if located.id in ("a", "alone") else content)

    monkeypatch.setattr(task_groups, "candidates", unread)
    assert "a" in [one.id for one in tree(made.store, "plan").walk()]
    made.fs.write(locate(made.store, "alone").path, b"{", durable=False)
    assert "alone" not in [one.id for one in tree(made.store, "plan").walk()]


def ask(made: Cluster, task_id: str) -> None:
    control.post(made.open("asker"), Verb.CANCEL, task_id, task_id.lower(), by="me", reason="")


def test_all_below_is_cancelled_also_what_comes_meanwhile() -> None:
    made, master = family()
    asked: list[str] = []
    looks = 0

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        made.clock.advance(seconds)
        if looks == 2:
            made.drop("late", parent="a", depth=2)
        if looks == 4:  # its processes have ended
            made.end("plan", "failed", status="cancelled", error={"code": "CANCELLED", "message": ""})
        master.step()

    def post(task_id: str) -> None:
        asked.append(task_id)
        ask(made, task_id)

    found = cancel_tree(made.store, [locate(made.store, "plan")], post, sleep=sleep)
    assert sorted(found) == sorted(asked) == ["a", "b", "late", "leaf", "plan"]
    assert locate(made.store, "late").state == "failed"
    assert locate(made.store, "alone").state == "ready"
    assert cancel_tree(made.store, [locate(made.store, "plan")], post, sleep=sleep) == []


def test_what_does_not_end_in_time_is_named() -> None:
    made, _ = family()
    with pytest.raises(WaitTimeout, match=r"4 tasks of the tree did not end within 5 s: .*plan"):
        cancel_tree(
            made.store,
            [locate(made.store, "plan")],
            lambda task_id: ask(made, task_id),
            patience_s=5,
            sleep=made.clock.advance,
        )
