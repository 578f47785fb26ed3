"""A part that is cut out of a name says what the parsed field says."""

import pytest
from hypothesis import given

from spoold.protocol import names
from spoold.protocol.names import EndedName, TaskName, key, parse_task
from tests.protocol import strategies as some

NAME = "5000.hff58yhhc0-3.a.a1f0c0.json"


@given(some.task_names)
def test_each_part_of_a_name_says_what_its_field_says(task: TaskName) -> None:
    name = task.encode()
    assert names.is_task(name)
    assert names.key_in(name) == key(task.id)
    assert names.rank_in(name) == task.rank
    assert names.age_in(name).startswith(f"{task.order}.{task.id}.")
    assert names.is_plain(name) == (not task.conditional and not task.delay_ms)


@given(some.ended_names)
def test_the_key_in_the_name_of_what_has_ended_is_that_of_its_task(ended: EndedName) -> None:
    assert names.ended_key_in(ended.encode()) == key(ended.id)


@pytest.mark.parametrize("name", ["notes.txt", f"{NAME}.tmp", NAME.replace("a1", "a01"), NAME[1:], ""])
def test_a_name_that_no_parser_takes_is_no_task(name: str) -> None:
    assert parse_task(name) is None
    assert not names.is_task(name)
