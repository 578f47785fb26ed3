"""A task file as people write it: what is accepted, what it comes to, and what is refused with which words."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from spoold.protocol.lanes import Lane
from spoold.protocol.task import DEPENDENCIES_MAX, Task


def task(**fields: Any) -> Task:
    return Task.model_validate({"command": "true", **fields})


def test_the_format_that_people_already_write_is_taken_as_it_stands() -> None:
    found = Task.model_validate(
        {
            "id": "550e8400-e29b-41d4-a716-446655440000",
            "type": "code_review",
            "priority": 1,
            "created_at": "2025-10-17T10:30:00Z",
            "timeout": 300,
            "input": {"code": "...", "language": "python"},
            "dependencies": [],
            "retry_count": 0,
            "max_retries": 3,
        }
    )
    assert found.kind == "code_review"
    assert found.run == "handler"
    assert found.created_at == datetime(2025, 10, 17, 10, 30, tzinfo=UTC)
    assert not found.conditional
    assert found.lane == Lane("code_review")


@pytest.mark.parametrize(
    ("given_priority", "number"),
    [("critical", 20), (" High ", 10), ("medium", 0), ("normal", 0), ("low", -10), ("background", -20), (7, 7)],
)
def test_a_priority_is_a_number_or_a_word(given_priority: Any, number: int) -> None:
    assert task(priority=given_priority).priority == number


@pytest.mark.parametrize("priority", ["urgent", "5", 1.5, 10**10, [1]])
def test_other_priorities_are_refused(priority: Any) -> None:
    with pytest.raises(ValidationError):
        task(priority=priority)


@pytest.mark.parametrize(
    ("given_mem", "mib"),
    [
        (4096, 4096),
        ("4096", 4096),
        ("4G", 4096),
        ("4 GiB", 4096),
        ("0.5g", 512),
        ("512m", 512),
        ("1k", 1),
        ("1T", 1 << 20),
        ("512B", 1),
        ("2097153 b", 3),
        ("1.5", 2),
        (0, 0),
    ],
)
def test_memory_is_mib_or_has_a_unit_and_rounds_up(given_mem: Any, mib: int) -> None:
    assert task(requires={"mem": given_mem}).requires.mem_mb == mib


@pytest.mark.parametrize("mem", ["much", "-1", "4X", "", -1, "9" * 400, "9" * 400 + "G", "999999999999T", "٤G"])
def test_other_amounts_of_memory_are_refused(mem: Any) -> None:
    with pytest.raises(ValidationError):
        task(requires={"mem": mem})


@given(amount=st.integers(0, 10**6), unit=st.sampled_from(["k", "m", "g"]))
def test_a_worker_never_gets_less_memory_than_was_asked_for(amount: int, unit: str) -> None:
    try:
        mib = task(requires={"mem": f"{amount}{unit}"}).requires.mem_mb
    except ValidationError:
        assert amount * {"k": 1, "m": 1024, "g": 1 << 20}[unit] > 10**9 << 10
        return
    asked = amount * {"k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[unit]
    assert asked <= mib << 20 < asked + (1 << 20)


@pytest.mark.parametrize(
    ("labels", "found"),
    [("Docker,node", ("docker", "node")), ("a+b", ("a", "b")), (["a", " B "], ("a", "b")), ([], ()), ("", ())],
)
def test_labels_are_words_however_they_are_listed(labels: Any, found: tuple[str, ...]) -> None:
    assert task(requires={"labels": labels}).requires.labels == found


@pytest.mark.parametrize("stamp", ["2026-01-31T18:00:00Z", "2026-01-31T19:00:00+01:00", "2026-01-31 18:00:00.000Z"])
def test_a_time_has_a_zone(stamp: str) -> None:
    assert task(deadline=stamp).deadline == datetime(2026, 1, 31, 18, tzinfo=UTC)


@pytest.mark.parametrize("stamp", ["2026-01-31T18:00:00", "2026-01-31", 3600, "3600", "-5", 1.5, "soon", True, None])
def test_other_times_are_refused(stamp: Any) -> None:
    """A number above all: its writer meant "in an hour", and 1970 is past every deadline."""
    if stamp is None:
        assert task(deadline=stamp).deadline is None
        return
    with pytest.raises(ValidationError):
        task(deadline=stamp)


@pytest.mark.parametrize("name", ["a b", "", "con", "a.", "x" * 121, 5])
@pytest.mark.parametrize("field", ["id", "batch", "parent"])
def test_an_id_that_cannot_be_a_name_is_refused(field: str, name: Any) -> None:
    with pytest.raises(ValidationError):
        task(**{field: name})


@pytest.mark.parametrize("field", ["dependencies", "after", "after_any"])
def test_one_dependency_needs_no_list(field: str) -> None:
    found = task(**{field: "a"})
    assert found.conditional
    assert (*found.dependencies, *found.after_any) == ("a",)


def test_one_artifact_needs_no_list() -> None:
    assert task(artifacts="out/*.txt").artifacts == ("out/*.txt",)


def test_dependencies_are_bounded() -> None:
    assert len(task(dependencies=["a"] * DEPENDENCIES_MAX).dependencies) == DEPENDENCIES_MAX
    with pytest.raises(ValidationError):
        task(dependencies=["a"] * (DEPENDENCIES_MAX + 1))


@pytest.mark.parametrize(
    ("fields", "run", "kind"),
    [
        ({"type": "review"}, "handler", "review"),
        ({"type": "Review ", "command": ["a", "b"]}, "command", "review"),
        ({"command": "echo hi"}, "command", "command"),
        ({"python": "pkg.jobs:run", "args": [1], "kwargs": {"a": 2}}, "python", "python"),
        ({"python": "pkg.jobs:run", "calls": [[1], []]}, "python", "python"),
    ],
)
def test_exactly_one_thing_says_what_to_run(fields: dict[str, Any], run: str, kind: str) -> None:
    found = Task.model_validate(fields)
    assert (found.run, found.kind, found.lane.run, found.lane.type) == (run, kind, run, kind)
    assert found.lane.module == ("pkg.jobs" if run == "python" else "")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "nothing to run"),
        ({"command": "x", "python": "a:b"}, "keep one of them"),
        ({"command": "x", "args": [1]}, "belong to python"),
        ({"type": "x", "kwargs": {"a": 1}}, "belong to python"),
        ({"type": "x", "calls": [[1]]}, "belong to python"),
        ({"python": "a:b", "calls": [[1]], "args": [1]}, "both say what python is called with"),
        ({"python": "a:b", "calls": [[1]], "kwargs": {"a": 1}}, "both say what python is called with"),
        ({"python": "a:b", "calls": []}, "at least 1 item"),
        ({"python": "a:b", "calls": [1]}, "valid list"),
        ({"command": ""}, "give the program first"),
        ({"command": [" ", "x"]}, "give the program first"),
        ({"command": ["a", "b\0"]}, "NUL"),
        ({"python": "no colon"}, "not the name of a callable"),
        ({"command": "x", "env": {"": "1"}}, "cannot be the name of a variable"),
        ({"command": "x", "env": {"A=B": "1"}}, "cannot be the name of a variable"),
        ({"command": "x", "env": {"A": "\0"}}, "holds a NUL"),
        ({"command": "x", "cwd": "src"}, "not an absolute path"),
        ({"command": "x", "cwd": "/a\0b"}, "not an absolute path"),
        ({"command": "x", "cwd": ""}, "not an absolute path"),
        ({"command": "x", "id": "a", "dependencies": ["b", "a"]}, "depends on itself"),
        ({"command": "x", "id": "a", "after_any": ["a"]}, "depends on itself"),
        ({"command": "x", "pool": "no pool"}, "not a plain word"),
        ({"command": "x", "type": "a."}, "not a plain word"),
        ({"command": "x", "retry": {"on": [256]}}, "less than or equal to 255"),
        ({"command": "x", "timeout": 0}, "greater than 0"),
    ],
)
def test_what_cannot_be_run_is_refused_in_words(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        Task.model_validate(fields)


@pytest.mark.parametrize(
    ("fields", "conditional"),
    [
        ({}, False),
        ({"input": {"x": 1}, "requires": {"cpus": 1}}, False),
        ({"dependencies": ["a"]}, True),
        ({"after_any": ["a"]}, True),
        ({"deadline": "2026-01-01T00:00:00Z"}, True),
        ({"not_before": "2026-01-01T00:00:00Z"}, True),
    ],
)
def test_only_conditions_make_a_task_conditional(fields: dict[str, Any], conditional: bool) -> None:
    """The flag in the name: whether the content must be read before the task may be moved."""
    assert task(**fields).conditional is conditional


def test_the_lane_states_everything_that_a_worker_must_have() -> None:
    found = Task.model_validate(
        {
            "type": "train",
            "python": "Pkg.Jobs:run",
            "pool": "gpu",
            "requires": {"cpu": 1.5, "mem": "4G", "gpu": 1, "label": "b,a"},
        }
    )
    assert found.lane.encode() == "type=train,run=python,pool=gpu,cpu=1.5,mem=4096,gpu=1,need=a+b,py=pkg.jobs"


def test_variables_are_taken_as_they_stand() -> None:
    assert task(env={"A": "1", "b c": "="}).env == {"A": "1", "b c": "="}


def test_a_task_is_never_changed_after_it_was_read() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        task().timeout = 5  # type: ignore[misc]
