"""An agent in a task: it reaches its children and theirs, and nothing else; its slot is lent while it waits."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.e2e.pool import PATIENCE_S, SETTINGS, Pool, wait_for
from tests.mcp.agents import command, work
from tests.mcp.calling import Caller, over_stdio


@pytest.fixture
def narrow(make_pool: Callable[..., Pool]) -> Iterator[Pool]:
    """A pool with one slot."""
    pool = make_pool(SETTINGS)
    pool.spawn("up", "up", "--slots", "1", "--name", "w", "--allow-command")
    pool.ready("w")
    yield pool
    print(pool.report())


@pytest.mark.parametrize("everything", [False, True], ids=["filtered", "whole"])
def test_what_it_submits_are_its_children(pool: Pool, everything: bool) -> None:
    name = f"parent-{'whole' if everything else 'filtered'}"
    body = """
    made = await call("run_background", command="echo child", idempotencyKey="c")
    await call("wait_tasks", taskIds=[made["taskId"]])
    return {"task": made["taskId"], "said": await call("get_task_result", taskId=made["taskId"])}
    """
    work(pool, name, body, everything=everything, batch="b1", budgets=[], priority=3)
    found = pool.finish(name, 2 * PATIENCE_S)["output"]
    assert found["said"]["output"] == "child\n"
    shown = pool.json("show", found["task"])
    assert (shown["task"]["parent"], shown["task"]["depth"], shown["batch"]) == (name, 1, "b1")
    assert shown["task"]["priority"] == 3


def test_its_slot_is_lent_while_it_waits(narrow: Pool) -> None:
    body = """
    made = await call("submit_tasks", tasks=[
        {"name": "a", "command": "sleep 0.5; echo a"}, {"name": "b", "command": "echo b", "after": ["a"]}])
    ids = [one["taskId"] for one in made["tasks"]]
    waited = {"done": False}
    while not waited["done"]:
        waited = await call("wait_tasks", taskIds=ids)
    asked = await call("ask_human", question="Go on?", timeout=45000)
    return [waited["message"], asked["answer"]]
    """
    work(narrow, "boss", body)
    wait_for(lambda: "Go on?" in narrow.cli("asks"), "it asks")
    # It holds the only slot of the pool, and still another task runs.
    narrow.submit("meanwhile", ["true"])
    narrow.finish("meanwhile")
    narrow.cli("approve", "boss", "--answer", "yes")
    assert narrow.finish("boss", 2 * PATIENCE_S)["output"] == ["All of 2 tasks have ended.", "yes"]


def test_a_slot_that_does_not_come_back_in_time_is_told(narrow: Pool) -> None:
    go = narrow.path("go")
    body = f"""
    made = await call("run_background", command="until test -e {go}; do sleep 0.05; done")
    ids, cut = [made["taskId"]], {{"message": ""}}
    while "was lent" not in cut["message"]:
        cut = await call("wait_tasks", taskIds=ids, timeout=1000)
    open({str(go)!r}, "w").close()
    waited = await call("wait_tasks", taskIds=ids)
    return [cut["done"], cut["openCount"], waited["done"], waited["message"]]
    """
    work(narrow, "boss", body)
    done, open_count, at_last, message = narrow.finish("boss", 2 * PATIENCE_S)["output"]
    assert (done, open_count, at_last) == (False, 1, True)
    assert "was lent" not in message


def test_it_reaches_its_own_subtree_only(pool: Pool, other: Caller) -> None:
    foreign = other.call("run_background", command="sleep 600", label="foreign")["taskId"]
    sibling = pool.submit("sibling", ["sleep", "600"], max_retries=0)
    pool.claimed(foreign)
    pool.claimed(sibling)
    inner = command("""
    made = await call("run_background", command="sleep 600", idempotencyKey="deep")
    return made["taskId"]
    """)
    body = f"""
    missing = await refused("cancel_task", taskId="not-there")
    words = []
    for task in ({foreign!r}, {sibling!r}, os.environ["SPOOL_TASK_ID"]):
        for name in ("cancel_task", "get_task_result", "check_background", "kill_background", "explain_task"):
            words.append((await refused(name, taskId=task)).replace(task, "not-there") == missing)
        words.append("among yours" in await refused("wait_tasks", taskIds=[task]))
        words.append("among yours" in await refused("run_background", command="true", after=[task]))
        words.append("among yours" in await refused("submit_tasks", tasks=[
            {{"name": "x", "command": "true", "after": [task]}}]))
        for uri in ("spool://task/" + task, "spool://task/" + task + "/log"):
            try:
                await client.read_resource(uri)
                words.append(False)
            except Exception as error:
                words.append("among yours" in str(error))
    made = await call("run_background", command={inner!r})
    await call("wait_tasks", taskIds=[made["taskId"]])
    deep = (await call("get_task_result", taskId=made["taskId"]))["output"]
    listed = [row["taskId"] for row in (await call("list_tasks"))["tasks"]]
    ended = await call("cancel_task", taskId=deep)
    await call("wait_tasks", taskIds=[deep])
    return [words, sorted(listed) == sorted([made["taskId"], deep]), ended["requested"] == [deep]]
    """
    work(pool, "rooted", body)
    words, listed, cancelled = pool.finish("rooted", 2 * PATIENCE_S)["output"]
    assert (all(words), listed, cancelled) == (True, True, True), words
    assert pool.claim(foreign)
    assert pool.claim(sibling)
    pool.cli("cancel", sibling, foreign)


def test_it_is_no_operator(pool: Pool) -> None:
    asked = other_question(pool)
    body = f"""
    names = [tool.name for tool in (await client.list_tools()).tools]
    told = [await refused(name, taskId={asked!r}) for name in ("approve", "drain", "kill_all")]
    return [names, told]
    """
    work(pool, "humble", body)
    names, told = pool.finish("humble", 2 * PATIENCE_S)["output"]
    assert not {"approve", "drain", "kill_all"} & set(names)
    assert all("is for operators" in words for words in told)
    work(pool, "proud", "return 1", "--role", "operator")
    assert pool.finish("proud", 2 * PATIENCE_S)["status"] == "failure"
    assert "a task cannot be an operator" in pool.cli("logs", "proud")
    pool.cli("reject", asked, "--reason", "over")


def other_question(pool: Pool) -> str:
    """A task that waits for an approval."""
    pool.submit("asked", ["true"], approval={"ask": "May it?"})
    wait_for(lambda: "May it?" in pool.cli("asks"), "it is asked")
    return "asked"


def test_it_reports_and_asks(pool: Pool) -> None:
    body = """
    await call("report_progress", message="half", progress=0.5, tokensUsed=1200, costUsd=0.5)
    second = await call("report_progress", message="more")
    asked = await call("ask_human", question="Which branch?", choices=["main", "next"], timeout=100)
    again = await call("ask_human", question="Which branch?", choices=["main", "next"])
    return [second["report"], asked["questionId"] == again["questionId"], again["answer"]]
    """
    work(pool, "reporting", body)
    question = wait_for(lambda: [one for one in pool.json("asks") if one["task"] == "reporting"], "it asks")
    assert (question[0]["ask"], question[0]["choices"]) == ("Which branch?", ["main", "next"])

    def told() -> dict[str, Any] | None:
        progress: dict[str, Any] | None = pool.json("show", "reporting")["progress"]
        return progress if progress and progress["message"] == "more" else None

    assert wait_for(told, "the last progress is seen")["tokens_used"] == 1200
    pool.cli("approve", "reporting", "--answer", "next")
    report, same, answer = pool.finish("reporting", 2 * PATIENCE_S)["output"]
    assert report == {"message": "more", "progress": 0.5, "tokens_used": 1200, "cost_usd": 0.5}
    assert (same, answer) == (True, "next")


def test_the_next_attempt_finds_its_children_by_their_keys(pool: Pool) -> None:
    body = """
    made = await call("run_background", command="echo once", idempotencyKey="step one")
    await call("wait_tasks", taskIds=[made["taskId"]])
    if os.environ["SPOOL_ATTEMPT"] == "1":
        sys.exit(75)
    return made
    """
    work(pool, "repeated", body, max_retries=2)
    result = pool.finish("repeated", 2 * PATIENCE_S)
    assert (result["attempt"], result["output"]["created"]) == (2, False)
    tree = pool.json("tree", "repeated")
    assert [child["id"] for child in tree["children"]] == [result["output"]["taskId"]]


def test_its_reservations_are_its_own(pool: Pool) -> None:
    name = pool.cli("reserve", "by-hand/**").strip()
    body = f"""
    theirs = await refused("release_files", reservations=[{name!r}])
    mine = await call("reserve_files", patterns=["mine/**"])
    return [theirs, (await call("release_files"))["released"] == [mine["reservation"]]]
    """
    work(pool, "reserving", body)
    theirs, released = pool.finish("reserving", 2 * PATIENCE_S)["output"]
    assert "no reservation" in theirs
    assert released
    assert name in json.dumps(pool.json("locks"))
    pool.cli("release", name)


def test_a_task_of_another_spool_is_no_operator_either(pool: Pool) -> None:
    done = pool.run("mcp", "--role", "operator", env={"SPOOL_TASK_ID": "x", "SPOOL_ROOT": "/elsewhere"})
    assert (done.returncode, "within task x" in done.stderr) == (2, True)
    with over_stdio(pool, env={"SPOOL_TASK_ID": "x", "SPOOL_ROOT": "/elsewhere"}) as caller:
        task = caller.call("run_background", command="true")["taskId"]
    assert "parent" not in pool.json("show", task)["task"]
