"""A running task asks people, and its slot is another task's until they answer."""

from __future__ import annotations

from collections.abc import Callable

from tests.e2e.pool import SETTINGS, Pool, wait_for
from tests.e2e.test_children import SPOOL


def test_a_task_that_waits_for_an_answer_lends_its_slot_and_goes_on_with_it(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS)
    pool.master()
    pool.worker("w", slots=1)
    pool.ready("w")
    pool.submit("asks", f'{SPOOL} ask "Which colour?" --choices red,blue --wait --timeout 2m')
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["asks"], "people are asked")
    pool.submit("other", ["true"])
    wait_for(lambda: pool.ended("other"), "the only slot runs another task")
    assert pool.claim("asks") is not None
    assert pool.ended("asks") is None
    pool.cli("approve", "asks", "--answer", "blue")
    wait_for(lambda: pool.ended("asks"), "it goes on with its answer")
    (result,) = pool.results("asks")
    assert (result["status"], "blue" in result["output"]) == ("success", True)
    assert [(one["ask"], one["answer"]) for one in result["questions"]] == [("Which colour?", "blue")]
    pool.fsck()


def test_a_task_cannot_answer_without_its_variables_either(make_pool: Callable[..., Pool]) -> None:
    pool = make_pool(SETTINGS)
    pool.master()
    pool.worker("w", slots=1)
    pool.ready("w")
    pool.submit("asks", ["true"], approval={"ask": "Deploy?"})
    wait_for(lambda: [one["task"] for one in pool.json("asks")] == ["asks"], "people are asked")
    # As an agent that starts its commands with a few variables only.
    pool.submit("agent", f'env -i {SPOOL} --spool "$SPOOL_ROOT" approve asks 2>&1; true')
    wait_for(lambda: pool.ended("agent"), "it has tried")
    assert "this runs within task agent, and a task cannot answer" in pool.results("agent")[0]["output"]
    assert pool.ended("asks") is None
