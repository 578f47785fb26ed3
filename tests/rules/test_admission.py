"""Whatever lies in the drop box gets exactly one verdict, and the verdict says what to do."""

import os
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol.lanes import parse_lane
from spoold.protocol.names import concerns_us, encode_order, is_id, parse_task
from spoold.protocol.settings import Settings
from spoold.protocol.task import Task
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Admit, Judgement, Known, Reject, Young
from tests.protocol.strategies import json_values

SETTINGS = Settings.model_validate(
    {"drop": {"max_bytes": 1024, "max_batch_bytes": 4096}, "types": {"t": {"priority": 5}}}
)
MICROS = 1_770_000_000_000_000
ORDER = encode_order(MICROS, 3)

# As os.listdir gives them: any bytes but NUL and slash.
drops = (
    st.binary(min_size=1, max_size=250)
    .map(lambda raw: os.fsdecode(raw.replace(b"\0", b"0").replace(b"/", b"_")))
    .flatmap(lambda stem: st.sampled_from([stem, f"{stem}.json", f"{stem}.JSONL"]))
)


def judge(data: bytes, drop: str = "drop.json", settings: Settings = SETTINGS) -> Judgement:
    order, made = admission.settle(drop, MICROS, 3)
    return admission.judge_content(drop, data, order, made, settings)


# N25: what editors, version control and Windows leave in a folder (each became a rejection).
LEFT = ["Thumbs.db", "desktop.ini", "#x.json#", "x.json.bak", "x.json,v", "~$x.json", "x.json.orig", "x.json.SAVE"]


@pytest.mark.parametrize(
    "drop", ["a.json", "A.JSONL", "no extension", "con.x.json", "a..json", "x.bak.json", "#1.json"]
)
def test_what_people_drop_concerns_us(drop: str) -> None:
    assert concerns_us(drop)


@pytest.mark.parametrize(
    "drop", [".a.json", ".a.json.x7Gh2", "a.json.tmp", "a.json~", "a.PART", "a.crdownload", ".x.swp", *LEFT]
)
def test_what_somebody_is_still_writing_does_not(drop: str) -> None:
    assert not concerns_us(drop)


@pytest.mark.parametrize(
    ("drop", "kind", "size", "words"),
    [
        ("a.json", "dir", 0, "is a directory"),
        ("a.json", "symlink", 0, "is a symbolic link"),
        ("a.json", "other", 0, "is a pipe, socket or device"),
        ("a.txt", "file", 0, "is neither .json nor .jsonl"),
        ("C6VXS5~U.JSO", "file", 20, "is a short name, made up by an SMB server"),
        ("json", "file", 0, "is neither .json nor .jsonl"),
        ("a.json", "file", 1025, "has 1,025 bytes, over the limit of 1,024"),
        ("a.jsonl", "file", 4097, "over the limit of 4,096"),
    ],
)
def test_what_can_never_become_a_task_is_rejected_by_its_looks(drop: str, kind: str, size: int, words: str) -> None:
    """A file with another extension is an editor's, which is about to rename it, until it has rested for a while."""
    found = admission.judge_kind(drop, kind, size, SETTINGS)
    assert isinstance(found, Young if "neither" in words else Reject)
    assert words in found.error.problem
    assert found.error.file == drop
    assert found.error.mend


@pytest.mark.parametrize(("drop", "size"), [("a.json", 1024), ("a.JSON", 0), ("a.jsonl", 4096), ("a.json.jsonl", 1)])
def test_what_may_be_a_task_is_opened(drop: str, size: int) -> None:
    assert admission.judge_kind(drop, "file", size, SETTINGS) is None


@pytest.mark.parametrize("key", ["max_bytes", "max_batch_bytes"])
def test_a_drop_that_is_too_large_is_told_which_setting_to_raise(key: str) -> None:
    drop = "a.json" if key == "max_bytes" else "a.jsonl"
    found = admission.judge_kind(drop, "file", 1 << 40, SETTINGS)
    assert found is not None
    assert f"[drop] {key}" in found.error.mend


@given(drop=drops, micros=st.integers(0, 36**10 - 1), epoch=st.integers(0, 36**6 - 1))
def test_a_drop_of_any_name_gets_a_legal_id(drop: str, micros: int, epoch: int) -> None:
    order, made = admission.settle(drop, micros, epoch)
    assert order == encode_order(micros, epoch)
    assert is_id(made)
    assert len(made) <= 99


@pytest.mark.parametrize(
    ("drop", "stem"),
    [
        ("review.json", "review-"),
        ("a b.json", "a-b-"),
        ("x.whole.jsonl", "x-"),
        ("con.x.json", "tcon.x-"),
        ("é.json", "t-"),
    ],
)
def test_an_id_begins_with_what_the_drop_is_called(drop: str, stem: str) -> None:
    _, made = admission.settle(drop, MICROS, 3)
    assert made.startswith(stem)
    assert len(made) == len(stem) + 8


def test_the_same_file_may_be_dropped_twice() -> None:
    made = {admission.settle("a.json", MICROS + number, epoch)[1] for number in range(50) for epoch in (1, 2)}
    assert len(made) == 100


def test_a_new_leader_comes_to_the_same_id_for_the_same_order() -> None:
    assert admission.settle("a.json", MICROS, 3) == admission.settle("a.json", MICROS, 3)


@given(data=st.one_of(st.binary(max_size=80), json_values.map(lambda v: repr(v).encode())), drop=drops)
def test_any_bytes_under_any_name_get_one_verdict(data: bytes, drop: str) -> None:
    found = judge(data, drop)
    assert isinstance(found, Admit | Reject | Young)
    if not isinstance(found, Admit):
        assert found.error.mend


@given(fields=st.dictionaries(st.sampled_from(sorted(Task.model_fields)), json_values, max_size=6))
def test_any_object_is_admitted_under_a_readable_name_or_rejected(fields: dict[str, Any]) -> None:
    try:
        data = orjson.dumps({"command": "true", **fields})
    except TypeError:
        return
    found = judge(data)
    assert isinstance(found, Admit | Reject)
    if isinstance(found, Admit):
        assert parse_task(found.name.encode()) == found.name
        assert parse_lane(found.lane) is not None


def test_a_drop_becomes_a_task_with_its_own_id_and_what_it_says() -> None:
    found = judge(b'{"id": "My-Task", "type": "t", "retry_count": 2, "after": ["x"], "requires": {"cpus": 2}}')
    assert isinstance(found, Admit)
    name = found.name
    assert (name.id, name.order, name.rank, name.attempt) == ("My-Task", ORDER, 4995, 1)
    assert (name.failures, name.crashes, name.delay_ms, name.conditional) == (2, 0, 0, True)
    assert found.lane == "type=t,cpu=2"
    assert found.task.type == "t"


def test_a_drop_without_an_id_gets_the_one_that_was_made() -> None:
    found = judge(b'{"type": "t"}', "hello.json")
    assert isinstance(found, Admit)
    assert found.name.id.startswith("hello-")
    assert not found.name.conditional


@pytest.mark.parametrize(
    "data", [b"", b" ", b'{"type": "t"', b'{"type": "t"}}', b'{"type": "\xc3', b"\xff\xfe{", b"\0" * 9]
)
def test_what_may_still_be_growing_is_young(data: bytes) -> None:
    assert isinstance(judge(data), Young)


@given(st.integers(0, 60))
def test_no_beginning_of_a_good_drop_is_ever_rejected(length: int) -> None:
    data = '{"type": "t", "input": {"text": "é — ☃"}, "priority": 3.0}'.encode()
    found = judge(data[:length])
    assert isinstance(found, Young if length < len(data) else Admit)


@pytest.mark.parametrize(
    "data", [b"[]", b"7", b"null", b'"text"', b"{}", b'{"type": "t", "ipnut": 1}', b'{"type": "T!"}']
)
def test_what_is_whole_and_wrong_is_rejected_at_once(data: bytes) -> None:
    assert isinstance(judge(data), Reject)


@pytest.mark.parametrize(
    "fields", [{"requires": {"labels": [f"label-{n}" * 5 for n in range(9)]}}, {"python": "café.jobs:run"}]
)
def test_a_demand_that_cannot_be_a_lane_is_rejected_with_its_mend(fields: dict[str, Any]) -> None:
    found = judge(orjson.dumps({"type": "t", **fields}))
    assert isinstance(found, Reject)
    assert found.error.field == "requires"
    assert found.error.mend


def test_the_same_task_again_is_a_no_op_and_another_one_is_told_so() -> None:
    assert admission.judge_duplicate("b.json", "a", same=True) == Known("a")
    found = admission.judge_duplicate("b.json", "a", same=False)
    assert isinstance(found, Reject)
    assert (found.error.file, found.error.field) == ("b.json", "id")
    assert "'a' is taken" in found.error.problem


def test_a_drop_of_several_tasks_under_the_name_of_one_says_what_to_name_it() -> None:
    found = judge(b'{"type": "t"}\n{"type": "t"}\n')
    assert isinstance(found, Young)  # it may be about to get its own name
    assert found.error.mend == "several tasks, one on a line: name it .jsonl."
