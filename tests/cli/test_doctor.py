"""Goal: `spool doctor` says the verdict last, with the reason, and scripts see it in the exit code."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from spoold.faces.cli.verbs.doctor import show
from spoold.protocol.doctor_report import Remark, Report
from spoold.protocol.heartbeat import Capabilities
from spoold.store.own_heartbeat import Presence
from spoold.system.host import SystemHost
from tests.cli.command import make, opened, spool, told

COMMIT = ("-c", "user.name=x", "-c", "user.email=x@y", "commit", "-q", "--allow-empty", "-m", "first")


def test_a_safe_directory(tmp_path: Path) -> None:
    result = spool(tmp_path, "doctor", str(tmp_path), "--quick")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{tmp_path}: ")
    assert lines[-2].startswith("safe with rename: as far as")
    assert lines[-1].startswith("for bug reports: spoold ")
    assert "spool init DIR" in result.stdout


def test_without_a_directory_it_is_the_spool(tmp_path: Path) -> None:
    answer = told(make(tmp_path / "s"), "doctor", "--quick")
    assert Report.model_validate(answer).model_dump(mode="json") == answer
    assert (answer["directory"], answer["measured"]["marker"]["present"]) == (str(tmp_path / "s"), True)


def test_what_is_not_safe_is_an_exit_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remark = Remark(grade="bad", probe="mount", problem="it is soft", mend="hard", against=("rename", "lock"))
    report = Report(at="", node="n", verdict="not safe", reason="since it is soft", remarks=(remark,))
    monkeypatch.setattr("spoold.doctor.examine.examine", lambda order, say: report)
    result = spool(tmp_path, "doctor", str(tmp_path))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1:4] == ["not safe: it is soft", "    fix: hard", "not safe: since it is soft"]


def test_what_only_one_strategy_needs_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    remark = Remark(grade="bad", probe="locks", problem="flock gives ENOLCK", against=("lock",))
    show(Report(at="", node="n", verdict="safe with rename", reason="so", remarks=(remark,)))
    assert capsys.readouterr().out.splitlines()[1] == "no lock: flock gives ENOLCK"


def test_what_was_found_on_another_machine_is_told_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    remark = Remark(grade="warning", probe="mount", problem="noac", mend="drop it", host="laptop2")
    show(Report(at="", node="n", verdict="safe with rename", reason="so", remarks=(remark,)))
    assert capsys.readouterr().out.splitlines()[1:3] == ["warning: laptop2: noac", "    fix: drop it"]


@pytest.mark.parametrize(
    ("words", "code"), [(("/nonexistent/share",), 69), (("--with", "0"), 2), (("--wait", "soon"), 2)]
)
def test_misuse(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    assert spool(tmp_path, "doctor", *words).exit_code == code


def test_agents_are_tried_as_their_worker_would_start_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "codex").write_text("#!/bin/sh\necho codex-cli 0.169.0\n")
    (tmp_path / "codex").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    file = tmp_path / "worker.toml"
    file.write_text('[handlers.t]\ncommand = ["true"]\n[agents.coder]\ncli = "codex"\n')
    result = spool(tmp_path, "doctor", "--agents", "--config", str(file))
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines()[1].split() == ["coder", "codex", "0.169.0", "ok", f"{tmp_path}/codex"]
    assert result.stderr == "coder: starts codex to see whether it runs\n"
    file.write_text(
        '[agents.coder]\ncli = "codex"\nsecrets = ["KEY"]\n[agents.other]\ncli = "qwen"\n'
        f'[secrets]\nKEY = {{file = "{tmp_path}/none"}}\n'
    )
    result = spool(tmp_path, "doctor", "--agents", "--config", str(file), "--json")
    assert result.exit_code == 1
    said = {one["agent"]: one for one in json.loads(result.stdout)}
    assert (said["coder"]["verdict"], said["other"]["verdict"]) == ("secret missing", "not installed")
    assert "it lacks the secret KEY" in said["coder"]["why"]
    assert all(one["fix"] for one in said.values())
    lines = spool(tmp_path, "doctor", "--agents", "--config", str(file)).stdout.splitlines()
    assert "other: it lacks the program qwen, which is nowhere in its PATH" in lines


def test_what_will_fail_their_tasks_is_named_with_file_field_and_fix(tmp_path: Path) -> None:
    file, root = tmp_path / "worker.toml", make(tmp_path / "s")
    text = f'spool = "{root}"\n[agents.coder]\ncli = "generic"\ncommand = ["true"]\n'
    text += f'then = "merge"\nworkspace.repo = "{tmp_path}/app.git"\n'
    file.write_text(text)
    result = spool(root, "doctor", "--agents", "--config", str(file))
    told = " ".join(result.stdout.split())
    assert (result.exit_code, result.stdout.splitlines()[1].split()[2]) == (1, "-")
    assert "warned" in result.stdout.splitlines()[1]
    assert f"{file}: agents.coder.workspace.repo: {tmp_path}/app.git is not there" in told
    assert f"{file}: agents.coder.then: " in told
    assert f'add repos = ["{tmp_path}/app.git"] below [merge]' in told
    assert "no live worker merges it" in told
    result = spool(tmp_path / "none", "doctor", "--agents", "--config", str(file), "--json")
    (said,) = json.loads(result.stdout)
    assert [one["field"] for one in said["foreseen"]] == ["agents.coder.workspace.repo", "agents.coder.then"]
    assert [one["sure"] for one in said["foreseen"]] == [True, False], "there was no spool to ask"


def test_a_live_worker_that_merges_it_is_enough(tmp_path: Path) -> None:
    file, root = tmp_path / "worker.toml", make(tmp_path / "s")
    subprocess.run(["git", "init", "-q", str(tmp_path / "app")], check=True)
    text = '[agents.coder]\ncli = "generic"\ncommand = ["true"]\nthen = "merge"\n'
    file.write_text(f'{text}workspace.repo = "{tmp_path}/app"\n')
    assert spool(root, "doctor", "--agents", "--config", str(file)).exit_code == 1
    about = {"merge": {"repos": f"/srv/other.git {tmp_path}/app"}}
    can = Capabilities(cpus=1, mem_mb=64, handlers=("merge",), about=about)
    Presence(opened(root, "w-0001"), SystemHost(), "worker").beat(0, "working", slots=1, capabilities=can)
    result = spool(root, "doctor", "--agents", "--config", str(file))
    assert (result.exit_code, "then" in result.stdout) == (0, False), result.output


def test_a_merger_of_a_checkout_is_a_row_of_its_own(tmp_path: Path) -> None:
    file, repo = tmp_path / "worker.toml", tmp_path / "app"
    for words in (["init", "-q", "-b", "main", str(repo)], ["-C", str(repo), *COMMIT]):
        subprocess.run(["git", *words], check=True)
    file.write_text(f'[merge]\nrepos = ["{repo}"]\n')
    result = spool(tmp_path, "doctor", "--agents", "--config", str(file))
    assert result.exit_code == 1
    assert result.stdout.splitlines()[1].split() == ["merge", "git", "-", "warned", "-"]
    told = " ".join(result.stdout.split())
    assert f"{file}: merge.repos: main is checked out in {repo}" in told
    assert f"or run `git -C {repo} config receive.denyCurrentBranch updateInstead`" in told
    subprocess.run(["git", "-C", str(repo), "config", "receive.denyCurrentBranch", "updateInstead"], check=True)
    result = spool(tmp_path, "doctor", "--agents", "--config", str(file))
    assert result.exit_code == 0


def test_agents_need_a_file_of_a_worker(tmp_path: Path) -> None:
    result = spool(tmp_path, "doctor", "--agents")
    assert (result.exit_code, "--config" in result.stderr) == (2, True)
    (tmp_path / "worker.toml").write_text("")
    result = spool(tmp_path, "doctor", "--config", str(tmp_path / "worker.toml"))
    assert (result.exit_code, "has no profile" in result.stdout) == (0, True)
