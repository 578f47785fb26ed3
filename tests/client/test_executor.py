"""concurrent.futures over a spool: futures become what the spool says of their tasks."""

import concurrent.futures
import math
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from spoold.client.executor import SpoolExecutor
from spoold.client.failures import TaskFailed
from spoold.client.spool_client import SpoolClient
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.request import Verb
from spoold.protocol.result import Code, Status
from spoold.store.control import list_requests
from tests.client.trees import Tree, soon


@pytest.fixture
def tree() -> Tree:
    return Tree()


@pytest.fixture
def spool(tree: Tree) -> Iterator[SpoolClient]:
    with tree.spool() as spool:
        yield spool


def answer(tree: Tree) -> None:
    """Complete everything in pending/, with the square root that was asked for."""
    for task in tree.drops():
        tree.ends(task["id"], output=math.sqrt(task["args"][0]))
    for name in tree.fs.list(layout.PENDING):
        tree.fs.unlink(layout.join(layout.PENDING, name))


def test_a_call_becomes_a_task_and_its_output_the_result(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool, type="maths", timeout=30) as pool:
        future = pool.submit(math.sqrt, 16)
        (task,) = tree.drops()
        assert {key: task[key] for key in ("id", "type", "timeout", "python", "args", "kwargs")} == {
            "id": future.task_id,
            "type": "maths",
            "timeout": 30,
            "python": "math:sqrt",
            "args": [16],
            "kwargs": {},
        }
        assert not future.done()
        soon(answer, tree)
        assert future.result(timeout=10) == 4.0


def test_map_keeps_the_order(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, 9])
        soon(answer, tree)
        assert list(results) == [1.0, 2.0, 3.0]


def test_a_failed_task_raises_what_is_known_of_it(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        future = pool.submit(math.sqrt, -1)
        tree.log(future.task_id, b"Traceback ...\nValueError: math domain error\n")
        tree.ends(future.task_id, code=Code.MAX_RETRIES)
        with pytest.raises(TaskFailed, match="MAX_RETRIES: it broke\nTraceback") as caught:
            future.result(timeout=10)
    assert caught.value.code is Code.MAX_RETRIES
    assert caught.value.message == "it broke"
    assert "math domain error" in caught.value.log_tail
    assert caught.value.result.task_id == future.task_id


def test_a_cancelled_future_asks_the_spool_to_cancel_and_is_done(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        future = pool.submit(math.sqrt, 4)
        assert future.cancel()
        assert future.cancel()
        assert concurrent.futures.wait([future], timeout=10).done == {future}
        with pytest.raises(CancelledError):
            future.result()
    assert [(r.verb, r.target) for r in list_requests(tree.fs)] == [(Verb.CANCEL, future.task_id)]


def test_a_task_that_somebody_else_cancelled_is_a_cancelled_future(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        future = pool.submit(math.sqrt, 4)
        tree.ends(future.task_id, code=Code.CANCELLED, status=Status.CANCELLED)
        with pytest.raises(CancelledError):
            future.result(timeout=10)


def test_a_finished_future_cannot_be_cancelled(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        future = pool.submit(math.sqrt, 4)
        answer(tree)
        assert future.result(timeout=10) == 2.0
        assert not future.cancel()
    assert list_requests(tree.fs) == []


def test_shutdown_can_cancel_what_has_not_ended(tree: Tree, spool: SpoolClient) -> None:
    pool = SpoolExecutor(spool)
    futures = [pool.submit(math.sqrt, n) for n in (1, 2)]
    pool.shutdown(cancel_futures=True)
    assert all(future.cancelled() for future in futures)
    assert len(list_requests(tree.fs)) == 2
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(math.sqrt, 4)


def test_what_cannot_travel_is_refused_at_the_call(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        with pytest.raises(TypeError, match="a lambda"):
            pool.submit(lambda: None)
        with pytest.raises(TypeError, match="argument 1 is a object"):
            pool.submit(math.sqrt, object())  # type: ignore[arg-type]
    with SpoolExecutor(spool, tpye="x") as pool, pytest.raises(BadFile, match="did you mean"):
        pool.submit(math.sqrt, 1)
    assert tree.drops() == []


def test_a_share_that_is_away_for_a_while_costs_no_result(
    tree: Tree, spool: SpoolClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spoold.client.executor.AFTER_AN_ERROR_S", 0.01)
    listed = tree.fs.list
    failures = 0

    def failing(path: str) -> Any:
        nonlocal failures
        if path == layout.COMPLETED and failures < 3:
            failures += 1
            raise TimeoutError(110, "Connection timed out")
        return listed(path)

    with SpoolExecutor(spool) as pool:
        tree.fs.list = failing  # type: ignore[method-assign]
        future = pool.submit(math.sqrt, 4)
        answer(tree)
        assert future.result(timeout=10) == 2.0
    assert failures == 3


@pytest.mark.parametrize("field", ["id", "python", "args", "kwargs", "command"])
def test_what_each_call_has_of_its_own_is_no_field_of_all(spool: SpoolClient, field: str) -> None:
    with pytest.raises(TypeError, match=f"{field}: each call has its own"):
        SpoolExecutor(spool, **{field: "x"})
