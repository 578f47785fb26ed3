"""Every fault of a plan is named, with line, field and fix; a plan without one is what the leader admits."""

import json

import pytest

from spoold.agents import planning
from spoold.agents.planning import FAULTS_MAX, TASKS_MAX, Known, completed, ids_in, judge, read, tasks_of, unserved
from spoold.client.spool.capabilities import Served
from spoold.protocol.settings import Settings

SERVED = Served(("coder", "planner"), ("coder", "merge", "planner"))
CODER = {"agent": "coder", "prompt": "x"}


def faults(*tasks: object, taken: dict[str, str] | None = None, served: Served = SERVED) -> list[str]:
    words = "\n".join(task if isinstance(task, str) else json.dumps(task) for task in tasks)
    answer = read(words, "plan")
    completed(answer, "p", {})
    return [str(fault) for fault in judge(answer, Settings(), "plan", Known(served, taken or {}))]


def test_a_sound_plan_has_no_fault() -> None:
    assert faults({"id": "a", **CODER}, {"id": "b", "after": ["A", "old"], **CODER}, taken={"old": "completed"}) == []
    assert faults({"agent": "coder", "prompt": "without an id"}) == []


@pytest.mark.parametrize(
    ("task", "told"),
    [
        (
            {"id": "b", "agent": "codr", "prompt": "x"},
            "agent: no live worker has the profile 'codr'. Fix: did you mean",
        ),
        ({"id": "b", "after": ["c"], **CODER}, "after: it comes after 'c', and neither the plan nor the spool"),
        ({"id": "b", "after_any": "c", **CODER}, "after: it comes after 'c'"),
        ({"id": "Old", **CODER}, "id: 'Old' is taken by a task that is waiting. Fix: give it another id."),
        ({"id": "A", **CODER}, "id: 'A' stands in line 1 already."),
        ({"id": "b", "agent": "coder"}, "a task for an agent has no prompt"),
        ({"id": "b", "uses": ["gpt"], **CODER}, "uses: there is no limit 'gpt'."),
        ({"id": "b", "depth": 3, "parent": "x", "priorty": 1, **CODER}, "priorty: unknown field. Fix: did you mean"),
        ('{"id": "b",', "Fix: "),
        ('{"id": "b", "id": "c", "command": "x"}', "has the key 'id' twice in one object"),
        ({"id": "b", "locks": {"write": ["../x"]}, **CODER}, "locks"),
    ],
)
def test_a_fault_names_line_field_and_fix(task: object, told: str) -> None:
    (found,) = faults({"id": "a", **CODER}, task, {"id": "z", **CODER}, taken={"old": "waiting"})
    assert found.startswith("plan line 2: ")
    assert told in found
    assert "Fix: " in found


def test_all_faults_are_named_in_the_order_of_the_lines() -> None:
    found = faults(
        "Here is the plan:",
        {"id": "a", "agent": "nobody", "prompt": "x"},
        {"id": "b", "timeout": "soon", "nmae": "x", **CODER},
        {"id": "c", "after": ["d"], **CODER},
        {"id": "d", "after": ["c"], **CODER},
        {"id": "b", **CODER},
    )
    lines = [one.partition(": ")[0] for one in found]
    assert lines == ["plan line 1", "plan line 2", "plan line 3", "plan line 3", "plan line 5"]
    assert "timeout" in found[2] + found[3]
    assert "'name'" in found[2] + found[3]
    assert "the tasks wait for each other: d → c → d" in found[4]


def test_a_plan_without_end_is_judged_within_bounds() -> None:
    many = [{"id": "same", **CODER} for _ in range(FAULTS_MAX + 20)]
    assert len(faults(*many)) == FAULTS_MAX
    assert faults(*({"id": f"t{n}", **CODER} for n in range(TASKS_MAX + 1)))[0].startswith("plan: has 1,001 tasks")


def test_the_spool_is_asked_for_every_id_that_is_named() -> None:
    answer = read('{"id": "a", "after": "b"}\n{"dependencies": ["c", 7], "after_failed": ["a"], "id": 5}', "f")
    assert ids_in(answer) == ["a", "b", "c"]


def test_what_nobody_takes_is_named() -> None:
    answer = read('{"type": "odd"}\n{"command": "x"}\n{"type": "merge"}\n{"agent": "coder", "prompt": "x"}', "f")
    tasks = tasks_of(answer, "f")
    assert unserved(tasks, SERVED) == ["command", "odd"]
    assert unserved(tasks, Served(("coder",), ("coder", "merge", "odd"), commands=True)) == []


def test_limits_of_the_spool_and_of_a_plan_are_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    small = Settings.model_validate({"drop": {"max_bytes": 1024}})
    answer = read(json.dumps({"id": "a", "agent": "coder", "prompt": "x" * 2000}), "plan")
    (fault,) = judge(answer, small, "plan", Known(SERVED, {}))
    assert str(fault).startswith("plan line 1: has ")
    monkeypatch.setattr(planning, "TASKS_MAX", 0)
    assert "plan less" in str(judge(answer, small, "plan", Known(SERVED, {}))[0])
