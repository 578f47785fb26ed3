"""concurrent.futures over a spool: futures become what the spool says of their tasks."""

import concurrent.futures
import math
from collections.abc import Iterator
from concurrent.futures import CancelledError
from typing import Any

import pytest

from spoold.client.executor import SpoolExecutor
from spoold.client.spool.waiting import TaskFailed
from spoold.client.spool_client import SpoolClient
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.protocol.request import Verb
from spoold.protocol.result import Code, Status
from spoold.store.control import list_requests
from tests.client.trees import SETTINGS, Tree, soon


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


@pytest.mark.parametrize("field", ["id", "python", "args", "kwargs", "calls", "command"])
def test_what_each_call_has_of_its_own_is_no_field_of_all(spool: SpoolClient, field: str) -> None:
    with pytest.raises(TypeError, match=f"{field}: each call has its own"):
        SpoolExecutor(spool, **{field: "x"})


def test_a_chunk_of_calls_is_one_task_that_names_the_function_itself(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool, type="maths", timeout=30) as pool:
        results = pool.map(math.pow, iter([2, 3, 4]), (n for n in range(9)), chunksize=2)
        (tasks,) = tree.drops()
        assert [(task["python"], task["calls"]) for task in tasks] == [
            ("math:pow", [[2, 0], [3, 1]]),
            ("math:pow", [[4, 2]]),
        ]
        assert all((task["type"], task["timeout"], task["max_retries"]) == ("maths", 30, 0) for task in tasks)
        assert not any("args" in task for task in tasks)
        tree.ends(tasks[1]["id"], output=[16.0])
        tree.ends(tasks[0]["id"], output=[1.0, 3.0])
        assert list(results) == [1.0, 3.0, 16.0]


def test_results_of_chunks_come_in_order_and_as_soon_as_they_are_there(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, 9, 16, 25], chunksize=2)
        (tasks,) = tree.drops()
        tree.ends(tasks[2]["id"], output=[5.0])
        tree.ends(tasks[0]["id"], output=[1.0, 2.0])
        assert [next(results), next(results)] == [1.0, 2.0], "although the second chunk has not ended"
        tree.ends(tasks[1]["id"], output=[3.0, 4.0])
        assert list(results) == [3.0, 4.0, 5.0]


def test_the_first_call_that_fails_raises_in_its_place_and_cancels_the_rest(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, 9, -1, 16, 25, 36], chunksize=3)
        (tasks,) = tree.drops()
        tree.ends(tasks[0]["id"], output=[1.0, 2.0, 3.0])
        tree.ends(tasks[1]["id"], code=Code.EXIT_NONZERO, output=[])
        assert [next(results) for _ in range(3)] == [1.0, 2.0, 3.0]
        with pytest.raises(TaskFailed, match="EXIT_NONZERO"):
            next(results)
        with pytest.raises(StopIteration):
            next(results)
    assert [(r.verb, r.target) for r in list_requests(tree.fs)] == [(Verb.CANCEL, tasks[2]["id"])]


def test_what_a_failed_chunk_had_returned_before_is_delivered(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, -1, 9], chunksize=4)
        ((task,),) = tree.drops()
        tree.ends(task["id"], code=Code.EXIT_NONZERO, output=[1.0, 2.0])
        assert [next(results), next(results)] == [1.0, 2.0]
        with pytest.raises(TaskFailed):
            next(results)


@pytest.mark.parametrize("output", [None, [], "the end of what it printed"])
def test_a_chunk_that_was_killed_raises_in_the_place_of_its_first_call(
    tree: Tree, spool: SpoolClient, output: object
) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4], chunksize=2)
        (tasks,) = tree.drops()
        tree.ends(tasks[0]["id"], code=Code.TIMEOUT, output=output)
        with pytest.raises(TaskFailed, match="TIMEOUT"):
            next(results)


def test_a_map_that_takes_too_long_is_cancelled(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, 9], chunksize=2, timeout=0.05)
        with pytest.raises(TimeoutError):
            next(results)
    assert len(list_requests(tree.fs)) == 2


def test_a_map_whose_results_nobody_reads_to_the_end_is_cancelled(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        results = pool.map(math.sqrt, [1, 4, 9], chunksize=2)
        (tasks,) = tree.drops()
        tree.ends(tasks[0]["id"], output=[1.0, 2.0])
        assert next(results) == 1.0
        results.close()  # type: ignore[attr-defined]
    assert [request.target for request in list_requests(tree.fs)] == [tasks[1]["id"]]


@pytest.mark.parametrize("size", [0, -1])
def test_a_chunk_has_at_least_one_call(tree: Tree, spool: SpoolClient, size: int) -> None:
    with SpoolExecutor(spool) as pool, pytest.raises(ValueError, match="chunksize must be >= 1"):
        pool.map(math.sqrt, [1], chunksize=size)
    assert tree.drops() == []


def test_nothing_to_call_is_no_task(tree: Tree, spool: SpoolClient) -> None:
    with SpoolExecutor(spool) as pool:
        assert list(pool.map(math.sqrt, [], chunksize=5)) == []
    assert tree.drops() == []


def test_a_chunk_that_cannot_be_dropped_leaves_nothing_behind() -> None:
    tree = Tree(SETTINGS + b"[drop]\nmax_bytes = 2000\n")
    with tree.spool() as spool, SpoolExecutor(spool) as pool:
        with pytest.raises(BadFile, match=r"chunk 2.* has 2,5\d\d bytes of arguments.*a smaller chunksize"):
            pool.map(len, ["short", "short", "x" * 1250, "x" * 1250], chunksize=2)
        with pytest.raises(TypeError, match="argument 1 is a object"):
            pool.map(len, ["a", "b", object()], chunksize=2)
        with pytest.raises(TypeError, match="a lambda"):
            pool.map(lambda text: text, ["a"], chunksize=2)
        pool.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.map(len, ["a"], chunksize=2)
    assert tree.drops() == []


def test_a_timeout_says_why_the_task_has_not_ended(tree: Tree, spool: SpoolClient, monkeypatch: Any) -> None:
    """N27: it was an empty TimeoutError, though `explain` knew why."""
    monkeypatch.setattr("spoold.client.executor.EXPLAINED_S", 0.05)
    with SpoolExecutor(spool) as pool:
        future = pool.submit(math.sqrt, 16)
        for wait in (future.result, future.exception):
            with pytest.raises(
                TimeoutError, match=f"task {future.task_id} has not ended after 0.06 s: no node leads"
            ):
                wait(timeout=0.06)
        with pytest.raises(TimeoutError, match=f"`spool explain {future.task_id}` says why"):
            future.result(timeout=0.01)
        answer(tree)
        assert future.result(timeout=10) == 4.0
