"""get_context and put_context: an agent has the context of its own batch, and no other."""

from __future__ import annotations

from spoold.client.spool.submission import suffix
from tests.e2e.pool import PATIENCE_S, Pool
from tests.mcp.agents import work
from tests.mcp.calling import Caller


def test_outside_of_tasks_it_has_that_of_its_own_tasks(agent: Caller, other: Caller) -> None:
    batch = f"shared-{suffix()}"
    agent.call("submit_tasks", tasks=[{"name": "a", "command": "true"}], batch=batch)
    assert agent.call("get_context", batch=batch)["entries"] == []
    assert agent.call("put_context", batch=batch, entry="api.md", content="one")["version"] == 1
    refused = agent.call("put_context", batch=batch, entry="api.md", content="two", ifVersion=0)
    assert refused["version"] == 0
    assert "is at version 1, not 0" in refused["conflict"]
    assert agent.call("put_context", batch=batch, entry="api.md", content="two", ifVersion=1)["conflict"] == ""
    found = agent.call("get_context", batch=batch, entry="api.md")
    assert (found["content"], found["entries"][0]["version"]) == ("two", 2)
    assert agent.call("get_context", batch=batch, entry="api.md", version=1)["content"] == "one"
    assert "none of your tasks" in other.refused("get_context", batch=batch)
    assert "which batch" in agent.refused("get_context")


def test_within_a_task_it_has_that_of_the_task(pool: Pool) -> None:
    body = """
    await call("put_context", entry="found.md", content="x")
    return await call("get_context", entry="found.md")
    """
    work(pool, "sharer", body, batch="shared-1")
    found = pool.finish("sharer", 2 * PATIENCE_S)["output"]
    assert (found["content"], found["batch"], found["entries"][0]["task"]) == ("x", "shared-1", "sharer")
    assert pool.cli("context", "get", "found.md", "--batch", "shared-1") == "x"
