"""The witness reads names and asks nobody; so it is held against a real spool, and against trees made by hand."""

from pathlib import Path

import pytest

from spoold import Spool
from tools.benchmark import tree

STATES = ("pending", "admitting", "waiting", "ready", "claimed", "returned", "completed", "results", "archive")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for state in STATES:
        (tmp_path / state).mkdir()
    return tmp_path


def put(root: Path, path: str) -> None:
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).write_text("{}")


@pytest.mark.parametrize(
    "path",
    ["pending/x.json", "admitting/1.m.1/x", "waiting/type=a/x", "ready/type=a/x", "claimed/w1/x", "returned/x"],
)
def test_a_task_anywhere_before_its_end_is_under_way(root: Path, path: str) -> None:
    assert not tree.under_way(root)
    put(root, path)
    assert tree.under_way(root)


def test_empty_lanes_and_doors_and_what_has_ended_are_not_under_way(root: Path) -> None:
    for branch in ("admitting/1.m.1", "waiting/type=a", "claimed/w1"):
        (root / branch).mkdir()
    put(root, "completed/a.1.w1.json")
    assert not tree.under_way(root)


def test_what_stands_in_the_lanes_of_a_state_is_counted(root: Path) -> None:
    for path in ("waiting/type=a/1", "waiting/type=a/2", "waiting/type=b/3"):
        put(root, path)
    assert tree.standing(root, "waiting") == 3


def test_commits_are_counted_by_task_wherever_they_stand(root: Path) -> None:
    for path in ("completed/a.1.w1.json", "results/a.1.w1.json", "completed/b.1.w1.json", "completed/a.2.w2.json"):
        put(root, path)
    put(root, "archive/0f/c.1.w1.completed.json")
    put(root, "archive/0f/c.1.w1.result.json")
    put(root, "archive/0f/d.3.w1.completed.json")
    put(root, "archive/0f/e.3.w1.failed.json")
    found, bare = tree.commits(root)
    assert found == {"a": 2, "b": 1, "c": 1, "d": 1}
    assert bare == 3, "b, the second of a, and d have no result"


def test_a_real_spool_is_read(tmp_path: Path) -> None:
    with Spool.local(tmp_path / "spool", workers=1, slots=2) as spool:
        ids = spool.submit_many({"command": ["true"]} for _ in range(5))
        spool.submit(id="held", command=["true"], after=["nobody"])
        spool.wait(ids, timeout=60)
    found, bare = tree.commits(tmp_path / "spool")
    assert found == dict.fromkeys(ids, 1)
    assert bare == 0
    assert tree.under_way(tmp_path / "spool"), "one is held"
    assert tree.standing(tmp_path / "spool", "waiting") == 1
