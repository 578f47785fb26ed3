"""A task becomes spans: its submission, and of each attempt its waiting, itself and its phases.

    send                      from the submission to the admission; below it all others
      wait                    until a worker claimed it, or it ended before
        ready                 the part of it in which every gate had passed
      process                 the attempt: from the claim to the commit
        prepare, run, commit  its phases
        …                     what an agent told of it

Law: a task's spans follow from its own files and journals, and from the ids of others. What has not ended has no span
yet.

A record is the truth for an attempt that ended, and the journals add the moments around it. Where they have lost
something, the record alone makes the lap.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from spoold.pictures.traces import agent_spans
from spoold.pictures.traces import conventions as said
from spoold.pictures.traces.span import Kind, Link, Mark, Span, Value, nanos
from spoold.pictures.wording import clip
from spoold.protocol import trace_ids
from spoold.protocol.event import Event
from spoold.protocol.result import Result, message_of
from spoold.protocol.trace_ids import NO_ATTEMPT, Context

# One attempt from its claim to its commit, by its record and the journals.


_ENDS = ("COMPLETED", "FAILED", "SKIPPED", "RETURNED")
_BEGINS = ("ADMITTED", "RETRIED", "REDONE")
# These are spans themselves, or their beginnings and ends.
_TOLD = frozenset({*_ENDS, *_BEGINS, "WAITING", "READY", "CLAIMED", "STARTED", "ARCHIVED", "FILES_CHANGED"})


@dataclass(frozen=True)
class Traced:
    """A task, as far as a trace tells of it. records: oldest first; events: of this task, by their writers' clocks;
    admitted: by its name, None once it has ended; running: the attempt that is claimed, 0 for none.
    """

    id: str
    kind: str
    name: str = ""
    batch: str = ""
    parent: str = ""
    meta: Any = None
    model: str = ""
    created_at: str = ""
    admitted: int | None = None
    running: int = 0
    records: tuple[Result, ...] = ()
    events: tuple[Event, ...] = ()

    @cached_property
    def laps(self) -> tuple[Lap, ...]:
        """All its attempts, in their order, also what ended it before one began."""
        records = {record.attempt: record for record in self.records}
        claimed = {event.attempt for event in self.events if event.event == "CLAIMED" and event.attempt}
        numbers = {*records, *claimed, *([self.running] if self.running else [])}
        return tuple(
            Lap(number, records.get(number), tuple(event for event in self.events if event.attempt == number))
            for number in sorted(numbers)
        )

    @cached_property
    def sent(self) -> tuple[int, int] | None:
        """When it was submitted, and when it was admitted; None where nobody knows."""
        admitted = next((nanos(event.at) for event in self.events if event.event == "ADMITTED"), None)
        begins = (lap.begin or lap.done for lap in self.laps)
        created = nanos(self.created_at)
        end = admitted or self.admitted or created or next(filter(None, begins), None)
        return None if end is None else (min(created or end, end), end)

    @cached_property
    def marks(self) -> tuple[tuple[int, Event], ...]:
        """What else the journals tell of it, with the moment of each."""
        found = ((nanos(event.at), event) for event in self.events if event.event not in _TOLD)
        return tuple((at, event) for at, event in found if at is not None)


@dataclass(frozen=True)
class Lap:
    """One attempt. record: None while it has none; events: of this attempt."""

    number: int
    record: Result | None
    events: tuple[Event, ...] = ()
    _at: Mapping[str, Event] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_at", {event.event: event for event in self.events})  # the last one counts

    def at(self, *names: str) -> int | None:
        """When the first of these events was noted that was; None for none."""
        return next((moment for name in names if name in self._at and (moment := nanos(self._at[name].at))), None)

    @property
    def worker(self) -> str:
        """The worker; '' where nobody has claimed it. The record of a dead worker's attempt is the leader's."""
        if "CLAIMED" in self._at:
            return self._at["CLAIMED"].writer
        return self.record.worker_id if self.record is not None and self.begin is not None else ""

    @property
    def placed(self) -> int | None:
        """When its waiting began with more than the end of the attempt before it."""
        return self.at(*_BEGINS)

    @property
    def started(self) -> int | None:
        """When its processes began, as its record says, or else the journal."""
        return nanos(self.record.started_at) if self.record is not None else self.at("STARTED")

    @property
    def begin(self) -> int | None:
        """When it was claimed; None where it never was."""
        moments = [moment for moment in (self.at("CLAIMED"), self.started) if moment is not None]
        return min(moments, default=None)

    @property
    def done(self) -> int | None:
        """When its processes had ended, or else when it was moved; None while it runs."""
        if self.record is not None:
            return nanos(self.record.completed_at)
        return self.at(*_ENDS)

    @property
    def moved(self) -> int | None:
        """When its worker committed it. A leader's move of a dead worker's task is no part of the attempt."""
        ended = next((self._at[name] for name in _ENDS if name in self._at), None)
        return nanos(ended.at) if ended is not None and ended.writer == self.worker else None

    @property
    def end(self) -> int | None:
        """When it was over, with its commit; None while it is not."""
        done, moved = self.done, self.moved
        return done if done is None or moved is None else max(done, moved)


TEXT = 500
COUNT_MAX = 1 << 53


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of one task's spans."""

    spool_id: str
    task: Traced

    @property
    def trace_id(self) -> str:
        """Its trace."""
        return trace_ids.trace_of(self.spool_id, self.task.id, self.task.batch or None, self.task.meta)

    def of(self, part: str, attempt: int = NO_ATTEMPT) -> Context:
        """Return the span of a part."""
        return Context(self.trace_id, trace_ids.span_of(self.spool_id, self.task.id, attempt, part))


def attempt_at(spool_id: str, task: Traced, moment: int | None) -> Context | None:
    """Return the attempt of a task that ran at this moment, None where it has none: the last one that had begun by
    then, or else its first. moment: None for its last.
    """
    run = [lap for lap in task.laps if lap.worker or lap.number == task.running]
    begun = [lap for lap in run if moment is None or (lap.begin is not None and lap.begin <= moment)]
    lap = begun[-1] if begun else run[0] if run else None
    return None if lap is None else Ids(spool_id, task).of(trace_ids.PROCESS, lap.number)


def spans_of(spool_id: str, task: Traced, above: Context | None = None, after: Sequence[Link] = ()) -> list[Span]:
    """Return all spans of a task. above: the attempt that submitted it; after: what its attempts waited for."""
    if task.sent is None:
        return []
    ids = Ids(spool_id, task)
    home = {said.SERVICE_NAME: said.SYSTEM, said.SERVICE_NAMESPACE: spool_id}
    found, since = [_send(ids, above, home)], task.sent[1]
    for lap in task.laps:
        wait = _wait(ids, lap, since, home)
        found += wait
        if lap.worker and lap.begin is not None and lap.end is not None:
            found += _attempt(ids, lap, after, {**home, said.SERVICE_INSTANCE: lap.worker})
        since = lap.end or since
    return found


def open_laps(task: Traced) -> int:
    """Return how many of its attempts have not ended."""
    return sum(lap.end is None for lap in task.laps)


def _about(task: Traced, operation: str) -> dict[str, Value]:
    return {
        said.MESSAGING_SYSTEM: said.SYSTEM,
        said.MESSAGING_OPERATION: operation,
        said.MESSAGING_OPERATION_TYPE: operation,
        said.MESSAGING_DESTINATION: clip(task.kind, TEXT),
        said.MESSAGING_MESSAGE: clip(task.id, TEXT),
        **({said.PIPELINE: clip(task.batch, TEXT)} if task.batch else {}),
        **({said.TASK_NAME: clip(task.name, TEXT)} if task.name else {}),
    }


def _send(ids: Ids, above: Context | None, home: Mapping[str, Value]) -> Span:
    task = ids.task
    assert task.sent is not None
    outer = trace_ids.outer(task.meta)
    parent = outer or (above if above is not None and above.trace_id == ids.trace_id else None)
    links = (Link(above, "parent"),) if above is not None and above is not parent else ()
    about = _about(task, said.SEND) | ({said.PARENT: clip(task.parent, TEXT)} if task.parent else {})
    return Span(
        ids.of(trace_ids.SEND),
        "" if parent is None else parent.span_id,
        f"{said.SEND} {clip(task.kind, TEXT)}",
        Kind.PRODUCER,
        *task.sent,
        about,
        links=links,
        resource=home,
    )


def _wait(ids: Ids, lap: Lap, since: int, home: Mapping[str, Value]) -> list[Span]:
    """The waiting before an attempt, or before the end of a task that was never claimed again."""
    ran = bool(lap.worker) and lap.begin is not None
    end = lap.begin if ran else lap.done
    begin = lap.placed or since
    if end is None:
        return []
    about: dict[str, Value] = {said.MESSAGING_MESSAGE: clip(ids.task.id, TEXT), said.ATTEMPT: lap.number}
    wait = Span(
        ids.of(trace_ids.WAIT, lap.number),
        ids.of(trace_ids.SEND).span_id,
        trace_ids.WAIT,
        Kind.INTERNAL,
        begin,
        max(begin, end),
        about,
        _marks(ids.task, begin, end),
        resource=home,
    )
    ready = lap.at("READY")
    more = []
    if ready is not None and begin <= ready <= end:
        more.append(
            replace(_phase(wait, ids.of(trace_ids.READY, lap.number), trace_ids.READY, ready, end), resource=home)
        )
    if not ran and lap.record is not None:
        wait = replace(wait, attributes=about | _outcome(lap.record), error=_error(lap.record))
    return [wait, *more]


def _attempt(ids: Ids, lap: Lap, after: Sequence[Link], home: Mapping[str, Value]) -> Iterator[Span]:
    task, record, begin, end = ids.task, lap.record, lap.begin, lap.end
    assert begin is not None
    assert end is not None
    about = _about(task, said.PROCESS) | {
        said.PIPELINE_TASK: clip(task.name or task.id, TEXT),
        said.TASK_RUN: clip(f"{task.id}.{lap.number}", TEXT),
        said.ATTEMPT: lap.number,
        said.WORKER: lap.worker,
    }
    if record is not None:
        about |= _outcome(record) | _used(task, record)
    sent = ids.of(trace_ids.SEND)
    span = Span(
        ids.of(trace_ids.PROCESS, lap.number),
        sent.span_id,
        f"{said.PROCESS} {clip(task.kind, TEXT)}",
        Kind.CONSUMER,
        begin,
        max(begin, end),
        about,
        _marks(task, begin, end),
        (Link(sent, trace_ids.SEND), *after),
        None if record is None else _error(record),
        home,
    )
    phases = list(_phases(ids, lap, span))
    taken = frozenset(one.context.span_id for one in (span, *phases)) | {sent.span_id}
    inner, dropped = agent_spans.spans_in(None if record is None else record.output, span, taken)
    yield replace(span, attributes={**about, said.DROPPED: dropped}) if dropped else span
    yield from phases
    yield from inner


def _phases(ids: Ids, lap: Lap, span: Span) -> Iterator[Span]:
    claimed, started, done = lap.at("CLAIMED"), lap.started, lap.done
    if claimed is not None and started is not None:
        yield _phase(span, ids.of(trace_ids.PREPARE, lap.number), trace_ids.PREPARE, claimed, started)
    if started is not None and done is not None:
        yield _phase(span, ids.of(trace_ids.RUN, lap.number), trace_ids.RUN, started, done)
    if lap.record is not None and done is not None and lap.moved is not None:
        yield _phase(span, ids.of(trace_ids.COMMIT, lap.number), trace_ids.COMMIT, done, span.end)


def _phase(around: Span, context: Context, name: str, begin: int, end: int) -> Span:
    return Span(
        context, around.context.span_id, name, Kind.INTERNAL, begin, max(begin, end), resource=around.resource
    )


def _marks(task: Traced, begin: int, end: int) -> tuple[Mark, ...]:
    return tuple(
        Mark(at, clip(event.event.lower(), TEXT), {said.WRITER: clip(event.writer, TEXT)})
        for at, event in task.marks
        if begin <= at <= end
    )


def _outcome(record: Result) -> dict[str, Value]:
    status = str(record.status)
    made: dict[str, Value] = {said.STATUS: clip(status, TEXT)}
    if status in said.RESULTS:
        made[said.TASK_RESULT] = said.RESULTS[status]
    if record.error is not None:
        made[said.ERROR_TYPE] = clip(str(record.error.cause or record.error.code), TEXT)
    if record.exit_code is not None:
        made[said.EXIT_CODE] = record.exit_code
    return made


def _error(record: Result) -> str | None:
    return clip(message_of(record), TEXT) if str(record.status) in said.FAILED else None


def _used(task: Traced, record: Result) -> dict[str, Value]:
    output: Any = record.output if isinstance(record.output, dict) else {}
    usage: Any = output.get("usage") if isinstance(output.get("usage"), dict) else {}
    tokens = [usage.get(name) for name in ("tokens_in", "tokens_out", "tokens_cached")]
    into, out, cached = (value if isinstance(value, int) and 0 <= value < COUNT_MAX else None for value in tokens)
    model = output.get("model") if isinstance(output.get("model"), str) else task.model
    made: dict[str, Value | None] = {
        said.MODEL: clip(model, TEXT) if model else None,
        said.TOKENS_IN: None if into is None else into + (cached or 0),
        said.TOKENS_OUT: out,
        said.TOKENS_CACHED: cached,
        said.TOKENS: record.tokens_used,
        said.COST: record.cost_usd,
        said.CPU: record.cpu_s,
        said.MEMORY: record.max_rss_mb,
        said.FROZEN: record.frozen_s,
        said.ESTIMATED: record.estimated or None,
    }
    return {name: value for name, value in made.items() if value is not None}
