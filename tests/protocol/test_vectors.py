"""Format version 1 for ever: what was written once is read by every release, to the same values."""

from collections.abc import Callable
from dataclasses import astuple, replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from pydantic import BaseModel

from spoold.protocol import admission_names, codec, layout, names
from spoold.protocol.context_entry import Entry, parse_entry
from spoold.protocol.doctor_report import Report, parse_report
from spoold.protocol.event import Event
from spoold.protocol.feed_checkpoint import Checkpoint, parse_checkpoint
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.lanes import Lane, parse_lane
from spoold.protocol.request import Verb, parse_request
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Code, Result, Status
from spoold.protocol.settings import Marker, Settings
from spoold.protocol.settings_change import Change, load_change, merged, parse_change
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.step import Step, parse_step
from spoold.protocol.task import Task
from spoold.protocol.toml_file import load_settings
from spoold.rules.entry import admission

V1 = Path(__file__).parents[1] / "vectors" / "v1"
FILES = sorted(str(path.relative_to(V1)) for path in V1.rglob("*") if path.is_file())
LANED = (layout.WAITING, layout.READY)


def load(path: str) -> Any:
    """The file as whoever reads that directory reads it."""
    directory, name = path.split("/", maxsplit=1)[0], path.rpartition("/")[2]
    data = (V1 / path).read_bytes()
    if directory == layout.SETTINGS:
        return load_settings(data, path)
    if directory == layout.EVENTS:
        return [Event.model_validate(orjson.loads(line)) for line in data.splitlines()]
    if directory == layout.ADMITTING:
        parsed = admission_names.parse_batch(name)
        assert parsed is not None
        return list(admission.lines(data, name, parsed.order, parsed.prefix, Settings()))
    if directory == layout.REJECTED:
        return codec.load_object(data, path)
    models: dict[str, type[BaseModel]] = {
        layout.MARKER: Marker,
        layout.HEARTBEATS: Heartbeat,
        layout.RESULTS: Result,
        layout.CONTROL: RequestBody,
        layout.STATUS: Snapshot,
        layout.DOCTOR: Report,
        layout.CHANGES: Change,
        layout.CONTEXT: Entry,
        layout.STEPS: Step,
    }
    model = models.get(directory, Task)
    if name.endswith(".result.json"):
        model = Result
    elif name.endswith(".feed.json"):
        model = Checkpoint
    return codec.load_model(model, data, path)


def name_of(path: str) -> Any:
    """The file's name as whoever lists that directory reads it; a lane as its directory's name."""
    directory, name = path.split("/", maxsplit=1)[0], path.rpartition("/")[2]
    if directory in LANED:
        assert parse_lane(path.split("/")[1]) is not None
    parsers: dict[str, Callable[[str], Any]] = {
        layout.ADMITTING: admission_names.parse_batch,
        layout.WAITING: names.parse_task,
        layout.READY: names.parse_task,
        layout.CLAIMED: names.parse_task,
        layout.RETURNED: names.parse_returned,
        layout.COMPLETED: names.parse_ended,
        layout.FAILED: names.parse_ended,
        layout.RESULTS: names.parse_ended,
        layout.LOGS: names.parse_log,
        layout.HEARTBEATS: names.parse_beat,
        layout.CONTROL: parse_request,
        layout.MASTER: names.parse_lease,
        layout.EVENTS: names.parse_events,
        layout.STATUS: parse_checkpoint if name.endswith(".feed.json") else names.parse_snapshot,
        layout.DOCTOR: parse_report,
        layout.CHANGES: parse_change,
        layout.CONTEXT: parse_entry,
        layout.STEPS: parse_step,
        layout.ARCHIVE: names.parse_archived,
    }
    return parsers[directory](name)


FREE_NAMES = (layout.PENDING, layout.REJECTED)
ALONE = {"README.md", "names.txt", "traces.txt", layout.MARKER, layout.SETTINGS}
IN_TREE = [path for path in FILES if path not in ALONE]
WITHOUT_CONTENT = (layout.LOGS, layout.MASTER)


def test_there_is_a_file_in_every_directory_of_the_tree() -> None:
    assert {path.split("/")[0] for path in IN_TREE} == set(layout.TREE) - {layout.TMP}
    assert {str(request.verb) for path in FILES if (request := parse_request(path.rpartition("/")[2]))} == set(Verb)


@pytest.mark.parametrize("path", [path for path in IN_TREE if not path.startswith(FREE_NAMES)])
def test_every_name_is_read(path: str) -> None:
    assert name_of(path) is not None


@pytest.mark.parametrize(
    "path", [path for path in (*IN_TREE, layout.MARKER, layout.SETTINGS) if not path.startswith(WITHOUT_CONTENT)]
)
def test_every_file_is_read(path: str) -> None:
    if path == "rejected/typo.json":
        assert load(path) == {"command": "x", "ipnut": 1}
        return
    loaded = load(path)
    assert loaded
    if isinstance(loaded, BaseModel) and path.endswith(".json"):
        assert type(loaded).model_validate(orjson.loads(codec.dump(loaded))) == loaded


@pytest.mark.parametrize("path", [path for path in IN_TREE if path.startswith((*LANED, layout.CLAIMED))])
def test_every_task_stands_where_its_content_says(path: str) -> None:
    task, name = load(path), name_of(path)
    assert name.conditional == task.conditional
    assert task.id in (None, name.id)
    if path.startswith(LANED):
        assert task.lane.encode() == path.split("/")[1]


LINES = [line.split() for line in (V1 / "names.txt").read_text().splitlines() if not line.startswith("#")]
PARSERS: dict[str, Callable[[str], Any]] = {
    "task": names.parse_task,
    "returned": names.parse_returned,
    "ended": names.parse_ended,
    "archived": names.parse_archived,
    "log": names.parse_log,
    "beat": names.parse_beat,
    "lease": names.parse_lease,
    "snapshot": names.parse_snapshot,
    "checkpoint": parse_checkpoint,
    "change": parse_change,
    "events": names.parse_events,
    "batch": admission_names.parse_batch,
    "original": admission_names.parse_original,
    "door": admission_names.parse_door,
    "request": parse_request,
    "lane": parse_lane,
}


@pytest.mark.parametrize(("kind", "name", "fields"), [(kind, name, fields) for kind, name, *fields in LINES])
def test_every_name_says_what_it_always_said(kind: str, name: str, fields: list[str]) -> None:
    found = _fields(PARSERS[kind](name))
    assert found[: len(fields)] == fields
    assert set(found[len(fields) :]) <= {"-"}, "a field that names may have and these do not came later"


def test_names_of_every_kind_are_listed() -> None:
    assert {kind for kind, *_ in LINES} == set(PARSERS)


def _fields(value: Any) -> list[str]:
    if isinstance(value, tuple):
        return [field for part in value for field in _fields(part)]
    if isinstance(value, str):
        return [value]
    if isinstance(value, Lane):
        uses = "+".join(f"{name}={units}" for name, units in value.uses)
        fields = astuple(replace(value, uses=()))[:8]
        told = ["+".join(field) if isinstance(field, tuple) else str(field) for field in fields]
        return [text or "-" for text in (*told, uses, value.bulkhead)]
    # A field that names may have and these do not came later: None says so.
    return [str(field) for field in astuple(value) if field is not None]


def test_the_task_that_people_already_write() -> None:
    [path] = [path for path in FILES if "550e8400" in path]
    task = load(path)
    assert (task.type, task.priority, task.timeout, task.max_retries) == ("code_review", 1, 300, 3)
    assert task.input == {"code": "...", "language": "python"}


def test_the_task_that_says_everything() -> None:
    [path] = [path for path in FILES if ".build." in path]
    task = load(path)
    assert task.command == ("make", "-j2", "site")
    assert (task.dependencies, task.after_any) == (("fetch", "lint"), ("notify",))
    assert (task.requires.cpus, task.requires.mem_mb, task.requires.gpus) == (2, 4096, 1)
    assert (task.retry.max, task.retry.on, task.retry.never) == (5, (1, 2), (3,))
    assert task.deadline.isoformat() == "2026-12-31T23:59:59+01:00"
    assert (task.priority, task.labels, task.artifacts) == (20, {"team": "web"}, ("dist/*.tar.gz",))


def test_the_task_for_an_agent() -> None:
    task = load("ready/type=coder/5000.hw1y7k2m84-1.typo.a1f0c0.json")
    assert (task.type, task.run) == ("coder", "handler")
    assert task.input == {
        "ticket": 7,
        "prompt": "Fix the typo that {deps.plan.output} names.",
        "accept": ["make test", ["git", "diff", "--check"]],
        "success_if": {"file": "README.md", "regex": "spoold"},
        "must_change": True,
        "max_turns": 30,
    }


def test_the_call_and_the_line_for_the_shell() -> None:
    call, shell = (
        load("claimed/laptop1-7f3a/5000.hw1y7k2m82-1.Call.a1f0c1.json"),
        load("returned/5010.hw1y7k2m83-2.shell-1zk09q2m.a3f1c1r30000.laptop2-00ff.json"),
    )
    assert (call.run, call.args, call.kwargs) == ("python", [1, "zwei", None], {"deep": [{"x": 1.5}]})
    assert (shell.run, shell.stdin, shell.priority) == ("command", "größe ☃\n", -10)


def test_results_keep_what_they_said_and_what_is_not_known_yet() -> None:
    good, bad = load("results/hello.1.laptop1-7f3a.json"), load("results/broken.4.master-9z9z.json")
    assert (good.status, good.duration_s, good.tokens_used, good.cost_usd) == (Status.SUCCESS, 1.25, 1200, 0.0125)
    assert good.output == {"text": "hi"}
    assert (bad.error.code, bad.error.cause) == (Code.MAX_RETRIES, Code.EXIT_NONZERO)
    assert bad.model_extra == {"a_field_of_tomorrow": {"kept": True}}


def test_settings_are_all_read() -> None:
    settings = base = load(layout.SETTINGS)
    assert settings.heartbeat.dead_after_s == 10
    assert settings.of("code_review").priority == 10
    for change in sorted(path for path in FILES if path.startswith(f"{layout.CHANGES}/")):
        settings = merged(base, settings, load_change((V1 / change).read_bytes(), change), change)
    assert settings.limits["anthropic"].rate.count == 120
    assert (settings.limits.keys(), settings.of("code_review").max_concurrent) == (
        {"anthropic"},
        base.of("code_review").max_concurrent,
    )
    later = {"budgets", "alerts", "fair"}  # of a later release than the vectors of format 1
    defaults = Settings().model_dump(exclude=later)
    assert all(value != defaults[key] for key, value in settings.model_dump(exclude=later).items())


def test_the_marker_the_beat_the_snapshot_and_the_journal() -> None:
    assert load(layout.MARKER).format == layout.FORMAT_VERSION == 1
    beat = load("heartbeats/laptop1-7f3a.42.json")
    assert (beat.beat, beat.host.boot_id, beat.running[0].progress) == (42, "b-1", {"done": 3, "of": 10})
    snapshot = load("status/3-120.json")
    assert (snapshot.master.epoch, snapshot.tasks.waiting, snapshot.nodes[0].worker) == (3, 2, "laptop1-7f3a")
    events = load("events/master-9z9z.0.jsonl")
    assert [(event.seq, event.event, event.task) for event in events] == [
        (1, "ADMITTED", "Call"),
        (2, "REAPED", None),
    ]


def test_a_batch_becomes_the_tasks_that_it_always_became() -> None:
    """A batch may be half expanded by one release and finished by the next."""
    [path] = [path for path in FILES if path.startswith(layout.ADMITTING)]
    assert [line.name.encode() for line in load(path)] == [
        "5000.hw1y7k2m81-1.a.a1f0c0.json",
        "5000.hw1y7k2m82-1.many-0a1b2c3d-2.a1f0c0d.json",
        "4990.hw1y7k2m84-1.c.a1f0c0d.json",
    ]


def test_a_byte_order_mark_does_no_harm() -> None:
    assert load("pending/utf8-bom.json").name == "with a byte order mark"


def test_an_archived_task_is_found_by_the_hash_of_its_id() -> None:
    assert layout.bucket("old") == layout.bucket("OLD") == "archive/5b"


def test_a_pause_that_names_its_end_and_one_that_names_none() -> None:
    ends = [load(f"control/pause.{rest}.json").ends for rest in ("mail.k3j2-a", "code_review.k3j2-3")]
    assert ends == ["2026-02-02T18:00:00Z", ""]
