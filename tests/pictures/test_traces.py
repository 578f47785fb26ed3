"""Tasks as spans: each part where it belongs, whatever the journals have lost and whatever a result holds."""

from __future__ import annotations

import base64
import importlib
import json
from typing import Any

import pytest
from google.protobuf import json_format  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from spoold.pictures.traces import agent_spans
from spoold.pictures.traces import conventions as said
from spoold.pictures.traces.span import SPANS_MAX, Kind, Link, Span, lines, nanos, ordered
from spoold.pictures.traces.task_spans import Ids, Traced, attempt_at, open_laps, spans_of
from spoold.protocol.event import Event
from spoold.protocol.result import Result
from spoold.protocol.trace_ids import Context, span_of, trace_of
from tests.pictures.scenes import EVIL

SPOOL = "s1"
BEGAN = 1_767_225_600
ABOVE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def at(second: float) -> str:
    return f"2026-01-01T00:00:{second:06.3f}Z"


def ns(second: float) -> int:
    return round((BEGAN + second) * 1000) * 1_000_000


def event(name: str, second: float, attempt: int | None = 1, writer: str = "m-1", **detail: Any) -> Event:
    return Event(at=at(second), writer=writer, event=name, task="t", attempt=attempt, detail=detail or None)


def record(attempt: int, begin: float | None, end: float, status: str = "success", **more: Any) -> Result:
    fields = {"task_id": "t", "attempt": attempt, "worker_id": "w-1", "status": status, "completed_at": at(end)}
    return Result.model_validate({**fields, "started_at": None if begin is None else at(begin), **more})


FAILED = {"code": "MAX_RETRIES", "cause": "EXIT_NONZERO", "message": "exited with code 3"}
TWICE = Traced(
    "t",
    "build",
    "Build it",
    "night",
    created_at=at(0.5),
    records=(record(1, 4, 6, "failure", exit_code=3, error=FAILED), record(2, 10, 12, exit_code=0)),
    events=(
        event("ADMITTED", 1),
        event("READY", 2),
        event("CLAIMED", 3, writer="w-1"),
        event("STARTED", 4, writer="w-1"),
        event("FROZEN", 5, writer="w-1"),
        event("RETURNED", 7, writer="w-1"),
        event("WAITING", 7.5, 2),
        event("HELD", 8, 2),
        event("READY", 9, 2),
        event("CLAIMED", 9.5, 2, writer="w-1"),
        event("COMPLETED", 13, 2, writer="w-1"),
    ),
)


def named(spans: list[Span]) -> dict[str, Span]:
    """By name and attempt, as far as a span is of one."""
    ids = {span_of(SPOOL, "t", n, part): f"{part}.{n}" for n in range(4) for part in PARTS}
    return {ids[span.context.span_id]: span for span in spans}


PARTS = ("send", "wait", "ready", "process", "prepare", "run", "commit")


def test_each_part_has_its_place_and_its_time() -> None:
    found = named(spans_of(SPOOL, TWICE))
    assert {name: (span.start, span.end) for name, span in found.items()} == {
        "send.0": (ns(0.5), ns(1)),
        "wait.1": (ns(1), ns(3)),
        "ready.1": (ns(2), ns(3)),
        "process.1": (ns(3), ns(7)),
        "prepare.1": (ns(3), ns(4)),
        "run.1": (ns(4), ns(6)),
        "commit.1": (ns(6), ns(7)),
        "wait.2": (ns(7), ns(9.5)),
        "ready.2": (ns(9), ns(9.5)),
        "process.2": (ns(9.5), ns(13)),
        "prepare.2": (ns(9.5), ns(10)),
        "run.2": (ns(10), ns(12)),
        "commit.2": (ns(12), ns(13)),
    }
    above = {name: found[name].parent for name in found}
    send, process = found["send.0"].context.span_id, found["process.1"].context.span_id
    assert above["send.0"] == ""
    assert {above[name] for name in ("wait.1", "process.1", "wait.2", "process.2")} == {send}
    assert {above[f"{part}.1"] for part in ("prepare", "run", "commit")} == {process}
    assert above["ready.2"] == found["wait.2"].context.span_id
    assert {span.context.trace_id for span in found.values()} == {trace_of(SPOOL, "t", "night")}


def test_kinds_links_marks_and_outcomes_are_told() -> None:
    after = Link(Context("a" * 32, "b" * 16), "dependencies")
    found = named(spans_of(SPOOL, TWICE, after=[after]))
    send, first, second = found["send.0"], found["process.1"], found["process.2"]
    assert (send.kind, first.kind, found["run.1"].kind) == (Kind.PRODUCER, Kind.CONSUMER, Kind.INTERNAL)
    assert first.links == (Link(send.context, "send"), after)
    assert [mark.name for mark in first.marks] == ["frozen"]
    assert [mark.name for mark in found["wait.2"].marks] == ["held"]
    assert (first.error, second.error) == ("exited with code 3", None)
    assert first.attributes[said.ERROR_TYPE] == "EXIT_NONZERO"
    assert first.attributes[said.TASK_RESULT] == "failure"
    assert first.attributes[said.EXIT_CODE] == 3
    assert second.attributes[said.TASK_RUN] == "t.2"
    assert second.attributes[said.PIPELINE] == "night"
    assert second.resource == {
        "service.name": "spoold",
        "service.namespace": SPOOL,
        "service.instance.id": "w-1",
    }


def test_without_journals_the_records_tell() -> None:
    bare = Traced("t", "build", records=TWICE.records)
    assert {name: (span.start, span.end) for name, span in named(spans_of(SPOOL, bare)).items()} == {
        "send.0": (ns(4), ns(4)),
        "wait.1": (ns(4), ns(4)),
        "process.1": (ns(4), ns(6)),
        "run.1": (ns(4), ns(6)),
        "wait.2": (ns(6), ns(10)),
        "process.2": (ns(10), ns(12)),
        "run.2": (ns(10), ns(12)),
    }
    assert spans_of(SPOOL, Traced("t", "build")) == [], "of a task that nobody has seen nothing is told"


def test_what_runs_has_no_span_yet_but_its_waiting_has() -> None:
    running = Traced("t", "build", admitted=ns(1), running=1, events=TWICE.events[1:4])
    assert set(named(spans_of(SPOOL, running))) == {"send.0", "wait.1", "ready.1"}
    assert open_laps(running) == 1
    unseen = Traced("t", "build", admitted=ns(1), running=1)
    assert set(named(spans_of(SPOOL, unseen))) == {"send.0"}


def test_a_task_that_never_ran_has_waited_in_vain() -> None:
    error = {"code": "DEPENDENCY_FAILED", "message": "dep a failed"}
    dead = record(1, None, 9, "failure", worker_id="m-1", error=error)
    found = named(spans_of(SPOOL, Traced("t", "build", records=(dead,), events=(event("ADMITTED", 1),))))
    assert set(found) == {"send.0", "wait.1"}
    assert (found["wait.1"].start, found["wait.1"].end, found["wait.1"].error) == (ns(1), ns(9), "dep a failed")
    assert found["wait.1"].attributes[said.ERROR_TYPE] == "DEPENDENCY_FAILED"


def test_a_dead_workers_attempt_is_its_own_and_ends_before_the_leader_moves_it() -> None:
    lost = record(1, 4, 6, "worker_died", worker_id="m-1", estimated=True, error={"code": "WORKER_DIED"})
    task = Traced("t", "build", records=(lost,), events=(*TWICE.events[:4], event("RETURNED", 30)))
    found = named(spans_of(SPOOL, task))
    assert (found["process.1"].end, found["process.1"].attributes[said.WORKER]) == (ns(6), "w-1")
    assert "commit.1" not in found
    assert found["process.1"].error is not None
    assert found["process.1"].attributes[said.ESTIMATED] is True


def test_a_hand_back_without_a_record_is_told_from_the_journal() -> None:
    back = Traced("t", "build", events=(*TWICE.events[:4], TWICE.events[5]))
    found = named(spans_of(SPOOL, back))
    assert (found["process.1"].start, found["process.1"].end) == (ns(3), ns(7))
    assert open_laps(back) == 0


def test_a_retry_long_after_has_waited_since_the_retry() -> None:
    events = (*TWICE.events[:6], event("RETRIED", 20, 2), event("CLAIMED", 21, 2, writer="w-1"))
    task = Traced("t", "build", records=(TWICE.records[0], record(2, 22, 23)), events=events)
    wait = named(spans_of(SPOOL, task))["wait.2"]
    assert (wait.start, wait.end) == (ns(20), ns(21))


def test_clocks_that_disagree_make_no_span_that_ends_before_it_begins() -> None:
    events = (event("ADMITTED", 30), event("READY", 31), event("CLAIMED", 3, writer="w-1"))
    spans = spans_of(SPOOL, Traced("t", "build", created_at=at(40), records=TWICE.records, events=events))
    assert len(spans) > 5
    assert all(span.start <= span.end for span in spans)


def test_a_child_is_below_the_attempt_that_submitted_it() -> None:
    child = Traced("kid", "build", batch="night", parent="t", events=(event("ADMITTED", 11),))
    above = attempt_at(SPOOL, TWICE, ns(11))
    assert above == Ids(SPOOL, TWICE).of("process", 2)
    assert attempt_at(SPOOL, TWICE, ns(5)) == Ids(SPOOL, TWICE).of("process", 1)
    assert attempt_at(SPOOL, TWICE, ns(0)) == Ids(SPOOL, TWICE).of("process", 1), "and never below nothing"
    assert attempt_at(SPOOL, TWICE, None) == Ids(SPOOL, TWICE).of("process", 2)
    assert attempt_at(SPOOL, Traced("t", "build"), None) is None
    [send] = spans_of(SPOOL, child, above)
    assert above is not None
    assert (send.parent, send.links) == (above.span_id, ())


def test_a_child_in_another_trace_is_linked_to_it() -> None:
    above = attempt_at(SPOOL, TWICE, None)
    assert above is not None
    alone = Traced("kid", "build", parent="t", events=(event("ADMITTED", 11),))
    [send] = spans_of(SPOOL, alone, above)
    assert (send.parent, send.links) == ("", (Link(above, "parent"),))
    outer = Traced("kid", "build", parent="t", meta={"traceparent": ABOVE}, events=(event("ADMITTED", 11),))
    [send] = spans_of(SPOOL, outer, above)
    assert send.context.trace_id == "0af7651916cd43dd8448eb211c80319c"
    assert (send.parent, send.links) == ("b7ad6b7169203331", (Link(above, "parent"),))


def test_what_an_agent_used_is_told() -> None:
    output = {
        "usage": {"tokens_in": 10, "tokens_out": 2, "tokens_cached": 500, "cost_usd": 0.5},
        "model": "big-1",
    }
    task = Traced("t", "coder", records=(record(1, 1, 2, output=output, tokens_used=12, cost_usd=0.5),))
    told_of = named(spans_of(SPOOL, task))["process.1"].attributes
    wanted = (said.MODEL, said.TOKENS_IN, said.TOKENS_OUT, said.TOKENS_CACHED, said.TOKENS, said.COST)
    assert [told_of[name] for name in wanted] == ["big-1", 510, 2, 500, 12, 0.5]


@pytest.mark.parametrize("output", [None, 7, [], {"usage": 3, "model": 4}, {"usage": {"tokens_in": "x"}}])
def test_an_output_that_says_nothing_of_it_is_no_fault(output: Any) -> None:
    task = Traced("t", "coder", model="small", records=(record(1, 1, 2, output=output),))
    told_of = named(spans_of(SPOOL, task))["process.1"].attributes
    assert told_of[said.MODEL] == "small"
    assert said.TOKENS_IN not in told_of


def agents(*spans: Any, dropped: Any = 0) -> list[Span]:
    """The spans of a task whose agent told these, without ours."""
    output = {"trace": {"spans": list(spans), "dropped": dropped}}
    mine = {span_of(SPOOL, "t", n, part) for n in (0, 1) for part in PARTS}
    made = spans_of(SPOOL, Traced("t", "coder", records=(record(1, 1, 2, output=output),)))
    return [span for span in made if span.context.span_id not in mine or span.name == "stolen"]


def one(span_id: str = "1" * 16, **more: Any) -> dict[str, Any]:
    return {"span_id": span_id, "name": "llm", "start": ns(1), "end": ns(2), **more}


def test_spans_of_an_agent_are_below_its_attempt_and_in_its_trace() -> None:
    inner = one("2" * 16, parent="1" * 16, trace_id="f" * 32, kind=3, attributes={"a": 1, "b": [1]}, error="no")
    root, below = agents(one(service="claude-code"), inner)
    attempt = span_of(SPOOL, "t", 1, "process")
    assert (root.parent, below.parent) == (attempt, "1" * 16)
    assert {root.context.trace_id, below.context.trace_id} == {trace_of(SPOOL, "t", None)}
    assert (below.kind, below.attributes, below.error) == (Kind.CLIENT, {"a": 1}, "no")
    assert root.resource == {"service.name": "claude-code", "service.instance.id": "w-1"}
    assert below.resource["service.name"] == "agent"


def test_a_parent_that_is_missing_or_goes_round_is_the_attempt() -> None:
    attempt = span_of(SPOOL, "t", 1, "process")
    [lost] = agents(one(parent="9" * 16))
    assert lost.parent == attempt
    first, second, below = agents(
        one("1" * 16, parent="2" * 16), one("2" * 16, parent="1" * 16), one("3" * 16, parent="1" * 16)
    )
    assert attempt in {first.parent, second.parent, below.parent}
    ids = {span.context.span_id: span.parent for span in (first, second, below)}
    for span_id in ids:  # up to the attempt
        above, seen = span_id, set[str]()
        while above in ids:
            assert above not in seen
            seen.add(above)
            above = ids[above]
        assert above == attempt
    [own] = agents(one(parent="1" * 16))
    assert own.parent == attempt


@pytest.mark.parametrize(
    "bad",
    [
        7,
        {},
        one("x" * 16),
        one("0" * 16),
        one("A" * 16),
        one() | {"span_id": 7},
        one(start=None),
        one(start=-5),
        one(end="now"),
        one(start=1 << 63),
        one(start=1.5),
        one(span_of(SPOOL, "t", 1, "process"), name="stolen"),
        one(span_of(SPOOL, "t", 0, "send"), name="stolen"),
    ],
    ids=str,
)
def test_a_span_that_is_none_is_left_out_alone(bad: Any) -> None:
    assert [span.context.span_id for span in agents(bad, one("3" * 16))] == ["3" * 16]


def test_what_an_agent_says_is_short_and_harmless() -> None:
    many = {f"k{n}": "v" for n in range(1000)} | {"huge": 1 << 70, "nan": float("nan")}
    [span] = agents(one(name=EVIL * 100, kind=True, attributes={EVIL: EVIL, **many}, end=ns(0)))
    assert len(span.name) <= agent_spans.TEXT_MAX
    assert "\x1b" not in span.name + "".join(span.attributes)
    assert len(span.attributes) == agent_spans.ATTRIBUTES_MAX
    assert span.end == span.start
    assert len(agents(*(one(f"{n:016x}") for n in range(1, 3000)))) == agent_spans.SPANS_MAX
    assert len(agents(one(), one())) == 1


@pytest.mark.parametrize(("dropped", "shown"), [(7, 7), (0, None), (-1, None), ("7", None), (1 << 70, None)])
def test_how_many_were_dropped_is_told(dropped: Any, shown: int | None) -> None:
    output = {"trace": {"spans": [], "dropped": dropped}}
    task = Traced("t", "coder", records=(record(1, 1, 2, output=output),))
    assert named(spans_of(SPOOL, task))["process.1"].attributes.get(said.DROPPED) == shown


def hexed(line: str) -> str:
    """A line of OTLP JSON in protobuf's own JSON: there, bytes are base64, and OTLP wants ids in hexadecimal."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            ids = ("traceId", "spanId", "parentSpanId")
            return {
                name: base64.b64encode(bytes.fromhex(inner)).decode() if name in ids else walk(inner)
                for name, inner in value.items()
            }
        return [walk(inner) for inner in value] if isinstance(value, list) else value

    return json.dumps(walk(json.loads(line)))


def evil() -> Traced:
    error = {"code": EVIL, "message": EVIL}
    output = {"trace": {"spans": [one(name=EVIL, attributes={EVIL: EVIL})]}, "model": EVIL, "reasons": [EVIL]}
    bad = record(1, 4, 6, "failure", error=error, output=output, exit_code=1, cpu_s=0.25, tokens_used=1 << 62)
    return Traced(EVIL, EVIL, EVIL, "b", EVIL, EVIL, EVIL, at(1), records=(bad,), events=(event(EVIL, 5),))


def test_every_line_is_a_request_as_protobuf_reads_it() -> None:
    spans = ordered([*spans_of(SPOOL, TWICE), *spans_of(SPOOL, evil())])
    text = "".join(lines(spans))
    [line] = text.splitlines()
    assert text == f"{line}\n"
    request = ExportTraceServiceRequest()
    json_format.Parse(hexed(line), request)
    read = [span for by in request.resource_spans for scope in by.scope_spans for span in scope.spans]
    assert {span.span_id.hex() for span in read} == {span.context.span_id for span in spans}
    by_id = {span.context.span_id: span for span in spans}
    for found in read:
        mine = by_id[found.span_id.hex()]
        assert found.trace_id.hex() == mine.context.trace_id
        assert found.parent_span_id.hex() == mine.parent
        assert (found.start_time_unix_nano, found.end_time_unix_nano) == (mine.start, mine.end)
        assert (found.name, found.kind, found.status.message) == (mine.name, int(mine.kind), mine.error or "")
        assert {pair.key for pair in found.attributes} == set(mine.attributes)
    [scope] = {(scope.scope.name, scope.schema_url) for by in request.resource_spans for scope in by.scope_spans}
    assert scope == ("spoold", said.SCHEMA_URL)


def test_many_spans_are_several_requests_and_none_are_none() -> None:
    spans = [one_of(n) for n in range(SPANS_MAX + 1)]
    first, second = lines(spans)
    sizes = [len(json.loads(line)["resourceSpans"][0]["scopeSpans"][0]["spans"]) for line in (first, second)]
    assert sizes == [SPANS_MAX, 1]
    assert list(lines([])) == []
    assert ordered([*spans, *spans]) == spans


def one_of(number: int) -> Span:
    return Span(Context("a" * 32, f"{number + 1:016x}"), "", "x", Kind.INTERNAL, number + 1, number + 1)


def test_a_number_that_otlp_cannot_hold_as_whole_is_a_fraction() -> None:
    attributes: dict[str, Any] = {"a": True, "b": 5, "c": 0.5, "d": 1 << 70, "e": "x"}
    span = Span(Context("a" * 32, "b" * 16), "", "x", Kind.INTERNAL, 1, 1, attributes)
    made = json.loads(next(lines([span])))["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    assert [pair["value"] for pair in made] == [
        {"boolValue": True},
        {"intValue": "5"},
        {"doubleValue": 0.5},
        {"doubleValue": float(1 << 70)},
        {"stringValue": "x"},
    ]


@pytest.mark.parametrize("stamp", [None, "", "yesterday", "2026-01-01T00:00:00", "1960-01-01T00:00:00Z"])
def test_a_stamp_that_is_none_is_no_moment(stamp: str | None) -> None:
    assert nanos(stamp) is None


def test_every_name_is_one_of_the_conventions_or_ours() -> None:
    known = {said.SERVICE_NAME, said.SERVICE_NAMESPACE, said.SERVICE_INSTANCE}
    for group in ("messaging", "cicd", "gen_ai", "process", "error"):
        module = importlib.import_module(f"opentelemetry.semconv._incubating.attributes.{group}_attributes")
        known |= {value for name, value in vars(module).items() if name.isupper() and isinstance(value, str)}
    module = importlib.import_module("opentelemetry.semconv.attributes.error_attributes")
    known |= {module.ERROR_TYPE}
    ours = [value for name, value in vars(said).items() if name.isupper() and isinstance(value, str) and "." in value]
    ours = [value for value in ours if value not in (said.VERSION, said.SCHEMA_URL)]
    assert len(ours) > 20
    assert {value for value in ours if value not in known and not value.startswith("spoold.")} == set()
    results = importlib.import_module("opentelemetry.semconv._incubating.attributes.cicd_attributes")
    assert set(said.RESULTS.values()) <= {one.value for one in results.CicdPipelineTaskRunResultValues}


@pytest.mark.parametrize("output", [None, "text", [1], {"trace": "mine"}, {"trace": {"mine": 1}}, {"text": "x"}])
def test_an_output_of_another_kind_stays_as_it_is(output: Any) -> None:
    assert agent_spans.without_spans(output) is output
    assert agent_spans.without_spans({"text": "x", "trace": {"spans": []}}) == {"text": "x"}
