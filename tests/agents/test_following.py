"""`then = "merge"`: accepted work has its merge made, once, and nothing else does."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt.follow_up import branch_of
from spoold.agents.configuration.profiles import VARIABLE, Profile, expand, read_back
from spoold.protocol.errors import BadFile
from tests.agents.attempts import Desk
from tests.agents.workspace.repos import Remote
from tests.cli.commands import spool

WRITES = """
import sys
if sys.stdin.read().split()[0] == "edit":
    open("out.md", "a").write("x")
print("so be it")
"""


def desk(path: Path, **more: Any) -> Desk:
    """An attempt in a repository of its own, and in a spool."""
    remote = Remote(path)
    assert spool("init", str(path / "s")).code == 0
    place = {"repo": str(remote.path), "dir": str(path / "spaces")}
    profile = {"then": "merge", "workspace": place, **more}
    return Desk(path, WRITES, profile, env={"SPOOL_ROOT": str(path / "s"), "SPOOL_TASK_TYPE": "coder"})


def dropped(path: Path) -> list[dict[str, Any]]:
    """The tasks that were dropped into the spool."""
    return [json.loads(file.read_text()) for file in (path / "s" / "pending").iterdir() if file.suffix == ".json"]


def test_accepted_work_has_its_merge_made_before_the_attempt_says_so(tmp_path: Path) -> None:
    made = desk(tmp_path)
    ended = made.run(prompt="edit it", uses=["account"])
    assert (ended.code, ended.result["outcome"], ended.result["merge"]) == (0, "done", "t-merge"), ended.said
    [merge] = dropped(tmp_path)
    assert (merge["id"], merge["type"], merge["parent"], merge["dependencies"]) == ("t-merge", "merge", "t", ["t"])
    repo = str(tmp_path / "remote.git")
    assert merge["input"] == {"repo": repo, "into": "main", "tasks": ["t"], "agent": "coder", "may_be_empty": True}
    assert merge["uses"] == {}, "it asks no model"
    made.env = {**made.env, "SPOOL_ATTEMPT": "2"}
    again = made.run(prompt="edit it")
    assert (again.code, again.result["merge"]) == (0, "t-merge"), again.said
    assert {one["id"] for one in dropped(tmp_path)} == {"t-merge"}, "of two attempts, one merge"


def test_an_agent_that_changed_nothing_fails_nobody_who_waits_for_its_merge(tmp_path: Path) -> None:
    ended = desk(tmp_path).run(prompt="look at it")
    assert (ended.result["outcome"], ended.result["merge"]) == ("no_change", "t-merge")
    assert "merges it" not in ended.said
    assert "it changed no file: t-merge has nothing to merge; `must_change = true`" in ended.said
    assert dropped(tmp_path)[0]["input"]["may_be_empty"] is True


def test_what_was_not_accepted_is_not_merged(tmp_path: Path) -> None:
    ended = desk(tmp_path, accept=["false"]).run(prompt="edit it")
    assert (ended.code, "merge" in ended.result) == (1, False)
    assert not dropped(tmp_path)


def test_work_whose_merge_would_have_the_id_of_another_task_is_not_said_to_be_merged(tmp_path: Path) -> None:
    made = desk(tmp_path)
    assert spool("--spool", str(tmp_path / "s"), "submit", "--id", "t-merge", "--", "true").code == 0
    ended = made.run(prompt="edit it")
    assert (ended.code, ended.result["outcome"], "merge" in ended.result) == (65, "blocked", False), ended.said
    assert "the merge would be the task t-merge, and that is another task" in ended.result["reasons"][0]
    assert ended.result["workspace"]["ref"] in Remote.at(tmp_path).refs()
    assert [one["command"] for one in dropped(tmp_path)] == [["true"]]


def test_a_merge_that_cannot_be_submitted_fails_the_attempt_and_the_work_stays_pushed(tmp_path: Path) -> None:
    made = desk(tmp_path)
    made.env = {**made.env, "SPOOL_ROOT": str(tmp_path / "none")}
    ended = made.run(prompt="edit it")
    assert (ended.code, ended.result["outcome"]) == (1, "failed")
    assert "is not a spool" in ended.result["reasons"][0] or "No such file" in ended.result["reasons"][0]
    assert ended.result["workspace"]["ref"] in Remote.at(tmp_path).refs()


def profile(**said: Any) -> Profile:
    """A profile as an attempt finds it."""
    handler = expand({"agents": {"coder": {"cli": "generic", "command": [sys.executable], **said}}}, "w.toml", {})
    return read_back(handler["handlers"]["coder"]["env"][VARIABLE])[1]


@pytest.mark.parametrize(
    ("own", "said", "branch"),
    [
        ({}, {}, "main"),
        ({"base": "next"}, {}, "next"),
        ({"base": "next"}, {"base": "refs/heads/topic/a"}, "topic/a"),
        ({}, {"base": "refs/spool/edit/1"}, ""),
        ({}, {"base": "0" * 40}, ""),
    ],
)
def test_work_goes_back_to_the_branch_that_it_began_with(
    own: dict[str, str], said: dict[str, str], branch: str
) -> None:
    made = profile(then="merge", workspace={"repo": "/srv/r.git", **own})
    assert branch_of(made, {"workspace": said}) == branch


def test_a_profile_without_a_repository_has_nothing_to_merge() -> None:
    assert profile(then="merge", allow_repos=["*"]).then == "merge"
    for said in ({}, {"workspace": {"kind": "none"}}):
        with pytest.raises(BadFile, match='then = "merge" has no repository'):
            profile(then="merge", **said)
    with pytest.raises(BadFile, match="then"):
        profile(then="deploy", allow_repos=["*"])
