"""A remote that is away, or refuses: no work is lost, and no agent is paid twice for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.attempt.cleanup import Tidying
from spoold.agents.process.ending import AWAY_MAX_S, AWAY_S, end_of_absence
from spoold.agents.workspace.workspace_layout import Places
from tests.agents.attempts import PATIENCE_S, Desk, Ended
from tests.agents.workspace.repos import Remote, pushed, workspace, write
from tests.cli.commands import spool
from tests.runner.processes import eventually

# Counts how often it was paid, changes a file, and does what the test wants.
WORKS = """
import os, subprocess, sys
with open({paid!r}, "a") as file:
    file.write("x")
with open("b.txt", "w") as file:
    file.write("two\\n")
{then}
print('SPOOL:SESSION {{"id": "s"}}')
print('SPOOL:COMPLETED {{"text": "I wrote b.txt."}}')
"""
USED = '{"tokens_in": 10, "tokens_out": 20, "cost_usd": 0.5}'
# The attempt, with other pauses.
PATIENT = """
import sys
from spoold.agents.attempt import one_attempt
one_attempt.AWAY_S, one_attempt.PAUSE_S = {}, 0.05
sys.exit(one_attempt.main())
"""


class Place:
    """An agent of a repository, on one machine."""

    def __init__(self, top: Path, then: str = "", **profile: Any) -> None:
        self.top, self.remote, self.paid = top, Remote(top), top / "paid"
        self.workspace = {"repo": str(self.remote.path), "dir": str(top / "host"), **profile.pop("workspace", {})}
        script = WORKS.format(paid=str(self.paid), then=then)
        self.desk = Desk(top, script, {"workspace": self.workspace, **profile})

    @property
    def payments(self) -> int:
        return len(self.paid.read_text()) if self.paid.exists() else 0

    def start(self, within_s: float, **task: Any) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-P", "-c", PATIENT.format(within_s)],
            cwd=self.desk.work if self.desk.work.exists() else self.top,
            env=self.desk.environment({"prompt": "x", **task}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, within_s: float = 60.0) -> Ended:
        process = self.start(within_s)
        said, _ = process.communicate(timeout=PATIENCE_S)
        return self.desk.ended(process.returncode, said)

    def killed(self) -> None:
        """Run it until it waits for the remote, and kill it there, as when a worker dies."""
        process = self.start(60.0)
        assert process.stdout is not None
        while "The push is tried again" not in process.stdout.readline():
            assert process.poll() is None
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()

    def next(self, before: Ended, attempt: int = 2) -> None:
        """Go on to the next attempt."""
        self.desk.previous = {"attempt": attempt - 1, "output": before.result}
        self.desk.env = {**self.desk.env, "SPOOL_ATTEMPT": str(attempt)}

    def away(self) -> None:
        os.rename(self.remote.path, f"{self.remote.path}.away")

    def back(self) -> None:
        os.rename(f"{self.remote.path}.away", self.remote.path)


def goes_away(top: Path) -> str:
    return f'os.rename("{top}/remote.git", "{top}/remote.git.away")'


def test_a_remote_that_comes_back_while_the_attempt_waits_costs_nothing(tmp_path: Path) -> None:
    """G15: four attempts in 16 s, each of them paid for."""
    place = Place(tmp_path, goes_away(tmp_path), accept=["test -e b.txt"])
    process = place.start(60.0)
    assert process.stdout is not None
    said: list[str] = []
    while "The push is tried again" not in (line := process.stdout.readline()):
        assert line, said
        said.append(line)
    place.back()
    process.communicate(timeout=PATIENCE_S)
    ended = place.desk.ended(process.returncode, "")
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1)
    assert place.remote.read("refs/spool/t/1", "b.txt") == "two\n"


def test_work_that_could_not_be_pushed_is_pushed_by_the_next_attempt_without_the_agent(tmp_path: Path) -> None:
    then = f"print('SPOOL:USAGE {USED}'); {goes_away(tmp_path)}"
    place = Place(tmp_path, then, accept=["test -e b.txt"], workspace={"setup": ["touch made"]})
    first = place.run(within_s=0.0)
    assert (first.code, first.result["outcome"], first.result["tokens_used"]) == (75, "later", 30), first.said
    assert first.result["retry_after_s"] == AWAY_S
    assert "cannot be read here" in first.result["reasons"][0] or "cannot be pushed" in first.result["reasons"][0]
    place.next(first)
    second = place.run(within_s=0.0)
    assert (second.code, second.result["retry_after_s"]) == (75, 2 * AWAY_S), "it is still away"
    place.back()
    place.next(second, 3)
    third = place.run()
    assert (third.code, third.result["outcome"], place.payments) == (0, "done", 1), third.said
    assert (third.result["text"], third.result["session"]) == ("I wrote b.txt.", "s")
    assert "tokens_used" not in third.result
    assert place.remote.read("refs/spool/t/1", "b.txt") == "two\n"


def test_a_message_that_came_since_is_given_to_the_agent_though_its_work_was_done(tmp_path: Path) -> None:
    told = tmp_path / "told.jsonl"
    place = Place(tmp_path, goes_away(tmp_path), accept=["test -e b.txt"])
    first = place.run(within_s=0.0)
    assert (first.code, place.payments) == (75, 1)
    place.back()
    then = "if 'Use v2.' in sys.stdin.read(): open('v2', 'w').write('x')"
    place.desk.script = WORKS.format(paid=str(place.paid), then=then)
    told.write_text('{"name": "1", "by": "ada@desk", "at": "x", "text": "Use v2."}\n')
    place.next(first)
    place.desk.env = {**place.desk.env, "SPOOL_TOLD_FILE": str(told)}
    ended = place.run()
    assert (ended.code, place.payments) == (0, 2), ended.said
    assert ended.result["changed_files"] == ["b.txt", "v2"]
    assert [one["text"] for one in ended.result["told"]] == ["Use v2."]


def test_an_attempt_that_is_killed_while_it_waits_is_not_paid_for_again(tmp_path: Path) -> None:
    place = Place(tmp_path, goes_away(tmp_path))
    place.killed()
    place.back()
    place.next(Ended(-9, {}, {}, ""))
    ended = place.run()
    assert (ended.code, ended.result["text"], place.payments) == (0, "I wrote b.txt.", 1), ended.said


@pytest.mark.parametrize("between", [0, 1])
def test_what_it_cost_is_counted_once_where_the_worker_dies(tmp_path: Path, between: int) -> None:
    """between: how many attempts find the remote still away when they begin."""
    place = Place(tmp_path, f"print('SPOOL:USAGE {USED}'); {goes_away(tmp_path)}")
    place.killed()
    place.desk.previous = {"attempt": 1, "output": None, "tokens_used": None}  # as of WORKER_DIED
    place.desk.env = {**place.desk.env, "SPOOL_ATTEMPT": "2"}
    for number in range(between):
        away = place.run(within_s=0.0)
        assert (away.code, "tokens_used" in away.result) == (75, False), away.said
        place.next(away, 3 + number)
    place.back()
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said
    assert (ended.result["tokens_used"], ended.result["cost_usd"]) == (30, 0.5)


def test_where_another_machine_has_gone_on_the_agent_works(tmp_path: Path) -> None:
    place = Place(tmp_path, goes_away(tmp_path))
    first = place.run(within_s=0.0)
    assert first.code == 75
    place.back()
    pushed(place.remote, tmp_path / "other", "t", {"c.txt": "x\n"}, attempt=2)
    place.next(first, 3)
    place.desk.script = WORKS.format(paid=str(place.paid), then="")
    ended = place.run()
    assert (ended.code, place.payments) == (0, 2), ended.said


def test_a_stop_ends_the_wait(tmp_path: Path) -> None:
    place = Place(tmp_path, goes_away(tmp_path))
    process = place.start(600.0)
    assert process.stdout is not None
    while "The push is tried again" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 75
    place.back()
    ended = place.run()
    assert (ended.code, place.payments) == (0, 1)


def test_an_agent_that_is_stopped_at_its_work_does_not_ask_for_another_try_since_its_remote_is_away(
    tmp_path: Path,
) -> None:
    """At its timeout an attempt whose agent hangs would be charged nothing, again and again."""
    place = Place(tmp_path, f"{goes_away(tmp_path)}\nimport time\ntime.sleep(600)")
    process = place.start(600.0)
    eventually(Path(f"{place.remote.path}.away").exists, PATIENCE_S)
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    ended = place.desk.ended(process.returncode, "")
    assert (ended.code, ended.result["outcome"]) == (143, "failed")
    assert "it was stopped before it was done" in ended.result["reasons"][0]
    assert set(left(ended)) == {"worker", "folder", "push"}


def test_a_remote_that_is_away_at_the_start_leaves_nothing_and_costs_nothing(tmp_path: Path) -> None:
    """G16: the workspace that could not be made counted as unsaved work for ever."""
    place = Place(tmp_path)
    pushed(place.remote, tmp_path / "host", "other", {"c.txt": "x\n"}, keep_s=0)
    place.away()
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (75, "later", 0)
    assert [one.name.partition(".")[0] for one in (tmp_path / "host" / "work").iterdir()] == ["other"]


@pytest.mark.parametrize("stands", ["nothing", "an empty folder", "a missing folder above"])
def test_a_repository_whose_share_is_not_mounted_is_away_also_where_it_was_never_fetched(
    tmp_path: Path, stands: str
) -> None:
    """B9: all retries of a task were used up in 7 s."""
    place = Place(tmp_path)
    repo = tmp_path / ("no/remote.git" if stands == "a missing folder above" else "remote.git")
    place.workspace["repo"] = str(repo)
    place.away()
    if stands == "an empty folder":
        repo.mkdir()
    first = place.run(within_s=0.0)
    assert (first.code, first.result["outcome"], place.payments) == (75, "later", 0), first.said
    assert first.result["retry_after_s"] == AWAY_S
    assert "Fix: check its address" in first.result["reasons"][0]
    place.next(first)
    second = place.run(within_s=0.0)
    assert (second.code, second.result["retry_after_s"]) == (75, 2 * AWAY_S)
    repo.parent.mkdir(exist_ok=True)
    os.rename(f"{place.remote.path}.away", repo)
    place.next(second, 3)
    assert (place.run().code, place.payments) == (0, 1)


@pytest.mark.parametrize("stands", ["a file", "a folder of other things"])
def test_a_path_at_which_something_else_stands_is_no_absence(tmp_path: Path, stands: str) -> None:
    place = Place(tmp_path)
    place.away()
    if stands == "a file":
        place.remote.path.write_text("x")
    else:
        (place.remote.path / "more").mkdir(parents=True)
    assert place.run(within_s=0.0).code == 1


@pytest.mark.parametrize("more", [{"base": "none"}, {"repo": "https://127.0.0.1:1/x.git"}])
def test_a_workspace_that_cannot_be_made_leaves_nothing(tmp_path: Path, more: dict[str, str]) -> None:
    place = Place(tmp_path, workspace=more)
    assert place.run().code == (75 if "repo" in more else 1)
    assert not list((tmp_path / "host" / "work").iterdir())


def test_a_push_that_a_rule_refuses_blocks_the_task_with_the_words_of_the_server(tmp_path: Path) -> None:
    place = Place(tmp_path)
    hook = place.remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho 'no large files, see the wiki' >&2\nexit 1\n")
    hook.chmod(0o755)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (65, "blocked", 1), ended.said
    words = (
        "the hook there says: no large files, see the wiki (pre-receive hook declined). Fix: do what the hook says"
    )
    assert words in ended.result["reasons"][0]


def test_the_pauses_grow_to_a_bound() -> None:
    before: Any = None
    pauses = []
    for _ in range(9):
        end = end_of_absence("away", before)
        pauses.append(end.more["retry_after_s"])
        before = {"output": {"outcome": "later", **end.more}}
    assert pauses == [15.0, 30.0, 60.0, 120.0, 240.0, 480.0, AWAY_MAX_S, AWAY_MAX_S, AWAY_MAX_S]
    odds: tuple[Any, ...] = (
        {"output": None},
        {"output": {"outcome": "later", "retry_after_s": "x"}},
        {"output": {}},
        "x",
    )
    for odd in odds:
        assert end_of_absence("away", odd).more["retry_after_s"] == AWAY_S


def test_setup_runs_where_the_agent_does_and_its_failure_says_what_it_said(tmp_path: Path) -> None:
    place = Place(tmp_path, accept=["test -e made.log"], workspace={"setup": ["echo made | tee made.log"]})
    ended = place.run()
    assert ended.code == 0, ended.said
    assert "made\n" in ended.said
    place = Place(tmp_path / "bad", workspace={"setup": "echo why not; exit 3"})
    ended = place.run()
    assert (ended.code, place.payments) == (1, 0)
    assert "`echo why not; exit 3` ended with 3: why not" in ended.result["reasons"][0]


def test_setup_is_stopped(tmp_path: Path) -> None:
    place = Place(tmp_path, workspace={"setup": f"touch {tmp_path}/up; sleep 600"})
    process = place.start(60.0)
    eventually((tmp_path / "up").exists, PATIENCE_S)
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert place.payments == 0


def test_setup_in_a_sandbox_sees_what_the_agent_sees(tmp_path: Path, bubblewrap: None) -> None:
    """G1: the second attempt's setup ran what the first one wrote, outside of the sandbox."""
    secret = tmp_path / "secret"
    secret.write_text("4711")
    (tmp_path / "tools").mkdir()
    agent = tmp_path / "tools" / "agent.sh"
    agent.write_text(f"#!/bin/sh\nprintf 'cat {secret} >stolen; echo x >{tmp_path}/ran\\n' >setup.sh\necho done\n")
    agent.chmod(0o755)
    place = Place(tmp_path, workspace={"setup": ["sh setup.sh || true"]})
    profile = {"command": [str(agent)], "sandbox": "bwrap", "accept": ["sh setup.sh; false"]}
    place.desk.profile = {**place.desk.profile, **profile}
    first = place.run()
    assert first.result["outcome"] == "not_accepted", first.said
    place.next(first)
    second = place.run()
    assert second.result["outcome"] == "not_accepted", second.said
    assert place.remote.read("refs/spool/t/2", "stolen") == ""
    assert not (tmp_path / "ran").exists()


def test_what_is_not_all_of_the_work_is_not_accepted(tmp_path: Path) -> None:
    """G17."""
    then = """
os.environ.update(dict.fromkeys(("GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"), "a@b"))
run = lambda *words: subprocess.run(["git", *words], check=True, stdout=subprocess.DEVNULL)
run("checkout", "-q", "-b", "side")
run("add", "-A")
run("commit", "-q", "-m", "mine")
run("checkout", "-q", "-")
"""
    place = Place(tmp_path, then)
    ended = place.run()
    assert (ended.code, ended.result["outcome"]) == (1, "not_accepted"), ended.said
    assert ended.result["reasons"][0].startswith("the branch side: ")
    assert ended.result["workspace"]["more"] == "refs/spool/t/1.more"


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ignored.txt", "it is not in the work: git ignores it, or it could not be read"),
        ("none.txt", "it is not there"),
        ("way/out", "it is not in the work"),
        ("b.txt", ""),
        ("way/c.txt", ""),
    ],
)
def test_a_condition_holds_for_what_was_saved(tmp_path: Path, name: str, why: str) -> None:
    """G17: an ignored file is in no commit, whatever a condition says of it."""
    then = """
open(".gitignore", "w").write("ignored.txt\\n")
open("ignored.txt", "w").write("x")
os.mkdir("d")
open("d/c.txt", "w").write("x")
os.symlink("d", "way")
os.symlink("/etc/hostname", "d/out")
"""
    place = Place(tmp_path, then, success_if={"file": name})
    ended = place.run()
    assert ended.result["checks"][0]["why"].startswith(why), ended.said
    assert (ended.code == 0) == (not why)


def test_an_agent_has_no_address_to_push_to(tmp_path: Path) -> None:
    """G28."""
    place = Place(tmp_path, "subprocess.run(['git', 'push', '--force', 'origin', 'HEAD:main'])")
    before = place.remote.commit("main")
    ended = place.run()
    assert ended.code == 0
    assert "spoold-pushes-what-is-committed-here" in ended.said
    assert place.remote.commit("main") == before


def test_what_another_task_left_takes_no_time_of_this_one(tmp_path: Path) -> None:
    """G27: it is saved beside the agent, and not before it begins."""
    then = f"""
import time
until = time.monotonic() + {PATIENCE_S / 2}
asked = ["git", "ls-remote", "{tmp_path}/remote.git"]
while b"refs/spool/left/1" not in subprocess.run(asked, stdout=subprocess.PIPE).stdout:
    assert time.monotonic() < until
    time.sleep(0.05)
"""
    place = Place(tmp_path, then)
    left = workspace(place.remote, tmp_path / "host", "left")
    write(left.open(), {"c.txt": "left\n"})
    left._let_go()  # as the kernel does for a killed process
    ended = place.run()
    assert ended.code == 0, ended.said
    assert place.remote.read("refs/spool/left/1", "c.txt") == "left\n"


def test_looking_after_others_ends_with_the_attempt(tmp_path: Path) -> None:
    remote = Remote(tmp_path)
    places = Places(str(tmp_path / "host"))
    Tidying(places, str(remote.path)).end()  # nothing is there: nothing is started
    for task in ("one", "two"):
        pushed(remote, tmp_path / "host", task, {"c.txt": "x\n"}, keep_s=0)
    assert Tidying(places, "/srv/git/another.git")._process is None  # nothing of this one is there
    tidying = Tidying(places, str(remote.path))
    assert tidying._process is not None
    tidying._process.wait(timeout=PATIENCE_S)
    assert not places.folders()
    tidying.end()
    tidying.end()


def left(ended: Ended) -> dict[str, str]:
    """Where the result says that the only copy of the work is."""
    return dict(ended.result.get("unsaved") or {})


def test_a_result_says_where_the_only_copy_of_the_work_is_and_its_command_pushes_it(tmp_path: Path) -> None:
    """B8: a task that was cancelled while its push was tried said nothing of its work."""
    place = Place(tmp_path, goes_away(tmp_path))
    place.desk.env = {**place.desk.env, "SPOOL_WORKER_ID": "w-1"}
    process = place.start(600.0)
    assert process.stdout is not None
    while "The push is tried again" not in process.stdout.readline():
        assert process.poll() is None
    process.terminate()
    process.communicate(timeout=PATIENCE_S)
    stopped = place.desk.ended(process.returncode, "")
    [folder] = (tmp_path / "host" / "work").iterdir()
    push = f"spool workspace gc --dir {tmp_path / 'host'}"
    assert left(stopped) == {"worker": "w-1", "folder": str(folder), "push": push}
    place.next(stopped)
    later = place.run(within_s=0.0)
    assert (later.code, left(later)) == (75, left(stopped)), "it is still away when the next attempt begins"
    place.back()
    assert spool(*push.split()[1:]).code == 0
    assert place.remote.read("refs/spool/t/1", "b.txt") == "two\n"
    place.next(later, 3)
    assert (left(place.run()), place.payments) == ({}, 1)


def test_an_attempt_that_is_killed_in_its_push_has_said_where_its_work_is_and_what_it_cost(tmp_path: Path) -> None:
    """A server that hangs: a cancelled task is killed after its grace, and one out of time without any."""
    place = Place(tmp_path, f"print('SPOOL:USAGE {USED}')")
    hook = place.remote.path / "hooks" / "pre-receive"
    up = tmp_path / "up"
    hook.write_text(f"#!/bin/sh\n[ -e {up} ] && exit 0\necho $$ >{up}.new && mv {up}.new {up}\nexec sleep 600\n")
    hook.chmod(0o755)
    process = place.start(60.0)
    eventually(up.exists, PATIENCE_S)
    os.killpg(process.pid, signal.SIGKILL)
    os.kill(int(up.read_text()), signal.SIGKILL)  # as the supervisor does
    process.communicate()
    killed = place.desk.ended(process.returncode, "")
    assert (killed.result["tokens_used"], killed.result["cost_usd"]) == (30, 0.5)
    assert set(left(killed)) == {"worker", "folder", "push"}
    place.next(killed)
    ended = place.run()
    assert (ended.code, "tokens_used" in ended.result, left(ended), place.payments) == (0, False, {}, 1), ended.said


def test_work_that_a_rule_refuses_is_said_to_be_here(tmp_path: Path) -> None:
    place = Place(tmp_path)
    hook = place.remote.path / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\necho connection refused\nexit 1\n")
    hook.chmod(0o755)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], set(left(ended))) == (65, "blocked", {"worker", "folder", "push"})


def test_where_no_agent_has_worked_nothing_is_said_to_be_unsaved(tmp_path: Path) -> None:
    place = Place(tmp_path, workspace={"setup": ["exit 3"]})
    assert (place.run().code, left(place.run())) == (1, {})
    away = Place(tmp_path / "away")
    away.away()
    assert left(away.run(within_s=0.0)) == {}
    bad = Place(tmp_path / "bad", accept=["false"])
    assert (bad.run().code, left(bad.run())) == (1, {}), "not accepted, and pushed"
