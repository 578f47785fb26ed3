"""A plan that waits for a person: one task asks, and nothing starts without it."""

import json
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt.prompting import filled
from spoold.agents.planning import Plan, asking, keep, planner_task, prompt
from spoold.client.spool.capabilities import Served
from spoold.protocol.errors import SpoolError
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.entry import admission

SERVED = Served(("coder",), ("coder",), commands=True)


def asked(*tasks: dict[str, Any], served: Served = SERVED) -> tuple[list[dict[str, Any]], str]:
    plan = Plan([str(task["id"]) for task in tasks], [Task.model_validate(task) for task in tasks])
    return asking(tasks, plan, "p", served)


def test_the_only_root_asks_by_itself() -> None:
    found, asker = asked({"id": "a", "command": "x"}, {"id": "b", "command": "x", "after": ["a"]})
    assert asker == "a"
    assert [task["id"] for task in found if "approval" in task] == ["a"]
    assert "2 tasks, 2 steps" in found[0]["approval"]["ask"]
    found, _ = asked({"id": "a", "command": "x", "meta": {"mine": 1}}, {"id": "b", "command": "evil", "after": ["a"]})
    shown = 'a (command)\n    command: x\n    meta: {"mine": 1}\n  b (command)\n      command: evil'
    assert found[0]["meta"] == {"mine": 1, "plan": shown}, "G23: who is asked sees all that would run"


def test_several_roots_come_after_one_more() -> None:
    found, asker = asked(
        {"id": "a", "command": "x"},
        {"id": "b", "command": "x", "after": "old"},
        {"id": "c", "command": "x", "after": ["a"]},
        {"id": "undo", "command": "x", "after_failed": ["a"]},
    )
    first, a, b, c, undo = found
    assert (asker, first["id"], first["command"], first["batch"]) == ("p-approval", "p-approval", ["true"], "p")
    assert (a["dependencies"], b["dependencies"]) == (["p-approval"], ["p-approval", "old"])
    assert "after" not in b
    assert first["meta"]["plan"].startswith("a (command)\n    command: x\n")
    assert (c["after"], "dependencies" in c) == (["a"], False)
    assert undo["dependencies"] == ["p-approval"], "what cleans up must not start when the plan is rejected"
    data = "".join(f"{json.dumps(task)}\n" for task in found).encode()
    assert isinstance(admission.check(data, "f", Settings()), admission.Accepted)


def test_a_root_with_a_question_of_its_own_keeps_it() -> None:
    found, asker = asked({"id": "a", "command": "x", "approval": {"ask": "Now?"}})
    assert (asker, found[1]["approval"]["ask"]) == ("p-approval", "Now?")


def test_without_a_worker_for_commands_nobody_could_ask() -> None:
    none = Served(("coder",), ("coder",))
    with pytest.raises(SpoolError, match="--allow-command"):
        asked({"id": "a", "command": "x"}, {"id": "b", "command": "x"}, served=none)
    assert asked({"id": "a", "agent": "coder", "prompt": "x"}, served=none)[1] == "a"


def test_an_answer_is_kept_for_its_owner_and_replaces_the_last(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path)}
    keep("old words, and more of them", "p", environ)
    path = Path(keep("new \ud800", "p", environ))
    assert path == tmp_path / "spoold" / "plans" / "p.jsonl"
    assert path.read_text() == "new \\ud800\n"
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in path.parent.iterdir()] == ["p.jsonl"]


def test_the_planner_is_told_the_work_the_format_and_who_is_there() -> None:
    text = prompt("Add {braces} and a login.", "p", ["coder", "reviewer"], {}, merges=True)
    for part in ("Add {braces} and a login.", "one of: coder, reviewer", 'begins with "p-"', "{deps.ID.output}"):
        assert part in text
    lines = [line for line in text.splitlines() if line.startswith("{")]
    assert isinstance(admission.check("\n".join([*lines, ""]).encode(), "f", Settings()), admission.Accepted)
    assert len(lines) == 2
    assert "no live worker has an agent" in prompt("x", "p", [], {}, merges=False)


def test_the_planner_is_shown_a_merge_where_one_can_be_done() -> None:
    place = {"repo": "/srv/r.git", "base": "next"}
    text = prompt("x", "p", ["coder"], place, merges=True)
    task = json.loads(text.splitlines()[-1])
    assert (task["id"], task["after"], task["input"]["into"]) == ("p-merge", ["p-model", "p-api"], "next")
    assert task["locks"] == {"write": ["merge:/srv/r:next"]}
    assert "merge" not in prompt("x", "p", ["coder"], place, merges=False)
    served = Served(("coder",), ("coder", "merge"))
    whole = planner_task("do\nit " * 200, "p", "planner", place, served)
    assert (whole["workspace"], whole["agent"], len(whole["name"])) == (place, "planner", 200)
    Task.model_validate(whole)
    told = prompt("do\nit " * 200, "p", ["coder"], place, merges=True)
    assert filled(whole["prompt"], lambda _: None, ()) == told, "the fields in it are not the planner's own"
