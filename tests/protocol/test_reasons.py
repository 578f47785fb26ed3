"""The reason that an attempt gives by itself is the first that its output names."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.protocol.result import REASON_MAX, Error, Result, message_of, own_reason, why_ended, work_of


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ({"reasons": ["make test:\nexit  code 2", "b"]}, "make test: exit code 2"),
        ({"reasons": ["a"], "code": "NOT_ACCEPTED"}, "NOT_ACCEPTED: a"),
        ({"reasons": ["a"], "code": 7}, "a"),
        ({"reasons": []}, ""),
        ({"reasons": [{"a": 1}]}, ""),
        ({"reasons": "a"}, ""),
        ({}, ""),
        ("reasons", ""),
        (None, ""),
    ],
)
def test_it_is_one_line_with_the_code_that_the_output_gives(output: Any, said: str) -> None:
    assert own_reason(output) == said


def test_a_long_one_is_cut_in_its_middle_since_its_end_is_the_fix() -> None:
    said = own_reason({"reasons": [f"it is refused: {'x' * 5000} Fix: ask for it."]})
    assert len(said) <= REASON_MAX
    assert said.startswith("it is refused: x")
    assert said.endswith("x Fix: ask for it.")


def test_a_fix_is_kept_from_its_first_word_though_more_follows_it() -> None:
    """It was read as `Fix: none where it comes back; el … machine.`"""
    fix = f"Fix: check its address. The repository is named by workspace.repo of [agents.coder] in /srv/{'y' * 60}."
    said = own_reason({"reasons": [f"the repository cannot be read here: {'x' * 250}. {fix}"]})
    assert len(said) <= REASON_MAX
    assert said.endswith(f" … {fix}")
    said = own_reason({"reasons": [f"Fix: look there. {'x' * 900}"]})
    assert len(said) <= REASON_MAX
    assert said.startswith("Fix: look there. x")
    said = own_reason({"reasons": [f"{'x' * 900} Fix: look there. {'y' * 900}"]})
    assert len(said) <= REASON_MAX
    assert "x … Fix: look there. y" in said


@pytest.mark.parametrize(
    ("message", "output", "said"),
    [
        ("exit code 1", {"reasons": ["no key"]}, "EXIT_NONZERO: exit code 1 (no key)"),
        ("exit code 1", None, "EXIT_NONZERO: exit code 1"),
        ("", {"reasons": ["no key"]}, "EXIT_NONZERO: no key"),
        ("", None, "EXIT_NONZERO"),
    ],
)
def test_people_read_the_code_the_message_and_the_reason(message: str, output: Any, said: str) -> None:
    error = Error(code="EXIT_NONZERO", message=message)
    assert (
        why_ended(Result(task_id="t", attempt=1, worker_id="w", status="failure", output=output, error=error)) == said
    )
    assert why_ended(Result(task_id="t", attempt=1, worker_id="w", status="success", output=output)) == ""


PLACE = {"repo": "/srv/git/app.git", "base": "b" * 40, "ref": "refs/spool/t/1", "commit": "c" * 40}


@pytest.mark.parametrize(
    ("output", "said"),
    [
        (
            {"outcome": "done", "changed_files": ["a", "b"], "workspace": PLACE, "merge": "t-merge"},
            "done, 2 changed files, in refs/spool/t/1 of /srv/git/app.git; t-merge merges it",
        ),
        (
            {"outcome": "done", "changed_files": ["a"], "workspace": PLACE, "branch": "spool/t"},
            "done, 1 changed file, in refs/spool/t/1 of /srv/git/app.git and the branch spool/t",
        ),
        ({"outcome": "no_change", "changed_files": [], "workspace": {"ref": ""}}, "no_change, no changed file"),
        (
            {"outcome": "no_change", "changed_files": [], "workspace": {"ref": ""}, "merge": "t-merge"},
            "no_change, no changed file; nothing to merge; `must_change = true` makes that a failure",
        ),
        ({"into": "main", "landed": [{"task": "t", "merge": "abc"}]}, "merged as abc into main"),
        ({"into": "main", "landed": [{"task": "t", "merge": None}]}, "main has it already"),
        ({"into": "main", "landed": []}, "nothing to merge"),
        ({"into": "main", "landed": "x"}, ""),
        ({"outcome": "done", "changed_files": 7, "workspace": {"ref": ["x"]}, "merge": {}}, "done, no changed file"),
        ({"outcome": "done", "changed_files": ["a"]}, ""),
        ({"outcome": 1, "workspace": PLACE}, ""),
        ({"outcome": "done", "workspace": "x"}, ""),
        (["outcome"], ""),
        (None, ""),
    ],
)
def test_the_work_of_an_agent_is_one_line(output: Any, said: str) -> None:
    assert work_of(output) == said


def test_a_line_of_work_has_a_bound_whatever_the_output_says() -> None:
    long = dict.fromkeys(("outcome", "branch", "merge"), "x\n" * 9000)
    said = work_of({**long, "workspace": {"ref": "y" * 9000, "repo": "z\udcff" * 900}})
    assert len(said) < 6 * REASON_MAX
    assert "\n" not in said
    said.encode()


LEFT = {"worker": "w-1", "folder": "/c/work/t.0"}
BRINGS = "brings it to the remote, and so does the next task there with that repository"
PUSH = "spool workspace gc --dir /c"


@pytest.mark.parametrize(
    ("unsaved", "said"),
    [
        (
            {**LEFT, "push": PUSH},
            f"; when it ended, its work was on w-1 alone, in /c/work/t.0: `{PUSH}` there {BRINGS}",
        ),
        (LEFT, "; when it ended, its work was on w-1 alone, in /c/work/t.0"),
        ({"worker": "w-1"}, ""),
        ({"worker": 1, "folder": "/c"}, ""),
        ("x", ""),
        (None, ""),
    ],
)
def test_every_face_says_where_the_only_copy_of_work_is(unsaved: Any, said: str) -> None:
    """B8: a cancelled task said only that its repository cannot be read."""
    output = {"reasons": ["it cannot be read."], "unsaved": unsaved}
    error = Error(code="CANCELLED", message="cancelled")
    result = Result(task_id="t", attempt=1, worker_id="w-1", status="cancelled", output=output, error=error)
    assert message_of(result) == f"cancelled{said} (it cannot be read.)"
    assert why_ended(result) == f"CANCELLED: cancelled{said} (it cannot be read.)"
