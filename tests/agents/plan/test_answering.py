"""The words of a planner as lines: tasks are found, words are told, and numbers stay those that a person sees."""

import json

import pytest

from spoold.agents.planning import completed, read

ONE = '{"id": "a", "command": ["true"]}'
TWO = '{"id": "b", "agent": "coder", "prompt": "x"}'


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (f"{ONE}\n{TWO}", [1, 2]),
        (f"\n{ONE}\r\n\n  {TWO}  \n", [2, 4]),
        (f"```jsonl\n{ONE}\n{TWO}\n```\n", [2, 3]),
        (f"\n```\n{ONE}\n\n```", [3]),
    ],
)
def test_tasks_alone_are_an_answer(words: str, numbers: list[int]) -> None:
    found = read(words, "f")
    assert (found.faults, list(found.texts), list(found.objects)) == ([], numbers, numbers)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("", ["f: holds no task."]),
        ("I cannot do that.", ["f line 1: no task, but words: 'I cannot do that.'.", "f: holds no task."]),
        (f"Here it is:\n\nfirst:\n{ONE}\n{TWO}\nDone.", ["f lines 1 to 3: no task, but words", "f line 6: no task"]),
        (f"Here:\n```\n{ONE}\n```", ["f lines 1 to 2: no task", "f line 4: no task"]),
        (f"[\n{ONE}\n]", ["f line 1: begins a list", "f line 3: no task"]),
        ("```\n```", ["f: holds no task."]),
        (f"```\n{ONE}\n{TWO}", ["f line 1: no task, but words: '```'"]),
    ],
)
def test_words_around_them_are_faults(words: str, told: list[str]) -> None:
    found = read(words, "f")
    assert len(found.faults) == len(told)
    for fault, said in zip(found.faults, told, strict=True):
        assert str(fault).startswith(said)
        assert "one {…} a line" in fault.mend


def test_a_line_that_is_no_json_is_left_to_the_judge() -> None:
    found = read(f'{ONE}\n{{"id": \n{{"id": "a", "id": "b"}}', "f")
    assert (found.faults, list(found.texts), list(found.objects)) == ([], [1, 2, 3], [1])


def test_what_a_task_leaves_out_is_filled_in() -> None:
    found = read(f'{ONE}\n{TWO}\n{{"id": "c", "agent": "x", "batch": "own", "workspace": {{"base": "next"}}}}', "f")
    completed(found, "p", {"repo": "/srv/r", "base": "main"})
    first, second, third = (json.loads(found.texts[number]) for number in (1, 2, 3))
    assert first == {"id": "a", "command": ["true"], "batch": "p"}
    assert (second["batch"], second["workspace"]) == ("p", {"repo": "/srv/r", "base": "main"})
    assert (third["batch"], third["workspace"]) == ("own", {"base": "next"})
    without = read(TWO, "f")
    completed(without, "p", {})
    assert "workspace" not in without.objects[1]
