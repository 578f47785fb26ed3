"""One attempt of an agent: `python -m spoold.agents` with a scripted agent, from the prompt to the result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from spoold.agents.process import interfaces
from spoold.agents.sandbox.protected_files import guarded
from spoold.agents.workspace.git import Git
from tests.agents.attempts import Desk
from tests.agents.workspace.repos import Remote

WRITES = """
import sys
prompt = sys.stdin.read()
open("out.md", "w").write(prompt)
print("SPOOL:SESSION " + '{"id": "s-1"}')
print('SPOOL:USAGE {"tokens_in": 10, "tokens_out": 2, "tokens_cached": 500, "cost_usd": 0.25}')
print('SPOOL:USAGE {"tokens_in": 5, "tokens_out": 1, "cost_usd": 0.5}')
print('SPOOL:COMPLETED {"text": "wrote it"}')
"""


def test_what_it_says_becomes_the_result(tmp_path: Path) -> None:
    ended = Desk(tmp_path, WRITES).run(prompt="Fix it.")
    assert ended.code == 0, ended.said
    assert {**ended.result, "usage": None} == {
        "outcome": "done",
        "text": "wrote it",
        "session": "s-1",
        "reasons": [],
        "changed_files": ["out.md"],
        "tools": 0,
        "tokens_used": 18,
        "cost_usd": 0.75,
        "usage": None,
    }
    assert ended.result["usage"]["cost"] == "reported"
    assert ended.result["usage"]["tokens_cached"] == 500
    assert ended.progress["tokens_used"] == 18
    assert "wrote it" in ended.said, "and the log of the attempt shows its words"


@pytest.mark.parametrize("prompt", ["-la --yolo", "x" * (1 << 20), "a\n\0b {deps} {model}"])
def test_a_prompt_arrives_whole(tmp_path: Path, prompt: str) -> None:
    desk = Desk(tmp_path, WRITES)
    assert desk.run(prompt=prompt).code == 0
    assert (desk.work / "out.md").read_text() == prompt


def test_a_prompt_that_nobody_reads_holds_nothing_up(tmp_path: Path) -> None:
    ended = Desk(tmp_path, "print('no need')").run(prompt="x" * (1 << 20))
    assert (ended.code, ended.result["outcome"], ended.result["text"]) == (0, "no_change", "no need")


def test_a_prompt_may_stand_in_a_file_of_the_workspace_and_nowhere_else(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRITES, cwd=tmp_path / "repo")
    (tmp_path / "repo").mkdir()
    (tmp_path / "secret").write_text("a key")
    (tmp_path / "repo" / "plan.md").write_text("Do {deps.a.output}.")
    os.symlink(tmp_path / "secret", tmp_path / "repo" / "link.md")
    desk.deps = {"a": {"output": "that"}}
    assert desk.run(prompt_file="plan.md").code == 0
    assert (tmp_path / "repo" / "out.md").read_text() == "Do that."
    ended = desk.run(prompt_file="link.md")
    assert (ended.code, ended.result["reasons"]) == (64, ["prompt_file link.md: it is not in the workspace"])


MAKES = """import pathlib, sys
for name in ("new/.git", "bare/objects", "bare/refs", "old/.git"):
    pathlib.Path(name).mkdir(parents=True, exist_ok=True)
for name in ("bare/HEAD", "new/.git/HEAD"):
    pathlib.Path(name).write_text("ref: refs/heads/main")
print("made")
"""


def test_repositories_that_an_agent_made_in_a_folder_of_its_owner_are_named(tmp_path: Path) -> None:
    """G: their hooks and settings run where the owner uses git there."""
    desk = Desk(tmp_path, MAKES, cwd=tmp_path / "mine")
    (tmp_path / "mine" / "old" / ".git" / "refs").mkdir(parents=True)
    ended = desk.run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (0, "done")
    named = [line.partition(":")[0] for line in ended.result["warnings"]]
    assert named == ["bare", "new"], "and none that was there before"
    assert "new: the agent made a repository there. Git run in it runs its hooks" in ended.said
    assert "warnings" not in desk.run(prompt="x").result, "the next one finds them"


def test_a_repository_in_the_place_of_another_is_known_by_its_inode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: the owner's, which was moved away, is not the only one that is named. B6: an empty `.git` is none."""
    for name in ("work", "mine/libs/sub/.git/refs"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "mine")
    folder = interfaces.Folder({"SPOOL_WORK_DIR": f"{tmp_path}/work", "XDG_STATE_HOME": str(tmp_path / "state")})
    folder.open()
    (tmp_path / "mine" / ".git").mkdir()
    assert folder.save("").warnings == ()
    (tmp_path / "mine/libs").rename(tmp_path / "mine/old")
    (tmp_path / "mine/libs/sub/.git/refs").mkdir(parents=True)
    moved, made = sorted(folder.save("").warnings, reverse=True)
    assert moved.startswith("old/sub: the agent made a repository there")
    assert made.startswith("libs/sub: the agent put another repository in the place")


@pytest.mark.parametrize("where", [".", "libs", "libs/sub"])
def test_what_looks_like_a_bare_repository_hides_none_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Three names, also in a folder that has a `.git`: git goes into the folders below as before."""
    for name in ("work", "mine/.git/refs", "mine/libs/sub/deep"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "mine")
    folder = interfaces.Folder({"SPOOL_WORK_DIR": f"{tmp_path}/work", "XDG_STATE_HOME": str(tmp_path / "state")})
    folder.open()
    for name in ("refs", "objects"):
        (tmp_path / "mine" / where / name).mkdir()
    (tmp_path / "mine" / where / "HEAD").write_text("ref: refs/heads/m\n")
    (tmp_path / "mine/libs/sub/deep/.git/refs").mkdir(parents=True)
    assert [one for one in folder.save("").warnings if one.startswith("libs/sub/deep: the agent made a repository")]


@pytest.mark.parametrize("name", ["config", "HEAD", "index", "commondir", "config.worktree", "link"])
def test_a_pipe_in_a_git_directory_of_a_folder_delays_no_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The next one began 10 s later: git waited for the pipe, and it for git."""
    (tmp_path / "work").mkdir()
    made = tmp_path / "mine" / "x"
    subprocess.run(["git", "init", "-q", str(made)], check=True)
    path = made / ".git" / ("config" if name == "link" else name)
    path.unlink(missing_ok=True)
    pipe = made / ".git" / "pipe" if name == "link" else path
    os.mkfifo(pipe)
    if name == "link":
        path.symlink_to("pipe")
    monkeypatch.chdir(tmp_path / "mine")
    folder = interfaces.Folder({"SPOOL_WORK_DIR": f"{tmp_path}/work", "XDG_STATE_HOME": str(tmp_path / "state")})

    def asked(*words: object, **how: object) -> None:
        pytest.fail("git was started in it")

    monkeypatch.setattr(Git, "ask", asked)
    assert folder.open().submodules is None


def test_a_submodule_that_is_not_there_is_known_in_every_repository_of_a_folder(tmp_path: Path) -> None:
    """B4: also in one that lies within, and in one whose git directory lies elsewhere."""
    tree, row = tmp_path / "mine" / "tree", f"160000,{'1' * 40},libs/sub"
    (tmp_path / "mine").mkdir()
    subprocess.run(["git", "init", "-q", f"--separate-git-dir={tmp_path}/data", str(tree)], check=True)
    subprocess.run(["git", "-C", str(tree), "update-index", "--add", "--cacheinfo", row], check=True)
    (tree / "libs").mkdir()
    assert interfaces._submodules(f"{tmp_path}/mine", ["tree"]) == ("tree/libs/sub",)
    assert interfaces._submodules(str(tree)) == ("libs/sub",)
    assert interfaces._submodules(f"{tree}/libs") == ("sub",)


def test_a_submodule_of_a_submodule_is_known(tmp_path: Path) -> None:
    """The repository of a submodule names its tree, which the cage of the git that lists does not have."""
    own, row = tmp_path / ".git/modules/s1", f"160000,{'1' * 40},s2"
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    own.parent.mkdir()
    subprocess.run(["git", "init", "-q", f"--separate-git-dir={own}", f"{tmp_path}/s1"], check=True)
    subprocess.run(["git", "-C", str(own), "config", "core.worktree", "../../../s1"], check=True)
    subprocess.run(["git", "-C", f"{tmp_path}/s1", "update-index", "--add", "--cacheinfo", row], check=True)
    assert interfaces._submodules(str(tmp_path), ["s1"]) == ("s1/s2",)
    row = row.replace("s2", "s1")
    subprocess.run(["git", "-C", str(tmp_path), "update-index", "--add", "--cacheinfo", row], check=True)
    assert set(interfaces._submodules(str(tmp_path)) or ()) == {"s1", "s1/s2"}


def test_where_submodules_cannot_be_listed_in_time_no_sandbox_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a list that is cut short leaves out would be open to the agent."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(interfaces, "LOOK_S", 0.0)
    found = interfaces._submodules(str(tmp_path))
    assert found is None
    held = guarded(str(tmp_path), "shared", found)
    assert "took too long" in held.loose[0]
    assert "cwd" in held.loose[1]


def test_in_a_folder_too_large_to_be_looked_at_nothing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interfaces, "FILES_MAX", 3)
    for number in range(3):
        (tmp_path / f"{number}").mkdir()
    assert interfaces._repositories(str(tmp_path)) == {}
    (tmp_path / "3").mkdir()
    assert interfaces._repositories(str(tmp_path)) is None


def test_results_of_earlier_tasks_come_into_the_prompt(tmp_path: Path) -> None:
    deps = {
        "plan.1": {"output": {"outcome": "done", "text": "the {deps.b.output} plan", "n": 7}},
        "b": {"output": [1]},
    }
    desk = Desk(tmp_path, WRITES, deps=deps)
    desk.run(prompt="{deps.plan.1.output} | {deps.plan.1.output.n} | {deps.B.output} | {other}")
    assert (desk.work / "out.md").read_text() == "the {deps.b.output} plan | 7 | [1] | {other}"
    ended = desk.run(prompt="{deps.c.output}")
    assert ended.code == 64
    assert "no result of c (there are: b, plan.1)" in ended.result["reasons"][0]
    assert desk.run(prompt="{deps.plan.1.output.m}").code == 64


FAILS: list[tuple[str, int, str, str]] = [
    ("", 1, "failed", "said nothing and changed nothing"),
    ("print('[API Error: Connection error.]')", 1, "failed", "API Error"),
    ("import sys; print('x'); sys.exit(3)", 1, "failed", "exit code 3"),
    ("""print('SPOOL:FAILED {"reason": "no key", "fault": "auth"}')""", 77, "refused", "auth: no key"),
    ("""print('SPOOL:FAILED {"reason": "what?", "fault": "input"}')""", 64, "refused", "input: what?"),
    ("""print('SPOOL:FAILED {"reason": "too long", "fault": "context"}')""", 65, "blocked", "context: too long"),
    ("""print('SPOOL:BLOCKED {"reason": "no branch"}'); print("bye")""", 65, "blocked", "no branch"),
    ("""print('SPOOL:FAILED {"reason": "net", "fault": "odd"}')""", 1, "failed", "transient: net"),
    ("""print('SPOOL:QUESTION {"text": "Which?"}')""", 65, "blocked", "Which?"),
    ("""print('SPOOL:FAILED {"reason": "no", "fault": "permission"}')""", 65, "blocked", "permission: no"),
]


@pytest.mark.parametrize(("script", "code", "outcome", "reason"), FAILS)
def test_what_is_no_success(tmp_path: Path, script: str, code: int, outcome: str, reason: str) -> None:
    ended = Desk(tmp_path, script).run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (code, outcome), ended.said
    assert reason in ended.result["reasons"][0]


def test_a_spent_quota_and_a_rate_name_the_limit_of_the_profile(tmp_path: Path) -> None:
    script = """print('SPOOL:FAILED {"reason": "spent", "fault": "quota", "retry_after_s": 900}')"""
    before = time.time()
    ended = Desk(tmp_path, script, {"limit": "anthropic"}).run(prompt="x")
    assert (ended.code, ended.result["quota"]["limit"]) == (75, "anthropic")
    from datetime import datetime

    until = datetime.fromisoformat(ended.result["quota"]["until"]).timestamp()
    assert before + 895 <= until <= time.time() + 905
    ended = Desk(tmp_path, script).run(prompt="x")
    assert (ended.code, ended.result["retry_after_s"]) == (75, pytest.approx(900, abs=5))
    slow = """print('SPOOL:FAILED {"reason": "slower", "fault": "rate"}')"""
    ended = Desk(tmp_path, slow, {"limit": "anthropic"}).run(prompt="x")
    assert (ended.code, ended.result["quota"]["limit"]) == (75, "anthropic"), "so that no other agent asks in vain"
    ended = Desk(tmp_path, slow).run(prompt="x")
    assert (ended.code, ended.result["retry_after_s"]) == (75, 30)


def test_an_agent_that_stays_after_a_spent_quota_is_ended(tmp_path: Path) -> None:
    script = """
import time
print('SPOOL:FAILED {"reason": "spent", "fault": "quota"}', flush=True)
while True:
    time.sleep(0.1)
    print('SPOOL:PROGRESS {"text": "trying again"}', flush=True)
"""
    began = time.monotonic()
    ended = Desk(tmp_path, script, {"limit": "anthropic"}).run(prompt="x")
    assert (ended.code, ended.result["quota"]) == (75, {"limit": "anthropic"})
    assert time.monotonic() - began < 30


# Of this process alone: other tests run beside it.
LONG = f"7531.{os.getpid()}"
HANGS = f"""
import os, subprocess, sys, time
subprocess.Popen(["sleep", "{LONG}"], start_new_session=True)
open("began", "w").close()
print("thinking", flush=True)
time.sleep(7531)
"""


def survivors() -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if one.info["cmdline"] == ["sleep", LONG]]


def test_a_silent_agent_is_ended_with_all_its_processes(tmp_path: Path) -> None:
    ended = Desk(tmp_path, HANGS, {"idle_timeout": 1}).run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (1, "failed")
    assert ended.result["reasons"] == ["transient: it said nothing for 1 s"]
    assert ended.result["changed_files"] == ["began"]
    assert not survivors()


# Silent for longer than it may be; what is at work is a child of its child, in a session of its own.
WORKS = """
import subprocess, sys, time
print("thinking", flush=True)
line = "import time; until = time.monotonic() + 4\\nwhile time.monotonic() < until: pass"
subprocess.run(["/bin/sh", "-c", "/usr/bin/python3 -c '" + line + "'; true"], start_new_session=True, check=True)
print("worked")
"""


@pytest.mark.parametrize("kind", ["none", "bwrap"])
@pytest.mark.usefixtures("bubblewrap")
def test_a_silent_agent_whose_processes_work_is_left_alone(tmp_path: Path, kind: str) -> None:
    """G13: an agent whose subagent worked was ended as silent."""
    shown = [*map(str, Path(sys.executable).resolve().parents[1:2]), str(tmp_path / "agent.py")]
    sandbox = {"kind": kind, "show": shown} if kind != "none" else kind
    ended = Desk(tmp_path, WORKS, {"idle_timeout": 2, "sandbox": sandbox}).run(prompt="x")
    assert (ended.code, ended.result["text"]) == (0, "thinking\nworked"), ended.said


def test_a_busy_loop_is_no_work_for_ever(tmp_path: Path) -> None:
    """G13: where the attempt has no timeout of its own."""
    ended = Desk(tmp_path, "print('x', flush=True)\nwhile True: pass", {"idle_timeout": 0.5}).run(prompt="x")
    assert ended.result["reasons"] == ["transient: it said nothing for 4 s, although its processes were busy"]


def test_one_that_never_says_a_word_has_its_own_bound(tmp_path: Path) -> None:
    ended = Desk(tmp_path, "import time; time.sleep(60)", {"start_timeout": 0.5}).run(prompt="x")
    assert ended.result["reasons"] == ["transient: it said nothing for 0.5 s"]


def test_a_stop_saves_what_there_is(tmp_path: Path) -> None:
    desk = Desk(tmp_path, HANGS)
    process = desk.start({"prompt": "x"})
    until = time.monotonic() + 30
    while not (desk.work / "began").exists():
        assert time.monotonic() < until
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=30)
    ended = desk.ended(process.returncode, said)
    assert (ended.code, ended.result["text"], ended.result["changed_files"]) == (143, "thinking", ["began"])
    assert not survivors()


def test_a_background_process_does_not_outlive_the_agent_nor_hold_its_end_up(tmp_path: Path) -> None:
    script = f"import subprocess\nsubprocess.Popen(['sleep', '{LONG}'], start_new_session=True)\nprint('done')"
    began = time.monotonic()
    assert Desk(tmp_path, script).run(prompt="x").code == 0
    assert not survivors()
    assert time.monotonic() - began < 30


def test_a_program_that_is_not_there_is_for_another_worker(tmp_path: Path) -> None:
    ended = Desk(tmp_path, "", {"command": ["/nowhere/agent"]}).run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (127, "failed")
    assert ended.result["reasons"] == ["/nowhere/agent cannot be started: No such file or directory"]


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"sandbox": {"kind": "bwrap", "show": ["/nowhere"]}}, 126),
        ({"workspace": {"repo": "/nowhere/app.git"}}, 75),
    ],
)
@pytest.mark.usefixtures("bubblewrap")
def test_what_is_not_there_is_never_left_out(tmp_path: Path, more: dict[str, Any], code: int) -> None:
    ended = Desk(tmp_path, WRITES, more, env={"XDG_CACHE_HOME": str(tmp_path / "cache")}).run(prompt="x")
    assert ended.code == code, ended.said
    assert "/nowhere" in ended.result["reasons"][0]
    assert not list((tmp_path / "attempt" / "work").iterdir())


@pytest.mark.parametrize(
    ("task", "line"),
    [
        ({"accept": ["true"]}, "allow_accept = true"),
        ({"success_if": {"command": ["true"]}}, "allow_accept = true"),
        ({"model": "big"}, 'allow_models = ["big"]'),
        ({"workspace": {"repo": "/srv/a"}}, 'allow_repos = ["/srv/a"]'),
    ],
)
def test_a_task_that_asks_for_more_is_refused_with_the_line_to_add(
    tmp_path: Path, task: dict[str, Any], line: str
) -> None:
    ended = Desk(tmp_path, WRITES).run(prompt="x", **task)
    assert (ended.code, ended.result["outcome"]) == (64, "refused")
    assert line in ended.result["reasons"][0]
    assert not list((tmp_path / "attempt" / "work").iterdir())


def test_conditions_are_tried_where_the_agent_worked(tmp_path: Path) -> None:
    profile = {"accept": ["test -s out.md"], "allow_accept": True}
    task = {"accept": [["grep", "-c", "nothing", "out.md"]], "success_if": {"file": "out.md", "regex": "^wro.e$"}}
    ended = Desk(tmp_path, WRITES, profile).run(prompt="wrote", **task)
    assert (ended.code, ended.result["outcome"], ended.result["code"]) == (1, "not_accepted", "NOT_ACCEPTED")
    assert ended.result["reasons"] == ["grep -c nothing out.md: exit code 1\n0"]
    assert [check["holds"] for check in ended.result["checks"]] == [True, True, True, False]
    assert Desk(tmp_path, WRITES, profile).run(prompt="wrote", accept=["grep wrote out.md"]).code == 0


def test_it_must_change_something(tmp_path: Path) -> None:
    ended = Desk(tmp_path, "print('all is well')", {"must_change": True}).run(prompt="x")
    assert (ended.code, ended.result["outcome"]) == (1, "not_accepted")
    assert "it changed no file" in ended.result["reasons"][0]
    ended = Desk(tmp_path, "print('all is well')").run(prompt="x", must_change=True)
    assert ended.result["outcome"] == "not_accepted"


def test_the_next_attempt_gets_the_reasons(tmp_path: Path) -> None:
    previous = {
        "attempt": 1,
        "status": "failure",
        "error": {"code": "EXIT_NONZERO", "message": "exit code 1"},
        "output": {"outcome": "not_accepted", "session": "s-1", "reasons": ["make test: exit code 2"]},
    }
    desk = Desk(tmp_path, WRITES, previous=previous, feedback={"reason": "and shorter"})
    desk.run(prompt="Fix it.")
    said = (desk.work / "out.md").read_text()
    assert said.startswith("Fix it.\n\nThis is another attempt. Attempt 1 did not do")
    assert "- make test: exit code 2" in said
    assert said.endswith("sent it back:\n\nand shorter")


RESUMES = """
import sys
print("session " + sys.argv[1] + ": " + sys.stdin.read())
print('SPOOL:SESSION {"id": "s-2"}')
"""


def test_a_session_that_is_still_there_is_continued_without_the_whole_prompt(tmp_path: Path) -> None:
    repo = tmp_path / "repo"
    repo.mkdir()
    desk = Desk(tmp_path, RESUMES, {"args": ["{session}"], "accept": ["false"]}, cwd=repo)
    first = desk.run(prompt="Fix it.")
    assert first.result["text"].startswith("session : Fix it.")
    desk.previous = {"attempt": 1, "output": first.result}
    second = desk.run(prompt="Fix it.")
    assert second.result["text"].startswith("session s-2: Continue with the task")
    assert "false: exit code 1" in second.result["text"]
    assert "Fix it." not in second.result["text"]
    assert "session : Fix it." in desk.run(prompt="Fix it.", resume="no").result["text"]
    desk.previous["output"]["session"] = "$(touch /tmp/x)"
    assert "session : Fix it." in desk.run(prompt="Fix it.").result["text"]


@pytest.mark.parametrize("kind", ["clone", "worktree", "none"])
def test_a_session_in_a_workspace_is_continued(tmp_path: Path, kind: str) -> None:
    """G10: three attempts had three sessions."""
    place = {"dir": str(tmp_path / "spaces")}
    place |= {} if kind == "none" else {"repo": str(Remote(tmp_path).path), "kind": kind}
    desk = Desk(tmp_path, RESUMES, {"args": ["{session}"], "accept": ["false"], "workspace": place})
    said = []
    for number in ("1", "2", "3"):
        desk.env = {"SPOOL_ATTEMPT": number}
        ended = desk.run(prompt="Fix it.", **({"workspace": {"kind": kind}} if kind == "none" else {}))
        desk.previous = {"attempt": int(number), "output": ended.result}
        said.append(ended.result["text"].split(":")[0])
    assert said == ["session ", "session s-2", "session s-2"]


FAILS_TO_RESUME = """
import sys
prompt, session = sys.stdin.read(), sys.argv[1]
with open("starts", "a") as file:
    file.write(f"{session}\\n")
print('SPOOL:USAGE {"tokens_in": 10, "tokens_out": 1, "cost_usd": 0.5}')
if session:
    print('SPOOL:FAILED {"reason": "it is gone", "fault": "FAULT"}')
elif "new fails" in prompt:
    print('SPOOL:FAILED {"reason": "it is gone", "fault": "FAULT"}')
else:
    print('SPOOL:SESSION {"id": "s-2"}')
    print("new: " + prompt)
"""


def test_a_session_of_another_program_is_not_continued(tmp_path: Path) -> None:
    """Another account may have gone on with the task, in the same workspace."""
    place = {"repo": str(Remote(tmp_path).path), "dir": str(tmp_path / "places")}
    desk = Desk(tmp_path, RESUMES, {"args": ["{session}"], "accept": ["false"], "workspace": place})
    assert desk.run(prompt="Fix it.").result["text"].startswith("session : Fix it.")
    desk.previous = {"attempt": 1, "output": {"outcome": "not_accepted", "session": "s-2", "reasons": ["false"]}}
    mine, agent = desk.profile, str(tmp_path / "agent.py")
    desk.profile = {**mine, "command": [sys.executable, "-u", agent]}
    desk.env = {"SPOOL_ATTEMPT": "2"}
    assert desk.run(prompt="Fix it.").result["text"].startswith("session : Fix it.")
    desk.profile, desk.env = mine, {"SPOOL_ATTEMPT": "3"}
    assert desk.run(prompt="Fix it.").result["text"].startswith("session : Fix it."), "that of the other one is there"
    desk.env = {"SPOOL_ATTEMPT": "4"}
    assert desk.run(prompt="Fix it.").result["text"].startswith("session s-2: Continue")


def test_a_profile_that_takes_tasks_of_another_one_refuses_none_for_good(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRITES, {"cli": "generic"}, env={"SPOOL_TASK_TYPE": "coder-b"})
    ended = desk.run(prompt="Fix it.", accept=["true"])
    assert (ended.code, ended.result["outcome"], ended.result["retry_after_s"]) == (75, "later", 15)
    assert "a task may name no commands here" in ended.result["reasons"][0]
    ended = desk.run(prompt="Fix it.", model="of-the-other")
    assert (ended.code, ended.result["outcome"]) == (0, "done")
    assert "of-the-other is a model of another profile, so it does not count" in ended.said
    desk.env = {"SPOOL_TASK_TYPE": "coder"}
    assert desk.run(prompt="Fix it.", model="of-the-other").code == 64


@pytest.mark.parametrize("fault", ["session", "context", "input"])
def test_a_session_that_cannot_go_on_is_begun_anew_once(tmp_path: Path, fault: str) -> None:
    """G11: the task had failed for good."""
    repo = tmp_path / "repo"
    repo.mkdir()
    desk = Desk(tmp_path, RESUMES, {"args": ["{session}"], "accept": ["false"]}, cwd=repo)
    desk.previous = {"attempt": 1, "output": desk.run(prompt="Fix it.").result}
    desk.script = FAILS_TO_RESUME.replace("FAULT", fault)
    ended = desk.run(prompt="Fix it.")
    assert ended.result["outcome"] == "not_accepted", ended.said
    assert ended.result["text"].startswith("new: Fix it.\nThis is another attempt.")
    assert "false: exit code 1" in ended.result["text"]
    assert (ended.result["session"], ended.result["session_lost"]) == ("s-2", "s-2: it is gone")
    assert (ended.result["tokens_used"], ended.result["cost_usd"]) == (22, 1.0), "what was used in vain counts"
    assert (repo / "starts").read_text() == "s-2\n\n"
    assert "the session cannot go on, and it begins anew: s-2: it is gone" in ended.said
    desk.previous = {"attempt": 2, "output": ended.result}
    ended = desk.run(prompt="new fails")
    assert ended.result["outcome"] == {"session": "failed", "context": "blocked", "input": "refused"}[fault]
    assert (repo / "starts").read_text() == "s-2\n\n" * 2, "once, and never twice"
    assert ended.result["tokens_used"] == 22


def test_a_session_that_is_told_of_is_that_of_the_attempt_that_went_on_with_it(tmp_path: Path) -> None:
    """One that is ended before its first word goes on with it, too."""
    repo = tmp_path / "repo"
    repo.mkdir()
    desk = Desk(tmp_path, RESUMES, {"args": ["{session}"], "accept": ["false"]}, cwd=repo)
    desk.previous = {"attempt": 1, "output": desk.run(prompt="Fix it.").result}
    desk.script = "import sys; sys.exit(75)"
    ended = desk.run(prompt="Fix it.")
    assert (ended.code, ended.result["session"]) == (75, "s-2")


def test_an_agent_finds_the_attempt_and_not_its_profile(tmp_path: Path) -> None:
    script = "import json, os\nprint(json.dumps([dict(os.environ), os.getcwd()]))"
    desk = Desk(tmp_path, script, {"env": {"MINE": "1"}}, env={"PWD": "/elsewhere"})
    env, cwd = json.loads(desk.run(prompt="x").result["text"])
    assert (env["MINE"], env["SPOOL_TASK_ID"], env["PWD"], cwd) == ("1", "t", str(desk.work), str(desk.work))
    assert "SPOOL_AGENT_PROFILE" not in env


def test_a_home_is_private_and_stays_only_where_the_work_does(tmp_path: Path) -> None:
    script = """
import os, sys
home = sys.argv[1]
print(len(os.listdir(home)), oct(os.stat(home).st_mode & 0o777))
open(os.path.join(home, "session"), "w").close()
"""
    homes = tmp_path / "state" / "spoold" / "agents" / "homes"
    desk = Desk(tmp_path, script, {"args": ["{home}"], "must_change": True})
    assert [desk.run(prompt="x").result["text"] for _ in range(2)] == ["0 0o700"] * 2
    assert not list(homes.iterdir())
    desk.cwd = tmp_path / "repo"
    desk.cwd.mkdir()
    assert [desk.run(prompt="x").result["text"] for _ in range(2)] == ["0 0o700", "1 0o700"]
    (old,) = (one for one in homes.iterdir() if one.is_dir())
    os.rename(old, homes / "of-another-task")
    os.utime(homes / "of-another-task", (1, 1))
    assert desk.run(prompt="x", must_change=False).code == 1
    assert [one.name for one in homes.iterdir() if one.is_dir()] == [old.name], "what nobody came back for is removed"
    desk.profile = {"args": ["{home}"]}
    assert desk.run(prompt="x").result["outcome"] == "no_change"
    assert not list(homes.iterdir()), "nor is one kept when no attempt follows"


COUNTS_ON = """
import sys
from spoold.agents.adapters.generic import Generic
from spoold.agents.attempt.one_attempt import main
Generic.counting = "last"
sys.exit(main())
"""


def test_an_agent_that_counts_on_in_its_session_is_counted_once(tmp_path: Path) -> None:
    script = """
print('SPOOL:SESSION {"id": "s"}')
print('SPOOL:USAGE {"tokens_in": 500, "tokens_out": 50, "cost_usd": 3}')
print("done")
"""
    repo = tmp_path / "repo"
    repo.mkdir()
    desk = Desk(tmp_path, script, {"accept": ["false"]}, cwd=repo)
    used = {"tokens_in": 400, "tokens_out": 10, "tokens_cached": 0, "cost_usd": 2.0, "cost": "reported"}
    desk.previous = {"attempt": 1, "output": {"session": "s", "session_usage": used}}
    env = desk.environment({"prompt": "x"})
    for expected in ((550, 3.0), (140, 1.0)):  # only the second one finds a home of the first
        done = subprocess.run([sys.executable, "-c", COUNTS_ON], env=env, cwd=repo, timeout=60, check=False)
        result = desk.ended(done.returncode, "").result
        assert (result["tokens_used"], result["cost_usd"], result["session_usage"]["tokens_in"]) == (*expected, 500)


def test_a_result_that_is_too_large_loses_words_and_no_facts(tmp_path: Path) -> None:
    script = "print('a' * (900 << 10))\nprint('é' * (1 << 20))"
    ended = Desk(tmp_path, script).run(prompt="x")
    assert ended.code == 0
    assert len(json.dumps(ended.result, ensure_ascii=False).encode()) < 4 << 20
    assert ended.result["text"].endswith("é")


def test_no_profile_and_no_prompt_begin_nothing(tmp_path: Path) -> None:
    desk = Desk(tmp_path, WRITES, env={"SPOOL_AGENT_PROFILE": "{}"})
    assert desk.run(prompt="x").code == 64
    desk = Desk(tmp_path, WRITES)
    process = desk.start({"agent": None, "type": "coder", "prompt": None, "input": {"prompt": 7}})
    said, _ = process.communicate(timeout=30)
    assert process.returncode == 64
    assert "Fix:" in said


def test_a_repository_is_judged_by_where_it_leads(tmp_path: Path) -> None:
    """G6: `/srv/git/team/../../home/x/priv` fitted `/srv/git/team/*`."""
    desk = Desk(tmp_path, WRITES, {"allow_repos": [f"{tmp_path}/team/*"]})
    ended = desk.run(prompt="x", workspace={"repo": f"{tmp_path}/team/../home/priv"})
    assert (ended.code, ended.result["outcome"]) == (64, "refused")
    assert f'add allow_repos = ["{tmp_path}/home/priv"]' in ended.result["reasons"][0]
