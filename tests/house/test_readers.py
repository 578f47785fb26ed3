"""Whoever reads what others wrote does it through `codec` and `toml_file`, and nothing written can end a node.

Every reader of the package is found in its syntax trees, so a new one cannot be left out: each is played against
files that `tests.support.mutations` changed.
"""

from __future__ import annotations

import ast
import importlib
import math
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any

import orjson
import pytest
from hypothesis import settings
from pydantic import BaseModel

from spoold.agents.adapters import generic, parsing
from spoold.agents.attempt import prompting
from spoold.agents.attempt.agent_telemetry import Kept
from spoold.agents.attempt.prompting import Inbox
from spoold.agents.merge.candidates import workspace_of
from spoold.agents.process import ending
from spoold.agents.process.transcript import Transcript
from spoold.agents.sandbox import command_line
from spoold.client.view.queries import runs_of
from spoold.protocol import agent_messages, codec, plain_settings, plain_status, plain_task
from spoold.protocol.amount import MOST, is_amount
from spoold.protocol.errors import BadFile, SpoolError
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, EndedName
from spoold.protocol.result import EndedAttempt, Result
from spoold.protocol.settings import Settings
from spoold.protocol.snapshot import Node
from spoold.protocol.task import Task
from spoold.protocol.toml_file import load_settings, toml_table
from spoold.rules.attempts.attempt_costs import plus, spent_by, total_of
from spoold.rules.attempts.durations import Estimates
from spoold.rules.attempts.reported_figures import (
    PROGRESS,
    Quota,
    faults_in,
    figures_in,
    filled,
    overspent,
    touched_in,
)
from spoold.rules.cluster.throughput import Tally
from spoold.rules.gates import breaker_gate, budget_gate, budget_usage
from spoold.runner.job import Ending
from spoold.store import journal
from spoold.system.scratch import MemoryScratch
from spoold.worker.attempts.reporting import Report, read_report
from tests.house.sources import modules
from tests.protocol.test_vectors import V1
from tests.support.mutations import mutated

# `--hypothesis-profile=search` plays all.
SEEDS = 20_000 if settings().max_examples >= 2000 else 2_000
FILE = "somebody's file"
# Each is allowed one parser, and the reason why.
PARSERS = {
    "spoold/protocol/codec.py": "the reader of JSON",
    "spoold/protocol/toml_file.py": "the reader of TOML",
    "spoold/runner/child_process.py": "a supervisor has only the standard library; its own child wrote the line",
    "spoold/runner/wire.py": "a supervisor has no package but the standard library; a test reads what is no answer",
    "spoold/runner/pyhost.py": "a host imports nothing of ours; it reads the text that it has just made",
    "spoold/runner/pyseek.py": "a probe imports nothing of ours; it reads what the worker gave it",
    "spoold/agents/workspace/workspace_layout.py": "a record of its own, for no agent; its model reads it strictly",
    "spoold/system/cleaner.py": "it has no package but the standard library; its own worker wrote the line",
    "spoold/agents/workspace/packer.py": "it runs without packages; its own parent wrote what it reads",
    "spoold/agents/workspace/push_check.py": "it runs without packages; its own parent wrote what it reads",
    "spoold/doctor/trial_process.py": "it reads what its own parent gave it",
}
_PARSES = re.compile(r"\b(?:orjson|json)\.loads?\(|\btomllib\.loads?\(|raw_decode\(|validate_json\(|parse_raw\(")
_CALLS = {
    "load_model",
    "check",
    "load",
    "load_object",
    "load_sent",
    "load_sent_model",
    "load_text",
    "load_next",
    "value_of",
}


def test_nobody_but_the_reader_parses() -> None:
    found = {path for path, text, _ in modules() if _PARSES.search(text)}
    assert found == set(PARSERS)


@cache
def trees() -> dict[str, ast.Module]:
    """Every module of the package as a syntax tree."""
    return {path: tree for path, _, tree in modules()}


@cache
def calls() -> tuple[tuple[str, str, str], ...]:
    """Module, function of the codec, and the name of its first argument, of each call of a reader in the package."""
    found = set()
    for path, tree in trees().items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            of = node.func.value if isinstance(node.func, ast.Attribute) else None
            if name in _CALLS and (path == "spoold/protocol/codec.py") <= (of is None):
                if of is not None and not (isinstance(of, ast.Name) and of.id == "codec"):
                    continue
                if of is None and "codec" not in path and name in ("load", "check"):
                    continue
                first = node.args[0] if node.args else None
                found.add((path, name, first.id if isinstance(first, ast.Name) else ""))
    return tuple(sorted(found))


@cache
def models() -> dict[str, type[BaseModel]]:
    """Every model that a file is read as."""
    found: dict[str, type[BaseModel]] = {}
    for path, name, first in calls():
        if name in ("load_model", "load_sent_model", "check") and first[:1].isupper():
            module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
            kind = getattr(module, first, None) or _imported_in(path, first)
            assert issubclass(kind, BaseModel)
            found[first] = kind
    return found


def _imported_in(path: str, name: str) -> Any:
    """A class that a function imports for itself."""
    for node in ast.walk(trees()[path]):
        if isinstance(node, ast.ImportFrom) and node.module and name in [alias.name for alias in node.names]:
            return getattr(importlib.import_module(node.module), name)
    raise AssertionError(f"{path} reads {name}, and imports it nowhere")


RESULT = {
    "task_id": "a",
    "attempt": 2,
    "worker_id": "w1",
    "status": "success",
    "started_at": "2026-02-16T11:59:00Z",
    "completed_at": "2026-02-16T11:59:01Z",
    "duration_s": 1.0,
    "exit_code": 0,
    "output": {"text": "x"},
    "error": {"code": "EXIT_NONZERO", "message": "m"},
    "tokens_used": 5,
    "cost_usd": 0.1,
    "type": "review",
    "batch": "b",
    "budgets": ["nightly"],
    "budget": {"cost_usd": 1},
    "frozen_s": 0.1,
    "max_rss_mb": 3.0,
    "cpu_s": 0.5,
    "uses": {"api": 1},
    "changed_files": ["a"],
    "files_overlap": [{"task": "b", "files": ["a"]}],
    "total": {"attempts": 2, "duration_s": 2.0, "cpu_s": 1.0, "tokens_used": 7, "cost_usd": 0.2},
}
WRITTEN = {
    "answer": 42,
    "tokens_used": 7,
    "cost_usd": 0.5,
    "retry_after_s": 3,
    "changed_files": ["a/b"],
    "quota": {"limit": "api", "retry_after_s": 9},
    "message": "m",
    "fraction": 0.5,
    "served": True,
    "quota_until": {"limit": "api", "until": "2026-02-02T14:05:00Z"},
    "workspace": {"ref": "r"},
}
USAGE = {"tokens_in": 1200, "tokens_out": 80, "tokens_cached": 0, "cost_usd": 0.01, "cost": "reported", "text": "x"}
SUMS = {
    "tallies": [
        {"budget": "n", "period": "total", "spent": {"cost_usd": 5}, "attempts": 2, "unknown": {"tokens": 1}}
    ],
    "usual": {"review": {"cost_usd": [3, 5.0]}},
    "day": "2026-02-16",
}
BUDGETS = {
    "n": {
        "closed": "",
        "usual": {"review": {"cost_usd": 1}},
        "periods": [{"period": "total", "spent": {"cost_usd": 1}, "reserved": {"cost_usd": 1}, "attempts": 2}],
    }
}
SPANS = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "x"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "spanId": "0123456789abcdef",
                            "name": "n",
                            "kind": 3,
                            "status": {"code": 2},
                            "startTimeUnixNano": "1700000000000000000",
                            "endTimeUnixNano": 1700000001000000000,
                            "attributes": [{"key": "gen_ai.x", "value": {"intValue": "5", "doubleValue": 0.5}}],
                        }
                    ]
                }
            ],
        }
    ]
}
PROFILE = {"adapter": "generic", "command": ["x"], "model": "m", "allow_models": ["*"], "max_turns": 3}
BUDGETED = Settings.model_validate(
    {
        "budgets": {"nightly": {"cost_usd": 1, "tokens": 5, "task_s": 9}, "b": {"cost_usd": 1, "per": "batch"}},
        "types": {"review": {"budgets": ["nightly", "b"]}},
    }
)
_VECTORS = {
    "Task": "claimed/laptop1-7f3a/5000.hw1y7k2m82-1.Call.a1f0c1.json",
    "Marker": "spool.json",
    "Heartbeat": "heartbeats/laptop1-7f3a.42.json",
    "Snapshot": "status/3-120.json",
    "RequestBody": "control/reject.Call.k3j2-e.json",
    "Checkpoint": "status/3-7.feed.json",
    "Report": "doctor/3.doctor-laptop1-7f3a0.json",
    "Change": "settings/6.cli-desk-0k2j9x.json",
    "Entry": "context/nightly/3.1.w-laptop1-7f3a.decisions.md.json",
    "Step": "steps/build/2.1.w-laptop1-7f3a.json",
}


def base_of(name: str) -> bytes:
    """A sound file for a model, or an object that has its fields."""
    if name in _VECTORS:
        return (V1 / _VECTORS[name]).read_bytes()
    if name == "Event":
        return (V1 / "events/master-9z9z.0.jsonl").read_bytes().splitlines()[0]
    if name == "Result":
        return orjson.dumps(RESULT)
    if name == "Profile":
        return orjson.dumps(PROFILE)
    return orjson.dumps(dict.fromkeys(models()[name].model_fields, 1) if name in models() else RESULT)


def _model(name: str, data: bytes) -> Any:
    return codec.load_model(models()[name], data, FILE)


def _result(data: bytes) -> Any:
    """A record, as the leader and the ledgers take it."""
    found = codec.load_model(Result, data, FILE)
    counted = found.cost_usd, found.tokens_used, found.duration_s, found.cpu_s, found.max_rss_mb, found.frozen_s
    more = [
        *(found.uses or {}).values(),
        *found.budget.values(),
        *(dict(found.total).values() if found.total else ()),
    ]
    assert all(is_amount(number) for number in (*counted, *more) if isinstance(number, int | float))
    sums, name = budget_usage.Sums(), EndedName("a", 1, "w1")
    for _ in range(3):
        sums.take(EndedAttempt.of(name, found, "review"), BUDGETED, 1_771_243_200.0)
    purse = budget_gate.Purse(BUDGETED, budget_gate.Book(sums), 1_771_243_200.0)
    for _ in range(3):
        purse.reserve("review", budget_usage.Asked(("nightly",), "b", (("cost_usd", 10**18),)))
    seen = budget_gate.picture_of(purse)
    assert budget_usage.Sums.load(codec.load(codec.dump(sums.save()), FILE)) == sums
    totals = total_of([found, found]), plus(found.total, found.total) if found.total else None
    return found, dict(found), totals, seen, budget_gate.book_seen({"budget": seen}).sums.save()


def _beats(data: bytes) -> Any:
    """A beat, as each node takes it, twice: nothing of it may end whoever compares, adds or shows it."""
    name = BeatName("w1", 8)
    one, two = codec.load_beat(data, name), codec.load_beat(data, name)
    plainly = plain_status.load_beat(data, name)
    assert one == two
    tally, estimates = Tally(), Estimates()
    for node in ("w1", "w2"):
        tally.hear(5.0, node, 0, one.endings)
        estimates.hear(node, one.durations)
    tasks = [{**run.model_dump(), "progress": run.progress} for run in one.running]
    figures = {"slots": 1, "running": 1, "cpus": 1, "mem_mb": 1, "mem_available_mb": 1, "load": 0}
    shown = Node.model_validate({"worker": "w1", "host": "", "state": "", **figures, "tasks": tasks})
    runs = [repr(run) for run in runs_of([shown], {}, {})]
    sums = tally.recent(5.0), spent_by([one, two, plainly]), estimates.now()
    return one, plainly.model_dump(), sums, runs


def _written(data: bytes) -> Any:
    """What a task writes into its files of results and of progress."""
    scratch = MemoryScratch()
    scratch.write("a.1", "progress.json", data)
    report = read_report(scratch, "a.1", budgeted=False)
    _counts_or_is_named(data, report, read_report(scratch, "a.1", budgeted=True))
    said = report.said
    beats = [Heartbeat.model_validate({"node": "w", "beat": 1, "running": [{"id": "a", "progress": said}]})] * 2
    assert beats[0] == beats[1].model_copy()
    assert codec.load_beat(codec.dump(beats[0]), BeatName("w", 1)).running[0].id == "a"
    value = codec.load(data, FILE)
    figures = figures_in(value)
    faults = [*map(str, faults_in(value, FILE)), *map(str, faults_in(said, FILE, PROGRESS))]
    quota = figures.quota.moment(0.0, BUDGETED.limits.get("api") or _LIMIT) if isinstance(figures.quota, Quota) else 0
    return (
        said,
        value,
        faults,
        quota,
        filled(figures, said),
        overspent({"cost_usd": 1, "tokens": 1}, said),
        workspace_of(value),
    )


def _counts_or_is_named(data: bytes, report: Report, budgeted: Report) -> None:
    """No progress is passed over in silence: it is an object, a text that was to be none, or is named."""
    assert report.said == budgeted.said
    if report.counts is not None or not data.strip():
        assert report.problem is budgeted.problem is None
        return
    assert budgeted.problem is not None
    assert (report.problem is not None) == data.strip().startswith(b"{")
    for problem in filter(None, (report.problem, budgeted.problem)):
        _is_clear(problem)


_LIMIT = Settings.model_validate({"limits": {"api": {"max": 1}}}).limits["api"]


def _told(data: bytes) -> Any:
    """A message for an agent: in its file, in an output and in a report, and on to its next prompt."""
    found = agent_messages.lines_of(data + b"\n")
    said = {agent_messages.FIELD: [codec.load(data, FILE)]}
    inbox = Inbox(lambda: data + b"\n", said)
    inbox.next()
    return (
        prompting.told_messages(found),
        agent_messages.told_in(said),
        agent_messages.names_in(said),
        inbox.had,
        inbox.given,
    )


def _events(data: bytes) -> Any:
    found = list(journal.parse_lines(data + b"\n" + data))
    shown = [event.model_dump(mode="json") for event in found]
    touched = [repr(touched_in(value)) for value in shown]
    return sorted(found, key=lambda event: (event.at, event.writer, event.seq)), shown, touched


def _sums(data: bytes) -> Any:
    found = codec.load(data, FILE)
    try:
        sums = budget_usage.Sums.load(found)
    except ValueError:
        return found
    sums.take(EndedAttempt("a", 1, "w1", "success", type="review", cost_usd=MOST, budgets=("n",)), BUDGETED, 0.0)
    return sums.save()


def _rows(data: bytes) -> Any:
    try:
        return [repr(row) for row in breaker_gate.Book.load(codec.load(data, FILE)).values()]
    except ValueError:
        return None


def _agent(data: bytes) -> Any:
    """What an agent prints, line by line."""
    text, heard, adapter = data.decode(errors="replace"), Transcript("sum"), generic.make()
    for verb in generic.VERBS:
        for event in adapter.read(f"SPOOL:{verb} {text}", 0.0) * 2:
            heard.take(event)
    found = list(parsing.objects(f"x {text} y {text}"))
    counts = [(parsing.count(value), parsing.amount(value)) for one in found for value in one.values()]
    used = [ending.read_usage(one) for one in found]
    return found, counts, [repr(one) for one in used], ending.figures(heard.usage)


def _spans(data: bytes) -> Any:
    kept = Kept()
    kept.take(codec.load(data, FILE))
    return kept.field()


def _call(data: bytes) -> Any:
    """What a host answers as the value of a call."""
    wire = {"key": "a", "kind": "exited", "exit_code": 0, "signal": None, "message": "m", "started_at": 0.0}
    wire |= {"ended_at": 1.0, "duration_s": 1.0, "value_text": data.decode(errors="surrogateescape")}
    found = Ending.from_wire(wire)
    return found.value, found.message


def _task(data: bytes) -> Any:
    value = codec.load(data, FILE)
    codec.sure(data, value, FILE)
    plain_task.is_task(value, "")
    task = codec.load_sent_task(data, FILE)
    return task, value, codec.load_task(data, FILE).reserves


def _settings(data: bytes) -> Any:
    found = toml_table(data, FILE)
    plain_settings.basics(found)
    return load_settings(data, FILE), repr(found)


def _value(data: bytes) -> Any:
    text = data.decode(errors="surrogateescape")
    return codec.load(data, FILE), codec.value_of(text) == codec.value_of(text)


# Readers of what is no model: by the module that reads, how it goes on with the value. `_value`: by its types alone.
def _calls(data: bytes) -> bytes:
    return command_line.shorter(data, "seccomp.json", network=False, nested=False)


RAW: Mapping[str, tuple[Callable[[bytes], Any], Any]] = {
    "spoold/agents/workspace/acceptance.py": (_value, WRITTEN),
    "spoold/agents/adapters/generic.py": (_agent, USAGE),
    "spoold/agents/adapters/parsing.py": (_agent, USAGE),
    "spoold/agents/attempt/handler_contract.py": (_value, RESULT),
    "spoold/agents/merge/__main__.py": (_value, {"input": {"task": "a"}}),
    "spoold/agents/merge/candidates.py": (_written, WRITTEN),
    "spoold/agents/configuration/merge_settings.py": (_value, {"repos": ["/a"], "max_files": 5}),
    "spoold/agents/planning.py": (_task, {"id": "a", "command": ["x"], "after": ["b"]}),
    "spoold/agents/configuration/profiles.py": (_value, PROFILE),
    "spoold/agents/configuration/redactor.py": (_value, {"secrets": ["a"], "tokens": True, "patterns": ["x"]}),
    "spoold/agents/attempt/agent_telemetry.py": (_spans, SPANS),
    "spoold/agents/workspace/committing.py": (_value, {"commit": "0" * 40, "left_out": ["a"]}),
    "spoold/agents/sandbox/command_line.py": (
        _calls,
        {"syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]},
    ),
    "spoold/client/spool/configuration.py": (_value, {"timeout": 5}),
    "spoold/client/read/task_groups.py": (_value, {"parent": "a"}),
    "spoold/client/read/task_info.py": (_value, {"id": "a"}),
    "spoold/client/in_task.py": (_value, {"id": "a", "uses": {"api": 1}}),
    "spoold/client/spool_client.py": (_value, [5, "a", 1]),
    "spoold/client/read/selecting.py": (_value, {"id": "a", "batch": "b"}),
    "spoold/client/spool/submission.py": (_task, {"id": "a", "command": ["x"]}),
    "spoold/client/view/queries.py": (_value, [5.0, "a"]),
    "spoold/doctor/examine.py": (_value, {"begin": "a"}),
    "spoold/doctor/meeting.py": (_value, ["a", "b"]),
    "spoold/doctor/trial_share.py": (_value, {"host": {}, "pid": 1, "start": 1.0}),
    "spoold/faces/cli/verbs/open_questions.py": (_value, "yes"),
    "spoold/faces/cli/verbs/checkpoint.py": (_value, {"step": 3}),
    "spoold/faces/cli/terminal/values.py": (_task, {"id": "a", "command": ["x"]}),
    "spoold/faces/mcp/tool.py": (_value, ["a"]),
    "spoold/faces/mcp/server.py": (_value, {"id": "a"}),
    "spoold/faces/top/actions.py": (_value, "yes"),
    "spoold/faces/web/action_pages.py": (_value, "yes"),
    "spoold/client/read/questions.py": (_value, {"id": "a"}),
    "spoold/master/intake/admission_directories.py": (_value, {"id": "a"}),
    "spoold/master/intake/drops.py": (_value, {"id": "a"}),
    "spoold/master/state/rejecting.py": (_value, {"id": "a"}),
    "spoold/master/intake/batch_validation.py": (_value, {"id": "a"}),
    "spoold/protocol/plain_status.py": (_beats, None),
    "spoold/protocol/agent_messages.py": (_told, {"name": "k3j2-1", "by": "a", "at": "x", "text": "b"}),
    "spoold/rules/entry/admission.py": (
        _task,
        {"id": "a", "command": ["x"], "budget": {"cost_usd": 1}, "timeout": 5},
    ),
    "spoold/runner/job.py": (_call, WRITTEN),
    "spoold/runner/start_checks.py": (_value, ["a"]),
    "spoold/store/task_location.py": (_value, {"id": "a"}),
    "spoold/store/journal.py": (
        _events,
        {"at": "x", "writer": "m", "seq": 1, "event": "FILES_CHANGED", "detail": {}},
    ),
    "spoold/store/dependency_results.py": (_value, {"batch": "a"}),
    "spoold/store/store.py": (_value, {"format": 1, "spool_id": "s", "claim": "rename"}),
    "spoold/system/leftovers.py": (_value, {"n": 3, "left": [["a", "b", 1, 2]]}),
    "spoold/system/scratch.py": (_value, {"host": {}, "process": {}, "worker": "w", "spool": "s"}),
    "spoold/worker/attempts/attempt_output.py": (_written, WRITTEN),
    "spoold/worker/attempts/settling.py": (
        _events,
        {"event": "FILES_CHANGED", "task": "a", "attempt": 1, "detail": {}},
    ),
    "spoold/worker/attempts/reporting.py": (_written, WRITTEN),
}
# What is read from within a value that was read before.
INNER: Mapping[str, tuple[Callable[[bytes], Any], Any]] = {
    "Sums.load": (_sums, SUMS),
    "Book.load": (_rows, {"review": [3, 5.0, "x"]}),
    "book_seen": (lambda data: budget_gate.book_seen({"budget": codec.load(data, FILE)}).sums.save(), BUDGETS),
}


def readers() -> Iterator[tuple[str, Callable[[bytes], Any], bytes]]:
    """Every reader by name, with a sound file for it."""
    special: dict[str, Callable[[bytes], Any]] = {"Result": _result, "Heartbeat": _beats, "Event": _events}
    for name in sorted(models().keys() | {"Heartbeat", "Task"}):
        yield name, special.get(name, partial(_model, name)), base_of(name)
    for path, (reader, base) in RAW.items():
        yield path, reader, base_of("Heartbeat") if base is None else orjson.dumps(base)
    for path, (reader, base) in INNER.items():
        yield path, reader, orjson.dumps(base)
    yield "Snapshot, plainly", partial(plain_status.load_snapshot, file=FILE), base_of("Snapshot")
    yield "spool.toml", _settings, (V1 / "spool.toml").read_bytes()


def test_every_reader_is_played() -> None:
    """One that is new is found in the syntax trees, and has to say how it goes on with what it read."""
    raw = {path for path, name, _ in calls() if name not in ("load_model", "load_sent_model", "check")}
    assert {path for path in raw if path not in PARSERS} == set(RAW)
    assert {
        "Task",
        "Result",
        "RequestBody",
        "Checkpoint",
        "Event",
        "Step",
        "Report",
        "WorkerConfig",
    } <= models().keys()


def _numbers(value: Any) -> Iterator[float]:
    todo = [value]
    for one in todo:
        if isinstance(one, BaseModel):
            todo.extend(dict(one).values())
        elif isinstance(one, dict):
            todo.extend(one.values())
        elif isinstance(one, list | tuple):
            todo.extend(one)
        elif isinstance(one, int | float):
            yield one


def holds(reader: Callable[[bytes], Any], data: bytes) -> None:
    """The law: an error of ours that names the file, or a value that anybody can write, compare, show and add up."""
    try:
        found = reader(data)
    except BadFile as error:
        _is_clear(error)
        return
    again = reader(data)
    assert found == again
    assert repr(found) == repr(again)
    written = codec.dump({"found": [found]})
    assert codec.same_content(orjson.loads(written), orjson.loads(codec.dump({"found": [again]})))
    assert all(math.isfinite(number) for number in _numbers(found))


def _is_clear(error: BadFile) -> None:
    assert error.problem
    assert error.mend
    assert str(error).encode()


PARTS = 8


@pytest.mark.parametrize("part", range(PARTS))
def test_nothing_that_is_written_ends_whoever_reads_it(part: int) -> None:
    """N7, N8, N14, N28 and their neighbours: mutations over every reader."""
    every = list(readers())
    for seed in range(part, SEEDS, PARTS):
        name, reader, base = every[seed // PARTS % len(every)]
        data = mutated(seed, base)
        try:
            holds(reader, data)
        except Exception as error:
            error.add_note(f"seed {seed}, {name}: {data[:200]!r}")
            raise


def test_each_reader_takes_its_sound_file() -> None:
    for name, reader, base in readers():
        if name in models() and name not in {*_VECTORS, "Event", "Result"}:
            continue  # an object with its fields, of the wrong types
        try:
            reader(base)
        except SpoolError as error:
            pytest.fail(f"{name}: {error}")


def test_the_work_of_a_reader_is_bounded_by_the_bytes_that_it_gets() -> None:
    """Calls are counted, since times say little on a busy machine."""
    every = list(readers())
    for seed in range(200):
        name, reader, base = every[seed % len(every)]
        data, count = mutated(seed, base), 0

        def look(_frame: Any, event: str, _arg: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        holds(reader, base if name not in models() else data)  # models are built at their first use
        sys.setprofile(look)
        try:
            holds(reader, data)
        finally:
            sys.setprofile(None)
        assert count < 40_000 + 40 * len(data), f"seed {seed}, {name}: {count} calls for {len(data)} bytes"


@pytest.mark.parametrize("fill", [b'"k%d":1', b'"k%d":[]'])
@pytest.mark.parametrize("field", [b"requires", b"labels", b"env"])
def test_many_faults_in_one_field_cost_no_more_than_few(fill: bytes, field: bytes) -> None:
    """100,000 unknown fields took the leader 1.4 s, a million of them 14 s."""
    data = b'{"command":"x","%s":{%s}}' % (field, b",".join(fill % number for number in range(60_000)))
    count = 0

    def look(_frame: Any, _event: str, _arg: Any) -> None:
        nonlocal count
        count += 1

    with pytest.raises(BadFile, match=r"\((59,999|60,000) more\)"):
        codec.load_task(data, FILE)
    value = codec.load(data, FILE)
    sys.setprofile(look)
    try:
        with pytest.raises(BadFile):
            codec.check(Task, value, FILE)
    finally:
        sys.setprofile(None)
    assert count < 200_000


def test_more_lists_than_fit_into_a_step_are_not_read() -> None:
    many = b"[" + b"[]," * codec.CONTAINERS_MAX + b"0]"
    with pytest.raises(BadFile, match="lists and objects, and at most 1,000,000 are read"):
        codec.load(many, FILE)
    assert codec.load(b'["' + b"[" * (codec.CONTAINERS_MAX + 1) + b'"]', FILE)
    with pytest.raises(BadFile, match="has 11 bytes, and at most 10 are read"):
        codec.load(b"[1, 2, 3,4]", FILE, size=10)


@pytest.mark.parametrize("more", [b"", b', "input": [1234567890123456789]'])
def test_a_key_of_which_the_first_value_is_deep_is_told(more: bytes) -> None:
    """The depth of the last one alone was measured: such a drop ended each leader, found by seed 4472."""
    data = b'{"command": ' + b"[" * 1000 + b"]" * 1000 + b', "command": "x"' + more + b"}"
    # Python 3.14 reads a thousand levels, and so finds the second fault.
    with pytest.raises(BadFile, match=r"nested deeper than 200 levels|twice in one object"):
        codec.load_sent_task(data, FILE)


def test_a_journal_line_of_many_levels_is_passed_over() -> None:
    """N28: `events --json` called it a bug of its own."""
    for levels in (200, 254, 1000):
        line = b'{"at":"x","writer":"m","event":"E","detail":' + b"[" * levels + b"]" * levels + b"}"
        sound = b'{"at":"x","writer":"m","event":"F"}'
        assert [event.event for event in journal.parse_lines(line + b"\n" + sound)] == ["F"]


def test_a_record_of_an_old_release_is_cut_and_counted() -> None:
    """N8: a record with 1e308 ended each leader, the next one too."""
    old = {**RESULT, "cost_usd": 1e308, "tokens_used": (1 << 64) - 1, "duration_s": -5.0, "uses": {"api": 1 << 62}}
    found = codec.load_model(Result, orjson.dumps(old), FILE)
    assert (found.cost_usd, found.tokens_used, found.duration_s) == (MOST, MOST, 0)
    assert found.uses == {"api": MOST}
    sums = budget_usage.Sums()
    for _ in range(3):
        sums.take(EndedAttempt.of(EndedName("a", 1, "w1"), found), BUDGETED, 0.0)
    assert sums.tallies["nightly", "total"].spent == {"cost_usd": MOST * 10**6, "tokens": MOST * 10**6}
