"""A task for an agent has a short form and a long one, and both mean the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from spoold.protocol import agent_fields, codec
from spoold.protocol.errors import BadFile, WrongValue
from spoold.protocol.task import Task

PROMPT = {"agent": "coder", "prompt": "Fix it."}


def read(task: dict[str, Any]) -> Task:
    return codec.load_task(json.dumps(task).encode(), "it.json")


def test_the_short_form_is_a_type_and_its_input() -> None:
    task = read(
        {**PROMPT, "id": "a", "accept": ["make test"], "max_turns": 3, "input": {"ticket": 7}, "after": ["b"]}
    )
    assert (task.type, task.run, task.dependencies) == ("coder", "handler", ("b",))
    assert task.input == {"ticket": 7, "prompt": "Fix it.", "accept": ["make test"], "max_turns": 3}
    assert task == read({"id": "a", "type": "coder", "input": task.input, "after": ["b"]})


def test_every_field_may_be_given() -> None:
    more = {
        "model": "a/b-4",
        "max_turns": 1,
        "accept": [["make", "test"], "true"],
        "success_if": {
            "nonempty": True,
            "file": "out/a.md",
            "regex": "^x",
            "schema": {"type": "object"},
            "command": ["test", "-s", "out"],
        },
        "must_change": False,
        "workspace": {"repo": "/srv/a.git", "base": "main", "kind": "clone", "keep_s": 0.5},
        "resume": "no",
    }
    task = read({"agent": "coder", "prompt_file": "prompts/a.md", **more})
    assert task.input == {"prompt_file": "prompts/a.md", **more}
    assert set(task.input) | {"prompt"} == set(agent_fields.CHECKS)
    assert tuple(more["success_if"]) == agent_fields.CONDITIONS  # type: ignore[arg-type]


def test_what_is_no_task_for_an_agent_is_left_as_it_is() -> None:
    task = {"command": ["true"]}
    assert agent_fields.expanded(task) is task
    assert read({"type": "t", "input": {"prompt": 7}}).input == {"prompt": 7}


def test_commands_are_lists_of_words() -> None:
    assert agent_fields.commands("a b") == [["/bin/sh", "-c", "a b"]]
    assert agent_fields.commands(["a b", ["c", "d"]]) == [["/bin/sh", "-c", "a b"], ["c", "d"]]


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ({"prompt": "x"}, "prompt belongs to a task with an agent"),
        ({"prompt_file": "x", "type": "t"}, "prompt_file belongs to a task with an agent"),
        ({"agent": "coder"}, "has no prompt"),
        ({**PROMPT, "prompt": None}, "has no prompt"),
        ({**PROMPT, "prompt_file": "a"}, "both say what to do"),
        ({**PROMPT, "type": "t"}, "agent and type both"),
        ({**PROMPT, "command": ["true"]}, "agent and command both"),
        ({**PROMPT, "python": "a:b"}, "agent and python both"),
        ({**PROMPT, "input": "x"}, "is not an object"),
        ({**PROMPT, "input": {"prompt": "y"}}, "prompt stands in the task and in its input"),
        ({**PROMPT, "input": {"max_turns": 0}}, "max_turns is not a whole number"),
        ({**PROMPT, "max_turns": True}, "max_turns is not a whole number"),
        ({**PROMPT, "max_turns": "3"}, "max_turns is not a whole number"),
        ({"agent": "coder", "prompt": " "}, "prompt is not a text"),
        ({"agent": "coder", "prompt": ["a"]}, "prompt is not a text"),
        ({"agent": "coder", "prompt_file": "/etc/passwd"}, "not a path in the workspace"),
        ({"agent": "coder", "prompt_file": "a/../../b"}, "not a path in the workspace"),
        ({"agent": "coder", "prompt_file": "a\0b"}, "not a path in the workspace"),
        ({"agent": "coder", "prompt_file": 7}, "not a path in the workspace"),
        ({**PROMPT, "model": "--yolo"}, "model is not a name"),
        ({**PROMPT, "model": 7}, "model is not a name"),
        ({**PROMPT, "model": ""}, "model is not a name"),
        ({**PROMPT, "model": "a\nb"}, "model is not a name"),
        ({**PROMPT, "must_change": 1}, "neither true nor false"),
        ({**PROMPT, "resume": True}, "resume is True"),
        ({**PROMPT, "accept": []}, "not a list of commands"),
        ({**PROMPT, "accept": 7}, "not a list of commands"),
        ({**PROMPT, "accept": [7]}, "holds what is no command: 7"),
        ({**PROMPT, "accept": [["a", 7]]}, "holds what is no command"),
        ({**PROMPT, "accept": [[]]}, "holds what is no command"),
        ({**PROMPT, "accept": ["a\0"]}, "holds what is no command"),
        ({**PROMPT, "success_if": []}, "not an object with conditions"),
        ({**PROMPT, "success_if": {}}, "not an object with conditions"),
        ({**PROMPT, "success_if": {"regexp": "a"}}, "success_if.regexp is no condition"),
        ({**PROMPT, "success_if": {"nonempty": "yes"}}, "success_if.nonempty is neither"),
        ({**PROMPT, "success_if": {"file": "/x"}}, "success_if.file is not a path"),
        ({**PROMPT, "success_if": {"regex": ""}}, "success_if.regex is not a regular"),
        ({**PROMPT, "success_if": {"regex": 7}}, "success_if.regex is not a regular"),
        ({**PROMPT, "success_if": {"schema": "a"}}, "success_if.schema is no JSON schema"),
        ({**PROMPT, "success_if": {"command": []}}, "success_if.command holds what is no command"),
        ({**PROMPT, "success_if": {"command": 7}}, "success_if.command holds what is no command"),
        ({**PROMPT, "workspace": "x"}, "workspace is not an object"),
        ({**PROMPT, "workspace": {"setup": ["x"]}}, "workspace.setup is not a task's to choose"),
        ({**PROMPT, "workspace": {"repo": "--upload-pack=x"}}, "workspace.repo is not a text, or begins with -"),
        ({**PROMPT, "workspace": {"repo": 7}}, "workspace.repo is not a text"),
        ({**PROMPT, "workspace": {"repo": ""}}, "workspace.repo is not a text"),
        ({**PROMPT, "workspace": {"repo": "a\0"}}, "workspace.repo is not a text"),
        ({**PROMPT, "workspace": {"keep_s": "1"}}, "workspace.keep_s is not a number"),
        ({**PROMPT, "workspace": {"keep_s": True}}, "workspace.keep_s is not a number"),
        ({**PROMPT, "workspace": {"keep_s": -1}}, "workspace.keep_s is not a number"),
        ({**PROMPT, "agent": "a b"}, "not a plain word"),
    ],
)
def test_what_is_wrong_is_said(task: dict[str, Any], said: str) -> None:
    with pytest.raises(BadFile, match=f"{said.replace('(', '.')}.*Fix: ") as error:
        read(task)
    assert error.value.mend


def test_a_task_that_is_no_object_is_not_asked_for_an_agent() -> None:
    with pytest.raises(ValueError, match="dictionary"):
        Task.model_validate([])
    with pytest.raises(WrongValue):
        agent_fields.check({})
