"""Everything that is known of one task, gathered from its files.

Law: the place and the name of the task file are the truth; results, heartbeat and content only add to it, and a file
that cannot be read is left out.
"""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.protocol.heartbeat import Running
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, order_micros, parse_archived, parse_ended, rank_of
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Result, Total, why_ended
from spoold.protocol.timestamps import moment
from spoold.rules.answers.task_history import Told, messages
from spoold.rules.attempts.attempt_costs import total_of
from spoold.store import approval_answers, control, heartbeats, task_location
from spoold.store.existence import names_shown
from spoold.store.store import Store, stamp
from spoold.store.task_location import Located

UNEXPLAINED = "rejected without a reason beside it. Fix: put it into pending/ again and it is judged anew."


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """One task. attempt: the next, running or last attempt, 0 before admission; times are RFC 3339.

    reason: why it is in its state, '' where that needs none; worker: the node that holds it or decided it last;
    failures and crashes: the charges on its retry budget; attempts: all that ended, oldest first; total: their sums;
    sent_back: who sent it back last, in which round and why, until it has ended; progress_problem: why the last
    report of its progress does not count; told: what its agent was told, and which attempts have it;
    task: as submitted; path: its file, below the spool. tree: what it and all below it came to, where that was asked
    for: it takes a look at the whole spool.
    """

    id: str
    state: str
    attempt: int
    reason: str
    type: str
    name: str
    batch: str | None
    priority: int | None
    worker: str | None
    lane: str | None
    failures: int | None
    crashes: int | None
    created_at: str | None
    admitted_at: str | None
    started_at: str | None
    completed_at: str | None
    progress: Any
    progress_problem: str
    archived: bool
    path: str
    attempts: list[Result] = field(default_factory=list)
    total: Total | None = None
    sent_back: str = ""
    told: list[Told] = field(default_factory=list)
    task: dict[str, Any] = field(default_factory=dict)
    tree: dict[str, Any] | None = None


def describe(store: Store, ref: str) -> TaskInfo:
    """Return everything about the task with this id. Errors: NotFound; OSError."""
    return described(store, task_location.locate(store, ref))


def described(store: Store, located: Located, named: Iterable[tuple[EndedName, str]] | None = None) -> TaskInfo:
    """Return everything about a task that was located. named: the names and paths of its records, None to list them.

    Errors: OSError.
    """
    if named is None:
        attempts = list_attempts(store, located)
    else:
        attempts = [result for _, result in read_records(store, located, named)]
    content = read_content(store, located)
    running = running_of(store, located)
    last = attempts[-1] if attempts else None
    ended = last if located.result is not None else None
    name = located.name
    requests = control.list_requests(store.fs) if name is not None else []
    return TaskInfo(
        id=located.id,
        state=located.state.value,
        attempt=located.attempt,
        reason=reason_of(store, located, last) or _fault(store, located),
        type=kind_of(content),
        name=text_in(content, "name"),
        batch=text_in(content, "batch") or None,
        priority=rank_of(0) - name.rank if name else None,
        worker=located.node or None,
        lane=located.lane or None,
        failures=name.failures if name else None,
        crashes=name.crashes if name else None,
        created_at=text_in(content, "created_at") or None,
        admitted_at=stamp(order_micros(name.order) / 1e6) if name else None,
        started_at=running.since if running else ended.started_at if ended else None,
        completed_at=ended.completed_at if ended else None,
        progress=running.progress if running else None,
        progress_problem=running.progress_problem if running else "",
        archived=located.archived,
        path=located.path,
        attempts=attempts,
        total=total_of(attempts),
        sent_back=sent_back(store, located, requests),
        told=_told(store, located, requests, attempts, running),
        task=content,
    )


def list_attempts(store: Store, located: Located) -> list[Result]:
    """Return the results of all attempts that ended, oldest first; the one that counts is last. Errors: OSError."""
    if located.state in (State.PENDING, State.REJECTED):
        return []
    directory = layout.bucket(located.id) if located.archived else layout.RESULTS
    names = ((name_of_record(file), layout.join(directory, file)) for file in names_shown(store.fs, directory))
    mine = [(name, path) for name, path in names if name is not None and key(name.id) == key(located.id)]
    return [result for _, result in read_records(store, located, mine)]


def name_of_record(file: str) -> EndedName | None:
    """Return what the name of a record says, in results/ or in the archive; None for any other file."""
    archived = parse_archived(file)
    if archived is None:
        return parse_ended(file)
    return archived[0] if archived[1] == "result" else None


def read_records(store: Store, located: Located, named: Iterable[tuple[EndedName, str]]) -> list[tuple[bool, Result]]:
    """Return the records of a task at these paths, oldest first, each with whether it counts for the task's end: that
    one is last. What cannot be read is left out.
    """
    found = []
    for counts, _, path in sorted((path == located.result, name.attempt, path) for name, path in named):
        with contextlib.suppress(OSError, BadFile):
            found.append((counts, codec.load_model(Result, store.fs.read(path), path)))
    return found


def read_content(store: Store, located: Located) -> dict[str, Any]:
    """Return the task as it was submitted; empty when it cannot be read. Errors: none."""
    try:
        return codec.load_object(read_file(store, located), located.path)
    except (OSError, BadFile):
        return {}


def read_file(store: Store, located: Located) -> bytes:
    """Return the file of a task as it stands, or its line of a file of many; b"" for a line that is gone.

    Errors: OSError.
    """
    path = located.path
    if located.state is State.REJECTED:
        path = path.removesuffix(layout.REASON)
    data = store.fs.read(path)
    lines = data.split(b"\n")[located.line - 1 : located.line] if located.line else [data]
    return lines[0] if lines else b""


def kind_of(content: dict[str, Any]) -> str:
    """Return the type of a task (an agent is one), or "command" or "python" where it has none; '' where its content
    has neither.
    """
    return (
        text_in(content, "type")
        or text_in(content, "agent")
        or ("command" if content.get("command") else "python" if "python" in content else "")
    )


def runs_of(content: dict[str, Any]) -> str:
    """Return what a task runs, for a line of a list: its command, function or prompt, or else its input; '' where its
    content has none of them. Errors: none.
    """
    said = content.get("input")
    own = said if isinstance(said, dict) else {}
    for value in (content.get("command"), content.get("python"), content.get("prompt"), own.get("prompt")):
        if isinstance(value, str) and value:
            return value
        if isinstance(value, list) and value:
            return shlex.join(map(str, value))
    return "" if said in (None, {}) else json.dumps(said, ensure_ascii=False)


def age_of(store: Store, located: Located, content: dict[str, Any], now: float) -> float | None:
    """Return how long ago (s) a task was admitted; of one that is no task yet, or has ended, how long ago it was
    submitted: as it says itself, else by the time of its file, which moves leave alone. now: s since 1970.

    None where nothing says it. Errors: none.
    """
    if located.name is not None:
        return max(0.0, now - order_micros(located.name.order) / 1e6)
    at = moment(text_in(content, "created_at"))
    if at is None:
        with contextlib.suppress(OSError):
            at = store.fs.stat(located.path).mtime_ns / 1e9
    return None if at is None else max(0.0, now - at)


@dataclass(frozen=True, slots=True)
class Brief:
    """One task in a list for people. age_s: as of `age_of`; runs: as of `runs_of`."""

    located: Located
    type: str
    age_s: float | None
    runs: str


def brief(store: Store, located: Located, now: float) -> Brief:
    """Return a task for a list, which costs one read of its file. Errors: none."""
    content = read_content(store, located)
    return Brief(located, kind_of(content), age_of(store, located, content, now), runs_of(content))


def reason_of(store: Store, located: Located, last: Result | None) -> str:
    """Return why a task is in its state, from its last result or its rejection; '' where neither has a reason."""
    if located.state is State.REJECTED:
        problem = task_location.problem_in(task_location.reason_of(store, located))
        return f"{problem.told(located.id)} Fix: {problem.mend}" if problem is not None else UNEXPLAINED
    if located.state is State.COMPLETED or last is None or last.error is None:
        return ""
    why = why_ended(last)
    return why if located.state in (State.FAILED, State.SKIPPED) else f"attempt {last.attempt} ended with {why}"


def _fault(store: Store, located: Located) -> str:
    """What is wrong with the file of a task that has not ended, and the fix; '' for nothing."""
    from spoold.client.read.task_file import fault_in

    problem = fault_in(store, located)
    return "" if problem is None else f"its file {problem.told(located.id)} Fix: {problem.mend}"


def sent_back(store: Store, located: Located, requests: Sequence[Request] | None = None) -> str:
    """Return who sent a task back last, in which round and why; '' for nobody, and once it has ended.

    requests: as already listed. Errors: OSError.
    """
    if located.name is None:
        return ""
    redos = approval_answers.redos(store.fs, control.list_requests(store.fs) if requests is None else requests)
    return approval_answers.sent_back(store.fs, located.name, located.path, redos)


def _told(
    store: Store, located: Located, requests: Sequence[Request], attempts: Sequence[Result], running: Running | None
) -> list[Told]:
    """Return what its agent was told, and what of that it has. Errors: OSError."""
    asked = [one for one in requests if one.verb is Verb.TELL]
    standing = control.about_task(store.fs, located.id, asked) if asked else ()
    attempt, progress = (running.attempt, running.progress) if running else (None, None)
    return messages(standing, attempts, attempt, progress)


def running_of(store: Store, located: Located) -> Running | None:
    """Return what the heartbeat of the task's worker says of it."""
    if located.state is not State.CLAIMED:
        return None
    with contextlib.suppress(OSError, SpoolError):
        beat = heartbeats.list_beats(store.fs).get(located.node)
        heartbeat = heartbeats.read(store.fs, beat) if beat is not None else None
        for running in heartbeat.running if heartbeat else ():
            if key(running.id) == key(located.id):
                return running
    return None


def text_in(content: dict[str, Any], name: str) -> str:
    """Return a text field of a task; '' where it is not text."""
    value = content.get(name)
    return value if isinstance(value, str) else ""


def not_ended(located: Located) -> str:
    """Return the sentence for a task that has no result yet."""
    doing = {State.CLAIMED: f"running on {located.node}", State.PENDING: "not admitted yet"}
    return f"task {located.id} is {doing.get(located.state, located.state.value)}: not finished yet."


def result_of(store: Store, ref: str) -> Result | None:
    """Return the result of a task; None while it has none. Errors: NotFound for no such task; OSError, BadFile."""
    from spoold.client.spool.waiting import read_result, rejection

    for last in (False, False, True):
        located = task_location.locate(store, ref)
        if located.state is State.REJECTED:
            return rejection(located.id, task_location.reason_of(store, located))
        if located.result is None:
            return None
        try:
            return read_result(store, located)
        except NotFound:
            if last:
                raise
    return None
