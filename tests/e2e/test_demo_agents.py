"""tools/demo agents with its own small agent: it ends well and says so, leaves nothing behind, and can fail."""

from __future__ import annotations

import os
import pty
import signal
import stat
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol.result import Result
from spoold.protocol.settings import Settings
from spoold.rules.entry import admission
from tests.e2e.test_demo import end_in_the_middle, of, scratch, start
from tools.demonstration.agents import installing
from tools.demonstration.agents.claims import Story, prove
from tools.demonstration.agents.installing import find
from tools.demonstration.agents.mind import CHANGES, feature, think, wish
from tools.demonstration.agents.model import CLOSED_S, Model
from tools.demonstration.agents.repository import Repository
from tools.demonstration.ledger import Attempt

WITHIN_S = 300
__all__ = ["scratch"]


def test_it_ends_well_and_says_so(scratch: Path) -> None:
    code, out = at_a_terminal(scratch, "agents", "--cli", "generic", "--edits", "4")
    assert code == 0, out
    shown = out.rpartition("\x1b[2K")[2]  # what stays on the screen
    assert shown.count("lap1 joined with") == 1, f"G36: the events came twice\n{shown}"
    plan, cut, _ = out.partition("demo: 6 tasks")[2].partition("\n… and ")
    assert cut, "G36: 75 lines of plan"
    assert plan.count("\n") < 13, "G36: 75 lines of plan"
    for part in (
        "demo: 6 tasks, 2 steps one after the other",
        "kill -9 of lap",
        "1 plan with 6 tasks, 1 task more for conflicts: 8 completed, 0 failed, 0 left over",
        "4 of 4 edits accepted by their tests, 0 lost, 0 doubled",
        "main has 4 of 4 features, 4 of them made by one commit",
        "the tests pass at 4 of the 4 commits of main",
        "demo-f02 completed as attempt 2 on lap",
        "refusal for want of quota: demo-f03, which has no retries, began again",
        "1 conflict resolved by an agent: 2 of 2 lines",
        "all claims hold",
    ):
        assert part in out, f"{part}\n{out}"
    assert not of(scratch)
    assert not list(scratch.iterdir())


def at_a_terminal(scratch: Path, *arguments: str) -> tuple[int, str]:
    """Run it at a terminal that is wide enough for each sentence; returns its exit code and all that it printed."""
    ours, theirs = pty.openpty()
    demo = start(scratch, *arguments, stdout=theirs, TERM="xterm", COLUMNS="240", LINES="60")
    os.close(theirs)
    said = b""
    with suppress(OSError):  # EIO, once nobody holds the other end
        while piece := os.read(ours, 1 << 16):
            said += piece
    os.close(ours)
    _, err = demo.communicate(timeout=WITHIN_S)
    return demo.returncode, said.decode(errors="replace").replace("\r\n", "\n") + err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_in_the_middle_it_leaves_nothing_running(scratch: Path, number: int) -> None:
    demo = start(scratch, "agents", "--cli", "generic", "--edits", "4")
    end_in_the_middle(demo, "joined", number, scratch, WITHIN_S)


def test_a_number_of_edits_that_has_no_room_for_the_story_is_refused(scratch: Path) -> None:
    demo = start(scratch, "agents", "--edits", "3")
    out, err = demo.communicate(timeout=WITHIN_S)
    assert (demo.returncode, out) == (2, "")
    assert "'3' is no number of edits from 4 to 90" in err


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{text}\n")
    (folder / name).chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("npm", "why"),
    [
        (None, "there is no npm on the PATH"),
        ("echo no network; exit 1", "ended with status 1: no network"),
        ("sleep 60", "has not ended within 1 s"),
        ("true", "opencode"),
    ],
)
def test_without_the_program_our_own_agent_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, npm: str | None, why: str
) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    if npm is not None:
        program(bin_, "npm", npm)
    monkeypatch.setenv("PATH", f"{bin_}:/bin:/usr/bin" if npm is not None else str(bin_))
    monkeypatch.setattr(installing, "INSTALL_S", 1.0)
    cli, said = find("opencode", tmp_path / "cache")
    assert (cli.name, cli.folder, why in said) == ("generic", None, True), said
    assert find("generic", tmp_path)[1] == ""


def test_a_program_that_is_in_the_cache_is_not_installed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = installing.PACKAGES["opencode"].rpartition("@")[2]
    folder = tmp_path / f"opencode-{version}" / "node_modules" / ".bin"
    folder.mkdir(parents=True)
    program(folder, "opencode", f"echo {version}")
    monkeypatch.setenv("PATH", "/bin:/usr/bin")
    cli, said = find("opencode", tmp_path)
    assert (cli.name, cli.folder, cli.said, said) == ("opencode", folder, f"opencode {version}", "")
    assert 'OPENAI_BASE_URL = "http://m/v1"' in cli.profile("http://m")


def test_the_model_plans_edits_and_resolves_what_a_prompt_says() -> None:
    merge_line = '{"id": "p-merge", "type": "merge", "input": {}}'
    told = f'{wish(5)}\nbegins with "p-"\nUse one of: coder, planner.\n{merge_line}'
    plan = think(told)
    assert plan is not None
    assert isinstance(admission.check(f"{plan.words}\n".encode(), "f", Settings()), admission.Accepted)
    assert plan.words.count('"id": "p-land-') == 3
    edit = think(f"Edit f03: make features/f03.py. Say so in the last line of {CHANGES}.")
    assert edit is not None
    assert (edit.edit, "features/f03.py" in edit.line, CHANGES in edit.line) == ("f03", True, True)
    merge = think(f"Resolve a merge conflict.\n1. Run: git merge {'a' * 40}")
    assert merge is not None
    assert "a" * 40 in merge.line
    assert think("What is the weather?") is None


RESULT = {"worker_id": "lap2-x", "attempt": 1, "status": "success", "tokens_used": 10}


@pytest.fixture
def story(tmp_path: Path) -> Story:
    """What was seen where all has gone well, with four edits that a person made on main."""
    root, repository, model = tmp_path / "spool", Repository(tmp_path), Model(slow="f02", spent="f03")
    submitted = [*(f"demo-{feature(number)}" for number in range(1, 5)), "demo-land-1"]
    for state in ("pending", "waiting", "ready", "claimed", "completed", "failed"):
        (root / state).mkdir(parents=True)
    for name in (*submitted, "demo", "demo-land-1-resolve-1"):
        (root / "completed" / f"{name}.1.lap2-x.json").write_text("{}")
    lines = f"# Changes\n\n- {feature(1)} is there\n- {feature(4)} is there\n"
    land(repository, {CHANGES: lines, **{f"features/{feature(n)}.py": value(n) for n in range(1, 5)}})
    attempts = [
        Attempt("demo-f02", "coder", 1, "lap1-x", 0.0, 1.0, "WORKER_DIED"),
        Attempt("demo-f02", "coder", 2, "lap2-x", 9.0, 1.0, "COMPLETED"),
        Attempt("demo-f03", "coder", 1, "lap3-x", 0.0, 1.0, "TRY_LATER"),
        Attempt("demo-f03", "coder", 2, "lap3-x", 100.0 + CLOSED_S, 1.0, "COMPLETED"),
        Attempt("demo-land-1-resolve-1", "coder", 1, "lap2-x", 9.0, 1.0, "COMPLETED"),
    ]
    results = {one: Result.model_validate({**RESULT, "task_id": one}) for one in submitted}
    model.refusals, model.refused_at, model.tokens = 1, 100.0, 60
    model._server.server_close()
    return Story(root, "demo", 4, submitted, attempts, results, "lap1", model, repository)


def value(number: int) -> str:
    return f"def value():\n    return {number}\n"


def land(repository: Repository, files: Mapping[str, str]) -> None:
    from tools.demonstration.agents import repository as module

    for name, text in files.items():
        (repository._clone / name).write_text(text)
    for words in (
        ["checkout", "-q", "main"],
        ["add", "-A"],
        ["commit", "-q", "-m", "x"],
        ["push", "-q", "origin", "main"],
    ):
        module._git(*words, cwd=repository._clone)


def broken(story: Story) -> list[str]:
    return [claim.sentence for claim in prove(story) if not claim.holds]


def test_the_claims_hold_for_a_good_story_and_fail_for_each_that_is_not(story: Story) -> None:
    assert broken(story) == []
    first, second, later, again, resolved = story.attempts
    more = {one: result.model_copy(update={"tokens_used": 99}) for one, result in story.results.items()}
    changes: list[tuple[dict[str, Any], str]] = [
        ({"submitted": [*story.submitted, "demo-f05"]}, "1 lost"),
        ({"count": 5, "results": {**story.results, "demo-f05": story.results["demo-f01"]}}, "4 of 5 features"),
        ({"killed": "lap3"}, "died with lap3"),
        ({"attempts": [replace(first, outcome="COMPLETED"), later, again, resolved]}, "0 attempts died"),
        ({"attempts": [first, second, replace(later, outcome="EXIT_NONZERO"), again, resolved]}, "want of quota"),
        ({"attempts": [first, second, later, replace(again, began=101.0), resolved]}, "1.0 s later"),
        ({"attempts": [first, second, later, resolved]}, "began again never"),
        ({"attempts": [first, second, later, again]}, "0 conflicts"),
        ({"results": more}, "495 tokens"),
    ]
    for change, told in changes:
        assert any(told in one for one in broken(replace(story, **change))), (told, broken(replace(story, **change)))


def test_the_claims_see_a_main_that_was_red_once_or_lost_a_line(story: Story) -> None:
    land(story.repository, {"features/f02.py": value(7)})
    land(story.repository, {"features/f02.py": value(2)})
    (said,) = broken(story)
    assert "the tests pass at 3 of the 4 commits of main, not at " in said
    land(story.repository, {CHANGES: "# Changes\n\n- f04 is there\n"})
    assert "1 conflict resolved by an agent: 1 of 2 lines in one place are there" in broken(story)
    (story.root / "failed" / "demo-f01.2.lap2-x.json").write_text("{}")
    assert "4 of 4 edits accepted by their tests, 0 lost, 1 doubled" in broken(story)
    assert os.path.exists(story.repository.path)
