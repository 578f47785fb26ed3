"""`spool workspace`: what is on this machine, where it is, and what may go."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spoold.agents.attempt.own_workspace import of_attempt
from spoold.faces.cli.app import build
from spoold.protocol.errors import BadFile
from tests.agents.workspace.repos import Remote, git, pushed, workspace, write


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


def spool(host: Path, *words: str) -> tuple[int, str, str]:
    """Run `spool workspace …`."""
    done = CliRunner().invoke(build(["workspace"]), ["workspace", *words, "--dir", str(host)])
    return done.exit_code, done.stdout, done.stderr


def test_ls_shows_each_with_its_state(remote: Remote, tmp_path: Path) -> None:
    host = tmp_path / "host"
    assert spool(host, "ls") == (0, f"no workspaces in {host}\n", "")
    pushed(remote, host, "edit", {"b.txt": "x\n"})
    pushed(remote, host, "nothing", {})
    with workspace(remote, host, "busy") as made:
        made.open()
        code, out, _ = spool(host, "ls", "--json")
    rows = {one["task"]: one for one in json.loads(out)}
    assert code == 0
    states = {task: one["state"] for task, one in rows.items()}
    assert states == {"edit": "saved", "nothing": "no change", "busy": "in use"}
    assert rows["edit"]["ref"] == "refs/spool/edit/1"
    assert rows["edit"]["since"] == "1970-01-01T00:16:40Z"
    header, *lines = spool(host, "ls")[1].splitlines()
    assert header.split() == ["TASK", "ATTEMPT", "PROFILE", "STATE", "SINCE", "REFERENCE", "DIRECTORY"]
    assert any(line.startswith("edit") and line.endswith("/tree") for line in lines)


def test_open_prints_a_directory_or_says_where_the_work_is(remote: Remote, tmp_path: Path) -> None:
    host = tmp_path / "host"
    pushed(remote, host, "edit", {"b.txt": "x\n"})
    code, out, _ = spool(host, "open", "edit")
    assert (code, sorted(os.listdir(out.strip()))) == (0, [".git", "a.txt", "b.txt"])
    code, _, err = spool(host, "open", "other")
    assert (code, "git fetch REPO 'refs/spool/other/*:refs/spool/other/*'" in err) == (4, True)


def test_gc_says_what_it_removed_and_what_it_kept(remote: Remote, tmp_path: Path) -> None:
    host = tmp_path / "host"
    pushed(remote, host, "edit", {"b.txt": "x\n"}, keep_s=10**8, now=time.time() - 7200)
    code, _, err = spool(host, "gc")
    assert (code, err.startswith("kept edit: kept for another ")) == (0, True)
    assert spool(host, "gc", "--keep", "1h")[2] == "removed edit: refs/spool/edit/1\n"
    assert spool(host, "gc", "--json")[1] == "[]\n"
    assert spool(host, "gc")[1] == f"no workspaces in {host}\n"


def test_gc_fails_where_work_stays_that_the_remote_does_not_have(remote: Remote, tmp_path: Path) -> None:
    host = tmp_path / "host"
    with workspace(remote, host, "edit") as made:
        write(made.open(), {"b.txt": "x\n"})
    away = remote.path.rename(tmp_path / "away.git")
    code, _, err = spool(host, "gc")
    assert (code, "kept edit: not saved: " in err) == (1, True)
    assert "1 workspace stays: the remote was not seen to have all of the work there" in err
    code, out, _ = spool(host, "gc", "--json")
    assert (code, [(one["task"], one["unsaved"]) for one in json.loads(out)]) == (1, [("edit", True)])
    away.rename(remote.path)
    code, _, err = spool(host, "gc")
    assert (code, err.splitlines()[0]) == (0, f"pushed refs/spool/edit/1 of edit to {remote.path}")
    assert "refs/spool/edit/1" in remote.refs()
    assert "pushed" not in spool(host, "gc")[2]
    away = remote.path.rename(tmp_path / "away.git")
    assert spool(host, "gc", "--keep", "0s")[0] == 1, "what it has cannot be asked"
    away.rename(remote.path)
    git("update-ref", "-d", "refs/spool/edit/1", cwd=remote.path)
    err = spool(host, "gc", "--keep", "0s")[2]
    assert err.startswith(f"pushed refs/spool/edit/1 of edit to {remote.path}\nremoved edit")


def test_gc_names_what_it_pushed_for_programs(remote: Remote, tmp_path: Path) -> None:
    host = tmp_path / "host"
    with workspace(remote, host, "edit") as made:
        write(made.open(), {"b.txt": "x\n"})
    [one] = json.loads(spool(host, "gc", "--json")[1])
    assert (one["pushed"], one["repo"]) == (["refs/spool/edit/1"], str(remote.path))


@pytest.mark.parametrize("words", [("rm",), ("open",), ("ls", "edit"), ("ls", "--keep", "1h")])
def test_other_words_are_told_what_there_is(tmp_path: Path, words: tuple[str, ...]) -> None:
    code, _, err = spool(tmp_path, *words)
    assert (code, "the command line" in err) == (2, True)
    if "--keep" not in words:
        assert "write `spool workspace ls`, `spool workspace open TASK` or `spool workspace gc`." in err


def test_the_workspace_of_an_attempt_is_that_of_its_task(remote: Remote, tmp_path: Path) -> None:
    environ = {"SPOOL_TASK_ID": "edit", "SPOOL_ATTEMPT": "3", "SPOOL_TASK_TYPE": "coder", "HOME": str(tmp_path)}
    profile = {"repo": str(remote.path), "dir": str(tmp_path / "host"), "base": "none"}
    with of_attempt(profile, {"base": "main"}, environ=environ) as made:
        write(made.open(), {"b.txt": "x\n"})
        assert made.env["GIT_AUTHOR_NAME"] == "coder"
        assert made.borrowed[0].endswith(".git/objects")
        assert made.save("x").ref == "refs/spool/edit/3"
    with of_attempt(profile, {"base": "main"}, fresh=True, environ={**environ, "SPOOL_ATTEMPT": "4"}) as made:
        made.open()
        assert (made.resumed, made.returning) == ("", False)
    with pytest.raises(BadFile, match=r"the workspace of coder"):
        of_attempt(profile, {"colour": "red"}, environ=environ)
