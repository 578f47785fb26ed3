"""Results come in by listing, whatever became of the task; what is unknown or takes too long is said."""

from typing import Any

import pytest

from spoold.client.spool import connection
from spoold.client.spool.waiting import NotFinished, Waiter
from spoold.protocol import layout
from spoold.protocol.errors import NotFound, WaitTimeout
from spoold.protocol.names import task_drop
from spoold.protocol.result import Code, Result, Status
from tests.client.trees import Tree, soon


@pytest.fixture
def tree() -> Tree:
    return Tree()


def test_results_are_in_the_order_of_the_ids(tree: Tree) -> None:
    for task_id in ("a", "b", "c"):
        tree.claimed(task_id)
    tree.ends("b", output={"n": 1})
    tree.ends("a", 2, code=Code.MAX_RETRIES)
    told: list[str] = []

    def tell(came: dict[str, Result]) -> None:
        told.extend(came)
        if "c" not in came:
            soon(tree.ends, "c")

    with tree.spool() as spool:
        results = spool.wait(["c", "a", "b"], timeout=10, progress=tell)
    assert list(results) == ["c", "a", "b"]
    assert results["b"].output == {"n": 1}
    assert results["a"].error is not None
    assert results["a"].error.code is Code.MAX_RETRIES
    assert sorted(told) == ["a", "b", "c"]


def test_one_id_may_be_a_string(tree: Tree) -> None:
    tree.ends("a")
    with tree.spool() as spool:
        assert spool.wait("A")["A"].task_id == "a"


def test_an_archived_task_is_an_answer(tree: Tree) -> None:
    tree.ends_archived("a", code=Code.TIMEOUT)
    with tree.spool() as spool:
        assert spool.wait("a", timeout=10)["a"].status is Status.FAILURE


@pytest.mark.parametrize("drop", ["by-hand.json", task_drop(7, "a", unique=True)])
def test_a_rejected_task_is_an_answer_that_says_what_to_mend(tree: Tree, drop: str) -> None:
    tree.put(layout.join(layout.PENDING, drop), {"id": "a", "tpye": "t"})
    with tree.spool() as spool:
        waiter = Waiter(spool.store, ["a"])
        assert waiter.poll() == {}
        # The reason is there first; as long as the drop has not followed it may still be admitted.
        tree.put(layout.join(layout.REJECTED, f"{drop}.reason.json"), {"drop": drop, "id": "a"})
        assert waiter.poll() == {}
        tree.rejects(drop, "a")
        (result,) = waiter.poll().values()
    assert (result.status, result.attempt) == (Status.FAILURE, 0)
    assert result.error is not None
    assert result.error.code is Code.INVALID_TASK
    assert "tpye: unknown field. Fix: type?" in result.error.message


def test_a_rejected_second_drop_is_no_answer(tree: Tree) -> None:
    tree.claimed("a")
    tree.rejects("again.json", "a")
    with tree.spool() as spool:
        waiter = Waiter(spool.store, ["a"])
        assert waiter.poll() == {}
        tree.ends("a")
        assert waiter.poll()["a"].status is Status.SUCCESS


def test_ids_that_are_added_later_are_found_though_they_were_listed_before(tree: Tree) -> None:
    tree.ends("a")
    tree.ends("b")
    tree.rejects("c.json", "c")
    with tree.spool() as spool:
        waiter = Waiter(spool.store, ["a"])
        assert list(waiter.poll()) == ["a"]
        waiter.add(["b", "c"])
        assert sorted(waiter.poll()) == ["b", "c"]
        assert waiter.pending == []


def test_the_newest_end_counts_after_a_retry(tree: Tree) -> None:
    with tree.spool() as spool:
        tree.ends("a", code=Code.EXIT_NONZERO)
        waiter = Waiter(spool.store, ["other"])
        assert waiter.poll() == {}
        tree.fs.unlink("failed/a.1.w1-aaaaa.json")
        waiter.add(["a"])
        assert waiter.poll() == {}
        tree.ends("a", 2)
        assert waiter.poll()["a"].attempt == 2


def test_a_result_that_somebody_deleted_ends_the_wait_as_well(tree: Tree) -> None:
    tree.ends("a")
    tree.fs.unlink("results/a.1.w1-aaaaa.json")
    with tree.spool() as spool:
        result = spool.wait("a")["a"]
        assert result.error is not None
        assert "result is lost" in result.error.message
        with pytest.raises(NotFound, match="is gone"):
            spool.result("a")


def test_what_came_before_an_error_is_not_lost_with_it(tree: Tree) -> None:
    tree.ends("a")
    with tree.spool() as spool:
        waiter = Waiter(spool.store, ["a"])
        listed = tree.fs.list
        broken = True

        def failing(path: str) -> Any:
            if broken and path == layout.REJECTED:
                raise TimeoutError(110, "Connection timed out")
            return listed(path)

        tree.fs.list = failing  # type: ignore[method-assign]
        with pytest.raises(TimeoutError):
            waiter.poll()
        broken = False
        assert list(waiter.poll()) == ["a"]


def test_an_unknown_id_is_told_at_once(tree: Tree) -> None:
    tree.ends("a")
    with tree.spool() as spool, pytest.raises(NotFound, match="'nope'"):
        spool.wait(["a", "nope"])


def test_a_wait_that_takes_too_long_says_for_whom(tree: Tree) -> None:
    tree.ends("a")
    tree.waits("b")
    with tree.spool() as spool, pytest.raises(WaitTimeout, match=r"1 of 2 tasks .* 0.05 s: b"):
        spool.wait(["a", "b"], timeout=0.05)


def test_a_result_before_its_time_is_refused_with_the_state(tree: Tree) -> None:
    tree.claimed("a")
    tree.put("pending/b.json", {"id": "b", "type": "t"})
    with tree.spool() as spool:
        with pytest.raises(NotFinished, match="running on w1-aaaaa: not finished yet"):
            spool.result("a")
        with pytest.raises(NotFinished, match="not admitted yet"):
            spool.result("b")
        with pytest.raises(NotFound, match="no task"):
            spool.result("c")


def test_the_result_of_an_archived_task_is_found(tree: Tree) -> None:
    tree.ends_archived("a")
    tree.rejects("b.json", "b")
    with tree.spool() as spool:
        assert spool.result("a").status is Status.SUCCESS
        assert spool.result("b").attempt == 0


@pytest.mark.parametrize("directory", ["completed", "waiting", "archive"])
def test_a_share_that_does_not_answer_at_first_is_borne_with(tree: Tree, directory: str) -> None:
    tree.ends_archived("a")
    listing = tree.fs.list
    failed: list[str] = []

    def once_away(path: str) -> list[str]:
        if path == directory and not failed:
            failed.append(path)
            raise OSError(116, "Stale file handle", path)
        return listing(path)

    with tree.spool() as spool:
        tree.fs.list = once_away  # type: ignore[method-assign]
        assert spool.wait("a", timeout=10)["a"].status is Status.SUCCESS
    assert failed == [directory]


@pytest.mark.parametrize("archived", [False, True])
def test_what_became_of_an_own_drop_is_not_told_from_the_task_that_has_its_id(tree: Tree, archived: bool) -> None:
    if archived:
        tree.ends_archived("a", output="another's")
    else:
        tree.ends("a", output="another's")
    with tree.spool() as spool:
        spool.submit(id="a", type="t")
        (drop,) = tree.fs.list("pending")
        waiter = Waiter(spool.store, ["a"], spool.dropped)
        assert waiter.poll() == {}, "it is not judged yet"
        waiter.look_elsewhere()
        assert waiter.poll() == {}
        tree.rejects(drop, "a")
        waiter.look_elsewhere()
        assert waiter.poll()["a"].status is Status.FAILURE
        refusal = spool.refusal("a")
        assert refusal is not None
        assert refusal.error is not None
        assert refusal.error.code is Code.INVALID_TASK
        assert spool.wait("a", timeout=10)["a"].status is Status.FAILURE
    with tree.spool() as other:
        assert other.refusal("a") is None
        assert other.wait("a", timeout=10)["a"].output == "another's"


def test_an_own_drop_that_says_what_the_task_says_is_that_task(tree: Tree) -> None:
    tree.ends("a", output="mine")
    with tree.spool() as spool:
        spool.submit_many([{"id": "a", "type": "t"}, {"type": "t"}])
        (drop,) = tree.fs.list("pending")
        soon(tree.fs.unlink, f"pending/{drop}")
        assert spool.refusal("a") is None
        assert spool.wait("a", timeout=10)["a"].output == "mine"
        assert list(spool.dropped) == ["a"]


def test_only_so_many_own_drops_are_remembered(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "REMEMBERED", 2)
    with tree.spool() as spool:
        for task_id in ("a", "b", "a", "c"):
            spool.submit(id=task_id, type="t")
        assert list(spool.dropped) == ["a", "c"]
