"""A person sends work back: a real worker's handler reads the feedback, and the question is put again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.e2e.pool import SETTINGS, Pool, wait_for

# The handler writes what the feedback says, or that there is none.
SCRIPT = """if [ -n "$SPOOL_FEEDBACK_FILE" ]
then cat "$SPOOL_FEEDBACK_FILE"
else echo '"first draft"'
fi > "$SPOOL_RESULT_FILE"
"""


def output(pool: Pool, task_id: str, attempt: int) -> Any:
    return next(one["output"] for one in pool.results(task_id) if one["attempt"] == attempt)


def test_the_handler_of_the_upstream_reads_why_it_runs_again_also_after_a_change_of_leader(
    make_pool: Callable[..., Pool],
) -> None:
    pool = make_pool(SETTINGS)
    first = pool.master("one")
    pool.path("write.sh").write_text(SCRIPT)
    pool.path("worker.toml").write_text(f'[handlers.write]\ncommand = ["sh", "{pool.path("write.sh")}"]\n')
    pool.worker("w", "--config", str(pool.path("worker.toml")))
    pool.ready("w")
    pool.drop("write.json", {"id": "write", "type": "write"})
    pool.submit("test", 'cat "$SPOOL_DEPS_DIR/write.json"', after=["write"])
    pool.submit("deploy", ["true"], after=["test"], approval={"ask": "Deploy?"})
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["deploy"], "people are asked")
    assert "Upstream of it: test, write." in pool.run("reject", "deploy", "--reason", "no", "--redo", "other").stderr
    pool.cli("reject", "deploy", "--reason", "the tests are missing", "--redo", "write")
    wait_for(lambda: len(pool.results("test")) == 2, "both have run again")
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["deploy"], "people are asked again")
    assert output(pool, "write", 1) == "first draft"
    told = output(pool, "write", 2)
    assert (told["task"], told["round"], told["reason"], told["earlier"]) == (
        "deploy",
        1,
        "the tests are missing",
        [],
    )
    assert json.loads(output(pool, "test", 2))["output"] == told, "what comes after it ran on the new result"
    first.kill()
    pool.master("two")
    pool.cli("reject", "deploy", "--reason", "still missing", "--redo", "write")
    wait_for(lambda: len(pool.results("test")) == 3, "they have run for the third time")
    told = output(pool, "write", 3)
    assert (told["round"], told["reason"]) == (2, "still missing")
    assert [one["reason"] for one in told["earlier"]] == ["the tests are missing"]
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["deploy"], "people are asked for the third time")
    pool.cli("approve", "deploy")
    wait_for(lambda: pool.ended("deploy"), "it has ended")
    (result,) = pool.results("deploy")
    assert [one["round"] for one in result["approval"]["rounds"]] == [1, 2]
    assert len(pool.results("write")) == 3
    wait_for(lambda: not pool.listing("control"), "nothing is left of it")
    pool.fsck()
