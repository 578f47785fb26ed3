"""What is taken for plain is what the model takes, with the same values; all else is left to the model."""

import json
from typing import Any, get_args

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from spoold.client.spool import submission
from spoold.protocol import agent_fields, codec, plain_settings, plain_settings_table, plain_status, plain_task
from spoold.protocol.doctor_report import Strategy
from spoold.protocol.errors import BadFile
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName
from spoold.protocol.plain_fields import Plain
from spoold.protocol.settings import BudgetSettings, Marker, Settings, TypeSettings
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import DEPENDENCIES_MAX, Requires, Task
from spoold.protocol.toml_file import toml_table
from spoold.rules.entry import admission
from spoold.store.initialise import SETTINGS_TEMPLATE
from tests.protocol import strategies as some

STAMP = "2025-10-09T08:00:00.000Z"
# Values at and beyond every edge that a field of ours has, and of every kind.
EDGES: list[Any] = [
    0,
    1,
    2,
    -1,
    0.05,
    0.5,
    1.5,
    5,
    100,
    101,
    1000,
    1001,
    1024,
    3600,
    3601,
    9999,
    10_000,
    10**9,
    10**9 + 1,
]
EDGES += [10**15, 10**15 + 1, 2**53, 2**53 + 1, 2**63 - 1, 2**64 - 1, 10.0**12, 1e308, True, False, None]
TEXTS = [
    "",
    " ",
    "a",
    "A",
    "review",
    "con",
    "high",
    "HIGH",
    "freeze",
    "rename",
    "a.b",
    "a.",
    "x" * 49,
    "x" * 501,
    "\0",
]
TEXTS += ["/data", "data", "é", "a=b", "4G", "leader", "5", STAMP, "2025-13-09T08:00:00Z", " b "]
scalars = st.sampled_from([*EDGES, *TEXTS])
lists = st.lists(scalars, max_size=3)
values = st.one_of(scalars, lists, st.dictionaries(st.sampled_from(TEXTS), scalars, max_size=2))


def sections(names: Any, inner: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Objects with these fields, some of them with these values."""
    said = st.dictionaries(st.sampled_from([*names, "unknown"]), values, max_size=2)
    return st.builds(lambda one, more: one | more, said, st.fixed_dictionaries({}, optional=inner))


def fields_of(model: type[BaseModel]) -> list[str]:
    return list(model.model_fields)


def part(model: type[BaseModel]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from([*fields_of(model), "unknown"]), values, max_size=3)


SECTIONS = {
    name: part(type(field.default))
    for name, field in Settings.model_fields.items()
    if isinstance(field.default, BaseModel)
}
TYPES = st.dictionaries(st.sampled_from(["review", "Review", "a.", "x"]), part(TypeSettings), max_size=2)


@given(found=sections(Settings.model_fields, {**SECTIONS, "types": TYPES}))
@example({"timeout": 5, "heartbeat": {"interval_s": 1}, "drop": {"max_bytes": 2048}, "durability": {"fsync": False}})
@example({"types": {"review": {"priority": "high", "lost_share": "stop", "max_concurrent": 2, "timeout": 1.5}}})
@example({"disk": {"warn": 1, "stop": 1, "enough_free_mb": 0}})
def test_plain_settings_are_those_of_the_model(found: dict[str, Any]) -> None:
    plain = plain_settings.basics(found)
    if plain is not None:
        assert plain == codec.check_settings(found, "f").basics


def test_more_weights_than_there_may_be_are_not_plain() -> None:
    for count in (1000, 1001):
        said = {"fair": {"weights": {f"b{number}": 2 for number in range(count)}}}
        assert (plain_settings_table.read(said) is None) == (count > 1000)


def test_every_setting_may_be_plain_and_has_the_default_of_its_model() -> None:
    whole = json.loads(Settings().model_dump_json())
    assert plain_settings_table.read(whole) is not None
    assert {name: set(inner) for name, inner in whole.items() if inner and isinstance(inner, dict)} == {
        name: set(fields_of(type(field.default)))
        for name, field in Settings.model_fields.items()
        if isinstance(field.default, BaseModel)
    }
    assert plain_settings.basics({}) == plain_settings.Basics() == Settings().basics
    one = {"timeout": 1, "max_retries": 1, "max_concurrent": 1, "priority": 1, "memory_factor": 1}
    one |= {"lost_share": "freeze", "uses": {"llm": 1}, "bulkhead": "a", "budgets": ["nightly"]}  # type: ignore[dict-item]
    one |= {"breaker": {"failures": 5, "open_s": 60}}  # type: ignore[dict-item]
    one |= {"model": "big-1.5", "max_tokens": 8000, "temperature": 0.2}  # type: ignore[dict-item]
    assert set(one) == set(fields_of(TypeSettings))
    budget = {"cost_usd": 1.5, "tokens": None, "task_s": 60, "per": "day", "over": "hold", "unknown": "refuse"}
    assert set(budget) == set(fields_of(BudgetSettings))
    assert plain_settings_table.read({"types": {"review": one}, "budgets": {"nightly": budget}}) is not None
    limit = {"max": 1, "per": "pool", "quota_max_s": 5}
    assert plain_settings_table.read({"limits": {"llm": limit}}) == {"limits": {"llm": limit}}
    assert plain_settings_table.read({"limits": {"llm": {"rate": {"count": 1, "per_s": 1}}}}) is None, (
        "the model has to be asked"
    )


@pytest.mark.parametrize(
    ("said", "read"),
    [(["a", "b"], {"a": 1, "b": 1}), ({"a": 2}, {"a": 2}), ([], {})],
)
def test_plain_uses_are_those_of_the_model(said: Any, read: dict[str, int]) -> None:
    found = plain_settings_table.read({"types": {"t": {"uses": said}}})
    assert found == {"types": {"t": {"uses": read}}}
    assert codec.check_settings({"types": {"t": {"uses": said}}}, "f").of("t").uses == read


@pytest.mark.parametrize(
    "said", [["a", "a"], ["A"], {"A": 1}, {"a": 0}, {"a": 10_000}, "a", 3, {f"l{n}": 1 for n in range(21)}]
)
def test_uses_that_are_not_plain_are_left_to_the_model(said: Any) -> None:
    assert plain_settings_table.read({"types": {"t": {"uses": said}}}) is None


@given(data=st.one_of(st.binary(max_size=30), st.text("# \t\r\na=é\x00\x7f", max_size=12).map(str.encode)))
@example(SETTINGS_TEMPLATE)
@example(b"# a\rb = 1")
@example(b"# \x00")
@example(b"\t# x")
def test_a_file_that_says_nothing_is_an_empty_table(data: bytes) -> None:
    if plain_settings.says_nothing(data):
        assert toml_table(data, "f") == {}


def test_the_settings_that_init_writes_say_nothing() -> None:
    assert plain_settings.says_nothing(SETTINGS_TEMPLATE)


@given(found=st.fixed_dictionaries({}, optional={"format": values, "spool_id": values, "claim": values, "x": values}))
@example({"format": 1, "spool_id": "s", "claim": "lock", "created_at": ""})
@example({"format": 1, "spool_id": "s", "claim": "lock", "created_at": 5})
def test_a_plain_marker_is_that_of_the_model(found: dict[str, Any]) -> None:
    plain = plain_settings.identity(found)
    if plain is not None:
        marker = codec.check(Marker, found, "f")
        assert (plain.spool_id, plain.claim) == (marker.spool_id, marker.claim)


def test_a_new_marker_is_plain() -> None:
    assert plain_settings.identity({"format": 1, "spool_id": "s", "claim": "rename", "created_at": STAMP}) is not None
    assert get_args(Strategy) == plain_settings.CLAIMS


GOOD = {
    "id": "a",
    "type": "review",
    "name": "b",
    "priority": 3,
    "created_at": STAMP,
    "timeout": 1.5,
    "input": {"x": [1]},
    "command": ["true", ""],
    "stdin": "in",
    "env": {"A": "1"},
    "cwd": "/data",
    "dependencies": ["b"],
    "max_retries": 0,
    "requires": {"cpus": 1, "mem_mb": 5, "gpus": 1, "labels": ["x"]},
    "batch": "c",
    "parent": "d",
    "depth": 2,
}
good = st.fixed_dictionaries({}, optional={name: st.just(value) for name, value in GOOD.items()})
bad = st.dictionaries(st.sampled_from([*Task.model_fields, "after", "unknown"]), values, max_size=2)
needs = st.dictionaries(
    st.sampled_from([*Requires.model_fields, "cpu", "mem", "gpu", "label", "x"]), values, max_size=3
)


def tasks() -> st.SearchStrategy[dict[str, Any]]:
    """Tasks that are right but for a field or two."""
    return st.builds(
        lambda right, wrong, requires: right | wrong | ({} if requires is None else {"requires": requires}),
        good,
        bad,
        st.none() | needs,
    )


@given(task=tasks(), dependency=st.none() | some.ids)
@example(GOOD, None)
@example({"id": "a", "command": "x", "requires": {"labels": ["x" * 48, "y" * 48, "z" * 48, "w" * 48]}}, None)
@example({"id": "a", "command": "x"}, "a")
@example({"id": "a", "command": "x", "parent": "a"}, None)
@example({"id": "a", "command": "x", "depth": 1}, None)
@example({"id": "a", "command": " "}, None)
@example({"id": "a", "command": []}, None)
@example({"id": "a", "command": "x", "cwd": "/" + "x" * 4096}, None)
def test_a_plain_task_is_one_that_every_leader_admits(task: dict[str, Any], dependency: str | None) -> None:
    said = task if dependency is None else task | {"dependencies": [dependency]}
    found = codec.load_object(orjson.dumps(said), "f")
    if plain_task.is_task(found, STAMP):
        checked = codec.check(Task, found, "f")
        assert admission.admit(checked, "0000000000-1", "", Settings(), "f").task == checked


@pytest.mark.parametrize("field", GOOD)
def test_every_field_of_a_plain_task_is_plain(field: str) -> None:
    with_parent = {"parent": "d"} if field == "depth" else {}
    assert plain_task.is_task({"id": "a", "command": ["true"], field: GOOD[field], **with_parent}, STAMP)
    assert set(GOOD) == set(plain_task.TASK)
    assert plain_task._DEPENDENCIES_MAX == DEPENDENCIES_MAX


def test_a_plain_drop_is_the_same_as_one_that_the_model_has_seen() -> None:
    for task in ({"id": "a", "command": ["true"]}, {"id": "b", "type": "review", "input": {"x": 1}}):
        plain = submission.plain(task, plain_settings.Basics(), 5, STAMP)
        assert plain == submission.one(task, Settings(), 5, STAMP)
    assert submission.plain({"command": ["true"], "colour": 1}, plain_settings.Basics(), 5, STAMP) is None
    assert submission.plain({"command": ["x" * 99]}, plain_settings.Basics(max_bytes=99), 5, STAMP) is None
    with pytest.raises(BadFile, match="cannot be written as JSON"):
        submission.plain({"command": {1, 2}}, plain_settings.Basics(), 5, STAMP)


BEAT = Heartbeat.model_validate(
    {
        "node": "w",
        "beat": 1,
        "running": [{"id": "a", "progress": {"x": [1]}}],
        "capabilities": {"cpus": 2, "labels": ["x"], "lacks": {"a": "b"}},
        "spent": {"attempts": 2, "tokens_used": 5, "cost_usd": 0.5},
        "mount": {"fstype": "nfs4", "options": ["soft"]},
        "clock_ahead_s": -1.5,
        "later": ["x"],
    }
)
PICTURE = Snapshot.model_validate(
    {
        "generated_at": STAMP,
        "spool_id": "s",
        "nodes": [
            {"worker": "w", "host": "h", "state": "idle", "slots": 1, "running": 0, "cpus": 1, "mem_mb": 1}
            | {"mem_available_mb": 1, "load": 1, "tasks": [{"id": "a"}], "later": {"x": [1]}}
        ],
        "spent": {"attempts": 1, "duration_s": 3},
        "types": {"review": {"waiting": 1}},
        "rates": {"eta_s": 3},
        "recent": {"failed_attempts": {"TIMEOUT": 2}},
        "later": [1],
    }
)


def paths(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where in a JSON value something stands."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [at, *(path for name, one in inner for path in paths(one, (*at, name)))]


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with another one at that place."""
    if not path:
        return new
    copy = dict(value) if isinstance(value, dict) else list(value)
    copy[path[0]] = changed(value[path[0]], path[1:], new)
    return copy


def same(plain: Any, model: BaseModel) -> None:
    """The plain object shows what the model shows, in its order, and by the same names."""
    assert isinstance(plain, Plain)
    assert json.dumps(plain.model_dump(mode="json")) == json.dumps(model.model_dump(mode="json"))
    for name in type(model).model_fields:
        one, other = getattr(plain, name), getattr(model, name)
        assert type(one) is type(other) or isinstance(one, Plain)


@pytest.mark.parametrize("whole", [BEAT, PICTURE], ids=["heartbeat", "snapshot"])
@given(data=st.data())
def test_a_plain_file_of_a_node_is_that_of_its_model(whole: BaseModel, data: st.DataObject) -> None:
    value = json.loads(codec.dump(whole))
    for _ in range(data.draw(st.integers(0, 2))):
        value = changed(value, data.draw(st.sampled_from(paths(value)[1:])), data.draw(values))
    plain: Any = plain_status.heartbeat(value) if isinstance(whole, Heartbeat) else plain_status.snapshot(value)
    if plain is not None:
        same(plain, type(whole).model_validate(value))


@pytest.mark.parametrize("whole", [BEAT, PICTURE], ids=["heartbeat", "snapshot"])
@pytest.mark.parametrize("new", [0, "x", [], {}, None, True])
def test_no_field_takes_what_its_model_refuses(whole: BaseModel, new: Any) -> None:
    """`capabilities.instead` and `running.instead_of` were in no shape, so anything went there."""
    value = json.loads(codec.dump(whole))
    for path in paths(value)[1:]:
        other = changed(value, path, new)
        plain: Any = plain_status.heartbeat(other) if isinstance(whole, Heartbeat) else plain_status.snapshot(other)
        if plain is not None:
            same(plain, type(whole).model_validate(other))


@pytest.mark.parametrize("whole", [BEAT, PICTURE], ids=["heartbeat", "snapshot"])
def test_what_a_node_writes_is_plain(whole: BaseModel) -> None:
    value = json.loads(codec.dump(whole))
    plain: Any = plain_status.heartbeat(value) if isinstance(whole, Heartbeat) else plain_status.snapshot(value)
    same(plain, type(whole).model_validate(value))
    shape = plain_status.HEARTBEAT if isinstance(whole, Heartbeat) else plain_status.SNAPSHOT
    assert list(shape) == fields_of(type(whole))
    other = plain.model_copy(update={"later": 5})
    assert (other.later, plain.later) != (plain.later, other.later)


def test_what_is_not_plain_is_read_by_the_model() -> None:
    name = BeatName("w", 1)
    assert plain_status.load_beat(b'{"load": "x"}', name) == codec.load_beat(b'{"load": "x"}', name)
    assert plain_status.load_beat(b"{", name) == codec.load_beat(b"{", name)
    assert plain_status.load_snapshot(b'{"generated_at": "", "spool_id": "s"}', "f") == Snapshot(
        generated_at="", spool_id="s"
    )
    with pytest.raises(BadFile):
        plain_status.load_snapshot(b"{}", "f")
    value = json.loads(codec.dump(PICTURE))
    for name_ in ("model_dump", "__class__"):  # no field of a file takes the place of a method
        assert plain_status.snapshot(value | {name_: 1}) is None


def test_the_models_refuse_what_they_refused() -> None:
    """The edges above are edges: of each kind of file some value is refused by its model."""
    for model in (Settings, Task, Heartbeat, Snapshot):
        with pytest.raises(ValidationError):
            model.model_validate({"timeout": -1, "load": -1, "generated_at": 5})


NOT_PLAIN: list[dict[str, Any]] = [
    {"id": "con"},
    {"id": 5},
    {"type": "a b"},
    {"type": ""},
    {"type": 5},
    {"name": "x" * 501},
    {"priority": "urgent"},
    {"priority": 10**10},
    {"created_at": "2025-10-09T08:00:00.001Z"},
    {"timeout": 0},
    {"timeout": "5"},
    {"command": "a\0"},
    {"command": []},
    {"env": {"": "x"}},
    {"env": {"A=": "x"}},
    {"env": ["A"]},
    {"cwd": "data"},
    {"dependencies": ["a"]},
    {"dependencies": ["b"] * (DEPENDENCIES_MAX + 1)},
    {"dependencies": "b"},
    {"requires": {"cpu": 1, "cpus": 1}},
    {"requires": {"labels": [letter * 48 for letter in "wxyz"]}},
    {"unknown": 1},
]


@pytest.mark.parametrize("wrong", NOT_PLAIN, ids=str)
def test_what_may_be_wrong_is_for_the_model(wrong: dict[str, Any]) -> None:
    assert not plain_task.is_task({"id": "a", "command": ["true"]} | wrong, STAMP)


def test_a_task_must_say_what_it_is() -> None:
    assert not plain_task.is_task({"command": ["true"]}, STAMP)
    assert not plain_task.is_task({"id": "a"}, STAMP)
    assert not plain_task.is_task(["a"], STAMP)


def test_what_is_plain_is_read_without_the_model() -> None:
    beat: Any = plain_status.load_beat(codec.dump(BEAT), BeatName("other", 7))
    assert (type(beat), beat.node, beat.beat) == (Plain, "other", 7)
    found: Any = plain_status.load_snapshot(codec.dump(PICTURE), "f")
    assert type(found) is Plain
    assert plain_settings_table.read({"types": {"review": {"lost_share": "wait"}}}) is None
    assert plain_settings_table.read({"types": {"Review": {}}}) is None
    assert plain_settings.identity({"format": 1, "spool_id": "s", "claim": "link"}) is None
    assert plain_settings.basics({"timeout": -1}) is None


@pytest.mark.parametrize("model", ["anthropic/claude-5", "a:b", "--yolo", "", "a b", "é", "x" * 201])
def test_a_model_with_other_signs_is_left_to_the_model_of_settings(model: str) -> None:
    found = {"types": {"t": {"model": model}}}
    assert plain_settings_table.read(found) is None
    if agent_fields.is_word(model):
        assert codec.check_settings(found, "f").of("t").model == model
    else:
        with pytest.raises(BadFile, match="no name of a model"):
            codec.check_settings(found, "f")
