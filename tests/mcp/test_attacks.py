"""What a confused or hostile caller sends: each is refused in words, and the server goes on."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from tests.e2e.pool import PATIENCE_S, Pool
from tests.mcp.calling import Caller

DEEP: Any = []
for _ in range(100):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("run_background", {}, "command: missing. Fix: add it"),
        ("run_background", {"command": 5}, "command: not a string and not a list"),
        ("run_background", {"command": []}, "command"),
        ("run_background", {"command": "x", "timeout": "soon"}, "timeout: not a whole number"),
        ("run_background", {"command": "x", "timeout": 0}, "timeout: too small"),
        ("run_background", {"command": "x", "timeout": True}, "timeout: not a number"),
        ("run_background", {"command": "x", "timeout": 10**30}, "timeout: too large"),
        ("run_background", {"command": "x", "cwd": "relative"}, "cwd"),
        ("run_background", {"command": "x\0y"}, "command"),
        ("run_background", {"command": "x", "env": {"A=B": "1"}}, "env"),
        ("run_background", {"command": "x", "retries": -1}, "retries: too small"),
        ("run_background", {"command": "x", "comand": "y"}, "comand: unknown field"),
        ("run_background", {"command": "x", "parent": "other"}, "parent: unknown field"),
        ("run_background", {"command": "x", "priority": 99}, "priority: unknown field"),
        ("run_background", {"command": "x", "label": "y" * 201}, "label: longer than 200 characters"),
        ("run_background", {"command": "y" * 3_000_000}, "command: longer than 100000 characters"),
        ("delegate_task", {"agent": "a b", "prompt": "x"}, "no live worker has the agent 'a b'"),
        ("delegate_task", {"agent": "coder", "prompt": ""}, "prompt: empty"),
        ("delegate_task", {"agent": "coder", "prompt": "x", "input": DEEP}, "input: not an object"),
        ("delegate_task", {"agent": "coder", "prompt": "x" * 1_000_001}, "prompt: longer than"),
        ("wait_tasks", {"taskIds": []}, "taskIds: empty"),
        ("wait_tasks", {"taskIds": "x"}, "taskIds: not a list"),
        ("wait_tasks", {"taskIds": ["x"] * 1001}, "more than 1000 values"),
        ("wait_tasks", {"taskIds": ["x"], "mode": "some"}, "mode: not a value that it may have"),
        ("wait_tasks", {"taskIds": ["missing"]}, "no task missing among yours"),
        ("submit_tasks", {"tasks": []}, "tasks: empty"),
        ("submit_tasks", {"tasks": [{"name": "a"}]}, "has neither an agent nor a command"),
        ("submit_tasks", {"tasks": [{"name": "a", "command": "x", "agent": "coder"}]}, "has an agent and a command"),
        ("submit_tasks", {"tasks": [{"name": "a", "agent": "coder"}]}, "tasks.0.prompt: belongs to an agent"),
        ("submit_tasks", {"tasks": [{"name": "../a", "command": "x"}]}, "tasks.0.name: not an id"),
        ("submit_tasks", {"tasks": [{"name": "a", "command": "x"}] * 2}, "tasks.1.name: 'a' is there twice"),
        ("submit_tasks", {"tasks": [{"name": "a", "command": "x", "parent": "b"}]}, "parent: unknown field"),
        (
            "submit_tasks",
            {"tasks": [{"name": "a", "command": "x", "after": ["b"]}, {"name": "b", "command": "x", "after": ["a"]}]},
            "they wait for each other: ",
        ),
        (
            "submit_tasks",
            {"tasks": [{"name": "a", "command": "x", "after": ["c"]}]},
            "tasks.0.after: no task c among yours",
        ),
        (
            "submit_tasks",
            {"tasks": [{"name": "a", "command": "x"}, {"name": "b", "agent": "c", "prompt": "{deps.a.output}"}]},
            "tasks.1.prompt: wants {deps.a.output}, and b does not come after a",
        ),
        ("reserve_files", {"patterns": ["../up"]}, "patterns"),
        ("reserve_files", {"patterns": []}, "nothing to reserve: name a pattern"),
        ("reserve_files", {"patterns": ["a"], "ttl": 86_400_001}, "a reservation cannot last"),
        ("release_files", {"reservations": ["../x"]}, "no reservation '../x' of yours"),
        ("ask_human", {}, "question: is missing"),
        ("ask_human", {"questionId": "missing"}, "no task missing among yours"),
        ("ask_human", {"question": "?", "choices": ["a", "a"]}, "choices"),
        ("report_progress", {"progress": 2}, "progress: too large"),
        ("report_progress", {"costUsd": "NaN"}, "costUsd"),
        ("list_tasks", {"status": "done"}, "status: not a value"),
        ("list_tasks", {"limit": 201}, "limit: too large"),
        ("check_background", {"taskId": "x", "tailLines": 2001}, "tailLines: too large"),
        ("get_status", {"verbose": True}, "verbose: unknown field"),
        ("approve", {"taskId": "x"}, "approve is for operators"),
        ("drain", {}, "drain is for operators"),
        ("kill_all", {}, "kill_all is for operators"),
        ("__class__", {}, "there is no tool '__class__'"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_wrong_arguments_are_refused_in_words(
    attacked: Caller, tool: str, arguments: dict[str, Any], words: str
) -> None:
    told = attacked.refused(tool, **arguments)
    assert words in told
    assert len(told) < 2100


@pytest.mark.parametrize(
    "task_id",
    [
        *("../../etc/passwd", "/etc/passwd", "..", ".", "", "a/b", "a\0b", "a\nb", "*", "con", "x" * 121, "-rf"),
        *("pending/x.json", "%2e%2e", "a b", "$(id)", "‥", "x.json/../y"),
    ],
)
def test_an_id_is_no_path(attacked: Caller, task_id: str) -> None:
    for tool in ("get_task_result", "cancel_task", "check_background", "kill_background", "explain_task"):
        assert "taskId: not an id" in attacked.refused(tool, taskId=task_id)


@pytest.mark.parametrize(
    "uri",
    [
        *("spool://task/..%2F..%2Fspool.toml", "spool://task/%2Fetc%2Fpasswd", "spool://task/a%00b"),
        *("spool://task/", "spool://task/x/log/log", "spool://task/x/y", "file:///etc/passwd", "spool://tasks"),
        *("spool://queue/..", "spool://task/%252e%252e", "spool://task/missing/log"),
    ],
)
def test_a_resource_is_no_path(attacked: Caller, uri: str) -> None:
    with pytest.raises(MCPError, match=r"there is no resource|no task missing"):
        attacked.read(uri)


def test_the_beginning_of_an_id_reaches_nothing(attacked: Caller, other: Caller) -> None:
    mine = attacked.call("run_background", command="true", idempotencyKey="beginning")["taskId"]
    assert "no task" in attacked.refused("get_task_result", taskId=mine[:-1])
    assert "no task" in other.refused("get_task_result", taskId=mine)
    # Case does not count in ids, and whose task it is does not depend on it.
    assert "no task" in other.refused("get_task_result", taskId=mine.upper())
    assert attacked.call("get_task_result", taskId=mine.upper())["taskId"] == mine


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b'{"jsonrpc": "2.0", "id": 1, "method": "no/such"}\n',
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": 5}}\n',
        b"\xff\xfe\n",
        b"[" * 100_000 + b"\n",
        b'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": '
        + b'{"a":' * 5000
        + b"1"
        + b"}" * 5000
        + b"}\n",
    ],
    ids=["text", "list", "method", "name", "bytes", "deep", "nested"],
)
def test_lines_that_are_no_messages_end_no_server(pool: Pool, line: bytes) -> None:
    hello = {
        "jsonrpc": "2.0",
        "id": "hello",
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
    }
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    status = {"jsonrpc": "2.0", "id": "status", "method": "tools/call", "params": {"name": "get_status"}}
    sent = [json.dumps(one).encode() + b"\n" for one in (hello, ready)]
    process = subprocess.Popen(
        [sys.executable, "-m", "spoold", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=pool.env,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join([*sent, line, json.dumps(status).encode(), b"\n"]))
    process.stdin.flush()
    answers: list[dict[str, Any]] = []
    while not answers or answers[-1].get("id") != "status":
        answers.append(json.loads(process.stdout.readline()))
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert answers[0]["result"]["serverInfo"]["name"] == "spool"
    assert answers[-1]["result"]["structuredContent"]["orchestrator_running"] is True
    assert (process.returncode, b"Traceback" in errors) == (0, False), errors.decode()
