"""Accepted work is paid for once, whatever becomes of what follows it: a command, a branch, or a merge."""

from __future__ import annotations

import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.room import NoRoom
from spoold.agents.workspace.workspace_layout import Places, take
from tests.agents.attempts import PATIENCE_S, Desk, Ended
from tests.agents.workspace.repos import Remote, workspace
from tests.cli.commands import spool
from tests.runner.processes import eventually

# Counts how often it was paid; changes a file if it is to.
WORKS = """
import sys
with open({paid!r}, "a") as file:
    file.write("x")
if sys.stdin.read().startswith("edit"):
    open("b.txt", "w").write("two")
print('SPOOL:USAGE {{"tokens_in": 10, "tokens_out": 20, "cost_usd": 0.5}}')
print('SPOOL:SESSION {{"id": "s"}}')
print('SPOOL:COMPLETED {{"text": "I wrote it."}}')
"""
# The attempt, whose command has another bound.
HASTY = """
import sys
from spoold.agents.attempt import follow_up, one_attempt
follow_up.OFFER_S = {}
sys.exit(one_attempt.main())
"""
# The attempt, killed at its next git command but so many, once its agent was paid so often.
KILLED = """
import os, signal, sys
from spoold.agents.attempt import one_attempt
from spoold.agents.workspace import attempt_workspace
from spoold.agents.workspace.git import Git
once, left = Git._once, [{left}]
attempt_workspace.LIVES_S = {lives_s}

def counted(self, *words):
    left[0] -= os.path.exists({paid!r}) and os.path.getsize({paid!r}) >= {times}
    if left[0] < 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return once(self, *words)

Git._once = counted
sys.exit(one_attempt.main())
"""
# The attempt, which waits so long (s) for one who saves or removes what lies in its place, and says that it waits.
WAITS = """
import sys
from spoold.agents.attempt import one_attempt
from spoold.agents.workspace import attempt_workspace, workspace_layout
attempt_workspace.TURN_S = {turn_s}
attended = workspace_layout.is_attended

def asked(folder):
    open({asked!r}, "w").close()
    return attended(folder)

workspace_layout.is_attended = asked
sys.exit(one_attempt.main())
"""
# Saves and removes what may go, and stands still at its git command of this number, while it holds a workspace.
COLLECTS = """
import os, time
from spoold.agents.workspace.attempt_workspace import collect
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.workspace_layout import Places
once, left = Git._once, [{left}]

def counted(self, *words):
    if left[0] == 0:
        open({stands!r}, "w").close()
        while not os.path.exists({go!r}):
            time.sleep(0.01)
    left[0] -= 1
    return once(self, *words)

Git._once = counted
collect(Places({top!r}))
"""
# The attempt, killed at its last step: the first is when all is done and nothing is said, the second when it is said.
LAST = """
import os, signal, sys
from spoold.agents.attempt import one_attempt
leave = one_attempt.Attempt._leave

def last(self, end):
    if {step} == 2:
        leave(self, end)
    os.kill(os.getpid(), signal.SIGKILL)

one_attempt.Attempt._leave = last
sys.exit(one_attempt.main())
"""
# Counts its runs; goes well from the third on.
COUNTS = "echo x >>{top}/runs; [ $(wc -l <{top}/runs) -ge 3 ] || {{ {fails}; }}"


def end(process: subprocess.Popen[str]) -> None:
    """End a frozen attempt, as its supervisor does."""
    process.kill()
    process.communicate(timeout=PATIENCE_S)


class Place:
    """An agent of a repository whose work is followed by something, on one machine, or on another one each time."""

    def __init__(self, top: Path, *, offer_s: float = 60.0, moves: bool = False, **profile: Any) -> None:
        self.top, self.remote, self.paid, self.offer_s, self.moves = top, Remote(top), top / "paid", offer_s, moves
        self.workspace: dict[str, Any] = {"repo": str(self.remote.path), "dir": str(top / "host")}
        said = {"workspace": self.workspace, **profile}
        self.desk = Desk(top, WORKS.format(paid=str(self.paid)), said, env={"SPOOL_TASK_TYPE": "coder"})
        self.records: Path | None = None
        self._numbers = itertools.count()

    def in_spool(self) -> None:
        """Keep the records of its attempts in a spool, as their workers do."""
        self.records = self.top / "s"
        assert spool("init", str(self.records)).code == 0
        self.desk.env = {**self.desk.env, "SPOOL_ROOT": str(self.records)}

    @property
    def payments(self) -> int:
        return len(self.paid.read_text()) if self.paid.exists() else 0

    def start(self, program: str = "", **task: Any) -> subprocess.Popen[str]:
        env = self.desk.environment({"prompt": "edit it", **task})
        return subprocess.Popen(
            [sys.executable, "-P", "-c", program or HASTY.format(self.offer_s)],
            cwd=self.desk.work,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, **task: Any) -> Ended:
        process = self.start(**task)
        said, _ = process.communicate(timeout=PATIENCE_S)
        return self.desk.ended(process.returncode, said)

    def program(self, left: int, times: int = 1, lives_s: float = 15.0) -> str:
        """One that is killed at its git command of this number after so many payments; lives_s: how long it waits for
        one that lives in its place."""
        return KILLED.format(left=left, paid=str(self.paid), times=times, lives_s=lives_s)

    def killed(self, left: int, times: int = 1, lives_s: float = 15.0, **task: Any) -> int:
        """Run it until its git command of this number after so many payments; returns its exit code."""
        process = self.start(self.program(left, times, lives_s), **task)
        process.communicate(timeout=PATIENCE_S)
        return process.returncode

    def freezing(
        self, left: int, times: int = 1, lives_s: float = 15.0, *, freezes: bool = True
    ) -> tuple[subprocess.Popen[str], Path]:
        """Start it, to stand still at its git command of this number after so many payments, or to be killed there;
        returns besides the file that is there once it stands."""
        stands = self.top / f"stands{next(self._numbers)}"
        stop = f'open({str(stands)!r}, "w").close(); signal.pause()'
        program, kill = self.program(left, times, lives_s), "os.kill(os.getpid(), signal.SIGKILL)"
        return self.start(program.replace(kill, stop) if freezes else program), stands

    def stops(self, process: subprocess.Popen[str], stands: Path, within_s: float) -> None:
        """Wait until an attempt stands still, or has ended."""
        eventually(lambda: stands.exists() or process.poll() is not None, within_s)
        if process.poll() is not None:
            process.communicate(timeout=PATIENCE_S)

    def frozen(self, left: int) -> subprocess.Popen[str]:
        """Start it, and wait until it stands still at its git command of this number after the payment."""
        process, stands = self.freezing(left)
        self.stops(process, stands, PATIENCE_S)
        return process

    def tidy(self) -> None:
        """Save and remove what may go, as what runs beside another task's attempt does."""
        collect(Places(self.workspace["dir"]), repo=self.workspace["repo"])

    def collector(self, left: int) -> subprocess.Popen[str]:
        """Start one that does so, and wait until it stands still at this git command, or has ended before; `go` lets
        it go on."""
        stands, go = self.top / "stands", self.top / "go"
        for path in (stands, go):
            path.unlink(missing_ok=True)
        program = COLLECTS.format(left=left, stands=str(stands), go=str(go), top=self.workspace["dir"])
        process = subprocess.Popen([sys.executable, "-P", "-c", program], text=True, start_new_session=True)
        eventually(lambda: stands.exists() or process.poll() is not None, PATIENCE_S)
        return process

    def go(self, process: subprocess.Popen[str], *, well: bool = True) -> None:
        """Let a collector go on to its end, or kill it where it stands."""
        if well:
            (self.top / "go").touch()
        else:
            process.kill()
        process.wait(PATIENCE_S)

    def next(self, output: Any, attempt: int) -> None:
        """Go on to the next attempt, on another machine where it moves. output: None: the worker died."""
        self.desk.previous = {
            "task_id": "t",
            "attempt": attempt - 1,
            "worker_id": "w",
            "status": "worker_died" if output is None else "failure",
            "output": output,
            "tokens_used": (output or {}).get("tokens_used"),
        }
        if self.records is not None:
            (self.records / "results" / f"t.{attempt - 1}.w.json").write_text(json.dumps(self.desk.previous))
        self.desk.env = {**self.desk.env, "SPOOL_ATTEMPT": str(attempt)}
        if self.moves:
            self.workspace["dir"] = str(self.top / f"host{attempt}")
        (self.top / "attempt" / "result.json").unlink(missing_ok=True)

    def three(self, **task: Any) -> list[Ended]:
        """Three attempts, one after another."""
        found: list[Ended] = []
        for attempt in (1, 2, 3):
            if attempt > 1:
                self.next(found[-1].result, attempt)
            found.append(self.run(**task))
        return found


@pytest.mark.turns
@pytest.mark.parametrize("seed", range(6))
def test_an_agent_that_ended_is_paid_once_however_often_those_are_killed_who_save_its_work(
    tmp_path: Path, seed: int
) -> None:
    """Also where the second is killed before it has a workspace of its own: the third ran the agent again. And where
    other tasks' attempts tidy up meanwhile: then what is half made is gone."""
    chance, place = random.Random(f"kills {seed}"), Place(tmp_path)
    attempt = 1
    for most in (12, 30, 30)[: chance.choice((1, 2, 2, 3))]:
        if place.killed(chance.randrange(most)) == 0:
            break  # it had no more commands than that
        attempt += 1
        place.next(None, attempt)
        if chance.random() < 0.5:
            place.tidy()
    else:
        ended = place.run()
        assert ended.code == 0, ended.said
        assert ended.result.get("tokens_used") == 30, "no record has what it cost"
    assert place.payments == 1
    assert "two" in [place.remote.read(ref, "b.txt") for ref in place.remote.refs()]


@pytest.mark.turns
@pytest.mark.parametrize("seed", range(8))
def test_a_collector_that_holds_the_work_at_any_moment_pays_nobody(tmp_path: Path, seed: int) -> None:
    """The attempt began beside the work of the one before, with nothing, and ran the agent again."""
    chance, place = random.Random(f"collector {seed}"), Place(tmp_path)
    assert place.killed(chance.randrange(1, 12)) == -signal.SIGKILL
    for attempt in range(2, 2 + chance.choice((1, 2))):
        place.next(None, attempt)
        collector = place.collector(chance.randrange(12))
        left = chance.choice((chance.randrange(1, 20), 1000))
        process = place.start(place.program(left))
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=chance.choice((0.3, 1.0, 3.0)))  # any moment of the attempt
        place.go(collector, well=chance.random() < 0.7)
        process.communicate(timeout=PATIENCE_S)
        if process.returncode == 0:
            break
        assert process.returncode == -signal.SIGKILL
    else:
        place.next(None, attempt + 1)
        ended = place.run()
        assert ended.code == 0, ended.said
    assert place.payments == 1
    assert "two" in [place.remote.read(ref, "b.txt") for ref in place.remote.refs()]


def test_an_attempt_goes_on_with_the_work_once_a_collector_lets_it_go(tmp_path: Path) -> None:
    place, asked = Place(tmp_path), tmp_path / "asked"
    assert place.killed(3) == -signal.SIGKILL
    place.next(None, 2)
    collector = place.collector(2)
    process = place.start(WAITS.format(turn_s=60.0, asked=str(asked)))
    eventually(lambda: asked.exists() or process.poll() is not None, PATIENCE_S)
    place.go(collector)
    said, _ = process.communicate(timeout=PATIENCE_S)
    ended = place.desk.ended(process.returncode, said)
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said


def test_an_attempt_goes_on_with_the_work_of_one_that_is_just_being_killed(tmp_path: Path) -> None:
    """As by a supervisor whose worker has died, while a new worker has the task already."""
    place, asked = Place(tmp_path), tmp_path / "asked"
    dying = place.frozen(3)
    place.next(None, 2)
    process = place.start(WAITS.format(turn_s=60.0, asked=str(asked)))
    eventually(lambda: asked.exists() or process.poll() is not None, PATIENCE_S)
    dying.kill()
    dying.communicate(timeout=PATIENCE_S)
    said, _ = process.communicate(timeout=PATIENCE_S)
    ended = place.desk.ended(process.returncode, said)
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said


@pytest.mark.parametrize("dies", [False, True])
def test_an_agent_that_ended_beside_a_frozen_attempt_is_not_paid_again(tmp_path: Path, dies: bool) -> None:
    """Nobody looked for its work there, neither while the first attempt still lived nor after it."""
    place = Place(tmp_path)
    frozen = place.frozen(3)
    place.next(None, 2)
    assert place.killed(3, times=2, lives_s=0.2) == -signal.SIGKILL
    assert place.payments == 2, "it was to begin beside the first one"
    if dies:
        end(frozen)
    place.next(None, 3)
    assert place.killed(1, lives_s=0.2) == -signal.SIGKILL
    place.next(None, 4)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 2), ended.said
    assert ended.result.get("tokens_used") == 30
    end(frozen)
    place.tidy()
    assert [place.remote.read(f"refs/spool/t/{attempt}", "b.txt") for attempt in (1, 2)] == ["two"] * 2


@pytest.mark.turns
@pytest.mark.parametrize("seed", range(8))
def test_an_agent_is_paid_again_only_beside_one_that_lives(tmp_path: Path, seed: int) -> None:
    """Any attempt freezes, or is killed; those that are frozen die at any moment; others tidy up meanwhile."""
    chance, place = random.Random(f"frozen {seed}"), Place(tmp_path)
    living, due = list[subprocess.Popen[str]](), 1
    for attempt in range(1, 1 + chance.choice((2, 2, 3))):
        if attempt > 1:
            place.next(None, attempt)
        left, freezes = chance.randrange(6), chance.random() < (0.7 if attempt == 1 else 0.3)
        times = place.payments + 1 if chance.random() < 0.8 else max(place.payments, 1)
        process, stands = place.freezing(left, times, 0.2, freezes=freezes)
        try:
            place.stops(process, stands, 5)
        except AssertionError:  # a frozen one holds what it needs, as the mirror
            while living:
                end(living.pop())
            place.stops(process, stands, PATIENCE_S)
        assert place.payments <= due, f"attempt {attempt}"
        if process.poll() == 0:
            break
        living += [process] if process.poll() is None else []
        while living and chance.random() < 0.2:
            end(living.pop(chance.randrange(len(living))))
        if chance.random() < 0.3:
            place.tidy()
        due = max(place.payments + bool(living), 1)
    else:
        while living:
            end(living.pop())
        due = max(place.payments, 1)
        place.next(None, 9)
        ended = place.run()
        assert ended.code == 0, ended.said
    while living:
        end(living.pop())
    assert place.payments <= due
    assert "two" in [place.remote.read(ref, "b.txt") for ref in place.remote.refs()]


@pytest.mark.parametrize("aside", [False, True])
def test_an_attempt_is_given_back_while_a_collector_holds_the_work(tmp_path: Path, aside: bool) -> None:
    """Without a charge, rather than to begin with nothing. Also where the work lies aside, since the second attempt
    was killed before it had a workspace."""
    place = Place(tmp_path)
    assert place.killed(3) == -signal.SIGKILL
    place.next(None, 2)
    [folder] = Places(place.workspace["dir"]).folders()
    if aside:
        os.rename(folder, folder := f"{folder}.1")
    held = take(folder)
    assert held is not None
    process = place.start(WAITS.format(turn_s=0.2, asked=str(tmp_path / "asked")))
    said, _ = process.communicate(timeout=PATIENCE_S)
    ended = place.desk.ended(process.returncode, said)
    assert (ended.code, ended.result["outcome"], place.payments) == (75, "later", 1), ended.said
    [reason] = ended.result["reasons"]
    assert reason.startswith(
        f"another process has been saving or removing the work of t in {folder} for more than 0.2 s"
    )
    os.close(held)
    place.next(ended.result, 3)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said


@pytest.mark.parametrize("keep_s", [0.0, 86_400.0])
@pytest.mark.parametrize("quota_mb", [None, 1])
def test_what_the_next_attempt_needs_is_removed_by_no_quota_and_no_short_keep_s(
    tmp_path: Path, quota_mb: int | None, keep_s: float
) -> None:
    """It was removed once its work was on the remote, with the note that the agent had ended."""
    place = Place(tmp_path)
    place.workspace["keep_s"] = keep_s
    assert place.killed(3) == -signal.SIGKILL
    places = Places(place.workspace["dir"])
    Path(places.top, "large").write_bytes(b"x" * (2 << 20))
    place.tidy()
    place.tidy()
    if quota_mb is not None:
        place.workspace["quota_mb"] = quota_mb
        with pytest.raises(
            NoRoom, match=r"Workspaces that stay: t \(kept for another .*: its next attempt needs it\)"
        ):
            workspace(place.remote, Path(places.top), "other", quota_mb=quota_mb).open()
    place.next(None, 2)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said
    place.tidy()
    place.tidy()
    assert len(places.folders()) == (0 if keep_s == 0 else 2), "it is kept longer than anybody needs it"


@pytest.mark.turns
@pytest.mark.parametrize("tidied", [False, True])
@pytest.mark.parametrize("left", [0, 2, 4, 8])
def test_a_second_kill_while_the_workspace_is_made_pays_nobody(tmp_path: Path, left: int, tidied: bool) -> None:
    """Also where another task's attempt has removed what was half made: the agent was paid again then."""
    place = Place(tmp_path)
    assert place.killed(3) == -signal.SIGKILL
    for attempt in (2, 3):
        place.next(None, attempt)
        assert place.killed(left) == -signal.SIGKILL
        if tidied:
            place.tidy()
    place.next(None, 4)
    ended = place.run()
    assert (ended.code, place.payments) == (0, 1), ended.said


def test_an_end_that_the_next_attempt_took_over_is_taken_over_by_no_later_one(tmp_path: Path) -> None:
    """The second attempt found that the agent has to go on; then the third runs it, though what is left here is of
    the first."""
    place = Place(tmp_path, accept=["false"])
    assert place.killed(1, prompt="look at it") == -signal.SIGKILL
    place.next(None, 2)
    second = place.run(prompt="look at it")
    assert (second.code, place.payments) == (1, 1), second.said
    [folder, aside] = Places(place.workspace["dir"]).folders()
    assert aside == f"{folder}.1"
    shutil.rmtree(folder)
    place.next(second.result, 3)
    assert (place.run(prompt="look at it").code, place.payments) == (1, 2)


FAILURES = {
    "exit 3": "then_command ended with 3: it said nothing; the work is in spool/t",
    "echo no right; exit 1": "then_command ended with 1: no right; the work is in spool/t",
    "kill -9 $$": "then_command ended with -9",
    "sleep 600": "took longer than 1 s, and was ended",
    "sleep 600 & exit 4": "then_command ended with 4",
    "exec {top}/none": "then_command ended with 127",
}


@pytest.mark.parametrize(("fails", "moves"), [*((one, False) for one in FAILURES), ("exit 3", True)])
def test_a_command_that_fails_is_tried_again_without_the_agent(tmp_path: Path, fails: str, moves: bool) -> None:
    """B2: the agent was started three times, and paid three times."""
    line = COUNTS.format(top=tmp_path, fails=fails.format(top=tmp_path))
    command = {"then": "command", "then_command": ["sh", "-c", f"{line}; cat"]}
    place = Place(
        tmp_path,
        offer_s=1.0 if fails == "sleep 600" else 60.0,
        moves=moves,
        accept=[f"echo x >>{tmp_path}/judged"],
        **command,
    )
    first, second, third = place.three()
    for ended in (first, second):
        assert (ended.code, ended.result["outcome"]) == (1, "failed"), ended.said
        assert FAILURES[fails] in ended.result["reasons"][0]
        assert ended.result["branch"] == "spool/t"
    assert (third.code, third.result["outcome"], third.result["offered"]) == (0, "done", "I wrote it."), third.said
    assert (place.payments, (tmp_path / "judged").read_text()) == (1, "x\n")
    assert [one.result.get("tokens_used") for one in (first, second, third)] == [30, None, None]
    assert [one.result.get("cost_usd") for one in (first, second, third)] == [0.5, None, None]
    assert third.result["changed_files"] == ["b.txt"]
    assert third.result["checks"] == first.result["checks"] != []
    assert "accepted" not in third.result
    assert place.remote.read("spool/t", "b.txt") == "two"


def test_a_command_that_cannot_be_started_is_tried_again_without_the_agent(tmp_path: Path) -> None:
    program = tmp_path / "offer"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o755)
    place = Place(tmp_path, then="command", then_command=[str(program)])
    place.desk.environment({"prompt": "x"})
    program.chmod(0o644)
    first = place.run()
    assert (first.code, place.payments) == (1, 1), first.said
    assert "cannot be started: Permission denied; the work is in spool/t" in first.result["reasons"][0]
    program.chmod(0o755)
    place.next(first.result, 2)
    assert (place.run().code, place.payments) == (0, 1)


@pytest.mark.parametrize("setup", [False, True])
def test_work_stays_accepted_over_an_attempt_that_never_begins(tmp_path: Path, setup: bool) -> None:
    """On another machine each: the remote was away for the second, or its setup failed, and the third paid again."""
    line = COUNTS.format(top=tmp_path, fails="exit 3")
    place = Place(tmp_path, moves=True, then="command", then_command=["sh", "-c", line])
    first = place.run()
    assert (first.code, place.payments) == (1, 1), first.said
    place.next(first.result, 2)
    away = Path(f"{place.remote.path}.away")
    if setup:
        place.workspace["setup"] = ["false"]
    else:
        place.remote.path.rename(away)
    second = place.run()
    assert (second.code, "tokens_used" in second.result) == (1 if setup else 75, False), second.said
    if setup:
        del place.workspace["setup"]
    else:
        away.rename(place.remote.path)
    (tmp_path / "runs").write_text("x\nx\n")
    place.next(second.result, 3)
    third = place.run()
    assert (third.code, third.result["outcome"], place.payments) == (0, "done", 1), third.said
    assert third.result["changed_files"] == ["b.txt"]
    assert "tokens_used" not in third.result


@pytest.mark.turns
@pytest.mark.parametrize("seed", range(8))
def test_accepted_work_stays_accepted_over_attempts_whose_workers_died(tmp_path: Path, seed: int) -> None:
    """On another machine each, at any moment: also after the accepted work was pushed there once more."""
    chance = random.Random(f"machines {seed}")
    line = COUNTS.format(top=tmp_path, fails="exit 3")
    place = Place(tmp_path, moves=True, then="command", then_command=["sh", "-c", line])
    place.in_spool()
    (tmp_path / "runs").write_text("")
    place.next(place.run().result, 2)
    assert place.payments == 1
    last = 2 + chance.choice((1, 2, 3))
    for attempt in range(2, last):
        (tmp_path / "runs").write_text("")
        fate = chance.choice(("killed", "killed", "away", "failed"))
        away = Path(f"{place.remote.path}.away")
        if fate == "away":
            place.remote.path.rename(away)
        said: dict[str, Any] | None = None
        if fate == "killed":
            assert place.killed(chance.randrange(30)) in (-signal.SIGKILL, 1)
        else:
            ended = place.run()
            assert ended.code == (75 if fate == "away" else 1), ended.said
            said = ended.result
        if fate == "away":
            away.rename(place.remote.path)
        if fate == "killed" and chance.random() < 0.5:
            said = place.desk.ended(1, "").result or None  # the attempt alone was killed, and its worker lives on
        place.next(said, attempt + 1)
    (tmp_path / "runs").write_text("x\nx\n")
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said
    assert ended.result["changed_files"] == ["b.txt"]
    assert "tokens_used" not in ended.result


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_an_end_of_the_attempt_during_the_command_pays_nothing_twice(tmp_path: Path, number: signal.Signals) -> None:
    up = tmp_path / "up"
    line = f"[ -e {up} ] && exit 0; echo $$ >{up}.new; mv {up}.new {up}; exec sleep 600"
    place = Place(tmp_path, then="command", then_command=["sh", "-c", line])
    process = place.start()
    eventually(up.exists, PATIENCE_S)
    (os.killpg if number == signal.SIGKILL else os.kill)(process.pid, number)
    process.communicate(timeout=PATIENCE_S)
    died = number == signal.SIGKILL
    if died:
        os.kill(int(up.read_text()), signal.SIGKILL)  # as the supervisor does
    first = place.desk.ended(process.returncode, "")
    if not died:
        assert (first.code, "was stopped" in first.result["reasons"][0]) == (143, True)
    place.next(None if died else first.result, 2)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said
    # What it left is in no record where its worker died: then the next one counts it.
    assert (first.result.get("tokens_used"), ended.result.get("tokens_used")) == (30, 30 if died else None)


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.parametrize("step", [1, 2])
def test_a_kill_when_all_is_done_and_not_committed_pays_nothing_twice(
    tmp_path: Path, step: int, recorded: bool
) -> None:
    """Neither the agent runs again nor the command that follows, though what it said is in no record that counts."""
    place = Place(tmp_path, then="command", then_command=["sh", "-c", f"echo x >>{tmp_path}/runs; echo offered"])
    process = place.start(LAST.format(step=step))
    process.communicate(timeout=PATIENCE_S)
    first = place.desk.ended(process.returncode, "")
    assert (first.code, first.result.get("outcome")) == (-signal.SIGKILL, "done" if step == 2 else "failed")
    place.next(first.result if recorded else None, 2)
    ended = place.run()
    assert (ended.code, ended.result["outcome"], place.payments) == (0, "done", 1), ended.said
    assert (ended.result["offered"], ended.result["branch"]) == ("offered", "spool/t")
    assert (tmp_path / "runs").read_text() == "x\n"
    assert ended.result.get("tokens_used") == (None if recorded else 30)


def test_what_a_person_sends_back_is_done_again(tmp_path: Path) -> None:
    place = Place(tmp_path)
    first = place.run()
    place.next(first.result, 2)
    (tmp_path / "feedback.json").write_text('{"reason": "not so"}')
    place.desk.env = {**place.desk.env, "SPOOL_FEEDBACK_FILE": str(tmp_path / "feedback.json")}
    assert (place.run().code, place.payments) == (0, 2)


@pytest.mark.parametrize("prompt", ["edit it", "look at it"])
def test_a_merge_that_cannot_be_submitted_is_tried_again_without_the_agent(tmp_path: Path, prompt: str) -> None:
    place = Place(tmp_path, then="merge")
    place.desk.env = {**place.desk.env, "SPOOL_ROOT": str(tmp_path / "s")}
    first = place.run(prompt=prompt)
    assert (first.code, place.payments) == (1, 1), first.said
    assert spool("init", str(tmp_path / "s")).code == 0
    place.next(first.result, 2)
    ended = place.run(prompt=prompt)
    assert (ended.code, ended.result["merge"], place.payments) == (0, "t-merge", 1), ended.said


def test_what_was_not_accepted_is_done_again(tmp_path: Path) -> None:
    place = Place(tmp_path, then="command", then_command=["true"], accept=[f"test -e {tmp_path}/good"])
    first = place.run()
    assert (first.code, "accepted" in first.result) == (1, False)
    (tmp_path / "good").touch()
    place.next(first.result, 2)
    assert (place.run().code, place.payments) == (0, 2)


def test_an_attempt_that_is_to_begin_anew_does(tmp_path: Path) -> None:
    place = Place(tmp_path, then="command", then_command=["sh", "-c", COUNTS.format(top=tmp_path, fails="exit 1")])
    place.three(resume="no")
    assert place.payments == 3
