"""Bytes come from anybody: whatever they are, the answer is a value, or a BadFile that names file, field and mend."""

import json
import tomllib
from typing import Any

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError

from spoold.protocol import codec
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.fields import Strict
from spoold.protocol.heartbeat import Capabilities, Heartbeat
from spoold.protocol.lanes import NO_WORD
from spoold.protocol.names import BeatName
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Code, Result, Status, Total
from spoold.protocol.settings import Marker, Settings
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.task import Task
from spoold.protocol.toml_file import load_settings
from spoold.protocol.validation_errors import bad_file, faults_of
from tests.protocol import strategies as some

FILE = "somebody's file.json"
MODELS: list[type[BaseModel]] = [Task, Result, Heartbeat, RequestBody, Snapshot, Marker, Settings]


def nested(levels: int) -> bytes:
    return b'{"command":"x","input":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def refused(error: BadFile) -> BadFile:
    """The error, once it is seen to say all that a person needs."""
    assert error.file.startswith(FILE)
    assert error.problem.endswith(".")
    assert error.mend.endswith((".", "?"))
    assert str(error).startswith(f"{error.file}: ")
    assert f"{error.problem} Fix: {error.mend}" in str(error)
    return error


@pytest.mark.parametrize("model", MODELS)
@given(data=st.binary(max_size=80))
@example(b"")
@example(b"\xff\xfe{\x00}\x00")
@example(b"\xef\xbb\xbf")
@example(b'{"a": "\\ud800"}')
@example(b'{"a": 1e999}')
@example(b'{"a": "\xff"}')
@example(b"[" * 5000)
@example(nested(1000))
@example(nested(5000))
def test_any_bytes_are_a_value_or_a_bad_file(model: type[BaseModel], data: bytes) -> None:
    try:
        assert isinstance(codec.load_model(model, data, FILE), model)
    except BadFile as error:
        refused(error)


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data())
def test_any_json_object_is_a_value_or_a_bad_file(model: type[BaseModel], data: st.DataObject) -> None:
    fields = st.one_of(st.sampled_from(sorted(model.model_fields)), st.text(max_size=8))
    value = data.draw(st.dictionaries(fields, some.json_values, max_size=5))
    text = orjson.dumps({key: inner for key, inner in value.items() if _small(inner)})
    try:
        loaded = codec.load_model(model, text, FILE)
    except BadFile as error:
        refused(error)
        return
    assert codec.load_model(model, codec.dump(loaded), FILE) == loaded


def _small(value: Any) -> bool:
    """Whether orjson can write it: 64 bits are the most that JSON from anywhere can bring as an integer."""
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


@given(data=st.one_of(st.binary(max_size=60), st.text(max_size=60).map(str.encode)))
@example(b"a=" + b"[" * 5000)
@example(b"timeout=" + b"9" * 6000)
@example(b"timeout=0x" + b"f" * 6000)
@example(b"[heartbeat]\ninterval_s = nan")
@example(b"timeout = inf")
@example(b"[types.review]\nmax_retries = 1.5")
def test_any_bytes_are_settings_or_a_bad_file(data: bytes) -> None:
    try:
        assert isinstance(load_settings(data, FILE), Settings)
    except BadFile as error:
        refused(error)


@given(value=some.json_values)
def test_what_was_dumped_is_loaded_again(value: Any) -> None:
    if not _small(value):
        return
    data = codec.dump(value)
    assert b"\n" not in data
    back = codec.load(codec.BOM + data, FILE)
    assert codec.same_content(back, value)


def test_the_deepest_that_is_read_can_be_compared_and_written() -> None:
    value = codec.load(nested(codec.DEPTH_MAX), FILE)
    assert codec.same_content(value, value)
    assert codec.dump(codec.load_task(nested(codec.DEPTH_MAX), FILE))
    assert codec.dump(Result.model_validate({**MINIMAL_RESULT, "output": value}))
    for levels in (codec.DEPTH_MAX + 1, 100_000):  # the second is more than the parser itself takes
        with pytest.raises(BadFile, match="nested deeper than 200 levels"):
            codec.load(nested(levels), FILE)


def test_what_no_reader_knows_is_written_as_legible_text() -> None:
    """A result that cannot be written would be a task that never ends."""
    odd = {"text": "a\udc80", "k\udc80": (2**70, -(2**70), 2**62, 1.5, True, None), "set": {1}.__class__}
    back = codec.load(codec.dump({"output": odd}), FILE)["output"]
    assert [type(key) for key in back] == [str] * 3
    assert back["text"].startswith("a")
    [numbers] = [value for value in back.values() if isinstance(value, list)]
    assert numbers == [str(2**70), str(-(2**70)), 2**62, 1.5, True, None]
    assert codec.dump(Result.model_validate({**MINIMAL_RESULT, "output": odd}))


@pytest.mark.parametrize("levels", [199, 200, 201, 254, 255, 300, 900])
def test_whatever_was_written_can_be_read_however_deep_it_was(levels: int) -> None:
    value: Any = "leaf"
    for level in range(levels - 1):
        value = [value] if level % 2 else {"a": value}
    data = codec.dump(Result.model_validate({**MINIMAL_RESULT, "output": value}))
    back = codec.load_model(Result, data, FILE)
    assert back.task_id == "a"
    assert (back.output == value) == (levels <= codec.DEPTH_MAX)


def test_many_brackets_are_not_deep() -> None:
    flat = b'{"input": ["' + b"[" * 5000 + b'", ' + b"[]," * 500 + b"{}]}"
    assert len(codec.load(flat, FILE)["input"]) == 502


MINIMAL_RESULT = {"task_id": "a", "attempt": 1, "worker_id": "w", "status": "success", "completed_at": ""}


def test_content_is_the_same_however_it_was_written() -> None:
    left, right = b'{"a": 1, "b": [1, {"c": 2, "d": 3}]}', b'{"b":[1,{"d":3,"c":2}],\n"a":1}'
    assert codec.same_content(codec.load(left, FILE), codec.load(right, FILE))
    assert not codec.same_content({"a": 1}, {"a": True})
    assert not codec.same_content([1, 2], [2, 1])


@pytest.mark.parametrize(
    ("data", "problem", "mend"),
    [
        (b"", "is empty", "write one JSON object"),
        (b" \n", "is empty", "write one JSON object"),
        (b"\xff\xfe{\x00}\x00", "is UTF-16", "save it as UTF-8"),
        (b"\xfe\xff\x00{", "is UTF-16", "save it as UTF-8"),
        (b'{"a": "\xff"}', "is not UTF-8 (byte 7)", "save it as UTF-8"),
        (b'{"a": 1,\n "b" 2}', "is not JSON: ", "fix it there"),
        (b'{"a": NaN}', "is not JSON: ", "no NaN or Infinity"),
        (b'{"a": "\\ud800"}', "is not JSON: ", "no half of a surrogate pair"),
        (b"[]", "is an array, not an object", "one file holds one JSON object"),
        (b'"x"', "is a string, not an object", "one file holds one JSON object"),
        (b"true", "is a boolean, not an object", "one file holds one JSON object"),
        (b"null", "is null, not an object", "one file holds one JSON object"),
        (b"4", "is a number, not an object", "one file holds one JSON object"),
        (b"4.5", "is a number, not an object", "one file holds one JSON object"),
    ],
)
def test_what_is_no_object_is_told_so(data: bytes, problem: str, mend: str) -> None:
    with pytest.raises(BadFile) as caught:
        codec.load_object(data, FILE)
    assert problem in caught.value.problem
    assert mend in refused(caught.value).mend
    assert caught.value.field == ""


def test_what_is_no_task_is_told_where_many_go() -> None:
    for load in (codec.load_task, codec.load_sent_task):
        with pytest.raises(BadFile) as caught:
            load(b"[]", FILE)
        assert "many tasks go one a line into a .jsonl" in caught.value.mend


@pytest.mark.parametrize(
    ("data", "file", "fix"),
    [
        (b'{"a": 1}\n{"a": 2}\n', "a.json", codec.SEVERAL),
        (codec.BOM + b'{"a": 1}\r\n{"a": 2}\r\n{"a', "A.JSON", codec.SEVERAL),
        (b'{"a": 1}\n{"a', "a.json", codec.STRICT),
        (b'{"a": 1}\n[2]', "a.json", codec.STRICT),
        (b'{"a": 1', "a.json", codec.STRICT),
        (b'{"a": 1}\n{"a": 2}\n', "SPOOL_RESULT_FILE", codec.STRICT),
    ],
)
def test_several_tasks_in_a_file_for_one_are_given_the_name_for_several(data: bytes, file: str, fix: str) -> None:
    with pytest.raises(BadFile, match="is not JSON: ") as caught:
        codec.load_object(data, file)
    assert (caught.value.file, caught.value.mend) == (file, fix)


def test_the_place_of_a_mistake_is_named() -> None:
    with pytest.raises(BadFile, match=r"line 2, column 6"):
        codec.load(b'{"a": 1,\n "b" 2}', FILE)
    with pytest.raises(BadFile, match=r"line 7: is not JSON: .* \(column 6\)"):
        codec.load(b' "b" 2}', f"{FILE} line 7")


@pytest.mark.parametrize(
    ("text", "field", "problem", "mend"),
    [
        (
            '{"command": "x", "budget": {"cost_usd": -1}}',
            "budget",
            "cost_usd is no amount",
            "give cost_usd an amount",
        ),
        ('{"command": "x", "depth": 1}', "", "depth is for a task with a parent", "leave it out; `spool submit`"),
        ('{"command": "x", "id": "a", "parent": "a"}', "", "the task is its own parent (a)", "leave parent out"),
        ('{"command": "x", "ipnut": 1}', "ipnut", "unknown field.", "did you mean 'input'?"),
        ('{"command": "x", "Timeout": 1}', "Timeout", "unknown field.", "did you mean 'timeout'?"),
        ('{"command": "x", "requires": {"memm": 1}}', "requires.memm", "unknown field.", "did you mean 'mem'?"),
        ('{"command": "x", "retry": {"maximum": 1}}', "retry.maximum", "unknown field.", "did you mean 'max'?"),
        ('{"command": "x", "zzz": 1}', "zzz", "unknown field.", "remove it, or put your own data under 'meta'"),
        ('{"zzz": 1, "timeout": -1}', "zzz", "unknown field (1 more).", "known here: "),
        (
            '{"command": "x", "after": ["a"], "dependencies": ["b"]}',
            "after",
            "unknown field.",
            "another name of a field",
        ),
        (
            '{"command": "x", "timeout": "soon"}',
            "timeout",
            "neither a number nor \"auto\". Given: 'soon'.",
            'write seconds without quotes, or "auto".',
        ),
        ('{"command": "x", "hold": ""}', "hold", "empty. Given: ''.", "write something between the quotes"),
        ('{"calls": []}', "calls", "empty. Given: [].", "write at least one value"),
        ('{"command": "x", "approval": {"ask": ""}}', "approval.ask", "empty.", "write something"),
        ('{"command": "x", "timeout": true}', "timeout", "not a number. Given: True.", "write a number."),
        ('{"command": "x", "priority": true}', "priority", "not a number", "write a number."),
        ('{"command": "x", "requires": {"mem": true}}', "requires.mem", "not a number", "write a number."),
        ('{"command": "x", "retry": {"on": [true]}}', "retry.on.0", "not a number", "write a number."),
        ('{"command": "x", "priority": "urgent"}', "priority", "not a priority", "use an integer or one of"),
        ('{"command": []}', "command", "empty", "give the program first"),
        ('{"type": "no such"}', "type", "not a plain word. Given: 'no such'.", "use 1 to 48 of a-z 0-9 _ . -"),
        (
            '{"command": 5}',
            "command",
            "not a string and not a list. Given: 5.",
            "write it in quotes, or write a list",
        ),
        ('{"command": ["a", 5]}', "command.1", "not a string. Given: 5.", "write it in quotes."),
        ('{"command": "x", "labels": {"a": 1}}', "labels.a", "not a string.", "write it in quotes."),
        (
            '{"command": "x", "labels": {"a": 1}, "timeout": 0}',
            "timeout",
            "small (1 more).",
            "write a number above 0.",
        ),
        ('{"command": "x", "after": ["a", "b/"]}', "after.1", "not an id. Given: 'b/'.", "use 1 to 120 of"),
        ('{"command": "x", "after": "b/"}', "after", "not an id. Given: 'b/'.", "use 1 to 120 of"),
        ('{"command": "x", "requires": {"label": "a+B C"}}', "requires.label", "Given: 'B C'.", "use 1 to 48 of"),
        ('{"command": "x", "retry": {"on": [1, 999]}}', "retry.on.1", "too large.", "write 255 or less."),
        ('{"command": "x", "deadline": "2030-01-01T00:00:00"}', "deadline", "without a zone", "add one, such as Z"),
        ('{"command": "x", "name": "' + "x" * 501 + '"}', "name", "longer than 500 characters.", "shorten it."),
        ('{"python": "f"}', "python", "not the name of a callable. Given: 'f'.", 'write "module:function".'),
    ],
)
def test_a_wrong_field_is_named_with_its_mend(text: str, field: str, problem: str, mend: str) -> None:
    with pytest.raises(BadFile) as caught:
        codec.load_task(text.encode(), FILE)
    assert caught.value.field == field
    assert problem in caught.value.problem
    assert mend in refused(caught.value).mend


@pytest.mark.parametrize(
    ("text", "mend"),
    [
        ('{"command": "x", "args": [1]}', "put a command's arguments into its list."),
        ('{"command": "x", "python": "a:f"}', "keep one of them."),
        ('{"type": ""}', "give a type that workers have a handler for, a command, or python."),
        (
            '{"id": "a", "command": "x", "after": "a"}',
            "take its own id out of dependencies, after_any and after_failed.",
        ),
    ],
)
def test_a_fault_of_no_one_field_says_what_to_do(text: str, mend: str) -> None:
    with pytest.raises(BadFile) as caught:
        codec.load_task(text.encode(), FILE)
    assert caught.value.field == ""
    assert refused(caught.value).mend == mend


class _Divisible(Strict):
    by_three: int = Field(multiple_of=3)


def test_what_is_missing_is_named_and_what_nobody_foresaw_has_the_words_of_the_validator() -> None:
    with pytest.raises(BadFile) as caught:
        codec.check(Marker, {}, FILE)
    assert (caught.value.field, caught.value.problem, caught.value.mend) == ("spool_id", "missing.", "add it.")
    with pytest.raises(BadFile) as caught:
        codec.check(Marker, {"spool_id": "s", "claim": "link"}, FILE)
    assert "not a value that it may have" in caught.value.problem
    assert refused(caught.value).mend == "use 'rename' or 'lock'."
    with pytest.raises(BadFile) as caught:
        codec.check(_Divisible, {"by_three": 4}, FILE)
    assert "multiple of 3" in caught.value.problem
    assert refused(caught.value).mend == "correct this field."


def test_known_names_are_told_once_and_only_a_task_has_room_for_other_data() -> None:
    for text in ('{"command": "x", "zzz": 1}', '{"command": "x", "requires": {"zzz": 1}}'):
        with pytest.raises(BadFile) as caught:
            codec.load_task(text.encode(), FILE)
        known = caught.value.mend.partition("known here: ")[2].rstrip(".").split(", ")
        assert known == sorted(set(known))
    with pytest.raises(BadFile) as caught:
        load_settings(b"zzz = 1", FILE)
    assert caught.value.mend.startswith("remove it; known here: alerts, budgets, children, classes, ")


def test_a_fault_of_the_whole_says_no_field_and_shows_no_content() -> None:
    with pytest.raises(BadFile) as caught:
        codec.load_task(b'{"input": "secret"}', FILE)
    assert caught.value.field == ""
    assert caught.value.problem.startswith("nothing to run")
    assert "secret" not in str(caught.value)


def test_long_values_are_not_repeated_to_people() -> None:
    with pytest.raises(BadFile) as caught:
        codec.load_task(orjson.dumps({"command": "x", "pool": "é" * 1000}), FILE)
    assert "Given" not in caught.value.problem


@pytest.mark.parametrize(
    ("text", "field", "mend"),
    [
        ("[heartbeat]\nintervall_s = 5", "heartbeat.intervall_s", "did you mean 'interval_s'?"),
        ("[types.review]\nmax_concurent = 5", "types.review.max_concurent", "did you mean 'max_concurrent'?"),
        ("[retri]\nmax = 1", "retri", "did you mean 'retry'?"),
        ("[heartbeat]\nmisses = 1", "heartbeat.misses", "write 2 or more."),
        ('[types."A B"]\nmax_retries = 1', "types.A B", f"{NO_WORD}."),
    ],
)
def test_a_wrong_setting_is_named_with_its_mend(text: str, field: str, mend: str) -> None:
    with pytest.raises(BadFile) as caught:
        load_settings(text.encode(), FILE)
    assert caught.value.field == field
    assert refused(caught.value).mend == mend


def test_settings_that_are_no_toml_name_the_line() -> None:
    with pytest.raises(BadFile, match="at line 2") as caught:
        load_settings(b"timeout = 5\n[retry\n", FILE)
    assert isinstance(caught.value.__cause__, tomllib.TOMLDecodeError)
    with pytest.raises(BadFile, match="is not UTF-8"):
        load_settings(b"# \xff", FILE)


def test_settings_may_begin_with_a_byte_order_mark() -> None:
    assert load_settings(codec.BOM + b"timeout = 5", FILE).timeout == 5


def test_a_bad_file_is_an_error_of_ours() -> None:
    assert issubclass(BadFile, SpoolError)
    assert str(BadFile("f", "", "is odd.", "mend it.")) == "f: is odd. Fix: mend it."
    assert str(BadFile("f", "a.b", "is odd.", "mend it.")) == "f: a.b: is odd. Fix: mend it."


@pytest.mark.parametrize("number", ["18446744073709551615", "-9223372036854775808", "0.12345678901234567890", "1e30"])
def test_numbers_that_every_reader_knows_are_read(number: str) -> None:
    assert codec.load(f'{{"n": {number}, "text": "{"1" * 40}"}}'.encode(), FILE)["n"] == json.loads(number)


@pytest.mark.parametrize("number", ["18446744073709551616", "-9223372036854775809", "1" * 300])
def test_integers_of_more_than_64_bits_are_refused_and_not_made_others(number: str) -> None:
    with pytest.raises(BadFile, match=r"of more than 64 bits\. Fix: put it in as a string"):
        codec.load(f'{{"args": [{number}]}}'.encode(), FILE)


def test_words_of_a_later_release_are_read_as_they_stand() -> None:
    said = {"task_id": "t", "attempt": 1, "worker_id": "w-1", "completed_at": "2026-02-02T09:00:00Z"}
    error = {"code": "NOT_ACCEPTED", "message": "no tests", "cause": "TIMEOUT"}
    result = codec.check(Result, {**said, "status": "blocked", "error": error}, FILE)
    assert (result.status, result.error and result.error.code) == ("blocked", "NOT_ACCEPTED")
    assert result.error is not None
    assert result.error.cause is Code.TIMEOUT
    known = codec.check(Result, {**said, "status": "success"}, FILE)
    assert known.status is Status.SUCCESS


@pytest.mark.parametrize(
    ("text", "twice"),
    [
        ('{"id": "a", "command": ["x"], "id": "b"}', "id"),
        ('{"command": ["x"], "input": {"a": [{"k": 1, "k" :1}]}}', "k"),
        ('\ufeff{"command": ["x"], "meta": {"\\"": 1, "\\"": 2}}', '"'),
    ],
)
def test_a_key_that_is_said_twice_is_refused_by_name(text: str, twice: str) -> None:
    with pytest.raises(BadFile, match=f"has the key {twice!r} twice"):
        codec.load_sent_task(text.encode(), "t.json")
    codec.load_task(text.encode(), "t.json")  # one that was admitted before is read as ever


@pytest.mark.parametrize(
    "text",
    [
        '{"command": "x", "input": {"a\\":": "\\": \\":", "b": {"a": 1}, "c": [{"a": 1}, {"a": 2}]}}',
        '{"command": "echo \\"id\\": \\"id\\":", "id": "a"}',
        '{"command": "x"}',
    ],
)
def test_what_only_looks_like_a_key_is_none(text: str) -> None:
    assert codec.load_sent_task(text.encode(), "t.json") == codec.load_task(text.encode(), "t.json")


@given(
    st.recursive(
        st.none() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner)
    )
)
def test_what_was_written_from_values_says_nothing_twice(value: Any) -> None:
    data = orjson.dumps(value)
    codec.sure(data, value, "f")


BEAT = BeatName("w-1", 7)


@pytest.mark.parametrize(
    ("data", "kept", "notes"),
    [
        (b'{"role": "master", "status": "leader", "slots": 2}', {"role": "master", "slots": 2}, ()),
        (b"{}", {"role": "worker", "at": "", "capabilities": None}, ()),
        (b'{"capabilities": {"allow_command": true}}', {"capabilities": Capabilities(allow_command=True)}, ()),
        (b'{"slots": "many", "pid": [], "notes": ["mine"]}', {"slots": 0, "pid": 0}, ("mine", "pid: ", "slots: ")),
        (
            b'{"capabilities": {"cpus": "x"}, "slots": 3}',
            {"capabilities": None, "slots": 3},
            ("capabilities.cpus: ",),
        ),
        (b'{"running": [{"attempt": 1}], "slots": 3}', {"running": (), "slots": 3}, ("running.0.id: ",)),
        (
            b'{"load": -1e308, "slots": -5, "pid": -1}',
            {"load": 0, "slots": 0, "pid": 0},
            ("pid: too", "slots: too", "load: too"),
        ),
        (b'{"slots": ', {"slots": 0}, ("is not JSON",)),
        (b"[]", {"slots": 0}, ("is an array",)),
        (b"", {"slots": 0}, ("is empty",)),
        (b'{"node": "other", "beat": 99}', {"node": "w-1", "beat": 7}, ()),
    ],
)
def test_a_beat_is_read_as_far_as_it_can_be(data: bytes, kept: dict[str, Any], notes: tuple[str, ...]) -> None:
    read = codec.load_beat(data, BEAT)
    assert (read.node, read.beat) == ("w-1", 7)
    assert {name: getattr(read, name) for name in kept} == kept
    assert len(read.notes) == len(notes)
    assert all(words in note for words, note in zip(notes, read.notes, strict=True))
    assert all(note == "mine" or note.startswith("its heartbeat cannot be read in full: ") for note in read.notes)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("load", 1e308),
        ("load", -0.1),
        ("slots", -5),
        ("slots", (1 << 63) - 1),
        ("pid", 1 << 31),
        ("clock_ahead_s", 1e17),
        ("clock_ahead_s", -1e17),
        ("mem_available_mb", -1),
        ("disk_free_mb", (1 << 63) - 1),
        ("interval_s", -1),
        ("endings", {"STALLED": -1}),
        ("endings", {"STALLED": 1 << 62}),
        ("capabilities", {"mem_mb": -1}),
        ("capabilities", {"cpus": 1e300}),
        ("capabilities", {"gpus": 1 << 60}),
        ("running", [{"id": "a", "frozen_s": -1}]),
        ("running", [{"id": "a", "mem_mb": 1e99}]),
        ("running", [{"id": "a", "attempt": 1 << 50}]),
        ("spent", {"attempts": 1 << 62}),
        ("spent", {"attempts": -1}),
        ("spent", {"attempts": 1, "duration_s": -1}),
        ("spent", {"attempts": 1, "duration_s": 1e308}),
        ("spent", {"attempts": 1, "cpu_s": 1e17}),
    ],
)
def test_a_figure_of_no_machine_is_passed_over_and_said(field: str, value: object) -> None:
    read = codec.load_beat(orjson.dumps({"node": "w-1", field: value, "version": "1"}), BEAT)
    assert getattr(read, field) == getattr(Heartbeat(node="w-1", beat=7), field)
    assert read.version == "1"
    [note] = read.notes
    assert field in note


def test_a_large_machine_and_records_of_any_size_are_read() -> None:
    large = {
        "slots": 4096,
        "load": 1e5,
        "mem_available_mb": 1 << 28,
        "disk_free_mb": 1 << 43,
        "clock_ahead_s": -2.5e9,
        "capabilities": {"cpus": 16384.0, "mem_mb": 1 << 28, "gpus": 512},
        "spent": {
            "attempts": 10**12,
            "duration_s": 1e12,
            "cpu_s": 1e12,
            "tokens_used": 10**12,
            "cost_usd": 1e12,
        },
    }
    read = codec.load_beat(orjson.dumps(large), BEAT)
    assert read.notes == ()
    assert (read.slots, read.spent and read.spent.attempts) == (4096, 10**12)
    total = {"attempts": -1, "duration_s": 1e300}
    said = {"task_id": "t", "attempt": 1, "worker_id": "w-1", "status": "success", "total": total}
    assert codec.check(Result, said, FILE).total == Total(attempts=0, duration_s=10**12)


@given(
    st.binary()
    | st.dictionaries(st.sampled_from(sorted(Heartbeat.model_fields)), st.none() | st.text()).map(orjson.dumps)
)
def test_nothing_that_stands_in_a_beat_hides_its_node(data: bytes) -> None:
    assert (codec.load_beat(data, BEAT).node, codec.load_beat(data, BEAT).beat) == ("w-1", 7)


def test_what_is_not_the_validators_error_is_no_fault_of_the_file() -> None:
    class Broken(BaseModel):
        @classmethod
        def model_validate(cls, *_: Any, **__: Any) -> Any:
            raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        codec.check(Broken, {}, FILE)


def test_very_many_faults_beyond_the_beginning_of_a_long_list_are_counted() -> None:
    class Numbers(Strict):
        numbers: list[int]

    wrong = {"numbers": [1] * 100 + ["x"] * 1001}
    with pytest.raises(ValidationError) as raised:
        Numbers.model_validate(wrong)
    told = refused(bad_file(Numbers, wrong, raised.value, FILE))
    assert told.problem == "has 1,001 values that do not fit."
    assert [str(fault) for fault in faults_of(Numbers, wrong, FILE)] == [str(told)]


def test_a_drop_of_very_many_keys_is_refused_at_once() -> None:
    """Comparing each with each took the leader minutes, and to name what each was meant to be as long again."""
    keys = ",".join(f'"k{number}":1' for number in range(200_000))
    with pytest.raises(BadFile, match="has the key 'k199999' twice"):
        codec.load_sent_task(f'{{"command":"x","input":{{{keys},"k199999":2}}}}'.encode(), "d.json")
    with pytest.raises(BadFile, match=r"has 200,001 fields, and at most 1,000 are read"):
        codec.load_sent_task(f'{{"command":"x",{keys}}}'.encode(), "d.json")


@pytest.mark.parametrize("claim", ["rename", "lock"])
def test_a_marker_is_what_its_model_reads(claim: str) -> None:
    found = codec.check_marker({"format": 1, "spool_id": "s1", "claim": claim, "later": 1}, "spool.json")
    assert (found.spool_id, found.claim) == ("s1", claim)


@pytest.mark.parametrize("count", [998, 1_001, 5_000])
def test_a_heartbeat_with_more_fields_than_are_read_still_is_one(count: int) -> None:
    """What is wrong with it as a whole names no field, and every command ended at it."""
    data = json.dumps({f"k{number}": {} for number in range(count)}).encode()
    beat = codec.load_beat(data, BeatName("evil-9", 7))
    assert (beat.node, beat.beat) == ("evil-9", 7)
    assert bool(beat.notes) is (count > 1_000)


def test_where_this_python_gives_up_a_text_is_too_deep() -> None:
    """From 3.14 on none gives up on what the first reader has taken; those before do."""

    def give_up(pairs: list[tuple[str, Any]]) -> None:
        raise RecursionError

    with pytest.raises(BadFile, match=f"nested deeper than {codec.DEPTH_MAX} levels"):
        codec._look_closely(b'{"id": "a"}', FILE, object_pairs_hook=give_up)
