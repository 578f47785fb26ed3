"""`spool merge`, alone and in a pool: dependants begin only when the work is in the branch."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spoold.faces.cli.verbs.merge import repository_of
from spoold.protocol.errors import SpoolError
from tests.agents.workspace.repos import Remote
from tests.cli.commands import spool
from tests.e2e.pool import SETTINGS, Pool, wait_for

# What an agent is here: it writes the files that its task says, or resolves a conflict as it was told to.
AGENT = """
import json, os, subprocess, sys
from spoold.agents.attempt.own_workspace import of_attempt
task = json.load(open(os.environ["SPOOL_TASK_FILE"]))["input"]
profile = {"repo": sys.argv[1], "dir": sys.argv[2]}
with of_attempt(profile, task.get("workspace", {})) as made:
    tree = made.open()
    if "Resolve a merge conflict" in task["prompt"]:
        subprocess.run(["git", "merge", "-q", "origin/main"], cwd=tree)
        task["files"] = {"a.txt": "both\\n"}
    for name, text in task["files"].items():
        open(os.path.join(tree, name), "w").write(text)
    saved = made.save(task["prompt"].splitlines()[0])
if task.get("then") == "merge":
    from spoold import Spool
    from spoold.agents.merge.merge_request import after
    with Spool(os.environ["SPOOL_ROOT"]) as spool:
        spool.submit(after(os.environ["SPOOL_TASK_ID"], saved.repo))
json.dump({"workspace": saved.as_output()}, open(os.environ["SPOOL_RESULT_FILE"], "w"))
"""


IDLE = '{"prompt": "x", "files": {}}'


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path, {"a.txt": "one\n"})


@pytest.fixture
def pool(tmp_path: Path, remote: Remote) -> Iterator[Pool]:
    with Pool(tmp_path / "spool", tmp_path / "desk", SETTINGS) as made:
        (tmp_path / "agent.py").write_text(AGENT)
        agent = [sys.executable, str(tmp_path / "agent.py"), str(remote.path), str(tmp_path / "agents")]
        merge = [
            sys.executable,
            "-m",
            "spoold.agents.merge",
            "--dir",
            str(tmp_path / "merger"),
            "--repo",
            str(remote.path),
        ]
        merge += ["--test", "test -e a.txt && ! test -e bad.txt"]
        config = f'pass_env = ["PYTHONPATH", "GIT_CONFIG_GLOBAL"]\n[handlers.coder]\ncommand = {json.dumps(agent)}\n'
        made.path("worker.toml").write_text(f"{config}[handlers.merge]\ncommand = {json.dumps(merge)}\n")
        made.env["PYTHONPATH"] = str(Path(__file__).resolve().parents[3])
        made.master()
        made.worker("w", "--config", str(made.path("worker.toml")), slots=3)
        made.ready("w")
        yield made


def edit(pool: Pool, task: str, files: dict[str, str], **more: str) -> None:
    given = {"id": task, "type": "coder", "input": {"prompt": f"write {task}", "files": files, **more}}
    path = pool.path(f"{task}.json")
    path.write_text(json.dumps(given))
    pool.cli("submit", str(path))


def output(pool: Pool, task: str) -> Any:
    return json.loads(pool.run("result", task, "--json").stdout)["output"]


def test_a_conflict_goes_to_an_agent_and_a_dependant_begins_when_all_has_landed(pool: Pool, remote: Remote) -> None:
    edit(pool, "one", {"a.txt": "mine\n", "b.txt": "x\n"})
    edit(pool, "two", {"a.txt": "theirs\n", "c.txt": "y\n"})
    pool.cli("wait", "one", "two")
    assert pool.cli("merge", "one", "two", "--agent", "coder", "--id", "land").strip() == "land"
    pool.cli("submit", "--id", "after", "--after", "land", "--type", "coder", "--input", IDLE)
    pool.cli("wait", "land", "after")
    said = output(pool, "land")
    assert [row["task"] for row in said["landed"]] == ["one", "two"]
    assert said["tested"][-1] == said["after"] == remote.commit("main")
    assert (remote.read("main", "a.txt"), remote.files("main")) == ("both\n", ["a.txt", "b.txt", "c.txt"])
    assert output(pool, "after")["workspace"]["base"] == said["after"]
    assert "land-resolve-1-" in pool.cli("tree", "land")


def test_what_fails_the_tests_frees_no_dependant_and_leaves_main_as_it_was(pool: Pool, remote: Remote) -> None:
    edit(pool, "bad", {"bad.txt": "x\n"})
    pool.cli("wait", "bad")
    pool.cli("merge", "bad", "--repo", str(remote.path), "--id", "land")
    pool.cli("submit", "--id", "after", "--after", "land", "--type", "coder", "--input", IDLE)
    pool.cli("wait", "land", "after", code=1)
    assert output(pool, "land")["refused"][0]["reason"] == "tests"
    assert json.loads(pool.run("result", "after", "--json").stdout)["error"]["code"] == "DEPENDENCY_FAILED"
    assert json.loads(pool.run("result", "land", "--json").stdout)["attempt"] == 1
    assert remote.commit("main") == remote.first


def test_a_task_may_have_its_work_merged_by_itself(pool: Pool, remote: Remote) -> None:
    pool.cli("submit", "--id", "after", "--after", "one-merge", "--type", "coder", "--input", IDLE)
    edit(pool, "one", {"b.txt": "x\n"}, then="merge")
    pool.cli("wait", "one", "after")
    assert remote.read("main", "b.txt") == "x\n"
    assert output(pool, "after")["workspace"]["base"] == remote.commit("main")


def test_a_conflict_that_no_agent_resolves_is_asked_about(pool: Pool, remote: Remote) -> None:
    edit(pool, "two", {"a.txt": "theirs\n"})
    pool.cli("wait", "two")
    remote.land({"a.txt": "ours\n"})
    pool.cli("merge", "two", "--id", "land")
    wait_for(lambda: "conflicts with" in pool.cli("asks"), "people are asked")
    pool.cli("approve", "land", "--answer", "leave")
    pool.cli("wait", "land", code=1)
    assert output(pool, "land")["refused"][0]["reason"] == "conflict"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    assert spool("init", str(tmp_path / "s")).code == 0
    return tmp_path / "s"


def test_without_a_repository_it_says_which_option_names_it(root: Path) -> None:
    assert spool("submit", "--id", "edit", "--", "true", root=root).code == 0
    done = spool("merge", "edit", root=root)
    assert (done.code, done.err) == (
        2,
        "spool: task edit has no result yet, which would name its repository. Add --repo.\n",
    )


def test_the_task_that_it_submits(root: Path) -> None:
    done = spool("merge", "edit", "--repo", "/srv/r.git", "--into", "next", "--id", "m", "--json", root=root)
    assert (done.code, json.loads(done.out)) == (0, {"id": "m"})
    ((path),) = (root / "pending").iterdir()
    task = json.loads(path.read_text())
    assert (task["dependencies"], task["locks"]) == (["edit"], {"write": ["merge:/srv/r:next"]})
    assert spool("merge", "edit", "--repo", "/srv/r.git", root=root).code == 0


def test_what_no_merge_can_say_is_told(root: Path) -> None:
    done = spool("merge", "edit", "--repo", "relative", root=root)
    assert (done.code, "repo: " in done.err, "'relative' is not the address of a repository" in done.err) == (
        2,
        True,
        True,
    )


class Results:
    """Stands in for a client: the repository that each task's result names."""

    def __init__(self, **repos: str | None) -> None:
        self.repos = repos

    def result(self, task: str) -> SimpleNamespace:
        return SimpleNamespace(output={"workspace": {"repo": self.repos[task]}})


def test_the_repository_of_tasks_is_one_whatever_its_spelling() -> None:
    """G6: two spellings of one address counted as two repositories."""
    spool = Results(one="https://git.example.org/app.git", two="https://GIT.example.org:443/app")
    assert repository_of(cast(Any, spool), ["one", "two"]) == "https://git.example.org/app.git"


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ("https://git.example.org/lib", "worked in several repositories: one in https://git.example.org/app, two in"),
        ("not an address", "the repository in the result of two is wrong"),
        (None, "no repository is in the result of two"),
    ],
)
def test_tasks_of_several_repositories_are_not_merged_together(other: str | None, why: str) -> None:
    with pytest.raises(SpoolError, match=why):
        repository_of(cast(Any, Results(one="https://git.example.org/app", two=other)), ["one", "two"])
