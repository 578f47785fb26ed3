"""Messages arrive whole and in order, in whatever pieces the kernel hands them over."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spoold.runner import wire
from spoold.runner.wire import ANSWER, Answers, Wire

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
messages = st.lists(st.dictionaries(st.text(), plain, max_size=4), max_size=4)
LARGE = "x" * (1 << 20)
SOUND = {"exit": 0, "message": "", "value": None, "began": True, "clean": True, "alone": True, "cpu_s": 0.5}


@pytest.fixture
def pipe() -> Iterator[tuple[Wire, Wire]]:
    """Who sends, and who receives."""
    source, sink = os.pipe()
    back, forth = os.pipe()
    ends = Wire(back, sink), Wire(source, forth)
    yield ends
    for end in ends:
        end.close()


def in_pieces(data: bytes, lengths: list[int]) -> Iterator[bytes]:
    for length in lengths:
        yield data[:length]
        data = data[length:]
    yield data


def heard(kind: type[Wire], data: bytes, lengths: list[int]) -> list[dict[str, Any]]:
    """What somebody makes of this data, one read for each piece."""
    found: list[dict[str, Any]] = []
    source, sink = os.pipe()
    end = kind(source, sink)
    for piece in in_pieces(data, lengths):
        os.write(sink, piece)
        found += end.receive()
    end.close()
    return found


@given(messages, st.lists(st.integers(0, 40), max_size=20))
def test_messages_arrive_in_whatever_pieces(sent: list[dict[str, Any]], lengths: list[int]) -> None:
    source, sink = os.pipe()
    end = Wire(source, sink)
    for message in sent:
        end.put(message)
    end.flush()
    data = os.read(source, 1 << 20) if sent else b""
    end.close()
    assert heard(Wire, data, lengths) == sent


@given(st.lists(st.dictionaries(st.text(), st.integers())), st.lists(st.integers(0, 40), max_size=20))
def test_answers_arrive_in_whatever_pieces(sent: list[dict[str, int]], lengths: list[int]) -> None:
    whole = [{**answer, **SOUND} for answer in sent]
    data = b"".join(json.dumps(answer).encode() + b"\n" for answer in whole)
    assert heard(Answers, data, lengths) == [SOUND] * len(sent)


@pytest.mark.parametrize(
    "more", [{"weighed": [1]}, {"status": 0}, {"key": "a"}, {"deep": json.loads("[" * 900 + "]" * 900)}]
)
def test_an_answer_cannot_pass_for_a_message_of_our_own_processes(more: dict[str, Any]) -> None:
    """A function that found the descriptor could end its supervisor with one field."""
    assert heard(Answers, json.dumps({**SOUND, **more}).encode() + b"\n", []) == [SOUND]


@pytest.mark.parametrize("line", [b"", b"garbage", b"5", b"[]", b"{}", b'{"exit": 0}', b"\xff"])
def test_what_is_no_answer_counts_as_a_failed_one(line: bytes) -> None:
    (answer,) = heard(Answers, line + b"\n", [])
    assert (answer["exit"], answer["clean"], set(answer)) == (1, False, set(ANSWER))


def test_a_line_that_does_not_end_counts_as_a_failed_answer_and_is_not_kept(pipe: tuple[Wire, Wire]) -> None:
    ours, theirs = pipe
    answers = Answers(theirs.source, theirs.sink)
    heard: list[dict[str, Any]] = []
    for _ in range(2 * (wire.ANSWER_MAX >> 15) + 2):
        os.write(ours.sink, b"x" * (1 << 15))
        heard += answers.receive()
        assert len(answers._data) <= wire.ANSWER_MAX
    assert [answer["clean"] for answer in heard] == [False, False]


def test_what_does_not_fit_waits_for_room(pipe: tuple[Wire, Wire]) -> None:
    ours, theirs = pipe
    ours.send({"large": LARGE})
    ours.send({"small": "\ud800"})  # half a character, as in a file name that is no UTF-8
    assert ours.unsent
    found: list[dict[str, Any]] = []
    while len(found) < 2:
        found += theirs.receive()
        ours.flush()
    assert found == [{"large": LARGE}, {"small": "\ud800"}]
    assert not ours.unsent


@pytest.mark.parametrize(
    ("kind", "data"),
    [(Wire, (1 << 20).to_bytes(wire.HEAD, "little") + LARGE.encode()[:-1]), (Answers, LARGE.encode())],
)
def test_a_long_message_is_joined_once(kind: type[Wire], data: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    read = kind._read

    def noted(self: Wire, data: bytearray) -> tuple[list[dict[str, Any]], bytearray]:
        seen.append(len(data))
        return read(self, data)

    monkeypatch.setattr(kind, "_read", noted)
    assert heard(kind, data, [1 << 12] * (len(data) >> 12)) == []
    assert sum(seen) < len(data)


def test_a_value_that_cannot_be_sent_leaves_the_wire_as_it_was(pipe: tuple[Wire, Wire]) -> None:
    ours, theirs = pipe
    ours.put({"before": 1})
    with pytest.raises(ValueError, match="unmarshallable"):
        ours.put({"what": object()})
    ours.send({"after": 2})
    assert theirs.receive() == [{"before": 1}, {"after": 2}]


def test_a_peer_that_is_gone_is_noticed(pipe: tuple[Wire, Wire]) -> None:
    ours, theirs = pipe
    os.close(ours.sink)
    ours.sink = os.open(os.devnull, os.O_WRONLY)
    assert theirs.receive() == []
    assert theirs.closed
