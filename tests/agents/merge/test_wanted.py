"""The task of a merge: one lock for each branch, and an id that is the same the next time."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from spoold.agents.merge.merge_request import MergeRequest, after, child_id, id_after, lock, merge_task
from spoold.protocol import codec
from spoold.protocol.lock_patterns import pattern
from spoold.protocol.names import is_id
from spoold.protocol.task import Task


def test_the_task_comes_after_those_whose_work_it_merges_and_locks_the_branch() -> None:
    found = merge_task(["a", "b"], "/srv/git/r.git/", "next", agent="coder", rounds=3, task_id="m")
    assert found == {
        "id": "m",
        "type": "merge",
        "name": "merge a, b into next",
        "input": {"repo": "/srv/git/r.git", "into": "next", "tasks": ["a", "b"], "agent": "coder", "rounds": 3},
        "dependencies": ["a", "b"],
        "locks": {"write": ["merge:/srv/git/r:next"]},
    }
    codec.check(Task, found, "the task")
    assert MergeRequest.model_validate(found["input"]).ask_s == 3600


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/srv/r.git", "/srv/r"),
        ("https://example.org/r.git", "https://example.org/r/"),
        ("file:///srv/r", "/srv//r"),
    ],
)
def test_spellings_of_one_repository_have_one_lock(one: str, other: str) -> None:
    assert lock(one, "main") == lock(other, "main") != lock(one, "next")


@pytest.mark.parametrize(
    "repo", ["https://example.org/r", "git@example.org:t/r.git", "/srv/a*b?{x}!", "https://h/.../r", f"/{'x' * 600}"]
)
def test_every_repository_has_a_lock_that_means_only_itself(repo: str) -> None:
    found = pattern(lock(repo, "main"))
    assert not set("*?[{") & set(found)
    assert found != pattern(lock(f"{repo}x", "main"))


@pytest.mark.parametrize(
    "said",
    [
        {"tasks": []},
        {"tasks": ["a b"]},
        {"tasks": "a", "repo": "relative"},
        {"tasks": "a", "into": "-x"},
        {"tasks": "a", "rounds": 21},
        {"tasks": "a", "test": "rm -rf /"},
    ],
)
def test_what_no_merge_can_say(said: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MergeRequest.model_validate({"repo": "/r", **said})


def test_the_merge_that_follows_a_task_has_an_id_made_of_its_id() -> None:
    assert after("edit", "/r")["id"] == id_after("edit") == "edit-merge"
    assert after("edit", "/r") == after("edit", "/r")
    long = "x" * 120
    dots = "a" * 100 + "." * 9 + "b" * 11
    made = {child_id(long, "merge"), child_id(long[:-1] + "y", "merge"), child_id(dots, "m")}
    assert len(made) == 3
    assert all(is_id(one) for one in made)
