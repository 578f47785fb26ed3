"""The ids of traces follow from names alone, and are those that were written down once."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from spoold.protocol import trace_ids

VECTORS = Path(__file__).parents[1] / "vectors" / "v1" / "traces.txt"
LINES = [line.split() for line in VECTORS.read_text().splitlines() if not line.startswith("#")]
ABOVE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"


@pytest.mark.parametrize("line", LINES, ids=" ".join)
def test_every_id_is_what_it_always_was(line: list[str]) -> None:
    kind, spool_id, task_id, third, fourth, said = line
    if kind == "trace":
        batch, meta = (None if one == "-" else one for one in (third, fourth))
        assert trace_ids.trace_of(spool_id, task_id, batch, {"traceparent": meta}) == said
    else:
        assert trace_ids.span_of(spool_id, task_id, int(third), fourth) == said


def test_the_digest_is_the_one_of_the_document() -> None:
    words = b"\0".join((b"span", b"s1", b"build", b"2", b"process"))
    assert trace_ids.span_of("s1", "Build", 2, "process") == hashlib.blake2b(words, digest_size=8).hexdigest()
    words = b"\0".join((b"trace", b"s1", b"batch", b"night"))
    assert trace_ids.trace_of("s1", "a", "Night") == hashlib.blake2b(words, digest_size=16).hexdigest()


def test_a_task_and_a_batch_of_one_name_are_two_traces() -> None:
    assert trace_ids.trace_of("s1", "x", None) != trace_ids.trace_of("s1", "y", "x")
    assert trace_ids.trace_of("s1", "x", None) != trace_ids.trace_of("s2", "x", None)


def test_parts_of_two_attempts_are_all_different() -> None:
    parts = (
        trace_ids.SEND,
        trace_ids.WAIT,
        trace_ids.READY,
        trace_ids.PROCESS,
        trace_ids.PREPARE,
        trace_ids.RUN,
        trace_ids.COMMIT,
    )
    made = {trace_ids.span_of("s1", "t", attempt, part) for attempt in (0, 1, 11) for part in parts}
    assert len(made) == 21


def test_a_traceparent_is_read_as_it_is_written() -> None:
    found = trace_ids.parse(ABOVE)
    assert found == trace_ids.Context("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331")
    assert found.encode() == f"{ABOVE[:-2]}01"


@pytest.mark.parametrize(
    "text",
    [
        None,
        7,
        "",
        ABOVE.upper(),
        f"{ABOVE}-more",
        f"01{ABOVE[2:]}",
        f"00-{'0' * 32}-b7ad6b7169203331-01",
        f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01",
        f"{ABOVE}\n",
    ],
)
def test_what_is_no_traceparent_means_nothing(text: Any) -> None:
    assert trace_ids.parse(text) is None
    assert trace_ids.outer({"traceparent": text}) is None


def test_only_an_object_may_hold_one() -> None:
    assert trace_ids.outer({"traceparent": ABOVE}) is not None
    assert trace_ids.outer(ABOVE) is None
    assert trace_ids.outer({}) is None


def test_an_attempt_learns_its_span_and_nothing_else() -> None:
    told = trace_ids.carrier("s1", "t", 2, "b", {})
    mine = trace_ids.parse(told.pop("TRACEPARENT"))
    assert mine == trace_ids.Context(trace_ids.trace_of("s1", "t", "b"), trace_ids.span_of("s1", "t", 2, "process"))
    assert told == {"TRACESTATE": "", "BAGGAGE": ""}
