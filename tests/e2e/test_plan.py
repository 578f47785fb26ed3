"""`spool plan` in a real pool: an agent plans, its answer is judged and shown, and nothing starts without a yes.

The planner is a script behind the adapter `generic`. It answers what lies in a file of the test.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import MakePool
from tests.e2e.pool import PATIENCE_S, Pool, wait_for

AGENT = """
import os, sys
prompt, seen = sys.stdin.read(), sys.argv[1]
open(os.path.join(seen, os.environ["SPOOL_TASK_ID"]), "w").write(prompt)
if os.environ["SPOOL_TASK_ID"].startswith("p"):
    if os.path.exists(os.path.join(seen, "fails")):
        sys.exit(64)
    print(open(os.path.join(seen, "answer")).read())
else:
    print("did " + prompt)
"""
PROFILES = """
[agents.planner]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]

[agents.coder]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]
"""


def begin(pool: Pool) -> Path:
    """A master and a worker with two profiles; returns where agents leave their prompts, and find their answer."""
    seen, script = pool.path("seen"), pool.path("agent.py")
    seen.mkdir()
    script.write_text(AGENT)
    pool.path("worker.toml").write_text(PROFILES.format(python=sys.executable, script=script, seen=seen))
    pool.env["XDG_STATE_HOME"] = str(pool.path("state"))
    pool.master()
    pool.worker("w", "--config", str(pool.path("worker.toml")), slots=4)
    pool.ready("w")
    return seen


def answer(seen: Path, *tasks: Any) -> None:
    (seen / "answer").write_text("\n".join(task if isinstance(task, str) else json.dumps(task) for task in tasks))


def coder(task_id: str, *after: str) -> dict[str, Any]:
    return {"id": task_id, "agent": "coder", "prompt": f"part {task_id}", **({"after": list(after)} if after else {})}


def ids(pool: Pool) -> set[str]:
    return {one["id"] for one in pool.json("ls", "--all")}


def test_a_plan_is_shown_and_runs_after_a_yes(pool: Pool) -> None:
    seen = begin(pool)
    answer(seen, "```jsonl", coder("f-a"), coder("f-b", "f-a"), coder("f-c", "f-a"), "```")
    shown = pool.run("plan", "Add a login.", "--id", "p1")
    assert (shown.returncode, ids(pool)) == (1, {"p1"}), shown.stderr
    assert shown.stdout.splitlines() == [
        "p1: 3 tasks, 2 steps one after the other, at most 2 at once",
        "f-a (coder)",
        "    prompt: part f-a",
        "  f-b (coder)",
        "      prompt: part f-b",
        "  f-c (coder)",
        "      prompt: part f-c",
    ]
    path = pool.path("state") / "spoold" / "plans" / "p1.jsonl"
    assert f"nothing was submitted. The plan is in {path}; `spool plan --task p1 --yes` submits it" in shown.stderr
    told = (seen / "p1").read_text()
    assert "Add a login." in told
    assert "one of: coder, planner" in told
    done = json.loads(pool.cli("plan", "--task", "p1", "--yes", "--json"))
    assert (done["task"], done["ids"], done["answer"]) == ("p1", ["f-a", "f-b", "f-c"], str(path))
    assert pool.finish("f-c")["output"]["text"] == "did part f-c"
    assert pool.finish("f-b")["status"] == "success"
    assert {one["id"] for one in pool.json("ls", "--batch", "p1")} == {"f-a", "f-b", "f-c"}
    again = pool.run("plan", "--task", "p1", "--yes")
    assert (again.returncode, again.stderr.count("is taken by a task that is completed")) == (1, 3)
    assert pool.cli("submit", str(path)).split() == ["f-a", "f-b", "f-c"], "the kept file is what was submitted"
    pool.fsck()


BAD: dict[str, tuple[list[Any], list[str]]] = {
    "words": (["Here is the plan:", coder("x")], ["line 1: no task, but words: 'Here is the plan:'"]),
    "no lines": (["I am not able to plan that."], ["no task, but words", "holds no task"]),
    "a circle": (
        [coder("x", "y"), coder("y", "x")],
        ["line 2: dependencies: the tasks wait for each other: y → x → y"],
    ),
    "an unknown agent": ([{**coder("x"), "agent": "codr"}], ["line 1: agent: no live worker has the profile 'codr'"]),
    "an id that is taken": ([coder("taken")], ["line 1: id: 'taken' is taken by a task that is waiting"]),
    "several": ([{"id": "x"}, {**coder("z"), "timeout": "soon"}], ["line 1: nothing to run", "line 2: timeout"]),
}


def test_a_plan_with_a_fault_is_named_and_kept_and_nothing_of_it_submitted(pool: Pool) -> None:
    seen = begin(pool)
    pool.cli("submit", "--id", "taken", "--hold", "for ever", "--", "true")
    for number, (lines, told) in enumerate(BAD.values()):
        answer(seen, *lines)
        done = pool.run("plan", "Add a login.", "--id", f"p{number}", "--yes")
        assert (done.returncode, done.stdout) == (1, "")
        for words in told:
            assert words in done.stderr, done.stderr
        path = pool.path("state") / "spoold" / "plans" / f"p{number}.jsonl"
        assert f"nothing was submitted. The answer is in {path}" in done.stderr
        said, kept = ("".join(file.read_text().split()) for file in (seen / "answer", path))
        assert kept == said if "words" in told[0] else kept.count('"batch"') == said.count('"id"')
    assert ids(pool) == {"taken", *(f"p{number}" for number in range(len(BAD)))}
    (seen / "fails").touch()
    failed = pool.run("plan", "Add a login.", "--yes", "--id", "p-fails")
    assert (failed.returncode, "p-fails failed" in failed.stderr, "nothing was submitted" in failed.stderr) == (
        1,
        1,
        1,
    )


def test_a_plan_of_which_the_beginning_was_not_kept_is_no_plan(pool: Pool) -> None:
    seen = begin(pool)
    lines = [json.dumps(coder(f"t{number:03d}")) for number in range(600)]
    # The end that is kept begins with a whole line, so nothing else shows that there was more.
    answer(seen, *(f"{line:<2047}" for line in lines))
    shown = pool.run("plan", "x", "--id", "p1", "--yes")
    assert (shown.returncode, ids(pool)) == (1, {"p1"}), shown.stderr
    assert "the answer of p1 is so long that its beginning was not kept. Plan less." in shown.stderr
    assert pool.json("result", "p1")["output"]["text_cut"] is True


def test_a_plan_waits_for_its_approval(make_pool: MakePool) -> None:
    pool = make_pool()
    seen = begin(pool)
    answer(seen, coder("a"), coder("b", "a"))
    done = json.loads(pool.cli("plan", "One root.", "--id", "p1", "--approve", "--json"))
    assert (done["approval"], done["ids"]) == ("a", ["a", "b"])
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["a"], "a asks")
    pool.cli("approve", "a")
    assert pool.finish("b")["status"] == "success"
    undo = {"id": "undo", "agent": "coder", "prompt": "x", "after_failed": ["c"]}
    answer(seen, coder("c"), coder("d"), coder("e", "c", "d"), undo)
    done = json.loads(pool.cli("plan", "Two roots.", "--id", "p2", "--approve", "--json"))
    assert done["approval"] == "p2-approval"
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["p2-approval"], "one question for all")
    assert "4 tasks, 2 steps" in pool.json("asks")[0]["ask"]
    pool.cli("reject", "p2-approval", "--reason", "too small")
    ends = {one: pool.finish(one)["error"]["code"] for one in ("p2-approval", "c", "d", "e", "undo")}
    assert ends.pop("p2-approval") == "REJECTED"
    assert set(ends.values()) == {"DEPENDENCY_FAILED"}
    assert not (seen / "undo").exists(), "what cleans up has nothing to clean up"
    pool.fsck()


@pytest.mark.parametrize(("typed", "submitted"), [("y", True), ("n", False)])
def test_a_person_at_a_terminal_is_asked(pool: Pool, typed: str, submitted: bool) -> None:
    seen = begin(pool)
    answer(seen, coder("a"))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "spoold", "plan", "Add a login.", "--id", "p1"]
    process = subprocess.Popen(command, env=pool.env, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    said, until = b"", time.monotonic() + PATIENCE_S
    while b"[y/N]" not in said:
        assert time.monotonic() < until, said
        said += os.read(ours, 4096)
    assert b"a (coder)" in said
    assert "a" not in ids(pool)
    os.write(ours, f"{typed}\n".encode())
    assert process.wait(PATIENCE_S) == (0 if submitted else 1)
    os.close(ours)
    assert ("a" in ids(pool)) == submitted


def test_a_command_line_that_says_two_things_is_refused(pool: Pool) -> None:
    for words in ([], ["x", "--task", "y"], ["x", "--yes", "--approve"], ["x", "--base", "main"], [" "]):
        done = pool.run("plan", *words)
        assert (done.returncode, "Fix: " in done.stderr) == (2, True), done.stderr
    assert pool.run("plan", "--task", "nothing").returncode == 4
    assert ids(pool) == set()
