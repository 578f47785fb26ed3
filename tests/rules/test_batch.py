"""A batch is all of its lines or none, and whoever expands it comes to the very same names."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import encode_order, is_id, parse_task
from spoold.protocol.settings import Settings
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Accepted, Reject, Young

SETTINGS = Settings()
MICROS = 1_770_000_000_000_000
ORDER = encode_order(MICROS, 3)
FILE = "many.jsonl"
SORTS: list[dict[str, Any]] = [
    {},
    {"priority": "high"},
    {"retry_count": 2},
    {"requires": {"cpus": 2}},
    {"after": ["x"]},
    {"not_before": "2030-01-01T00:00:00Z"},
]


def jsonl(*tasks: dict[str, Any]) -> bytes:
    return b"".join(orjson.dumps({"command": "x", **task}) + b"\n" for task in tasks)


def check(data: bytes) -> Accepted | Reject | Young:
    return admission.check(data, FILE, SETTINGS)


def expand(data: bytes) -> list[admission.Line]:
    return list(admission.lines(data, FILE, ORDER, "many-00000000", SETTINGS))


def test_every_line_is_a_task_in_the_order_of_the_file() -> None:
    data = jsonl({"id": "A"}, {}, {"id": "c", "after": ["A"], "priority": 3})
    verdict = check(data)
    assert isinstance(verdict, Accepted)
    assert (verdict.ids, verdict.named) == (["A", None, "c"], {"a": 1, "c": 3})
    lines = expand(data)
    assert [line.number for line in lines] == [1, 2, 3]
    assert [line.name.id for line in lines] == ["A", "many-00000000-2", "c"]
    assert [line.name.order for line in lines] == [encode_order(MICROS + n, 3) for n in (1, 2, 3)]
    assert [line.name.conditional for line in lines] == [False, False, True]
    assert [line.data for line in lines] == data.splitlines()


def test_blank_lines_are_no_tasks_but_count_as_lines() -> None:
    data = codec.BOM + b"\n" + jsonl({}) + b"  \r\n" + jsonl({})
    verdict = check(data)
    assert isinstance(verdict, Accepted)
    assert (verdict.ids, verdict.named) == ([None, None], {})
    assert [line.number for line in expand(data)] == [2, 4]


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["name", "priority"]), st.just("low"), max_size=2), min_size=1, max_size=9
    )
)
def test_the_same_order_gives_the_very_same_names(tasks: list[dict[str, Any]]) -> None:
    """So that a leader that takes over a half-expanded batch passes over what is there and adds what is not."""
    data = jsonl(*tasks)
    names = [line.name.encode() for line in expand(data)]
    assert names == [line.name.encode() for line in expand(data)]
    assert len(set(names)) == len(tasks)
    assert all(parse_task(name) for name in names)
    assert all(is_id(line.name.id) for line in expand(data))
    assert names == sorted(names, key=lambda name: name.split(".")[1])


@given(
    st.lists(st.one_of(st.just(jsonl({})), st.binary(max_size=20).map(lambda raw: raw + b"\n")), max_size=6).map(
        b"".join
    )
)
def test_all_lines_or_none(data: bytes) -> None:
    verdict = check(data)
    if isinstance(verdict, Accepted):
        assert len(expand(data)) == len(verdict.ids) > 0
        return
    assert verdict.error.mend
    if data.removeprefix(codec.BOM).strip():
        with pytest.raises(BadFile):
            expand(data)


@pytest.mark.parametrize("data", [b"", b"\n \n", codec.BOM])
def test_an_empty_batch_is_young(data: bytes) -> None:
    verdict = check(data)
    assert isinstance(verdict, Young)
    assert "is empty" in verdict.error.problem


@given(st.integers(1, 200))
def test_a_batch_that_is_cut_within_a_line_is_young(length: int) -> None:
    data = jsonl({"name": "é" * 20}, {"id": "b", "after": ["c"]}, {"id": "c"}).rstrip()
    cut = data[:length]
    verdict = check(cut)
    whole = not cut or cut.endswith((b"}", b"\n"))
    assert isinstance(verdict, Accepted if whole else Young)


@pytest.mark.parametrize("tail", [b"", b"\n"])
def test_a_bad_line_with_others_behind_it_is_rejected_by_its_number(tail: bytes) -> None:
    verdict = check(jsonl({}) + b'{"command": "x", "nmae": 1}\n' + jsonl({}).rstrip() + tail)
    assert isinstance(verdict, Reject)
    assert verdict.error.file == "many.jsonl line 2"
    assert verdict.error.field == "nmae"


def test_a_line_may_be_as_large_as_a_drop_of_one_task() -> None:
    settings = Settings.model_validate({"drop": {"max_bytes": 2000}})
    line = jsonl({"input": "x" * 1900})
    assert isinstance(admission.check(line * 3, FILE, settings), Accepted)
    verdict = admission.check(line + jsonl({"input": "x" * 2000}), FILE, settings)
    assert isinstance(verdict, Reject)
    assert str(verdict.error).startswith("many.jsonl line 2: has 2,0")
    assert "over the limit of 2,000" in str(verdict.error)
    assert "[drop] max_bytes" in verdict.error.mend


def test_a_bad_line_that_is_the_last_and_ended_is_rejected() -> None:
    assert isinstance(check(jsonl({}) + b'{"command"\n'), Reject)
    assert isinstance(check(jsonl({}) + b'{"command"'), Young)


def test_an_id_stands_in_one_line_only_whatever_its_case() -> None:
    verdict = check(jsonl({"id": "A"}, {}, {"id": "a"}))
    assert isinstance(verdict, Reject)
    assert verdict.error.file == "many.jsonl line 3"
    assert "stands in line 1 already" in verdict.error.problem


def test_tasks_that_wait_for_each_other_are_rejected_with_their_names() -> None:
    verdict = check(jsonl({"id": "a", "after": ["b"]}, {"id": "b", "after_any": ["C"]}, {"id": "c", "after": ["A"]}))
    assert isinstance(verdict, Reject)
    assert (verdict.error.file, verdict.error.field) == ("many.jsonl line 3", "dependencies")
    assert all(member in verdict.error.problem for member in "abc")


def test_dependencies_on_tasks_outside_and_below_are_no_cycle() -> None:
    verdict = check(jsonl({"id": "a", "after": ["b", "elsewhere"]}, {"id": "b"}))
    assert isinstance(verdict, Accepted)
    assert verdict.named == {"a": 1, "b": 2}


@given(st.lists(st.sampled_from(SORTS), min_size=1, max_size=12), st.integers(1, 5))
def test_lines_that_were_judged_become_what_they_become_when_read_anew(
    sorts: list[dict[str, Any]], most: int
) -> None:
    """The leader that judged the batch parses only what has conditions; one that took it over parses all."""
    data = jsonl(*({**sort, **({"id": f"T{n}"} if n % 3 else {})} for n, sort in enumerate(sorts)))
    judging = admission.Check(data, FILE, SETTINGS)
    while (verdict := judging.go_on(most)) is None:
        assert judging.count % most == 0
    assert isinstance(verdict, Accepted)
    lines = list(admission.lines(data, FILE, ORDER, "many-00000000", SETTINGS, verdict))
    for mine, anew in zip(lines, expand(data), strict=True):
        assert (mine.number, mine.name, mine.lane, mine.data) == (anew.number, anew.name, anew.lane, anew.data)
        assert mine.task == (anew.task if mine.name.conditional else None)


@given(st.lists(st.sampled_from(SORTS), min_size=2, max_size=8), st.data())
def test_what_was_added_to_a_batch_becomes_what_it_would_have_become_with_the_rest(
    sorts: list[dict[str, Any]], data: st.DataObject
) -> None:
    """Whole lines were admitted first; whatever blanks stand between, the further ones are counted on."""
    texts = [jsonl({**sort, **({"id": f"T{n}"} if n % 3 else {})}).rstrip() for n, sort in enumerate(sorts)]
    first = data.draw(st.integers(1, len(texts) - 1))
    ending = data.draw(st.sampled_from([b"", b"\n", b" \r\n", b"\n\n  "]))
    before = b"\n".join(texts[:first]) + ending
    whole = before + (b"" if b"\n" in ending else b"\n") + b"\n".join(texts[first:])
    judging = admission.Check(whole, FILE, SETTINGS, len(before))
    sound = judging.go_on(100)
    assert isinstance(sound, Accepted)
    assert len(sound.ids) == len(texts) - first
    for known in (sound, None):
        rest = list(admission.lines(whole, FILE, ORDER, "many-00000000", SETTINGS, known, len(before)))
        assert [line.name for line in rest] == [line.name for line in expand(whole)[first:]]


def test_a_task_is_not_the_beginning_of_another() -> None:
    before = jsonl({"id": "a"}).rstrip()
    behind = before + b' {"id": "b"}\n' + jsonl({"id": "c"})
    verdict = admission.Check(behind, FILE, SETTINGS, len(before)).go_on(100)
    assert isinstance(verdict, Reject)
    assert verdict.error.file == "many.jsonl line 1"


def test_zeros_in_a_line_are_what_a_client_has_not_sent_yet() -> None:
    line = jsonl({"id": "a"})
    verdict = check(line + bytes(len(line)) + b"\n" + line)
    assert isinstance(verdict, Young)


def test_a_batch_that_is_no_longer_what_was_judged_is_read_anew() -> None:
    """Somebody wrote on in it, under the name that it had."""
    verdict = check(jsonl({"id": "a"}))
    assert isinstance(verdict, Accepted)
    later = jsonl({"id": "b", "priority": 7}, {"id": "c"})
    lines = list(admission.lines(later, FILE, ORDER, "many-00000000", SETTINGS, verdict))
    assert [line.name for line in lines] == [line.name for line in expand(later)]


@given(st.text("ab \t\r\n\v\f\0", max_size=40).map(str.encode), st.sampled_from([b"", codec.BOM]))
def test_the_lines_that_are_not_blank_have_their_numbers(data: bytes, mark: bytes) -> None:
    naive = [(number, line.strip()) for number, line in enumerate(data.split(b"\n"), 1) if line.strip()]
    assert [(number, raw.strip()) for number, _, raw in admission.split_lines(mark + data)] == naive
    for _, start, raw in admission.split_lines(mark + data):
        assert (mark + data)[start : start + len(raw)] == raw
        assert b"\n" not in raw


def test_very_many_blank_lines_cost_no_turn_each() -> None:
    turns = sum(1 for _ in admission.split_lines(b"\n" * 10_000_000 + jsonl({}) + b" \n" * 1_000_000))
    assert turns == 1
