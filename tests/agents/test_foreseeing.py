"""What a worker's file says that will fail its tasks or their merges is named before any runs, with field and fix."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration import profiles
from spoold.agents.configuration.profiles import (
    VARIABLE,
    expand,
    of_branches,
    of_merges,
    of_repositories,
    of_workspace,
    read_back,
)
from spoold.agents.configuration.trial import Tried, unseen
from spoold.agents.process import confinement
from spoold.agents.sandbox.launch import probe
from tests.agents.attempts import Desk
from tests.agents.workspace.repos import Remote, git

GENERIC = {"cli": "generic", "command": ["agent"]}


def made(path: Path, *, bare: bool) -> str:
    """A repository with a commit on main."""
    remote = Remote(path)
    return str(remote.path if bare else remote.clone)


def test_a_repository_that_is_not_there_is_named_with_field_and_fix(tmp_path: Path) -> None:
    (found,) = of_workspace("coder", {"repo": f"{tmp_path}/app.git"})
    assert found.field == "agents.coder.workspace.repo"
    assert found.problem == f"{tmp_path}/app.git is not there"
    assert "git init --bare" in found.fix
    (tmp_path / "empty").mkdir()
    (found,) = of_workspace("coder", {"repo": f"file://{tmp_path}/empty"})
    assert found.problem == f"{tmp_path}/empty is no git repository"
    (found,) = of_repositories(["/no/such.git"])
    assert (found.field, found.problem) == ("merge.repos", "/no/such.git is not there")


def test_nothing_is_said_of_one_that_git_opens_or_of_another_address(tmp_path: Path) -> None:
    bare, clone = made(tmp_path, bare=True), str(tmp_path / "person")
    git("worktree", "add", "-q", str(tmp_path / "tree"), cwd=Path(clone))
    git("bundle", "create", "-q", str(tmp_path / "b.bundle"), "--all", cwd=Path(clone))
    short = bare.removesuffix(".git")
    there = (bare, short, clone, f"{clone}/.git", f"{tmp_path}/tree", f"{tmp_path}/b.bundle")
    for repo in (*there, "git@example.org:team/app.git", "https://no.example/app"):
        assert of_workspace("coder", {"repo": repo}) == [], repo
    assert of_workspace("coder", {"kind": "none"}) == []


def test_the_worker_says_it_when_it_starts(caplog: pytest.LogCaptureFixture) -> None:
    agents = {"coder": {**GENERIC, "workspace": {"repo": "/no/app.git"}}}
    expand({"agents": agents, "merge": {"repos": ["/no/other.git"]}}, "w.toml", {})
    said = [record.getMessage() for record in caplog.records]
    assert said[0].startswith("w.toml: agents.coder.workspace.repo: /no/app.git is not there; fix: ")
    assert said[1].startswith("w.toml: merge.repos: /no/other.git is not there; fix: ")


def test_it_says_a_branch_that_takes_no_merges_and_each_warning_once(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    """`spool up` said nothing of the branch, and the rest once for itself and once for each worker."""
    clone = made(tmp_path, bare=False)
    sandbox = {"kind": "bwrap", "network": "proxy", "hosts": ["github.com"]}
    agents = {"coder": {"cli": "codex", "temperature": 0.5, "sandbox": sandbox, "workspace": {"repo": "/no/app.git"}}}
    table = {"agents": agents, "merge": {"repos": [clone]}}
    expand(table, "w.toml", {})
    said = "\n".join(record.getMessage() for record in caplog.records)
    parts = ("cannot ask its model", "cannot be given temperature", "/no/app.git is not there", "is checked out in")
    assert [said.count(part) for part in parts] == [1, 1, 1, 1]
    caplog.clear()
    expand(table, "w.toml", {}, warns="rest")
    (left,) = caplog.records
    assert "cannot be given temperature" in left.getMessage()
    caplog.clear()
    expand(table, "w.toml", {}, warns="none")
    assert not caplog.records


@pytest.mark.parametrize("own", [False, True])
def test_the_error_of_a_task_names_the_field_and_the_file(tmp_path: Path, own: bool) -> None:
    place = {"repo": f"{tmp_path}/none.git"}
    profile = {"allow_repos": ["*"]} if own else {"workspace": place}
    done = Desk(tmp_path, "", profile).run(prompt="x", **({"workspace": place} if own else {}))
    (why,) = done.result["reasons"]
    assert f"the repository {tmp_path}/none.git cannot be read here" in why
    where = (
        "input.workspace.repo of the task" if own else f"workspace.repo of [agents.coder] in {Path.cwd()}/worker.toml"
    )
    assert why.endswith(f" The repository is named by {where}.")


def test_a_branch_that_is_checked_out_is_named_as_the_refusal_does(tmp_path: Path) -> None:
    bare, clone = made(tmp_path, bare=True), str(tmp_path / "person")
    assert of_branches([bare, "/no/such.git", "https://no.example/app"]) == []
    (found,) = of_branches([clone])
    assert found.problem.startswith(f"main is checked out in {clone}")
    fix = f"use a bare repository, or run `git -C {clone} config receive.denyCurrentBranch updateInstead`"
    assert found.fix == fix
    git("config", "receive.denyCurrentBranch", "updateInstead", cwd=Path(clone))
    assert of_branches([clone]) == []
    git("worktree", "add", "-q", "-b", "side", str(tmp_path / "tree"), "main", cwd=Path(bare))
    (found,) = of_branches([bare])
    assert found.problem.startswith(f"side is checked out in {bare}"), "git refuses it in a worktree, too"


@pytest.mark.parametrize("way", ["clone", "worktree"])
def test_it_is_what_git_refuses(tmp_path: Path, way: str) -> None:
    bare, clone = made(tmp_path, bare=True), str(tmp_path / "person")
    if way == "worktree":
        git("worktree", "add", "-q", str(tmp_path / "tree"), "main", cwd=Path(bare))
    git("clone", "-q", clone, str(tmp_path / "other"))
    git("commit", "-q", "--allow-empty", "-m", "x", cwd=tmp_path / "other")
    repo = bare if way == "worktree" else clone
    done = subprocess.run(["git", "push", repo, "main"], cwd=tmp_path / "other", capture_output=True, check=False)
    assert (done.returncode != 0) is bool(of_branches([repo]))
    assert of_branches([repo])


def test_work_that_nothing_merges_is_foreseen() -> None:
    repo, other = "/srv/git/app.git", "/srv/git/other.git"
    (found,) = of_merges("coder", repo, [], None)
    assert (found.field, found.sure) == ("agents.coder.then", False), "other workers may merge it: nobody was asked"
    assert f'add repos = ["{repo}"] below [merge]' in found.fix
    (found,) = of_merges("coder", repo, [other], {"w": (other,)})
    assert found.sure
    assert "no live worker merges it" in found.problem
    assert f'add "{repo}" to repos of [merge]' in found.fix
    assert of_merges("coder", repo, ["/srv//git/./app.git"], None) == [], "the same repository"
    assert of_merges("coder", repo, [], {"w": (other,), "v": (repo,)}) == []
    assert of_merges("coder", repo, [], {"odd": ("-x", "a\0b")}), "what others wrote in a heartbeat"
    assert of_merges("coder", repo, [], {"old": ()}) == [], "it does not say what it merges"
    assert of_merges("coder", "", [other], None) == [], "a task names it"
    assert of_merges("coder", "", [], {})


def not_seen(said: dict[str, Any], *folders: Path) -> list[tuple[str, str, str]]:
    handler = expand({"agents": {"coder": {**GENERIC, **said}}}, "w.toml", {})["handlers"]["coder"]
    name, profile = read_back(handler["env"][VARIABLE])
    found = unseen(
        name, profile, {"PATH": "/usr/bin:/bin", "HOME": "/home/of/somebody"}, [str(one) for one in folders], 60
    )
    return [(one.field, one.problem, one.fix) for one in found]


@pytest.mark.usefixtures("bubblewrap")
def test_a_file_of_a_command_that_the_sandbox_does_not_show_is_foreseen(tmp_path: Path) -> None:
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    file = tmp_path / "agent.sh"
    file.write_text("true\n")
    command = ["sh", str(file), f"--log={tmp_path}/not-there", "/usr/bin/env"]
    (found,) = not_seen({"command": command, "sandbox": "bwrap"})
    assert found[:2] == ("agents.coder.command", f"{file} is not shown in the sandbox bwrap")
    assert found[2] == f'write sandbox = {{kind = "bwrap", show = ["{file}"]}}'
    shown = {"kind": "bwrap", "show": ["/srv"]} if Path("/srv").exists() else {"kind": "bwrap"}
    (found,) = not_seen({"command": ["sh", f"--x={file}"], "sandbox": shown})
    assert found[2].endswith(f'"{file}"] in its sandbox')
    assert not_seen({"command": command, "sandbox": {"kind": "bwrap", "show": [str(file)]}}) == []
    assert not_seen({"command": command, "sandbox": "none"}) == []
    assert not_seen({"command": command, "sandbox": "bwrap"}, tmp_path) == [], "it works there"
    file.chmod(0o755)
    assert not_seen({"command": [str(file), "x"], "sandbox": "bwrap"}) == [], "a program is shown anyway"


@pytest.mark.usefixtures("bubblewrap")
def test_so_is_one_of_every_other_command_in_the_sandbox(tmp_path: Path) -> None:
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    files = {name: tmp_path / name for name in ("args", "accept", "setup")}
    for one in files.values():
        one.write_text("true\n")
    said = {
        "command": [sys.executable],
        "args": ["--config", str(files["args"])],
        "accept": [f"sh '{files['accept']}' && true", ["true"]],
        "workspace": {"repo": "https://no.example/app", "setup": [f"sh {files['setup']};"]},
        "sandbox": "bwrap",
    }
    found = {field: problem for field, problem, _ in not_seen(said)}
    assert list(found) == ["agents.coder.args", "agents.coder.accept", "agents.coder.workspace.setup"]
    assert all(str(files[name]) in problem for name, problem in zip(files, found.values(), strict=True))


@pytest.mark.usefixtures("bubblewrap")
def test_so_is_a_program_that_only_the_path_of_the_worker_leads_to(tmp_path: Path) -> None:
    if not probe(confinement.read("bwrap", "x").asked()).ok:
        pytest.skip("bubblewrap does not work here")
    for name in ("mytool", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    said = {
        "command": [sys.executable],
        "accept": ["A=1 mytool --all | sort", ["other", "is shown anyway"], "echo other", "no-such-tool"],
        "workspace": {"repo": "https://no.example/app", "setup": "cd . && other"},
        "sandbox": "bwrap",
        "env": {"PATH": f"{tmp_path}:/usr/bin:/bin"},
    }
    found = {field: (problem, fix) for field, problem, fix in not_seen(said)}
    assert found["agents.coder.accept"] == (
        f"{tmp_path}/mytool is not shown in the sandbox bwrap",
        f'write sandbox = {{kind = "bwrap", show = ["{tmp_path}/mytool"]}}',
    )
    assert found["agents.coder.workspace.setup"][0] == f"{tmp_path}/other is not shown in the sandbox bwrap"
    assert len(found) == 2


def test_what_is_sure_makes_a_verdict_and_hides_no_worse_one() -> None:
    sure, unsure = of_merges("c", "/srv/a", [], {}), of_merges("c", "/srv/a", [], None)
    assert Tried("c", "x", "", "", "ok").warned(sure).verdict == "warned"
    assert Tried("c", "x", "", "", "ok").warned(unsure).verdict == "ok"
    assert Tried("c", "x", "", "", "not installed").warned(sure).verdict == "not installed"


def test_a_share_that_does_not_answer_holds_no_worker_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A look at a path of it may take as long as it is away; what is found then is logged then."""
    answers, ended = threading.Event(), threading.Event()

    def look(said: str) -> str:
        assert answers.wait(60)
        return said

    class Noted(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if "/share/app.git is not there" in record.getMessage():
                ended.set()

    monkeypatch.setattr(profiles, "FORESEE_S", 0.05)
    monkeypatch.setattr(profiles, "repository", look)
    noted = Noted()
    profiles.log.addHandler(noted)
    try:
        made = expand({"agents": {"coder": {**GENERIC, "workspace": {"repo": "/share/app.git"}}}}, "w.toml")
        assert "coder" in made["handlers"]
        assert not ended.is_set()
        answers.set()
        assert ended.wait(60)
    finally:
        answers.set()
        profiles.log.removeHandler(noted)
