"""What is dropped: valid at once or refused at once, durable, with an id that is known before anybody admits it."""

import errno
import re
from typing import Any

import pytest

from spoold.client.spool_client import SpoolClient
from spoold.protocol import layout
from spoold.protocol.errors import BadFile, Unavailable
from spoold.protocol.names import WHOLE
from tests.client.trees import Tree


@pytest.fixture
def tree() -> Tree:
    return Tree()


def test_an_id_of_the_callers_own_is_not_promised_to_be_in_no_other_drop(tree: Tree) -> None:
    with tree.spool() as spool:
        spool.submit({"type": "review", "id": "mine"})
    (drop,) = tree.fs.list(layout.PENDING)
    assert re.fullmatch(r"[0-9a-z]{10}\.mine\.json", drop)


def test_a_task_lies_in_pending_under_a_name_that_tells_its_id(tree: Tree) -> None:
    with tree.spool() as spool:
        task_id = spool.submit({"type": "review"}, priority="high", input={"code": "x"})
    assert re.fullmatch(r"review-[0-9a-z]{8}", task_id)
    (drop,) = tree.fs.list(layout.PENDING)
    assert re.fullmatch(rf"[0-9a-z]{{10}}\.{task_id}@unique\.json", drop)
    (task,) = tree.drops()
    created_at = task.pop("created_at")
    assert created_at.endswith("Z")
    assert task == {"type": "review", "priority": "high", "input": {"code": "x"}, "id": task_id}


def test_nothing_is_left_in_tmp(tree: Tree) -> None:
    with tree.spool() as spool:
        spool.submit(type="t")
        assert tree.fs.list(layout.TMP) == [spool.store.writer]
    assert tree.fs.list(layout.TMP) == []


def test_who_only_looks_writes_nothing(tree: Tree) -> None:
    tree.ready("a")
    with tree.spool() as spool:
        assert spool.state("a") == "ready"
        assert tree.fs.list(layout.TMP) == []


def test_the_same_task_with_an_id_of_its_own_is_the_same_content_again(tree: Tree) -> None:
    with tree.spool() as spool:
        for _ in range(2):
            assert spool.submit({"id": "mine", "type": "t"}) == "mine"
    first, second = tree.drops()
    assert first == second == {"id": "mine", "type": "t"}


@pytest.mark.parametrize(
    ("task", "stem"),
    [
        ({"name": "Nightly build", "type": "t"}, "Nightly-build"),
        ({"command": ["/usr/bin/make", "test"]}, "make"),
        ({"command": "make test | tee log"}, "make"),
        ({"python": "pkg.jobs:work.inner"}, "work.inner"),
    ],
)
def test_an_id_that_is_made_says_what_the_task_is(tree: Tree, task: dict[str, Any], stem: str) -> None:
    with tree.spool() as spool:
        assert spool.submit(task).startswith(f"{stem}-")


@pytest.mark.parametrize(
    ("task", "field", "words"),
    [
        ({"tpye": "t"}, "tpye", "did you mean 'type'"),
        ({}, "", "nothing to run"),
        ({"type": "t", "id": "../../x"}, "id", "not an id"),
        ({"type": "t", "id": 7}, "id", "string"),
        ({"type": "t", "input": object()}, "", "plain JSON values"),
        (
            {"type": "t", "requires": {"labels": ["x" * 48, "y" * 48, "z" * 48, "u" * 48]}},
            "requires",
            "use fewer and shorter labels",
        ),
        ({"type": "t", "input": "x" * 5000}, "", "max_bytes"),
    ],
)
def test_what_is_no_task_is_refused_at_once(tree: Tree, task: dict[str, Any], field: str, words: str) -> None:
    tree.fs.write(layout.SETTINGS, b"[drop]\nmax_bytes = 4096\n", durable=False)
    with tree.spool() as spool, pytest.raises(BadFile, match=re.escape(words)) as caught:
        spool.submit(task)
    assert caught.value.field == field
    assert tree.fs.list(layout.PENDING) == []


def test_many_tasks_are_one_drop_that_looks_whole(tree: Tree) -> None:
    with tree.spool() as spool:
        ids = spool.submit_many([{"id": "a", "type": "t"}, {"type": "t", "after": ["a"]}])
    (name,) = tree.fs.list(layout.PENDING)
    assert name.endswith(WHOLE)
    ((first, second),) = tree.drops()
    assert ids == ["a", second["id"]]
    assert first == {"id": "a", "type": "t"}


def test_no_tasks_are_no_drop(tree: Tree) -> None:
    with tree.spool() as spool:
        assert spool.submit_many([]) == []
    assert tree.drops() == []


def test_what_is_too_much_for_one_drop_becomes_several(tree: Tree) -> None:
    tree.fs.write(layout.SETTINGS, b"[drop]\nmax_batch_bytes = 1024\n", durable=False)
    with tree.spool() as spool:
        ids = spool.submit_many({"type": "t", "input": "x" * 300} for _ in range(7))
        later = spool.submit(type="t")
    *parts, single = tree.drops()
    assert len(parts) > 1
    assert [task["id"] for part in parts for task in part] == ids
    assert single["id"] == later
    assert len(set(ids)) == 7
    for name in tree.fs.list(layout.PENDING):
        assert len(tree.fs.read(layout.join(layout.PENDING, name))) <= 1024


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([{"type": "t"}, {"tpye": "t"}], "the tasks line 2: tpye"),
        ([{"type": "t", "id": "a"}, {"type": "t", "id": "A"}], "stands in line 1 already"),
        ([{"type": "t", "id": "a", "after": "b"}, {"type": "t", "id": "b", "after": "a"}], "wait for each other"),
    ],
)
def test_a_bad_batch_is_refused_as_a_whole(tree: Tree, tasks: list[dict[str, Any]], words: str) -> None:
    with tree.spool() as spool, pytest.raises(BadFile, match=words):
        spool.submit_many(tasks)
    assert tree.drops() == []


def test_a_full_share_is_unavailable_with_advice_and_leaves_nothing(tree: Tree) -> None:
    tree.fs.capacity = 0
    with tree.spool() as spool, pytest.raises(Unavailable, match="full") as caught:
        spool.submit(type="t", input="x" * 100)
    assert isinstance(caught.value.__cause__, OSError)
    assert caught.value.__cause__.errno == errno.ENOSPC
    assert tree.drops() == []


def test_a_directory_that_is_no_spool_is_refused(tmp_path: Any) -> None:
    with pytest.raises(Unavailable, match="Is the share mounted"):
        SpoolClient(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "odd", [{"timeout": float("inf")}, {"input": {"x": [float("nan")]}}, {"meta": {"x": float("-inf")}}]
)
def test_a_number_that_json_does_not_have_is_refused_and_not_made_nothing(tree: Tree, odd: dict[str, Any]) -> None:
    with tree.spool() as spool:
        with pytest.raises(BadFile):
            spool.submit({"type": "t", **odd})
        with pytest.raises(BadFile):
            spool.submit_many([{"type": "t"}, {"type": "t", **odd}])
        assert tree.drops() == []
        spool.submit({"type": "t", "input": {"x": None}})
    assert tree.drops()[0]["input"] == {"x": None}
