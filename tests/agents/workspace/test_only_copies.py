"""Work that is on no remote is noted for its worker, from before the agent begins until the remote has it."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import expand
from spoold.agents.workspace import committing
from spoold.agents.workspace.attempt_workspace import RepositoryWorkspace, collect
from spoold.agents.workspace.git import RemoteRefused, WorkspaceFailed
from spoold.agents.workspace.workspace_layout import Places
from spoold.worker.handlers.handler_notes import notes_in
from tests.agents.attempts import Desk
from tests.agents.workspace.repos import Remote, workspace, write

FILES = {"b.txt": "two\n"}


@pytest.fixture
def remote(tmp_path: Path) -> Remote:
    return Remote(tmp_path)


@pytest.fixture
def host(tmp_path: Path) -> Path:
    return tmp_path / "host"


def begun(remote: Remote, host: Path, task: str = "edit", attempt: int = 1, **more: Any) -> RepositoryWorkspace:
    """A workspace in which an agent has written something."""
    made = workspace(remote, host, task, attempt, **more)
    write(made.open(), FILES)
    made.begin()
    return made


def kill(made: RepositoryWorkspace) -> None:
    """Let go of its locks, as the kernel does for a killed process."""
    made._let_go()
    if made._unshown is not None:
        os.close(made._unshown)


def notes(host: Path) -> list[str]:
    return notes_in(Places(str(host)).unsaved, "")


def links(host: Path) -> list[str]:
    return sorted(os.listdir(host / "unsaved")) if (host / "unsaved").exists() else []


def refuse(remote: Remote) -> Path:
    hook = remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho no\nexit 1\n")
    hook.chmod(0o755)
    return hook


@pytest.mark.parametrize("kind", ["clone", "worktree"])
def test_what_a_killed_attempt_left_is_noted_until_it_is_pushed(remote: Remote, host: Path, kind: str) -> None:
    made = begun(remote, host, kind=kind)
    assert notes(host) == [], "it is at work"
    kill(made)
    gc = f"`spool workspace gc --dir {host}` there pushes it, or says why it cannot"
    assert notes(host) == [f"the work of edit (attempt 1) is on no remote, only in {made._folder}: {gc}"]
    collect(Places(str(host)))
    assert (notes(host), links(host)) == ([], [])
    assert remote.read("refs/spool/edit/1", "b.txt") == "two\n"


def test_what_a_rule_refuses_stays_noted_and_what_is_saved_is_not(remote: Remote, host: Path) -> None:
    hook = refuse(remote)
    with begun(remote, host) as made, pytest.raises(RemoteRefused):
        made.save("x")
    assert len(notes(host)) == 1
    collect(Places(str(host)))
    assert len(notes(host)) == 1, "it was tried again, and refused"
    hook.unlink()
    with begun(remote, host, "other") as other:
        other.save("x")
    assert [note.split(" (")[0] for note in notes(host)] == ["the work of edit"]


def test_where_no_agent_has_begun_there_is_nothing_to_note(remote: Remote, host: Path) -> None:
    with workspace(remote, host) as made:
        made.open()
    assert (notes(host), links(host)) == ([], [])


def test_what_could_not_be_saved_is_noted_until_its_folder_is_removed(remote: Remote, host: Path) -> None:
    with begun(remote, host) as made:
        write(made.directory, {".g\u200cit": "git takes no such name\n"})
        assert made.save("x").left_out
    [note] = notes(host)
    assert note.startswith("some of the work of edit (attempt 1) is on no remote, only in ")
    collect(Places(str(host)), keep_s=0)
    assert notes(host) == [note]
    shutil.rmtree(made._folder)
    assert notes(host) == [], "a person has removed it"
    collect(Places(str(host)), keep_s=0)
    assert links(host) == []


def test_what_is_found_missing_before_a_workspace_goes_is_noted(
    remote: Remote, host: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with begun(remote, host) as made:
        made.save("x")
    monkeypatch.setattr(committing, "lacking", lambda *_: ["b.txt"])
    collect(Places(str(host)), keep_s=0)
    assert notes(host)[0].startswith("some of the work of edit (attempt 1)")
    monkeypatch.undo()
    assert collect(Places(str(host)), keep_s=0)[0].removed
    assert links(host) == []


def test_a_note_follows_its_workspace_to_another_place(remote: Remote, host: Path) -> None:
    hook = refuse(remote)
    with begun(remote, host) as made, pytest.raises(RemoteRefused):
        made.save("x")
    with begun(remote, host, attempt=2) as second:
        [note] = notes(host)
        assert f"only in {made._folder}.1:" in note
        with pytest.raises(RemoteRefused):
            second.save("x")
    assert len(notes(host)) == 2
    hook.unlink()
    collect(Places(str(host)))
    assert links(host) == []


def test_a_place_that_could_not_be_taken_is_noted_as_before(remote: Remote, host: Path) -> None:
    refuse(remote)
    with begun(remote, host) as made, pytest.raises(RemoteRefused):
        made.save("x")
    before = notes(host)
    broken = workspace(remote, host, attempt=2, base="no-such-branch")
    with pytest.raises(WorkspaceFailed):
        broken.open()
    assert (notes(host), len(links(host))) == (before, 1)


def test_a_note_that_cannot_be_written_keeps_nobody_from_work(remote: Remote, host: Path) -> None:
    host.mkdir()
    (host / "unsaved").touch()
    with begun(remote, host) as made:
        assert made.save("x").ref


def test_the_attempt_of_an_agent_notes_its_work_for_its_spool(tmp_path: Path, remote: Remote, host: Path) -> None:
    refuse(remote)
    place = {"repo": str(remote.path), "dir": str(host)}
    desk = Desk(tmp_path, "open('b.txt', 'w').write('two')", {"workspace": place})
    assert desk.run(prompt="x").result["outcome"] == "blocked"
    assert len(notes_in(str(host / "unsaved"), str(tmp_path / "no-spool"))) == 1
    assert notes_in(str(host / "unsaved"), "/another") == []


@pytest.mark.parametrize(
    ("more", "folder"),
    [
        ({"workspace": {"repo": "/srv/a.git", "dir": "/disk"}}, "/disk/unsaved"),
        ({"workspace": {"repo": "/srv/a.git"}}, "/home/ada/.cache/spoold/workspaces/unsaved"),
        ({"allow_repos": ["*"], "env": {"XDG_CACHE_HOME": "/c"}}, "/c/spoold/workspaces/unsaved"),
        ({"workspace": {"repo": "/srv/a.git"}, "pass": ["XDG_*"]}, "/x/spoold/workspaces/unsaved"),
        ({}, None),
        ({"workspace": {"kind": "none"}}, None),
    ],
)
def test_the_handler_of_a_profile_names_the_folder_that_its_attempts_use(
    more: dict[str, Any], folder: str | None
) -> None:
    environ = {"HOME": "/home/ada", "XDG_CACHE_HOME": "/x"}
    passed = {"pass_env": more["pass"]} if "pass" in more else {}
    said = {"cli": "generic", "command": [sys.executable], **{key: more[key] for key in more if key != "pass"}}
    table = json.loads(json.dumps({"agents": {"coder": said}, **passed}))
    assert expand(table, "w.toml", environ, warns="none")["handlers"]["coder"].get("notes") == folder
