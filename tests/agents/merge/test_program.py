"""`python -m spoold.agents.merge` as a handler: files in, exit codes out."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.configuration.profiles import expand
from spoold.agents.merge.__main__ import main
from spoold.agents.workspace.git import Done, Git, GitFailed, said
from spoold.client.spool import capabilities
from spoold.store.initialise import initialise
from spoold.system.clock import SystemClock
from spoold.system.posix import PosixFileSystem
from tests.agents.workspace.repos import Remote, git, pushed, workspace, write

TOKEN = f"ghp_{'Ab1' * 12}"


class Handler:
    """The files that a worker lays out, and a run of the handler."""

    def __init__(self, top: Path, remote: Remote) -> None:
        self.top, self.remote = top, remote
        self.env: dict[str, str] = {}
        self.deps = top / "deps"
        self.deps.mkdir()

    def run(self, *words: str, tasks: tuple[str, ...] = ("edit",), bare: bool = False, **said: Any) -> int:
        given = {"repo": str(self.remote.path), "tasks": tasks, **said}
        (self.top / "task.json").write_text(json.dumps({"id": "m", "type": "merge", "input": given}))
        names = {"TASK_FILE": "task.json", "RESULT_FILE": "result.json", "DEPS_DIR": "deps"}
        environ = {f"SPOOL_{name}": str(self.top / file) for name, file in names.items()}
        environ |= self.env
        mine = [] if "--repo" in words or bare else ["--repo", str(self.remote.path)]
        return main(["--dir", str(self.top / "merger"), *mine, *words], environ)

    @property
    def result(self) -> Any:
        return json.loads((self.top / "result.json").read_text())

    def depends_on(self, task: str, output: Any) -> None:
        (self.deps / f"{task}.json").write_text(json.dumps({"task_id": task, "output": output}))


@pytest.fixture
def handler(tmp_path: Path) -> Handler:
    return Handler(tmp_path, Remote(tmp_path))


def edited(handler: Handler, task: str = "edit", files: dict[str, str | None] | None = None) -> dict[str, Any]:
    with workspace(handler.remote, handler.top / "agents", task) as made:
        write(made.open(), files or {f"{task}.txt": "x\n"})
        return made.save(task).as_output()


def test_what_a_result_says_is_merged_and_told(handler: Handler, capsys: pytest.CaptureFixture[str]) -> None:
    said = edited(handler)
    handler.depends_on("edit", {"workspace": said, "tokens_used": 5})
    assert handler.run("--test", "test -e edit.txt") == 0
    merge = handler.remote.commit("main")
    assert handler.result == {
        "repo": str(handler.remote.path),
        "into": "main",
        "before": handler.remote.first,
        "after": merge,
        "landed": [{"task": "edit", "commit": said["commit"], "merge": merge}],
        "refused": [],
        "tested": [merge],
    }
    assert f"edit landed in main with {merge}" in capsys.readouterr().out
    assert handler.run() == 0
    assert handler.result["landed"] == [{"task": "edit", "commit": said["commit"], "merge": None}]


@pytest.mark.parametrize("output", [None, "printed", {"ref": "refs/spool/edit/1"}])
def test_without_a_word_of_the_workspace_the_reference_counts(handler: Handler, output: Any) -> None:
    edited(handler)
    if output is not None:
        handler.depends_on("edit", output)
    assert handler.run() == 0
    assert handler.remote.read("main", "edit.txt") == "x\n"


def test_what_was_accepted_counts_before_what_was_pushed_later(handler: Handler) -> None:
    handler.depends_on("edit", {"workspace": edited(handler)})
    pushed(handler.remote, handler.top / "agents", "edit", {"late.txt": "x\n"}, attempt=2)
    assert handler.run() == 0
    assert handler.remote.read("main", "late.txt") is None


@pytest.mark.parametrize(
    ("output", "reason", "detail"),
    [
        ({"workspace": {"repo": "/elsewhere", "ref": "r", "commit": "c"}}, "repository", "it worked in /elsewhere"),
        ({"workspace": {"repo": "not an address"}}, "repository", "the address of its repository is wrong"),
        ({"outcome": "no_change", "changed_files": []}, "empty", "it changed nothing"),
        (None, "missing", "no result says what it made"),
        ({"ref": "refs/spool/edit/7"}, "missing", "its commit refs/spool/edit/7 is not on the remote"),
        ({"workspace": {"commit": "0" * 40}}, "missing", "its commit 0000000"),
    ],
)
def test_work_that_is_not_there_is_refused_and_the_rest_lands(
    handler: Handler, output: Any, reason: str, detail: str
) -> None:
    edited(handler, "good")
    if output is not None:
        handler.depends_on("edit", output)
    assert handler.run(tasks=("edit", "good")) == 65
    assert [one["task"] for one in handler.result["landed"]] == ["good"]
    ((refused),) = handler.result["refused"]
    assert (refused["task"], refused["reason"]) == ("edit", reason)
    assert refused["detail"].startswith(detail)


def test_no_change_in_a_workspace_is_refused(handler: Handler) -> None:
    with workspace(handler.remote, handler.top / "agents") as made:
        made.open()
        handler.depends_on("edit", {"workspace": made.save("nothing").as_output()})
    assert handler.run() == 65
    assert handler.result["refused"][0]["reason"] == "empty"


def test_what_may_go_well_later_is_tried_again(handler: Handler) -> None:
    edited(handler)
    assert handler.run("--test", "false") == 1
    assert handler.result["waits"].startswith("main fails its own tests")


def test_a_branch_that_is_not_there_fails_for_good(handler: Handler, capsys: pytest.CaptureFixture[str]) -> None:
    """C8: it was tried again, as if it went well later."""
    edited(handler)
    assert handler.run(into="none") == 64
    assert "has no branch none. Fix: make it, or name another." in capsys.readouterr().err
    assert handler.result["reasons"][0].startswith("nothing more has landed in none: ")
    script = f"git -C {handler.remote.path} update-ref -d refs/heads/main"
    assert handler.run("--test", script) == 64
    assert "has no branch main any more. Fix: make it again." in capsys.readouterr().err


def test_a_tag_is_no_branch(handler: Handler, capsys: pytest.CaptureFixture[str]) -> None:
    edited(handler)
    git("tag", "v1", "main", cwd=handler.remote.path)
    assert handler.run(into="v1") == 64
    assert "has no branch v1" in capsys.readouterr().err


def test_a_task_that_says_no_merge_fails_for_good(handler: Handler, capsys: pytest.CaptureFixture[str]) -> None:
    assert handler.run(tasks=()) == 64
    assert main([], {}) == 64
    assert main([], {"SPOOL_TASK_FILE": "/none"}) == 64


@pytest.mark.parametrize(
    ("living", "known"),
    [
        ({"me": "/srv/a.git", "mz": "/srv/b.git {repo}"}, ", and mz does"),
        ({"me": "/srv/a.git"}, ", and no live worker does: add it to repos in [merge] of a worker"),
        ({"me": "/srv/a.git", "by-hand": ""}, ""),
        (None, ""),
    ],
)
def test_a_repository_that_this_worker_does_not_merge_is_left_to_another(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, living: dict[str, str] | None, known: str
) -> None:
    """Two merge workers of different repositories failed each other's merges for good: exit 64."""
    repo = str(handler.remote.path)
    if living is not None:
        found = {node: {"repos": repos.replace("{repo}", repo)} for node, repos in living.items()}
        monkeypatch.setattr(capabilities, "list_about", lambda *asked: found)
        (tmp_path / "spool").mkdir()
        initialise(PosixFileSystem(str(tmp_path / "spool")), SystemClock(), "spool", str(tmp_path / "spool"))
        handler.env["SPOOL_ROOT"] = str(tmp_path / "spool")
    assert handler.run("--repo", "/srv/only") == 75
    why = f"this worker does not merge {repo}{known}"
    assert handler.result == {"outcome": "later", "reasons": [why], "not_here": "task", "retry_after_s": 15.0}
    (handler.top / "previous.json").write_text(json.dumps({"output": handler.result}))
    handler.env["SPOOL_PREVIOUS_FILE"] = str(handler.top / "previous.json")
    assert handler.run("--repo", "/srv/only") == 75
    assert handler.result["retry_after_s"] == 30, "where nobody can, it rests for longer each time"


def test_references_that_landed_go_where_that_is_wanted(
    handler: Handler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    edited(handler)
    assert handler.run() == 0
    assert list(handler.remote.refs()) == ["refs/spool/edit/1"]
    edited(handler, "next")
    monkeypatch.setattr("spoold.agents.merge.__main__.time.time", lambda: 4e9)
    assert handler.run("--keep-refs", "60", tasks=("next",)) == 0
    assert handler.remote.refs() == {}
    assert "removed refs/spool/edit/1, which landed" in capsys.readouterr().out


def test_a_repository_that_is_named_may_be_merged(handler: Handler) -> None:
    edited(handler)
    assert handler.run("--repo", "/other", "--repo", f"file://{handler.remote.path}/") == 0
    assert handler.result["repo"] == str(handler.remote.path)


def test_a_repository_is_opened_by_the_address_of_the_handler(handler: Handler) -> None:
    """G6: a link that a task names may lead elsewhere a moment later."""
    edited(handler)
    link = handler.top / "link"
    link.symlink_to(handler.remote.path)
    assert handler.run(repo=str(link)) == 0
    assert handler.result["repo"] == str(handler.remote.path)
    assert [one["task"] for one in handler.result["landed"]] == ["edit"]


def test_a_handler_that_names_no_repository_merges_nothing(
    handler: Handler, capsys: pytest.CaptureFixture[str]
) -> None:
    """G19: it pushed to whatever repository a task named, and ran its hooks and its tests."""
    edited(handler)
    assert handler.run(bare=True) == 64
    assert 'names no repository, so anybody could name one. Fix: add "--repo"' in capsys.readouterr().err
    assert handler.remote.commit("main") == handler.remote.first
    assert handler.run("--repo", "ext::sh") == 64
    assert "--repo" in capsys.readouterr().err
    assert handler.run("--max-files", "0") == 64
    assert "the command of this handler: --max-files: too small" in capsys.readouterr().err


def test_a_remote_that_is_away_is_tried_later_and_costs_nothing(
    handler: Handler, capsys: pytest.CaptureFixture[str]
) -> None:
    """G15: with pauses that grow."""
    edited(handler)
    assert handler.run("--test", "false", tasks=("none",)) == 65
    handler.remote.path.rename(handler.top / "away")
    assert handler.run() == 75
    assert handler.result["outcome"] == "later"
    assert "cannot be read here" in handler.result["reasons"][0]
    first = handler.result["retry_after_s"]
    before = handler.top / "previous.json"
    before.write_text(json.dumps({"attempt": 1, "output": handler.result}))
    handler.env["SPOOL_PREVIOUS_FILE"] = str(before)
    assert handler.run() == 75
    assert handler.result["retry_after_s"] == 2 * first
    (handler.top / "away").rename(handler.remote.path)
    assert handler.run() == 0
    assert "cannot be read here" in capsys.readouterr().err


def test_what_was_made_and_is_not_in_the_work_is_told(handler: Handler, capsys: pytest.CaptureFixture[str]) -> None:
    """G17: nobody merges half of some work unknowingly."""
    said = edited(handler)
    lacks = {
        "left_out": ["pipe: it is no file", 7],
        "beside": ["the branch other: abc, below refs/spool/edit/1.more"],
    }
    handler.depends_on("edit", {"workspace": {**said, **lacks}})
    assert handler.run() == 0
    (landed,) = handler.result["landed"]
    assert (landed["left_out"], landed["beside"]) == (["pipe: it is no file", "7"], lacks["beside"])
    assert "edit: not in what landed: pipe: it is no file" in capsys.readouterr().out
    assert handler.run() == 0
    assert "edit: not in what landed: the branch other" in capsys.readouterr().out


def test_the_table_of_the_worker_says_it_all(handler: Handler) -> None:
    edited(handler)
    table = {"repos": str(handler.remote.path), "test": "test -e edit.txt", "dir": str(handler.top / "merger")}
    made = expand({"merge": {**table, "max_files": 1}}, "w.toml", {})["handlers"]["merge"]
    handler.env = made["env"]
    assert handler.run("--repo", "/not/this") == 0
    edited(handler, "more", {"a.txt": "2\n", "b.txt": "2\n"})
    assert handler.run("--repo", "/not/this", tasks=("more",)) == 65
    assert handler.result["refused"][0]["reason"] == "max_files"


def test_tokens_keep_work_out_though_outputs_may_have_them(handler: Handler) -> None:
    """B6: `[redact] tokens = false` let them into the branch, with not a word."""
    table = {"repos": str(handler.remote.path), "dir": str(handler.top / "merger"), "no_secrets": True}
    edited(handler, "leaks", {"a.txt": f"{TOKEN}\n"})
    edited(handler, "named", {"b.txt": "internal-123456\n"})
    said = {"merge": table, "redact": {"tokens": False, "patterns": ["internal-[0-9]{6}"]}}
    handler.env = expand(said, "w.toml", {})["handlers"]["merge"]["env"]
    assert handler.run(tasks=("leaks", "named")) == 65
    assert [one["reason"] for one in handler.result["refused"]] == ["secret", "secret"]


def test_a_branch_that_is_checked_out_is_told_with_its_fix(
    handler: Handler, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was told to let this user push, behind a text of git that began within a word."""
    handler.remote.path = handler.remote.clone
    edited(handler)
    assert handler.run() == 65
    repo = handler.remote.path
    fix = f"use a bare repository, or run `git -C {repo} config receive.denyCurrentBranch updateInstead`."
    assert handler.result["refused"] == [
        {"task": "edit", "reason": "remote", "detail": f"main is checked out in {repo}: {fix}"}
    ]
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"1 task not landed in main: edit (remote: main is checked out in {repo}: {fix})"
    assert handler.result["reasons"] == [last]
    git("config", "receive.denyCurrentBranch", "updateInstead", cwd=repo)
    write(repo, {"a.txt": "changed by a person\n"})
    assert handler.run() == 65
    assert "and files there were changed: commit or stash them" in handler.result["refused"][0]["detail"]
    git("checkout", "-q", "--", "a.txt", cwd=repo)
    assert handler.run() == 0
    assert (repo / "edit.txt").read_text() == "x\n"


def test_what_git_said_is_cut_between_words() -> None:
    failed = GitFailed(("push",), 1, "error: " + " ".join(f"word{number}" for number in range(300)))
    assert re.match(r"… word\d+ word\d+ ", said(failed))
    assert re.search(r"failed: … word\d+ word\d+ ", str(failed))
    assert said(GitFailed(("push",), 1, "error: short")) == "error: short."


@pytest.mark.parametrize("number", range(0, 30, 3))
def test_a_program_of_a_merge_that_is_killed_costs_no_retry(
    handler: Handler, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """As by a machine whose memory is full, before any command of git; the next attempt lands it, once."""
    said = edited(handler)
    handler.depends_on("edit", {"workspace": said})
    once, left = Git._once, [number]

    def struck(self: Git, *words: Any) -> Any:
        left[0] -= 1
        return Done(-signal.SIGKILL, "", "") if left[0] == -1 else once(self, *words)

    monkeypatch.setattr(Git, "_once", struck)
    code = handler.run()
    assert code in (0, 75), handler.result
    assert code == 0 or "killed" in handler.result["reasons"][0] or "away" in handler.result["outcome"]
    monkeypatch.undo()
    assert code == 0 or handler.run() == 0
    assert handler.remote.read("main", "edit.txt") == "x\n"
    assert git("rev-list", "--count", "--first-parent", "main", cwd=handler.remote.path) == "2"
