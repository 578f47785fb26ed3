"""The prompt says what is to be done, and why earlier attempts did not do; a question has an answer or blocks."""

from __future__ import annotations

import re
from typing import Any

import pytest

from spoold.agents.adapters.adapter import Trouble
from spoold.agents.attempt import prompting
from spoold.agents.attempt.one_attempt import ask
from spoold.agents.attempt.prompting import Before, before_of

RECORD = {
    "attempt": 2,
    "error": {"code": "EXIT_NONZERO", "message": "exit code 1"},
    "output": {
        "outcome": "not_accepted",
        "session": "s",
        "reasons": ["make: exit code 2"],
        "text": "done",
        "session_usage": {"tokens_in": 1},
    },
}


def test_a_record_is_read_as_far_as_it_can_be() -> None:
    assert before_of(RECORD) == Before(
        2, "not_accepted", "exit code 1", "s", ("make: exit code 2",), "done", {"tokens_in": 1}
    )
    assert before_of({"attempt": 1, "error": {"code": "STALLED"}, "output": "words"}) == Before(1, error="STALLED")
    assert before_of({"attempt": "x", "output": {"reasons": "x"}}) == Before(0)
    note = "attempt 1\ndone: x\nopen:\n- y"
    assert before_of({"attempt": 1, "output": {"handoff": note}}) == Before(1, note="attempt 1\ndone: x")
    assert before_of(None) is None
    assert before_of([]) is None


@pytest.mark.parametrize(
    ("before", "feedback", "said"),
    [
        (None, "", "Do it."),
        (Before(1), "", "Do it."),
        (Before(1, error="exit code 1"), "", "- exit code 1"),
        (Before(1, error="exit code 1", reasons=("a", "b")), "", "- a\n- b"),
        (Before(1, note="files: a"), "", "The note that attempt 1 left:\n\nfiles: a"),
        (Before(1), "shorter", "sent it back:\n\nshorter"),
    ],
)
def test_a_new_session_gets_the_whole_prompt(before: Before | None, feedback: str, said: str) -> None:
    found = prompting.whole("Do it.", before, feedback)
    assert found.startswith("Do it.")
    assert found.endswith(said)


def test_a_session_that_goes_on_gets_only_what_is_new() -> None:
    after_quota = prompting.going_on(Before(1, "later", reasons=()), "")
    assert after_quota.startswith("Continue with the task. Your last turn was interrupted")
    found = prompting.going_on(Before(1, "not_accepted", reasons=("make: exit code 2",)), "shorter")
    assert found.startswith("Continue with the task: it is not done yet.")
    assert "- make: exit code 2" in found
    assert found.endswith("sent it back:\n\nshorter")


def test_reasons_have_a_bound() -> None:
    found = prompting.whole("Do it.", Before(1, reasons=("x" * (1 << 20),)), "")
    assert len(found) < 2 * prompting.REASONS_MAX


def test_what_is_filled_in_is_never_filled_in_again() -> None:
    records: dict[str, Any] = {"a": {"output": "{deps.b.output}"}, "b": {"output": {"x": None}}}
    found = prompting.filled("{deps.a.output} {deps.b.output} {deps.b.output.x}", records.get, ["a", "b"])
    assert found == '{deps.b.output} {"x": null} null'
    with pytest.raises(prompting.Missing, match="there are: none"):
        prompting.filled("{deps.c.output}", records.get, [])
    with pytest.raises(prompting.Missing, match="has no y"):
        prompting.filled("{deps.b.output.y}", records.get, [])


def test_names_and_numbers_lead_into_an_output() -> None:
    """G32: {deps.X.output.a.b} stayed as it was written."""
    output = {"a": {"b": "deep", "0": "named"}, "list": [{"x": 1}, "two"], "none": None, "b-c": [], "text": "words"}
    records = {"x": {"output": output}}

    def filled(path: str) -> str:
        return prompting.filled(f"<{{deps.x.output.{path}}}>", records.get, ["x"])

    assert filled("a.b") == "<deep>"
    assert filled("a.0") == "<named>"
    assert filled("list.0.x") == filled("list[0].x") == filled("list[0][x]".replace("[x]", ".x")) == "<1>"
    assert filled("list.1") == "<two>"
    assert filled("list.0") == '<{"x": 1}>'
    assert filled("none") == "<null>"
    assert filled("b-c") == "<[]>"
    for path, said in {
        "a.c": "output.a has no c: it has b, 0",
        "list.2": "output.list has no 2: it is a list of 2, counted from 0",
        "list[0].y.z": "output.list[0] has no y: it has x",
        "list.first": "it is a list of 2",
        f"list.{'9' * 5000}": "it is a list of 2",
        "b-c.0": "it is a list of 0",
        "none.x": "output.none has no x: it is null",
        "text.x": "it is a text",
    }.items():
        with pytest.raises(prompting.Missing, match=re.escape(said)):
            filled(path)
    with pytest.raises(prompting.Missing, match="has no y: it is empty"):
        prompting.filled("{deps.x.output.y}", {"x": {"output": {}}}.get, ["x"])
    many = {"x": {"output": {f"n{number}": "x" for number in range(200)}}}
    with pytest.raises(prompting.Missing, match="n9 and 190 more"):
        prompting.filled("{deps.x.output.y}", many.get, ["x"])
    text = "{deps.x.output.a.b} {deps.x.output.list[0].x} {{deps.x.output.a.b}}"
    assert prompting.filled(prompting.literal(text), lambda _: None, ()) == text
    assert prompting.filled("{deps.x.output.} {deps.x.output.a b}", records.get, ["x"]).startswith("{deps.x.output.}")


@pytest.mark.parametrize(("root", "within_s"), [("", 60.0), ("/nowhere", 0.0), ("/nowhere", 60.0)])
def test_a_question_that_nobody_can_be_asked_blocks(root: str, within_s: float) -> None:
    found = ask(root, {"text": "Which?"}, within_s, lambda: False)
    assert isinstance(found, Trouble)
    assert found.fault == "refusal"
    assert "it asked: Which?" in found.message
    assert "did not say what" in str(ask("", {}, 0.0, lambda: False))


def test_two_pairs_of_braces_are_none_of_ours() -> None:
    records: dict[str, Any] = {"a": {"output": 7}}
    text = '{"x":{{deps.a.output}}, "y":{deps.a.output}} {{deps.a.output} {{{deps.a.output.z}}}'
    assert prompting.filled(text, records.get, ["a"]) == '{"x":{deps.a.output}, "y":7} {7 {{deps.a.output.z}}'
    for any_text in (text, "{deps.b.output}", "{{deps.b.output.c}}", "no field"):
        assert prompting.filled(prompting.literal(any_text), lambda _: None, []) == any_text
