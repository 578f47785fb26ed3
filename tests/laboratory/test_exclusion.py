"""The judge of what must not run at once: it sees what overlaps, and nothing where nothing may be said against it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.laboratory.test_ledger import ONE, SOUND
from tools.laboratory.matrix.exclusion import COVERS, LIMITED, LOCKED, MOST, Exclusion, exclusive, of
from tools.laboratory.matrix.ledger import judge
from tools.laboratory.matrix.trace import Execution


def run(task: str, began: float, ended: float, laptop: str = "laptop1") -> Execution:
    return Execution(task, 1, f"{laptop}-aaaa", laptop, (began, ended), True)


def both(one: tuple[list[str], list[str]], other: tuple[list[str], list[str]], *runs: Execution) -> list[str]:
    return Exclusion({"one": one, "two": other}).problems(runs or (run("one", 0.0, 2.0), run("two", 1.0, 3.0)))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ((["src/**"], []), (["src/web/y"], [])),
        ((["docs/a"], []), ([], ["docs/"])),
        (([], ["src/*/x"]), (["src/api/**"], [])),
    ],
)
def test_locks_that_meet_are_told_with_their_time(
    one: tuple[list[str], list[str]], other: tuple[list[str], list[str]]
) -> None:
    assert both(one, other) == ["one and two ran at once for 1.0 s, though their locks meet"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([], ["src/**"]), ([], ["src/**"])),
        ((["src/web/y"], []), (["src/*/x"], [])),
        ((["repo:main"], []), (["repo:next"], [])),
    ],
)
def test_readers_and_locks_apart_may_run_at_once(
    one: tuple[list[str], list[str]], other: tuple[list[str], list[str]]
) -> None:
    assert both(one, other) == []


def test_one_after_the_other_is_right_to_within_the_clocks() -> None:
    lock = (["docs/"], list[str]())
    assert both(lock, lock, run("one", 0.0, 1.2), run("two", 1.0, 2.0)) == []
    assert both(lock, lock, run("one", 0.0, 1.4), run("two", 1.0, 2.0)) != []


def test_more_users_than_units_are_told() -> None:
    users = Exclusion(users=frozenset("abc"))
    assert users.problems([run("a", 0, 2), run("b", 1, 3), run("x", 1, 3), run("c", 2.1, 4)]) == []
    assert users.problems([run("a", 0, 2), run("b", 1, 3), run("c", 1.5, 4)]) == [
        f"a, b, c ran at once, and account has {MOST} units"
    ]


def test_the_judge_of_a_cell_asks_it() -> None:
    beside = replace(ONE, id="two", worker="laptop2-bbbb", laptop="laptop2")
    lock = (["docs/"], list[str]())
    seen = replace(SOUND, executions=[ONE, beside], exclusion=Exclusion({"one": lock, "two": lock}))
    assert "one and two ran at once" in "\n".join(judge(seen).problems)


def test_the_tasks_of_the_cell_have_locks_that_meet_and_some_that_do_not() -> None:
    workload = exclusive()
    found = of(workload)
    assert (len(found.locks), len(found.users), workload.tasks) == (LOCKED, LIMITED, LOCKED + LIMITED)
    named = {pattern for write, read in found.locks.values() for pattern in (*write, *read)}
    assert named == COVERS.keys()
    everything = [run(task, 0.0, 1.0) for task in workload.parents]
    pairs = LOCKED * (LOCKED - 1) // 2
    assert pairs / 10 < len(found.problems(everything)) < pairs * 9 / 10
