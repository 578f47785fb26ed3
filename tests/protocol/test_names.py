"""Names carry state, so a name that reads differently than it was meant is a lost or a doubled task."""

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.protocol import admission_names, names
from spoold.protocol.admission_names import BatchName, DoorName, OriginalName
from spoold.protocol.errors import BadName
from spoold.protocol.feed_checkpoint import CheckpointName, parse_checkpoint
from spoold.protocol.names import (
    COUNT_MAX,
    DELAY_MAX_MS,
    BeatName,
    EndedName,
    EventsName,
    LeaseName,
    SnapshotName,
    TaskName,
)
from spoold.protocol.settings_change import ChangeName, parse_change
from tests.protocol import strategies as some

LEGAL = re.compile(r"[A-Za-z0-9_=+,.-]{1,254}")
ORDER = names.encode_order(1_770_000_000_000_000, 7)
LONGEST_ID = "i" * names.ID_MAX
LONGEST_NODE = "n" * names.NODE_MAX
BIGGEST = TaskName(9999, "z" * 10 + "-" + "z" * 6, LONGEST_ID, 10**9 - 1, 10**9 - 1, 10**9 - 1, DELAY_MAX_MS, True)

Parser = Callable[[str], Any]
Encoder = Callable[[Any], str]


def returned(pair: tuple[TaskName, str]) -> str:
    return pair[0].encode_returned(pair[1])


def archived(pair: tuple[EndedName, str]) -> str:
    return pair[0].archived(pair[1])


KINDS: dict[str, tuple[st.SearchStrategy[Any], Encoder, Parser]] = {
    "task": (some.task_names, TaskName.encode, names.parse_task),
    "returned": (st.tuples(some.task_names, some.nodes), returned, names.parse_returned),
    "ended": (some.ended_names, EndedName.encode, names.parse_ended),
    "archived": (
        st.tuples(some.ended_names, st.sampled_from(["completed", "failed", "result"])),
        archived,
        names.parse_archived,
    ),
    "log": (some.ended_names, EndedName.log, names.parse_log),
    "beat": (some.beat_names, BeatName.encode, names.parse_beat),
    "lease": (some.lease_names, LeaseName.encode, names.parse_lease),
    "snapshot": (some.snapshot_names, SnapshotName.encode, names.parse_snapshot),
    "checkpoint": (some.checkpoint_names, CheckpointName.encode, parse_checkpoint),
    "change": (some.change_names, ChangeName.encode, parse_change),
    "events": (some.events_names, EventsName.encode, names.parse_events),
    "batch": (some.batch_names, BatchName.encode, admission_names.parse_batch),
    "original": (some.original_names, OriginalName.encode, admission_names.parse_original),
    "door": (some.door_names, DoorName.encode, admission_names.parse_door),
}
LONGEST: dict[str, Any] = {
    "task": BIGGEST,
    "returned": (BIGGEST, LONGEST_NODE),
    "ended": EndedName(LONGEST_ID, 10**9 - 1, LONGEST_NODE),
    "archived": (EndedName(LONGEST_ID, 10**9 - 1, LONGEST_NODE), "completed"),
    "log": EndedName(LONGEST_ID, 10**9 - 1, LONGEST_NODE),
    "beat": BeatName(LONGEST_NODE, 10**15 - 1, 10**15 - 2),
    "lease": LeaseName(10**12 - 1, 10**15 - 1, LONGEST_NODE),
    "snapshot": SnapshotName(10**12 - 1, 10**15 - 1),
    "checkpoint": CheckpointName(10**12 - 1, 10**15 - 1),
    "change": ChangeName(10**9 - 1, LONGEST_NODE),
    "events": EventsName(LONGEST_NODE, 10**9 - 1),
    "batch": BatchName(BIGGEST.order, LONGEST_ID, 10**12 - 1, 10**12 - 1),
    "original": OriginalName(BIGGEST.order, LONGEST_ID),
    "door": DoorName(10**12 - 1, LONGEST_NODE, 10**9 - 1),
}
kinds = pytest.mark.parametrize("kind", KINDS)


@kinds
@given(data=st.data())
def test_every_value_reads_back_as_itself_from_a_legal_name(kind: str, data: st.DataObject) -> None:
    values, encode, parse = KINDS[kind]
    value = data.draw(values)
    name = encode(value)
    assert parse(name) == value
    assert LEGAL.fullmatch(name)
    assert not name.endswith(".")


@kinds
@given(text=some.texts)
def test_what_parses_encodes_to_the_very_same_text(kind: str, text: str) -> None:
    _, encode, parse = KINDS[kind]
    value = parse(text)
    assert value is None or encode(value) == text


@kinds
@given(data=st.data(), at=st.integers(0, 300), char=st.sampled_from(some.TEMPTING))
def test_a_name_with_one_character_changed_is_another_value_or_none(
    kind: str, data: st.DataObject, at: int, char: str
) -> None:
    values, encode, parse = KINDS[kind]
    value = data.draw(values)
    name = encode(value)
    at %= len(name)
    for text in (name[:at] + char + name[at:], name[:at] + char + name[at + 1 :], name[:at] + name[at + 1 :]):
        other = parse(text)
        assert other is None or encode(other) == text
        assert text == name or other != value


@kinds
def test_the_longest_legal_fields_make_a_name_below_255_bytes(kind: str) -> None:
    _, encode, parse = KINDS[kind]
    name = encode(LONGEST[kind])
    assert parse(name) == LONGEST[kind]
    assert len(f"{name}.reason.json") < 255


@pytest.mark.parametrize(
    "name",
    [
        TaskName(10000, ORDER, "a"),
        TaskName(-1, ORDER, "a"),
        TaskName(5000, "now", "a"),
        TaskName(5000, ORDER, ""),
        TaskName(5000, ORDER, "a b"),
        TaskName(5000, ORDER, "a."),
        TaskName(5000, ORDER, "con"),
        TaskName(5000, ORDER, "x" * 121),
        TaskName(5000, ORDER, "a", attempt=-1),
        TaskName(5000, ORDER, "a", failures=10**9),
        TaskName(5000, ORDER, "a", delay_ms=DELAY_MAX_MS + 1),
        EndedName("a", 1, "node.dotted"),
        EndedName("a", 1, "Node"),
        EndedName("nul.x", 1, "w"),
        BeatName("w", -1),
        BeatName("w", 3, 3),
        BeatName("", 1),
        BeatName("aux", 1),
        LeaseName(-1, 0, "m"),
        LeaseName(0, 10**15, "m"),
        SnapshotName(-1, 1),
        EventsName("w/x", 1),
        BatchName(ORDER, "a/b"),
        BatchName("", "a"),
        BatchName(ORDER, "a", 0),
        BatchName(ORDER, "a", size=7),
    ],
    ids=str,
)
def test_what_would_not_read_back_is_not_encoded(name: Any) -> None:
    with pytest.raises(BadName, match="cannot be a name"):
        name.encode()


def test_the_other_spellings_of_a_name_are_checked_alike() -> None:
    with pytest.raises(BadName):
        TaskName(5000, ORDER, "a").encode_returned("Not A Node")
    with pytest.raises(BadName):
        EndedName("a", 1, "w.x").log()
    with pytest.raises(BadName):
        EndedName("a", 1, "w").archived("lost")


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (names.parse_task, f"5000.{ORDER}.a.a01f0c0.json"),
        (names.parse_task, f"5000.{ORDER}.a.a1f0c0r0.json"),
        (names.parse_task, f"5000.{ORDER}.a.a1f0c0.json\n"),
        (names.parse_task, f"٥٠٠٠.{ORDER}.a.a1f0c0.json"),
        (names.parse_task, f"5000.{ORDER}.aux.x.a1f0c0.json"),
        (names.parse_task, f"5000.{ORDER}.a.a1f0c0.w.json"),
        (names.parse_returned, f"5000.{ORDER}.a.a1f0c0.json"),
        (names.parse_ended, "con.1.w.json"),
        (names.parse_ended, "a.01.w.json"),
        (names.parse_ended, "a.1.w.reason.JSON"),
        (names.parse_archived, "a.1.w.json"),
        (names.parse_log, "a.1.w.json"),
        (names.parse_beat, "w.json"),
        (names.parse_beat, "w.3.3.json"),
        (names.parse_beat, "w.3.4.json"),
        (names.parse_beat, "w.1.json.swp"),
        (names.parse_lease, "1.m"),
        (names.parse_snapshot, "1.2.json"),
        (names.parse_snapshot, "1-2.feed.json"),
        (parse_checkpoint, "1-2.json"),
        (parse_checkpoint, "1-02.feed.json"),
        (names.parse_events, "w.1.json"),
        (parse_change, "01.w.json"),
        (parse_change, "1.W.json"),
        (admission_names.parse_batch, f"{ORDER}.a.json"),
    ],
)
def test_foreign_names_are_passed_over(parse: Parser, text: str) -> None:
    assert parse(text) is None


@given(text=st.text(max_size=200), limit=st.integers(1, 100))
def test_a_slug_of_any_text_is_an_id_within_its_limit(text: str, limit: int) -> None:
    made = names.slug(text, limit)
    assert names.is_id(made)
    assert len(made) <= limit


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("review of #12", "review-of-12"),
        ("con.x", "tcon.x"),
        ("", "t"),
        ("..", "t"),
        ("_a", "t_a"),
        ("Überfall", "berfall"),
        ("plain.name", "plain.name"),
    ],
)
def test_a_slug_keeps_what_people_can_recognise(text: str, made: str) -> None:
    assert names.slug(text, 90) == made


@pytest.mark.parametrize("text", ["a", "A1", "a.b", "a_=+,.-b", "connect", "con-1", "x" * 120, "550e8400-e29b-41d4"])
def test_an_id_is_what_people_already_use(text: str) -> None:
    assert names.is_id(text)


@pytest.mark.parametrize(
    "text", ["", ".a", "-a", "a.", "a b", "a/b", "é", "a\n", "con", "CON.json", "lpt1.x", "x" * 121]
)
def test_an_id_is_nothing_that_some_server_cannot_hold(text: str) -> None:
    assert not names.is_id(text)


def test_a_node_is_lower_case_without_dots() -> None:
    assert names.is_node("laptop_1-7f3a")
    assert not any(names.is_node(text) for text in ("", "Laptop", "a.b", "-a", "nul", "n" * 41, "a\n"))


def test_a_beat_whose_content_is_older_says_which_beat_wrote_it() -> None:
    assert BeatName("laptop", 7).content == 7
    assert BeatName("laptop", 7, 3).content == 3


def test_ids_that_differ_by_case_alone_are_one() -> None:
    assert names.key("Build-A") == names.key("build-a")


@given(a=st.integers(0, 36**10 - 1), b=st.integers(0, 36**10 - 1), epoch=st.integers(0, 10**6))
def test_orders_sort_as_their_moments_do(a: int, b: int, epoch: int) -> None:
    left, right = names.encode_order(a, epoch), names.encode_order(b, epoch)
    assert (left < right) == (a < b)
    assert names.order_micros(left) == a


@given(priority=st.integers(-(10**9), 10**9), other=st.integers(-(10**9), 10**9))
def test_more_urgent_sorts_first_and_always_has_four_digits(priority: int, other: int) -> None:
    rank, rank_other = names.rank_of(priority), names.rank_of(other)
    assert 1 <= rank <= 9999
    if -4999 <= priority < other <= 4999:
        assert f"{rank:04d}" > f"{rank_other:04d}"


@given(some.task_names, st.integers(0, 1), st.integers(0, 1))
def test_the_next_attempt_changes_only_what_it_says(name: TaskName, failures: int, crashes: int) -> None:
    after = name.again(failures=failures, crashes=crashes, delay_ms=5)
    assert after.attempt == min(name.attempt + 1, COUNT_MAX)
    assert after.failures == min(name.failures + failures, COUNT_MAX)
    assert after.crashes == min(name.crashes + crashes, COUNT_MAX)
    assert replace(name, attempt=0, failures=0, crashes=0, delay_ms=0) == replace(
        after, attempt=0, failures=0, crashes=0, delay_ms=0
    )


@given(some.task_names, some.nodes)
def test_the_ended_name_holds_attempt_and_decider(name: TaskName, decider: str) -> None:
    assert name.ended(decider) == EndedName(name.id, name.attempt, decider)


@pytest.mark.parametrize(("number", "width", "text"), [(0, 1, "0"), (35, 1, "z"), (36, 1, "10"), (5, 3, "005")])
def test_base36(number: int, width: int, text: str) -> None:
    assert names.base36(number, width) == text
