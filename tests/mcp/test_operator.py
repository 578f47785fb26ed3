"""An operator reaches all tasks, answers questions, and stops the pool."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random

import pytest

from spoold.client.read import questions
from spoold.faces.mcp import people
from spoold.pictures import task_description
from spoold.protocol.errors import SpoolError
from tests.e2e.pool import SETTINGS, Pool, wait_for
from tests.mcp.calling import Caller, over_http, over_stdio, serving
from tests.support.said import evil_task, read_later


@pytest.fixture
def own(make_pool: Callable[..., Pool]) -> Iterator[Pool]:
    """A pool of this test's own, with a worker of two slots."""
    pool = make_pool(SETTINGS)
    pool.spawn("up", "up", "--slots", "2", "--name", "w", "--allow-command")
    pool.ready("w")
    yield pool
    print(pool.report())


@pytest.fixture(params=["stdio", "http"])
def operator(request: pytest.FixtureRequest, own: Pool) -> Iterator[Caller]:
    """An operator, over each transport."""
    if request.param == "stdio":
        with over_stdio(own, "--role", "operator") as found:
            yield found
    else:
        with serving(own, "--role", "operator") as served, over_http(served) as found:
            yield found


def test_an_operator_answers_reaches_all_drains_and_stops(operator: Caller, own: Pool) -> None:
    tools = operator.ask("list_tools").tools
    assert {"drain", "kill_all", "approve", "spawn_workers", "scale_workers"} <= {tool.name for tool in tools}
    assert {tool.name for tool in tools if tool.annotations.destructive_hint} == {
        *("cancel_task", "kill_background", "drain", "kill_all")
    }
    approves(operator, own)
    kills_all(operator, own)
    drains(operator, own)


@pytest.mark.parametrize("seed", range(40))
def test_an_operator_is_shown_each_line_of_what_an_approval_would_run(seed: int) -> None:
    """G23, G24: `approve` showed nothing. A generator of tasks that want to be overlooked."""
    content, _ = evil_task(Random(seed))
    parts = task_description.parts_of(content)
    shown = people._shown(questions.Shown("t", "5" * 64, parts, asks=True))
    assert [(part.label, part.lines) for part in shown.runs] == [(part.title, list(part.lines)) for part in parts]
    assert (shown.approved, shown.seen) == (False, "5" * 64)
    with pytest.raises(SpoolError, match="not admitted yet"):
        people._shown(questions.Shown("t", "", parts, asks=True))


def test_an_operator_is_told_what_is_no_part_of_an_approval() -> None:
    content, said = read_later()
    shown = people._shown(questions.Shown("t", "5" * 64, task_description.parts_of(content), asks=True))
    assert (shown.runs[-1].label, shown.runs[-1].lines) == (f"{task_description.READ} (2 lines)", list(said))
    assert "no part of an approval" in people.APPROVE.text


def approves(operator: Caller, own: Pool) -> None:
    """It sees tasks of others, and answers their questions."""
    own.submit(
        "deploy", 'true # quick\ncat "$SPOOL_ANSWER_FILE"', approval={"ask": "Deploy?", "choices": ["yes", "staging"]}
    )
    wait_for(lambda: "Deploy?" in own.cli("asks"), "it is asked")
    shown = operator.call("approve", taskId="deploy", answer="staging")
    assert (shown["approved"], shown["runs"][0]["lines"]) == (False, ["true # quick", 'cat "$SPOOL_ANSWER_FILE"'])
    assert "Deploy?" in own.cli("asks"), "the first call only shows"
    assert "is another one now" in operator.refused("approve", taskId="deploy", seen="0" * 64)
    seen = shown["seen"]
    assert "none of the choices" in operator.refused("approve", taskId="deploy", answer="maybe", seen=seen)
    approved = operator.call("approve", taskId="deploy", answer="staging", reason="not on a Friday", seen=seen)
    assert (approved["taskId"], approved["approved"], approved["rejected"]) == ("deploy", True, False)
    operator.call("wait_tasks", taskIds=["deploy"])
    assert "staging" in str(operator.call("get_task_result", taskId="deploy")["output"])
    own.submit("never", ["true"], approval={"ask": "Really?"})
    wait_for(lambda: "Really?" in own.cli("asks"), "it is asked")
    assert operator.call("approve", taskId="never", reject=True, reason="no")["rejected"]
    assert operator.call("wait_tasks", taskIds=["never"])["finished"][0]["error"]["code"] == "REJECTED"
    assert {row["taskId"] for row in operator.call("list_tasks")["tasks"]} == {"deploy", "never"}
    assert "asks nothing" in operator.refused("approve", taskId=own.submit("plain", ["sleep", "600"], hold="x"))
    operator.call("cancel_task", taskId="plain")


def kills_all(operator: Caller, own: Pool) -> None:
    """Everything that runs is handed back, and nothing starts until a person says so."""
    own.submit("endless", ["sleep", own.mark], max_retries=0)
    own.claimed("endless")
    assert operator.call("list_background", status="running")["tasks"][0]["taskId"] == "endless"
    wait_for(lambda: operator.call("get_status")["workers"]["working"] == 1, "it is seen to work")
    stopped = operator.call("kill_all", reason="wrong credentials")
    assert (stopped["status"], stopped["workers_killed"]) == ("stopped", 1)
    wait_for(lambda: own.claim("endless") is None, "it is handed back")
    wait_for(lambda: operator.call("get_status")["halted"], "it is halted")
    assert "halt" in str(operator.call("explain_task", taskId="endless")["reasons"])
    own.cli("cancel", "endless")
    own.cli("resume")
    own.finish("endless")


def drains(operator: Caller, own: Pool) -> None:
    """What runs may end; nothing new begins."""
    own.submit("last", ["sleep", "1"])
    own.claimed("last")
    assert "no worker 'nobody'" in operator.refused("drain", worker="nobody")
    begun = operator.call("drain", timeout=0)
    assert begun["status"] == "draining"
    drained = operator.call("drain", timeout=45_000)
    assert (drained["status"], own.finish("last")["status"]) == ("drained", "success")
    assert drained["snapshot"]["workers"]["working"] == 0
    own.submit("late", ["true"])
    assert not operator.call("wait_tasks", taskIds=["late"], timeout=500)["done"]
