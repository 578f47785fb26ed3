"""Each tool of an agent, by the SDK's own client, over stdio and over HTTP, against a real pool."""

from __future__ import annotations

import itertools
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from mcp.shared.exceptions import MCPError

from spoold.faces.mcp.server import TOOLS, tools_for
from spoold.faces.mcp.session import Role
from tests.e2e.pool import Pool, wait_for
from tests.mcp.calling import Caller

_numbers = itertools.count(1)


def fresh(stem: str) -> str:
    """A word that no other test has used: agents of one user share the scope of their keys."""
    return f"{stem}-{next(_numbers)}"


def test_every_tool_is_listed_with_schemas_and_hints(agent: Caller) -> None:
    listed = agent.ask("list_tools").tools
    assert [tool.name for tool in listed] == [tool.name for tool in tools_for(Role.AGENT)]
    for tool in listed:
        for schema in (tool.input_schema, tool.output_schema):
            Draft202012Validator.check_schema(schema)
            assert (schema["type"], schema["additionalProperties"]) == ("object", False)
        for part in parts(tool.input_schema):
            assert not {"ge", "le", "gt", "lt"} & part.keys()
            assert part.get("type") != "array" or not {"minLength", "maxLength"} & part.keys()
        assert tool.title
        assert len(tool.description) > 40
        assert tool.annotations.open_world_hint is False
    hints = {tool.name: tool.annotations for tool in listed}
    assert {name for name, hint in hints.items() if hint.read_only_hint} == {
        *("get_task_result", "list_tasks", "check_background", "list_background", "wait_tasks", "explain_task"),
        *("get_status", "get_context"),
    }
    assert {name for name, hint in hints.items() if hint.destructive_hint} == {"cancel_task", "kill_background"}
    assert "idempotencyKey" in str(agent.client.instructions)


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """Every schema within a schema."""
    if isinstance(schema, dict):
        yield schema
    for inner in schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ():
        yield from parts(inner)


def test_every_tool_is_called_in_these_tests() -> None:
    text = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    called = set(re.findall(r'call\(\s*"(\w+)"', text))
    assert called >= {tool.name for tool in TOOLS}


def test_a_command_in_the_background(agent: Caller, tmp_path: Path) -> None:
    go = tmp_path / "go"
    command = f"echo one; echo two; pwd; echo $WORD; until test -e {go}; do sleep 0.02; done; echo end; exit 3"
    made = agent.call("run_background", command=command, cwd=str(tmp_path), label="mine", env={"WORD": "said"})
    task = made["taskId"]
    assert made["created"]
    found = wait_for(
        lambda: (seen := agent.call("check_background", taskId=task))["output"].count("\n") == 4 and seen, "output"
    )
    assert (found["status"], found["finished"], found["exitCode"]) == ("running", False, None)
    assert found["output"] == f"one\ntwo\n{tmp_path}\nsaid\n"
    unfinished = agent.call("get_task_result", taskId=task)
    assert (unfinished["finished"], unfinished["status"]) == (False, "running")
    assert "not finished yet" in unfinished["message"]
    assert task in [row["taskId"] for row in agent.call("list_background", status="running")["tasks"]]
    go.touch()
    waited = agent.call("wait_tasks", taskIds=[task])
    assert (waited["done"], waited["open"]) == (True, [])
    assert [(one["taskId"], one["status"], one["exitCode"]) for one in waited["finished"]] == [(task, "error", 3)]
    checked = agent.call("check_background", taskId=task, tailLines=1)
    assert (checked["output"], checked["truncated"], checked["exitCode"]) == ("end\n", True, 3)
    assert agent.call("check_background", taskId=task, tailLines=0)["output"] == ""
    result = agent.call("get_task_result", taskId=task)
    assert (result["status"], result["error"]["code"], result["attempt"]) == ("error", "EXIT_NONZERO", 1)
    (row,) = [row for row in agent.call("list_tasks", status="error")["tasks"] if row["taskId"] == task]
    assert (row["state"], row["status"], row["type"]) == ("failed", "error", "command")


def test_a_command_is_killed_with_all_its_processes(agent: Caller, pool: Pool) -> None:
    task = agent.call("run_background", command=f"sleep {pool.mark} & wait")["taskId"]
    pool.claimed(task)
    asked = agent.call("kill_background", taskId=task, reason="no longer needed")
    assert asked["requested"] == [task]
    assert agent.call("wait_tasks", taskIds=[task])["finished"][0]["status"] == "cancelled"
    again = agent.call("kill_background", taskId=task)
    assert again["requested"] == []
    assert "has ended already: cancelled" in again["message"]


def test_a_timeout_is_a_status_of_its_own(agent: Caller) -> None:
    task = agent.call("run_background", command=["sleep", "600"], timeout=200)["taskId"]
    (ended,) = agent.call("wait_tasks", taskIds=[task])["finished"]
    assert (ended["status"], ended["error"]["code"]) == ("timeout", "TIMEOUT")


def test_a_task_is_delegated_in_the_background_or_waited_for(agent: Caller) -> None:
    task = agent.call("delegate_task", agent="coder", prompt="look", description="a look")["taskId"]
    assert agent.call("wait_tasks", taskIds=[task], mode="any")["done"]
    assert agent.call("get_task_result", taskId=task)["output"] == "did: look"
    waited = agent.call("delegate_task", agent="coder", prompt='it\'s "y"', background=False, after=[task])
    assert (waited["finished"], waited["result"]["output"]) == (True, 'did: it\'s "y"')
    key = fresh("delegated")
    once = agent.call("delegate_task", agent="coder", prompt="once", idempotencyKey=key)
    assert (once["created"], once["finished"]) == (True, False)
    agent.call("wait_tasks", taskIds=[once["taskId"]])
    again = agent.call("delegate_task", agent="coder", prompt="once", idempotencyKey=key)
    assert (again["taskId"], again["created"], again["finished"]) == (once["taskId"], False, True)
    assert again["result"]["output"] == "did: once"
    assert "was submitted before. " in again["message"]
    refused = agent.refused("delegate_task", agent="codre", prompt="x")
    assert "no live worker has the agent 'codre'. Fix: did you mean 'coder'? With anyway" in refused, "G31"
    nobody = agent.call("delegate_task", agent="nobody-has-it", prompt="x", background=False, wait=300, anyway=True)
    assert (nobody["finished"], nobody["result"]) == (False, None)
    assert "It waits: no live worker has the agent 'nobody-has-it'." in nobody["message"]
    why = agent.call("explain_task", taskId=nobody["taskId"])
    assert "nobody-has-it" in json.dumps(why["reasons"])
    assert all(reason["change"] for reason in why["reasons"])
    told = agent.call("tell_task", taskId=nobody["taskId"], text="Use v2.")
    assert told["message"] == f"the agent of {nobody['taskId']} is given it with the prompt of its next attempt."
    agent.call("cancel_task", taskId=nobody["taskId"])


def test_only_an_agent_that_has_not_ended_can_be_told(agent: Caller) -> None:
    command = agent.call("run_background", command="sleep 600")["taskId"]
    assert "runs no agent, but a command" in agent.refused("tell_task", taskId=command, text="Use v2.")
    agent.call("cancel_task", taskId=command)
    handled = agent.call("delegate_task", agent="coder", prompt="once")["taskId"]
    assert "of the type coder, whose handler is no agent" in agent.refused(
        "tell_task", taskId=handled, text="Use v2."
    )
    assert "among yours" in agent.refused("tell_task", taskId="not-there", text="Use v2.")


def test_a_graph_runs_in_its_order(agent: Caller, tmp_path: Path) -> None:
    log = tmp_path / "order"
    tasks = [
        {"name": "last", "command": f"echo last >> {log}", "after": ["left", "right"]},
        {"name": "left", "command": f"sleep 0.2; echo left >> {log}", "after": ["first"]},
        {"name": "right", "agent": "coder", "prompt": "right", "after": ["first"]},
        {"name": "first", "command": ["sh", "-c", f"echo first >> {log}"], "locks": {"write": [f"{log}"]}},
    ]
    made = agent.call("submit_tasks", tasks=tasks, batch=fresh("graph"))
    assert [one["name"] for one in made["tasks"]] == ["last", "left", "right", "first"]
    ids = [one["taskId"] for one in made["tasks"]]
    agent.progress.clear()
    waited = agent.call("wait_tasks", taskIds=ids)
    assert waited["done"]
    assert [one["status"] for one in waited["finished"]] == ["completed"] * 4
    assert log.read_text().split() == ["first", "left", "last"]
    done = [progress[0] for progress in agent.progress]
    assert done == sorted(done)
    assert agent.progress[-1] == (4, 4, "4 of 4 have ended")


def test_what_depends_on_a_failure_fails(agent: Caller) -> None:
    tasks = [
        {"name": "bad", "command": "exit 1", "retries": 0},
        {"name": "next", "command": "true", "after": ["bad"]},
    ]
    bad, after = (one["taskId"] for one in agent.call("submit_tasks", tasks=tasks)["tasks"])
    agent.call("wait_tasks", taskIds=[bad, after])
    result = agent.call("get_task_result", taskId=after)
    assert (result["status"], result["error"]["code"]) == ("error", "DEPENDENCY_FAILED")


def test_a_wait_says_what_is_open_and_is_cut(agent: Caller) -> None:
    quick = agent.call("run_background", command="true")["taskId"]
    slow = agent.call("run_background", command="sleep 600")["taskId"]
    first = agent.call("wait_tasks", taskIds=[quick, slow], mode="any")
    assert ([one["taskId"] for one in first["finished"]], first["done"]) == ([quick], True)
    assert "to wait for another, name the open ones" in first["message"]
    cut = agent.call("wait_tasks", taskIds=[slow, quick], timeout=300)
    assert (cut["done"], cut["openCount"], cut["open"][0]["taskId"]) == (False, 1, slow)
    assert "call wait_tasks again" in cut["message"]
    agent.call("cancel_task", taskId=slow)
    assert agent.call("wait_tasks", taskIds=[slow])["done"]


def test_a_prompt_names_the_outputs_of_tasks_of_the_same_call(agent: Caller) -> None:
    prompt = "use {deps.plan.output} and {deps.other.output.x} and {deps.plan.output}"
    tasks = [
        {"name": "plan", "command": "true"},
        {"name": "edit", "agent": "coder", "prompt": prompt, "after": ["plan"]},
    ]
    plan, edit = (one["taskId"] for one in agent.call("submit_tasks", tasks=tasks)["tasks"])
    agent.call("wait_tasks", taskIds=[edit])
    said = agent.call("get_task_result", taskId=edit)["output"]
    assert said == f"did: use {{deps.{plan}.output}} and {{deps.other.output.x}} and {{deps.{plan}.output}}"


def test_a_key_makes_one_task(agent: Caller, other: Caller, pool: Pool) -> None:
    key = fresh("once")
    first = agent.call("run_background", command="echo once", idempotencyKey=key)
    again = agent.call("run_background", command="echo once", idempotencyKey=key)
    assert (first["created"], again["created"], again["taskId"]) == (True, False, first["taskId"])
    agent.call("wait_tasks", taskIds=[first["taskId"]])
    # Another server of the same user, as after a restart of the client.
    later = other.call("run_background", command="echo once", idempotencyKey=key)
    assert (later["created"], later["taskId"]) == (False, first["taskId"])
    assert other.call("get_task_result", taskId=first["taskId"])["output"] == "once\n"
    words = agent.refused("run_background", command="echo twice", idempotencyKey=key)
    assert "idempotencyKey: it was used for another task" in words
    assert "command" in words
    tasks = [{"name": "a", "command": "true"}, {"name": "b", "command": "true", "after": ["a"]}]
    graph = agent.call("submit_tasks", tasks=tasks, idempotencyKey=key)
    repeated = agent.call("submit_tasks", tasks=tasks, idempotencyKey=key)
    assert [one["taskId"] for one in repeated["tasks"]] == [one["taskId"] for one in graph["tasks"]]
    assert not any(one["created"] for one in repeated["tasks"])
    agent.call("wait_tasks", taskIds=[one["taskId"] for one in graph["tasks"]])
    assert pool.listing("rejected") == []


def test_pages_show_each_task_once(agent: Caller) -> None:
    mine = {agent.call("run_background", command="true")["taskId"] for _ in range(5)}
    agent.call("wait_tasks", taskIds=sorted(mine))
    seen: list[str] = []
    cursor = ""
    while True:
        page = agent.call("list_tasks", status="completed", limit=2, cursor=cursor)
        assert len(page["tasks"]) <= 2
        seen += [row["taskId"] for row in page["tasks"]]
        cursor = page["nextCursor"]
        if not cursor:
            break
    assert len(seen) == len(set(seen)) == page["total"]
    assert mine <= set(seen)


def test_a_tree_is_cancelled(agent: Caller, pool: Pool) -> None:
    spool = f"{sys.executable} -m spoold"
    command = f"{spool} submit --id child-$SPOOL_TASK_ID -- sleep 600; sleep 600"
    task = agent.call("run_background", command=command)["taskId"]
    pool.claimed(f"child-{task}")
    assert f"child-{task}" in [row["taskId"] for row in agent.call("list_tasks", status="running")["tasks"]]
    assert set(agent.call("cancel_task", taskId=task, tree=True)["requested"]) == {task, f"child-{task}"}
    for one in (task, f"child-{task}"):
        assert agent.call("get_task_result", taskId=one)["status"] == "cancelled"


def test_files_are_reserved_and_released(agent: Caller, other: Caller) -> None:
    pattern = fresh("src/part")
    granted = agent.call("reserve_files", patterns=[f"{pattern}/**"], ttl=600_000, reason="by hand")
    assert granted["granted"]
    refused = other.call("reserve_files", patterns=[f"{pattern}/a.py"], read=True)
    assert (refused["granted"], refused["reservation"]) == (False, "")
    assert granted["reservation"] in refused["message"]
    begun = time.monotonic()
    late = other.call("reserve_files", patterns=[f"{pattern}/a.py"], timeout=400)
    assert (late["granted"], time.monotonic() - begun < 10) == (False, True)
    assert "no reservation" in other.refused("release_files", reservations=[granted["reservation"]])
    locked = {"name": "locked", "command": "true", "locks": {"write": f'["{pattern}/b.py"]'}}
    (task,) = (one["taskId"] for one in other.call("submit_tasks", tasks=[locked])["tasks"])
    waits = other.call("wait_tasks", taskIds=[task], timeout=300)
    assert granted["reservation"] in json.dumps(waits["open"])
    assert agent.call("release_files")["released"] == [granted["reservation"]]
    assert other.call("wait_tasks", taskIds=[task])["done"]
    assert agent.call("release_files")["released"] == []


def test_a_call_that_is_cancelled_gives_its_reservation_back(agent: Caller, other: Caller, pool: Pool) -> None:
    pattern = fresh("held/part")
    other.call("reserve_files", patterns=[pattern])
    begun = agent.begin("reserve_files", patterns=[pattern], timeout=45_000, reason="to be cancelled")

    def asked() -> int:
        return sum(pattern in row["write"] for row in pool.json("locks")["holders"])

    wait_for(lambda: asked() == 2, "both are asked for")
    begun.cancel()
    wait_for(lambda: asked() == 1, "the second is given back", 25)
    other.call("release_files")


def test_a_person_answers(agent: Caller, pool: Pool) -> None:
    question = fresh("Which colour?")
    asked = agent.call("ask_human", question=question, choices=["red", "blue"], timeout=200)
    assert asked["answered"] is False
    assert asked["questionId"] in asked["message"]
    assert agent.call("ask_human", question=question, timeout=0)["questionId"] == asked["questionId"]
    wait_for(lambda: question in pool.cli("asks"), "people see it")
    pool.cli("approve", asked["questionId"], "--answer", "blue", "--reason", "nicer")
    answer = agent.call("ask_human", questionId=asked["questionId"])
    assert (answer["answered"], answer["answer"], answer["reason"]) == (True, "blue", "nicer")
    no = agent.call("ask_human", question=fresh("Shall I?"), timeout=0)["questionId"]
    wait_for(lambda: no in pool.cli("asks"), "people see it")
    pool.cli("reject", no, "--reason", "not now")
    pool.finish(no)
    rejected = agent.call("ask_human", questionId=no)
    assert (rejected["answered"], rejected["rejected"], rejected["reason"]) == (True, True, "not now")


def test_the_answer_to_one_question_is_none_to_another(agent: Caller, pool: Pool) -> None:
    name, question = fresh("key"), fresh("Which colour?")
    asked = agent.call("ask_human", question=question, choices=["red", "blue"], timeout=0, idempotencyKey=name)
    wait_for(lambda: question in pool.cli("asks"), "people see it")
    pool.cli("approve", asked["questionId"], "--answer", "blue")
    again = agent.call("ask_human", question=question, choices=["red", "blue"], idempotencyKey=name)
    assert (again["questionId"], again["answer"]) == (asked["questionId"], "blue")
    error = agent.refused("ask_human", question="Delete all of it?", timeout=0, idempotencyKey=name)
    assert f"idempotencyKey: it was used for another question, {asked['questionId']}" in error
    assert "which differs" in agent.refused("ask_human", question=question, choices=["yes"], idempotencyKey=name)
    agent.call("ask_human", question=fresh("Sure?"), timeout=0)


def test_the_pool_is_shown(agent: Caller) -> None:
    found = agent.call("get_status")
    assert found["orchestrator_running"]
    assert found["leader"]
    assert found["workers"]["idle"] + found["workers"]["working"] == 1
    assert {"pending", "running", "completed", "failed"} == set(found["tasks"])
    assert found["halted"] is False


def test_progress_is_for_tasks(agent: Caller) -> None:
    assert "does not run within a task" in agent.refused("report_progress", message="half", progress=0.5)


def test_resources(agent: Caller, pool: Pool) -> None:
    task = agent.call("run_background", command="echo text; sleep 600")["taskId"]
    pool.claimed(task)
    queue = json.loads(agent.read("spool://queue"))
    assert task in [row["taskId"] for row in queue["tasks"]]
    wait_for(lambda: agent.read(f"spool://task/{task}/log") == "text\n", "the log is there")
    agent.call("kill_background", taskId=task)
    agent.call("wait_tasks", taskIds=[task])
    shown = json.loads(agent.read(f"spool://task/{task}"))
    assert (shown["id"], shown["attempts"][0]["status"]) == (task, "cancelled")
    assert [one.uri for one in agent.ask("list_resources").resources] == ["spool://queue"]
    templates = [one.uri_template for one in agent.ask("list_resource_templates").resource_templates]
    assert templates == ["spool://task/{id}", "spool://task/{id}/log"]
    with pytest.raises(MCPError, match="no task missing among yours"):
        agent.read("spool://task/missing")
