"""The ids of traces: in which trace a task is, and the span of each part of it.

Law: an id follows from the names alone, so that every writer makes the same one, and an export that is repeated tells
nothing new. Names that differ by case alone are one name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from spoold.protocol.names import key

# The parts of a task, and of an attempt, that have a span of their own.
SEND, WAIT, READY, PROCESS, PREPARE, RUN, COMMIT = "send", "wait", "ready", "process", "prepare", "run", "commit"
TRACEPARENT, TRACESTATE, BAGGAGE = "TRACEPARENT", "TRACESTATE", "BAGGAGE"
# The attempt in the id of a span that is of the whole task.
NO_ATTEMPT = 0
# The field of a task's `meta` by which its submitter names the span that it is below.
META = "traceparent"
_PARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Context:
    """A span as others name it: its trace (32 hexadecimal digits) and itself (16)."""

    trace_id: str
    span_id: str

    def encode(self) -> str:
        """Return it as W3C Trace Context spells it; it is sampled."""
        return f"00-{self.trace_id}-{self.span_id}-01"


def parse(text: Any) -> Context | None:
    """Return what a traceparent says; None where it is none of version 00."""
    found = _PARENT.fullmatch(text) if isinstance(text, str) else None
    if found is None or not found[1].strip("0") or not found[2].strip("0"):
        return None
    return Context(found[1], found[2])


def outer(meta: Any) -> Context | None:
    """Return the span that a task's submitter put it below; None for none. meta: as the task has it."""
    return parse(meta.get(META)) if isinstance(meta, Mapping) else None


def trace_of(spool_id: str, task_id: str, batch: str | None, meta: Any = None) -> str:
    """Return the trace of a task: that of its submitter's span, else that of its batch, else one of its own."""
    above = outer(meta)
    if above is not None:
        return above.trace_id
    return _digest(16, "trace", spool_id, *(("batch", key(batch)) if batch else ("task", key(task_id))))


def span_of(spool_id: str, task_id: str, attempt: int, part: str) -> str:
    """Return the span of a part of an attempt; of the whole task with NO_ATTEMPT."""
    return _digest(8, "span", spool_id, key(task_id), str(attempt), part)


def carrier(spool_id: str, task_id: str, attempt: int, batch: str | None, meta: Any) -> dict[str, str]:
    """Return the variables from which an attempt learns its span. They replace all others of these names."""
    mine = Context(trace_of(spool_id, task_id, batch, meta), span_of(spool_id, task_id, attempt, PROCESS))
    return {TRACEPARENT: mine.encode(), TRACESTATE: "", BAGGAGE: ""}


def _digest(size: int, *words: str) -> str:
    return blake2b("\0".join(words).encode("utf-8", "surrogatepass"), digest_size=size).hexdigest()
