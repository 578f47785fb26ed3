"""The bounds on what tasks submit."""

from __future__ import annotations

import json

from spoold.master.intake import drops
from spoold.protocol.settings import ChildrenSettings
from tests.support.cluster import Cluster

SETTINGS = "[children]\nmax_depth = 2\nmax_per_task = 2\n"


def led(settings: str = SETTINGS) -> Cluster:
    made = Cluster(settings)
    made.master("m1")
    made.step("m1")
    return made


def drop(made: Cluster, name: str, **task: object) -> str:
    """Drop a task; return its state, or why it was rejected."""
    made.submit(f"{name}.json", json.dumps({"id": name, "command": ["work"], **task}))
    made.step("m1")
    return state(made, f"{name}.json", name)


def state(made: Cluster, file: str, name: str) -> str:
    if f"{file}.reason.json" in made.fs.list("rejected"):
        reason = json.loads(made.fs.read(f"rejected/{file}.reason.json"))
        return f"{reason['field']}: {reason['problem']} {reason['mend']}"
    return made.state(name)


def test_a_child_that_is_too_deep_is_rejected_and_says_how_to_go_on() -> None:
    made = led()
    assert drop(made, "a") == "ready"
    assert drop(made, "b", parent="a", depth=2) == "ready"
    said = drop(made, "c", parent="b", depth=3)
    assert said.startswith("depth: 3 is too deep: at most 2 generations of children may be below a task.")
    assert "[children] max_depth in spool.toml" in said


def test_a_child_that_says_no_depth_is_one_deeper_than_its_parent() -> None:
    made = led()
    for name, above in (("b", "a"), ("c", "B")):
        assert drop(made, name, parent=above) == "ready"
    assert drop(made, "d", parent="c").startswith("depth: 3 is too deep")


def test_a_task_has_so_many_children_and_no_more() -> None:
    made = led()
    assert [drop(made, f"c{number}", parent="a") for number in range(2)] == ["ready", "ready"]
    assert drop(made, "c0", parent="a") == "ready", "the same child again is no other"
    said = drop(made, "c2", parent="A")
    assert said.startswith("parent: 'A' has 2 children already, which is the limit.")
    assert drop(made, "other", parent="b") == "ready"


def test_a_batch_has_to_keep_the_bounds_as_a_whole() -> None:
    made = led()
    lines = [{"command": ["work"], "parent": "a"} for _ in range(3)]
    made.submit("many.whole.jsonl", "\n".join(json.dumps(line) for line in lines))
    made.submit("few.whole.jsonl", "\n".join(json.dumps({**line, "id": f"x{n}"}) for n, line in enumerate(lines[:2])))
    made.settle()
    assert state(made, "many.whole.jsonl", "x0").startswith("parent: 'a' has 2 children already")
    assert made.state("x0") == made.state("x1") == "ready"
    deep = {"id": "y", "command": ["work"], "parent": "x0", "depth": 3}
    made.submit("deep.whole.jsonl", json.dumps(deep) + "\n")
    made.settle()
    assert state(made, "deep.whole.jsonl", "y").startswith("depth: 3 is too deep")


def test_a_new_leader_counts_anew_and_goes_by_the_depth_that_a_child_says() -> None:
    made = led()
    for number in range(2):
        drop(made, f"c{number}", parent="a", depth=2)
    made.crash("m1")
    made.master("m2", host="m1")
    made.step("m2")
    made.submit("c2.json", json.dumps({"id": "c2", "command": ["work"], "parent": "a"}))
    made.submit("d.json", json.dumps({"id": "d", "command": ["work"], "parent": "c0", "depth": 3}))
    made.step("m2")
    assert made.state("c2") == "ready"
    assert state(made, "d.json", "d").startswith("depth: 3")


def test_children_go_before_their_parents_and_before_what_may_become_parents() -> None:
    made = led()
    drop(made, "early")
    drop(made, "child", parent="early")
    drop(made, "high", priority=10)
    drop(made, "grandchild", parent="child", depth=2)
    names = sorted(name for lane in made.fs.list("ready") for name in made.fs.list(f"ready/{lane}"))
    assert [name.split(".")[2] for name in names] == ["high", "grandchild", "child", "early"]


def test_the_oldest_parents_are_forgotten() -> None:
    known = drops.Children()
    before, drops.PARENTS = drops.PARENTS, 1
    try:
        bounds = ChildrenSettings(max_depth=9, max_per_task=1)
        assert known.refuses("f", [("a", "p", 1)], bounds) is None
        assert known.refuses("f", [("b", "p", 1)], bounds) is not None
        assert known.refuses("f", [("c", "q", 1)], bounds) is None
        assert known.refuses("f", [("b", "p", 1)], bounds) is None
    finally:
        drops.PARENTS = before
