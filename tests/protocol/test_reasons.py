"""The reason that an attempt gives by itself is the first that its output names."""

from __future__ import annotations

from typing import Any

import pytest

from spoold.protocol.result import REASON_MAX, Error, Result, own_reason, why_ended


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


def test_a_long_one_is_cut() -> None:
    assert own_reason({"reasons": ["x" * 5000]}) == f"{'x' * REASON_MAX}…"


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
