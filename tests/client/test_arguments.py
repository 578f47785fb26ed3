"""What cannot travel to another machine is refused before it is sent, and the refusal names it."""

import enum
import functools
import json
import math
import os.path
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from spoold.client.spool.submission import check_arguments, mapping_of, mappings, target_of


def top_level() -> None: ...


class Holder:
    @staticmethod
    def static() -> None: ...

    @classmethod
    def of_class(cls) -> None: ...

    def method(self) -> None: ...


@functools.lru_cache
def cached() -> None: ...


def nested() -> Callable[[], None]:
    def inner() -> None: ...

    return inner


@pytest.mark.parametrize(
    ("function", "target"),
    [
        (json.dumps, "json:dumps"),
        (math.sqrt, "math:sqrt"),
        (os.path.join, f"{os.path.join.__module__}:join"),
        (top_level, f"{__name__}:top_level"),
        (Holder.static, f"{__name__}:Holder.static"),
        (cached, f"{__name__}:cached"),
    ],
)
def test_a_function_of_a_module_has_a_name(function: Callable[..., Any], target: str) -> None:
    sys.modules.setdefault(__name__, sys.modules[top_level.__module__])
    assert target_of(function) == target


@pytest.mark.parametrize(
    ("function", "mend"),
    [
        (lambda: None, "give it a name with def"),
        (nested(), "move it to the top level"),
        (Holder().method, "pass a plain function"),
        (Holder.of_class, "pass a plain function"),
        (functools.partial(top_level), "pass a function that a module defines"),
    ],
)
def test_what_no_worker_can_import_is_refused_with_the_mend(function: Callable[..., Any], mend: str) -> None:
    with pytest.raises(TypeError, match=mend):
        target_of(function)


def test_the_script_that_was_started_is_no_module_of_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ModuleType("__main__")
    exec("def work(): ...", script.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", script)
    with pytest.raises(TypeError, match=r"work is defined in the script .*move it into a module"):
        target_of(script.work)


def test_another_function_of_that_name_is_not_called_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    before = top_level
    monkeypatch.setattr(sys.modules[before.__module__], "top_level", nested())
    with pytest.raises(TypeError, match="a worker would call another one"):
        target_of(before)


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (object(), "argument 2 is a object"),
        ({1: "x"}, "argument 2 has the key 1"),
        ({"a": [1, {"b": {3}}]}, r"argument 2\['a'\]\[1\]\['b'\] is a set"),
        (float("nan"), "argument 2 is nan"),
        (1 << 64, "beyond 64 bits"),
        ("\ud800", "half a character"),
        ({"a": {"\ud800": 1}}, r"argument 2\['a'\] has the key '\\ud800', which holds half a character"),
        (Colour.RED, "is a Colour"),
        (b"x", "is a bytes"),
    ],
)
def test_what_json_cannot_say_is_refused_by_name(value: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        check_arguments([0, value], {})
    with pytest.raises(TypeError, match="argument 'key'"):
        check_arguments([], {"key": value})


def test_a_name_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(TypeError, match=r"argument '\\udcff' has a name that holds half a character"):
        check_arguments([], {"\udcff": 1})


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(TypeError, match="holds itself"):
        check_arguments([endless], {})


def test_plain_values_may_travel() -> None:
    check_arguments([None, True, -1, (1 << 64) - 1, 1.5, "ä😀", [1, (2,)]], {"x": {"y": {}}})


@pytest.mark.parametrize(
    ("task", "fields", "right"),
    [
        ("x", {"command": "make"}, "submit(name='x', command=…)"),
        ("make", {}, "submit(command='make')"),
        (["make", "all"], {}, "submit(command=['make', 'all'])"),
        ([{"command": "make"}], {}, "submit_many(tasks)"),
        (math.floor, {}, "SpoolExecutor(spool).submit(function, …)"),
        ("x" * 100, {}, f"submit(command='{'x' * 58}…)"),
    ],
)
def test_what_is_no_task_is_refused_with_the_right_call(task: object, fields: dict[str, object], right: str) -> None:
    with pytest.raises(TypeError) as caught:
        mapping_of(task, fields)
    assert str(caught.value).endswith(f"write {right}.")
    assert str(caught.value).startswith(
        f"submit takes a task as a mapping or as fields, not the {type(task).__name__} "
    )


def test_a_mapping_and_nothing_are_tasks() -> None:
    assert mapping_of({"command": "make"}, {}) == {"command": "make"}
    assert mapping_of(None, {"command": "make"}) == {}


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        ({"command": "make"}, "submit_many takes several tasks, not one mapping; write submit(task) for one."),
        ([{"command": "make"}, "make"], "task 2 is the str 'make'; each task is a mapping, such as"),
    ],
)
def test_many_tasks_are_mappings(tasks: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        list(mappings(tasks))
    assert said in str(caught.value)
