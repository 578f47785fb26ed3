"""The attempts of a scene as trace events, for ui.perfetto.dev and chrome://tracing.

A worker is a process and each of its slots a thread, so nothing overlaps in a thread. Attempts are complete events
("X"), waiting is asynchronous ("b" and "e"), a dependency is a flow ("s" and "f"), and the numbers of running and
waiting tasks are counters ("C").

Law: moments are whole microseconds since the first event; each "e" has its "b", and each "f" its "s".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import orjson

from spoold.pictures.boxes import called
from spoold.pictures.picture_data import Scene, Task
from spoold.pictures.timeline_layout import Bar, lanes_of, micros
from spoold.pictures.wording import clip
from spoold.protocol.lifecycle import ENDED

# The process that holds what no worker does.
_SPOOL = 1
TEXT = 300
Events = list[dict[str, Any]]


def write(scene: Scene) -> str:
    """Return the whole file."""
    lanes = lanes_of(scene)
    bars = lanes.bars
    mine = bars_of(bars)
    waits = [wait for task in scene.inside for wait in _waits(task, mine, scene.at)]
    first = min([*(bar.begin for bar in bars), *(begin for _, begin, _ in waits)], default=0)
    names = dict.fromkeys(lane.worker for lane in lanes.lanes)
    workers = {worker: pid for pid, worker in enumerate(names, _SPOOL + 1)}
    events = [_name("process_name", _SPOOL, 0, "tasks"), _sorted_first(_SPOOL)]
    events += [_name("process_name", pid, 0, worker) for worker, pid in workers.items()]
    where: dict[tuple[str, int], tuple[int, int]] = {}
    for lane in lanes.lanes:
        pid = workers[lane.worker]
        events.append(_name("thread_name", pid, lane.slot, f"slot {lane.slot}"))
        for bar in lane.bars:
            where[bar.task.key, bar.attempt.number] = pid, lane.slot
            events.append(_attempt(bar, pid, lane.slot, first))
    events += list(_asynchronous(waits, first))
    events += list(_flows(scene, mine, where, first))
    events += list(_counters(bars, waits, first))
    began = datetime.fromtimestamp(first / 1e6, UTC).isoformat(timespec="microseconds")
    said = {"title": _text(scene.title), "begins_at": began, "attempts_without_begin": lanes.unstarted}
    made = {"traceEvents": events, "displayTimeUnit": "ms", "otherData": said}
    return orjson.dumps(made, option=orjson.OPT_APPEND_NEWLINE).decode()


def bars_of(bars: list[Bar]) -> dict[str, list[Bar]]:
    """Return the bars of each task, by its key, by time."""
    found: dict[str, list[Bar]] = {}
    for bar in bars:
        found.setdefault(bar.task.key, []).append(bar)
    return found


def _text(text: str) -> str:
    return clip(text, TEXT)


def _name(kind: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": _text(name)}}


def _sorted_first(pid: int) -> dict[str, Any]:
    return {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": -1}}


def _attempt(bar: Bar, pid: int, tid: int, first: int) -> dict[str, Any]:
    one = bar.attempt
    said = {
        "task": _text(bar.task.id),
        "type": _text(bar.task.type),
        "attempt": one.number,
        "status": _text(one.status),
        "code": _text(one.code),
        "message": _text(one.message),
        "exit_code": one.exit_code,
        "tokens": one.tokens,
        "cost_usd": one.cost_usd,
        "model": _text(one.model),
    }
    return {
        "ph": "X",
        "name": _text(called(bar.task)),
        "cat": _text(one.status),
        "pid": pid,
        "tid": tid,
        "ts": bar.begin - first,
        "dur": bar.end - bar.begin,
        "args": {name: value for name, value in said.items() if value not in (None, "")},
    }


Wait = tuple[Task, int, int]


def _waits(task: Task, all_bars: dict[str, list[Bar]], at: float) -> Iterator[Wait]:
    """Yield from when to when a task waited: before its first attempt, between attempts, and now.

    Where nobody knows when it was submitted, it is seen to wait from the end of the last task that it came after.
    """
    bars = all_bars.get(task.key, [])
    needed = [all_bars[need.key][-1].end for need in task.needs if need.key in all_bars]
    since = max(needed, default=None) if task.since is None else micros(task.since)
    for bar in bars:
        if since is not None and since < bar.begin:
            yield task, since, bar.begin
        since = bar.end
    if task.state not in ENDED and since is not None and not any(bar.attempt.runs for bar in bars):
        yield task, since, max(since, micros(at))


def _asynchronous(waits: list[Wait], first: int) -> Iterator[dict[str, Any]]:
    for number, (task, begin, end) in enumerate(waits, 1):
        shared = {"cat": "waiting", "name": _text(called(task)), "id": number, "pid": _SPOOL, "tid": 0}
        yield {"ph": "b", "ts": begin - first, **shared, "args": {"task": _text(task.id)}}
        yield {"ph": "e", "ts": end - first, **shared}


def _flows(
    scene: Scene, bars: dict[str, list[Bar]], where: dict[tuple[str, int], tuple[int, int]], first: int
) -> Iterator[dict[str, Any]]:
    """Yield an arrow from the last attempt of each task to the first attempt of each that waited for it."""
    number = 0
    for task in scene.inside:
        for need in task.needs:
            if need.key not in bars or task.key not in bars:
                continue
            source, target = bars[need.key][-1], bars[task.key][0]
            if target.begin < source.end - 1:
                continue  # it was tried again later: an arrow back in time says nothing
            number += 1
            shared = {"cat": "dependency", "name": need.bond.value, "id": number}
            (pid, tid), (to_pid, to_tid) = (
                where[source.task.key, source.attempt.number],
                where[target.task.key, target.attempt.number],
            )
            # An event belongs to the slice around it, and a slice does not hold its own end.
            yield {"ph": "s", "ts": source.end - 1 - first, **shared, "pid": pid, "tid": tid}
            yield {"ph": "f", "bp": "e", "ts": target.begin - first, **shared, "pid": to_pid, "tid": to_tid}


def _counters(bars: list[Bar], waits: list[Wait], first: int) -> Iterator[dict[str, Any]]:
    spans = {
        "running": [(bar.begin, bar.end) for bar in bars],
        "waiting": [(begin, end) for _, begin, end in waits],
    }
    for name, some in spans.items():
        change: dict[int, int] = {}
        for begin, end in some:
            change[begin] = change.get(begin, 0) + 1
            change[end] = change.get(end, 0) - 1
        now = 0
        for moment in sorted(change):
            now += change[moment]
            yield {"ph": "C", "name": name, "pid": _SPOOL, "ts": moment - first, "args": {"tasks": now}}
