"""A name at a glance says what its fields say."""

import pytest
from hypothesis import given

from spoold.protocol import glance
from spoold.protocol.names import EndedName, TaskName, key, parse_task
from tests.protocol import strategies as some

NAME = "5000.hff58yhhc0-3.a.a1f0c0.json"


@given(some.task_names)
def test_a_glance_at_a_name_sees_what_its_fields_say(task: TaskName) -> None:
    name = task.encode()
    assert glance.is_task(name)
    assert glance.key_in(name) == key(task.id)
    assert glance.rank_in(name) == task.rank
    assert glance.age_in(name).startswith(f"{task.order}.{task.id}.")
    assert glance.is_plain(name) == (not task.conditional and not task.delay_ms)


@given(some.ended_names)
def test_a_glance_at_a_name_of_what_has_ended_sees_whose_it_is(ended: EndedName) -> None:
    assert glance.ended_key_in(ended.encode()) == key(ended.id)


@pytest.mark.parametrize("name", ["notes.txt", f"{NAME}.tmp", NAME.replace("a1", "a01"), NAME[1:], ""])
def test_what_is_no_task_is_none_at_a_glance_too(name: str) -> None:
    assert parse_task(name) is None
    assert not glance.is_task(name)
