"""Agents as tasks in a real pool: profiles, a DAG, what is accepted, a spent quota, a question.

The agents are scripts behind the adapter `generic`.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tests.e2e.conftest import MakePool
from tests.e2e.pool import SETTINGS, Pool, wait_for

# It plans, or writes what it is told into the file that it is told; a second attempt, told why, does it right.
CODER = """
import json, os, sys
prompt = sys.stdin.read()
open(os.path.join(sys.argv[1], os.environ["SPOOL_TASK_ID"] + "." + os.environ["SPOOL_ATTEMPT"]), "w").write(prompt)
word = prompt.split()[0]
if word == "plan":
    print("SPOOL:COMPLETED " + json.dumps({"text": "three parts"}))
elif word == "edit":
    right = "is not right" in prompt or prompt.split()[1] != "b"
    open("part.txt", "w").write("right" if right else "wrong")
    print("SPOOL:USAGE " + json.dumps({"tokens_in": 100, "tokens_out": 10, "cost_usd": 0.5}))
    print("SPOOL:COMPLETED " + json.dumps({"text": prompt.split()[1] + (" right" if right else " wrong")}))
elif word == "quota":
    if os.path.exists(os.path.join(sys.argv[1], "spent")):
        print("SPOOL:FAILED " + json.dumps({"fault": "quota", "reason": "spent", "retry_after_s": 5}))
    else:
        print("it works again")
elif word == "ask":
    if "The answer of" in prompt:
        print(prompt.rpartition("The answer of")[2].strip().splitlines()[0])
    else:
        print("SPOOL:QUESTION " + json.dumps({"text": "Which branch?", "choices": ["main", "next"]}))
"""

LONG = f"plan {'-' * (1 << 20)}"

PROFILES = """
env = {{SEEN = "{seen}"}}

[agents.coder]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]
model = "${{CODER_MODEL}}"
limit = "account"
allow_accept = true
idle_timeout = 30
concurrent = 2

[agents.planner]
cli = "generic"
command = ["{python}", "{script}", "{seen}"]
"""


def begin(pool: Pool) -> Path:
    """A master and a worker of six slots with two profiles; returns where agents leave their prompts."""
    seen = pool.path("seen")
    seen.mkdir()
    pool.path("coder.py").write_text(CODER)
    profiles = PROFILES.format(python=sys.executable, script=pool.path("coder.py"), seen=seen)
    pool.path("worker.toml").write_text(profiles)
    pool.env["CODER_MODEL"] = "big-1"
    pool.master()
    pool.worker("w", "--config", str(pool.path("worker.toml")), slots=6)
    pool.ready("w")
    return seen


def submit(pool: Pool, *tasks: dict[str, Any]) -> None:
    path = pool.path("dag.jsonl")
    path.write_text("".join(f"{json.dumps(task)}\n" for task in tasks))
    pool.cli("submit", str(path))


def test_a_plan_then_edits_of_which_one_is_accepted_only_with_the_reasons(pool: Pool) -> None:
    seen = begin(pool)
    check = 'grep -qx right part.txt || { echo "it is not right"; exit 3; }'
    edits: list[dict[str, Any]] = [
        {"id": f"edit-{part}", "agent": "coder", "prompt": f"edit {part} after: {{deps.plan.output}}"}
        | {"after": ["plan"], "accept": [check], "must_change": True}
        for part in "abc"
    ]
    review = "plan review of {deps.edit-a.output}, {deps.edit-b.output}"
    last = {"id": "review", "agent": "planner", "prompt": review, "after": ["edit-a", "edit-b", "edit-c"]}
    submit(pool, {"id": "plan", "agent": "planner", "prompt": "plan it"}, *edits, last)
    assert pool.finish("review")["output"]["outcome"] == "no_change"
    assert (seen / "edit-a.1").read_text() == "edit a after: three parts"
    assert (seen / "review.1").read_text() == "plan review of a right, b right"
    first, second = pool.results("edit-b")
    assert (first["status"], first["exit_code"], first["output"]["outcome"]) == ("failure", 1, "not_accepted")
    assert first["output"]["reasons"] == [f"{check}: exit code 3\nit is not right"]
    assert (second["status"], second["output"]["outcome"]) == ("success", "done")
    assert second["total"]["tokens_used"] == 220
    assert second["total"]["cost_usd"] == 1.0
    told = (seen / "edit-b.2").read_text()
    assert told.startswith("edit b after: three parts\n\nThis is another attempt. Attempt 1 did not do")
    assert "it is not right" in told
    assert [len(pool.results(f"edit-{part}")) for part in "ac"] == [1, 1]
    assert first["output"]["changed_files"] == ["part.txt"]
    pool.fsck()


def test_a_spent_quota_costs_nothing_and_holds_the_others(make_pool: MakePool) -> None:
    pool = make_pool(SETTINGS + '\n[limits.account]\nmax = 9\n\n[types.coder]\nuses = ["account"]\n')
    seen = begin(pool)
    (seen / "spent").touch()
    submit(
        pool, *({"id": f"q{number}", "agent": "coder", "prompt": "quota", "max_retries": 0} for number in range(4))
    )
    wait_for(lambda: pool.json("limits")[0]["closed"], "the limit is closed by its quota")
    (seen / "spent").unlink()
    for number in range(4):
        result = pool.finish(f"q{number}")
        assert result["status"] == "success", result
        assert all(one["exit_code"] in (0, 75) for one in pool.results(f"q{number}"))
    tried = [one for one in seen.iterdir() if one.name.startswith("q")]
    assert len(tried) <= 6, "two were running when it was spent, and each of the four ran once more at most"
    pool.fsck()


def test_a_question_of_an_agent_is_answered_by_a_person(pool: Pool) -> None:
    begin(pool)
    submit(pool, {"id": "asks", "agent": "coder", "prompt": "ask"})
    wait_for(lambda: [one["ask"] for one in pool.json("asks")] == ["Which branch?"], "the question stands")
    pool.cli("approve", "asks", "--answer", "next")
    assert pool.finish("asks")["output"]["text"].endswith(": next")
    pool.fsck()


def test_a_profile_that_is_wrong_is_told_before_anything_starts(pool: Pool) -> None:
    wrong = {
        'cli = "codexx"': "agents.coder.cli: 'codexx' is no agent",
        'cli = "generic"': "a generic agent has no command",
        'cli = "generic"\ncommand = ["x"]\nmodel = "${NO_SUCH_NAME}"': "model: the worker's environment has",
        'cli = "generic"\ncommand = ["x"]\nmodle = "a"': "did you mean 'model'?",
        'cli = "generic"\ncommand = ["x"]\nsecrets = ["KEY"]': "[secrets] has none of that name",
    }
    pool.path("w.toml").write_text("")
    for text, said in wrong.items():
        pool.path("w.toml").write_text(f"[agents.coder]\n{text}\n")
        done = pool.run("worker", "--config", str(pool.path("w.toml")))
        assert (done.returncode, said in done.stderr) == (2, True), done.stderr


def test_the_profiles_of_all_workers_are_listed(pool: Pool) -> None:
    begin(pool)
    pool.path("two.toml").write_text('[agents.coder]\ncli = "generic"\ncommand = ["no-such-agent"]\n')
    pool.worker("two", "--config", str(pool.path("two.toml")))
    pool.ready("two")
    told = pool.json("agents")
    assert [(one["agent"], one["cli"], one["model"], one["worker"][:2]) for one in told] == [
        ("coder", "generic", "", "tw"),
        ("coder", "generic", "big-1", "w-"),
        ("planner", "generic", "", "w-"),
    ]
    assert "lacks the program no-such-agent" in told[0]["trouble"]
    assert "coder    generic  -        big-1" in pool.cli("agents")
    assert [one["drops"] for one in told] == [[], ["model"], []]
    pool.cli("config", "set", "types.planner.temperature", "0.5")
    assert "planner on " in pool.cli("agents")
    assert "generic cannot be given temperature" in pool.cli("agents")


def test_a_limit_that_holds_no_task_back_is_told(pool: Pool) -> None:
    slow = 'cli = "generic"\ncommand = ["true"]\ncheck = ["sleep", "40"]\n'
    pool.path("w.toml").write_text(f'[agents.coder]\n{slow}limit = "big"\n')
    pool.master()
    pool.worker("w", "--config", str(pool.path("w.toml")))
    pool.ready("w")
    assert "add [limits.big]" in pool.json("agents")[0]["gap"]
    assert "not yet" in pool.cli("agents"), "its check still runs"
    pool.cli("config", "set", "limits.big.max", "3")
    assert 'add uses = ["big"] to [types.coder]' in " ".join(pool.cli("agents").split())
    pool.cli("config", "set", "types.coder.uses", '["big"]')
    assert (pool.json("agents")[0]["limit"], pool.json("agents")[0]["gap"]) == ("big", "")


def test_the_verb_makes_the_task_and_prints_the_words(pool: Pool) -> None:
    seen = begin(pool)
    submit(pool, {"id": "held", "agent": "coder", "prompt": "x", "hold": "later"})
    wait_for(lambda: pool.json("ls", "--type", "coder"), "it is listed by its type")
    assert pool.json("show", "held")["type"] == "coder"
    words = pool.cli("agent", "planner", "-", "--id", "p", "--wait", stdin=LONG.encode())
    assert words == "three parts\n"
    assert (seen / "p.1").read_text() == LONG
    pool.cli(
        "agent", "coder", "--id", "e", "--after", "p", "--accept", "false", "--retries", "0", "edit {deps.p.output}"
    )
    failed = pool.run("agent", "coder", "--wait", "--after", "p", "--model", "small", "--", "-x")
    assert (failed.returncode, "allow_models = " in failed.stderr) == (1, True)
    assert pool.finish("e")["output"]["outcome"] == "not_accepted"
    assert "has no prompt" not in pool.run("agent", "coder", "").stdout
    assert pool.run("agent", "coder", "").returncode == 2


def test_a_worker_takes_no_task_of_a_profile_that_does_not_start(pool: Pool) -> None:
    agent = pool.path("codex")
    agent.write_text("#!/bin/sh\necho 'no module named tools' >&2; exit 1\n")
    agent.chmod(0o755)
    pool.path("worker.toml").write_text(
        f'[agents.coder]\ncli = "codex"\nenv = {{PATH = "{agent.parent}:/usr/bin:/bin"}}\n'
    )
    pool.master()
    pool.worker("w", "--config", str(pool.path("worker.toml")))
    pool.ready("w")
    submit(pool, {"id": "t", "agent": "coder", "prompt": "x"})
    why = "does not start: `codex --version` does not start: exit code 1: no module named tools"

    def told() -> Any:
        found = pool.json("agents")
        return next((one for one in found if why in one["trouble"]), None)

    one = wait_for(told, "the verdict in `spool agents`")
    assert (one["ok"], one["version"], one["cli"]) == (False, "", "codex")
    assert "not ok" in pool.cli("agents")
    wait_for(lambda: why in pool.cli("explain", "t") or None, "the reason in `spool explain`")
    assert pool.ended("t") is None
    agent.write_text('#!/bin/sh\ntest "$1" = --version && echo codex-cli 0.169.0 && exit\nexit 1\n')
    pool.worker("w2", "--config", str(pool.path("worker.toml")))
    pool.ready("w2")
    wait_for(lambda: "0.169.0" in pool.cli("agents") or None, "the version of the worker that has it")
