"""Goal: whatever others write has a bound on a screen: a line's length, and how many lines one file adds.

Method: each field of what nodes, leaders, programs and people write gets a huge value that its model accepts, by the
model's own types: a generator, no list of cases. Then each verb that shows it is run as for a person.
"""

from __future__ import annotations

import json
import re
import types
import typing
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from spoold.protocol.event import Event
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Result
from spoold.protocol.snapshot import Snapshot
from tests.cli.command import make
from tests.cli.commands import spool

# Characters of one line that the words of others are part of, and lines of a screen with a few files of theirs.
LINE_MAX, LINES_MAX = 2_500, 160
TEXT, MEMBERS = 6_000, 200
FEW = 3


AT = re.compile(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def text(chance: Random, size: int = TEXT) -> str:
    """A long text: of one word, many words, many lines, or signs that a terminal obeys."""
    piece = chance.choice(["x", "word ", "line\n", "\x1b[31m", "é", "/a/b", "a, b; "])
    return (piece * (size // len(piece) + 1))[:size]


def huge(kind: Any, chance: Random, size: int = TEXT) -> Any:
    """A huge value of a type, as JSON; None where it has none. size: of all its texts together, about."""
    within = max(size // 6, 20)
    members = MEMBERS if size == TEXT else FEW
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return huge(inner[0], chance, size)
    if origin in (typing.Union, types.UnionType):
        return huge(next(one for one in inner if one is not type(None)), chance, size)
    if origin in (tuple, list):
        return [huge(inner[0], chance, within) for _ in range(FEW if _is_model(inner[0]) else members)]
    if origin is dict:
        return {f"{number}{text(chance, within)}": huge(inner[1], chance, within) for number in range(members)}
    if kind is Any:
        return {f"k{number}": text(chance, within) for number in range(members)}
    if _is_model(kind):
        return fields(kind, chance, size)
    if isinstance(kind, type) and issubclass(kind, str):
        return text(chance, size)
    return None


def _is_model(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, BaseModel)


def fields(model: type[BaseModel], chance: Random, size: int = TEXT, **known: Any) -> dict[str, Any]:
    """An object that the model accepts: the known fields, and each other one huge if it may be that."""
    said = dict(known)
    hints = typing.get_type_hints(model, include_extras=True)
    for name, field in model.model_fields.items():
        value = huge(hints[name], chance, size) if name not in said else None
        if value is None:
            continue
        try:
            TypeAdapter(hints[name]).validate_python(value)
        except ValidationError:
            if field.is_required():
                said[name] = 1 if hints[name] is int else "x"
            continue
        said[name] = value
    return said


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def write(root: Path, path: str, value: Any) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(json.dumps(value, ensure_ascii=False))


@pytest.fixture(scope="module", params=range(2))
def root(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spool in which all that others write is huge."""
    chance = Random(request.param)
    root = make(tmp_path_factory.mktemp("huge") / "s")
    running = {"id": "runs", "attempt": 1, "progress": huge(Any, chance), "since": text(chance)}
    beat = fields(Heartbeat, chance, node="w1-aaaaa", beat=5, role="worker", at=now())
    beat["running"] = [running, *beat["running"]]
    write(root, "heartbeats/w1-aaaaa.5.json", beat)
    master = fields(Heartbeat, chance, node="m-1", beat=7, role="master", status="leader", at=now())
    write(root, "heartbeats/m-1.7.json", master)
    # Fresh by the wall clock, so that nobody waits to see whether the leader lives.
    at = now()
    said = fields(Snapshot, chance, generated_at=at, spool_id="s1", halted=False)
    leads = {"leader": "m-1", "epoch": 1, "standbys": []}
    write(root, "status/1-9.json", said | {"master": leads})
    next((root / "master").iterdir()).rename(root / "master/1.m-1.0")
    task = {"id": "x", "type": "t", "name": text(chance)[:100], "command": [text(chance)[:5000]], "meta": {"a": "b"}}
    task |= {"labels": [f"l{n}" for n in range(50)], "approval": {"ask": text(chance)[:1000]}}
    order = "5000.0000000001-1"
    for state, name in {"ready/type=t": "ready1", "waiting/type=t": "waits", "claimed/w1-aaaaa": "runs"}.items():
        write(root, f"{state}/{order}.{name}.a1f0c0{'d' if name == 'waits' else ''}.json", task | {"id": name})
    for state, name, status in (("completed", "done", "success"), ("failed", "bad", "failure")):
        record = fields(Result, chance, task_id=name, attempt=1, worker_id="w1-aaaaa", status=status)
        error = {"code": "EXIT_NONZERO", "message": text(chance)} if state == "failed" else None
        write(root, f"results/{name}.1.w1-aaaaa.json", record | {"error": error})
        write(root, f"{state}/{name}.1.w1-aaaaa.json", task | {"id": name})
        (root / f"logs/{name}.1.w1-aaaaa.log").write_text(text(chance))
    for number in range(3):
        body = fields(RequestBody, chance, until=None, order="", redo=[], attempt=1)
        write(root, f"control/ask.runs.q{number}.json", body)
        write(root, f"control/pause.{'+all' if number else 'review'}.p{number}.json", body)
        write(root, f"control/hold.waits.h{number}.json", body)
    refused = {name: text(chance) for name in ("drop", "id", "at", "file", "field", "problem", "mend")}
    write(root, "rejected/no.json", {})
    write(root, "rejected/no.json.reason.json", refused | {"drop": "no.json", "id": None})
    lines = [
        fields(Event, chance, writer="w1-aaaaa", event=name, task="runs", attempt=1) for name in ("CLAIMED", "ODD")
    ]
    (root / "events/w1-aaaaa.0.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return root


SHOWN = [
    "status",
    "workers",
    "agents",
    "asks",
    "limits",
    "locks",
    "budget",
    "ls",
    "ls --long",
    "events",
    "fsck",
    "config",
    *(
        f"{verb} {task}"
        for verb in ("show", "explain", "history")
        for task in ("runs", "waits", "ready1", "bad", "no.json")
    ),
    "show done",
    "tree runs",
    "wait bad",
    "wait no.json",
]


@pytest.mark.parametrize("words", SHOWN)
def test_what_others_write_has_a_bound_on_a_screen(root: Path, words: str) -> None:
    """Black box 3: a heartbeat with 50 notes of 5,000 characters was printed whole."""
    for stamped in (root / "status/1-9.json", root / "heartbeats/w1-aaaaa.5.json", root / "heartbeats/m-1.7.json"):
        stamped.write_text(AT.sub(now(), stamped.read_text()))  # else each verb waits to see who lives
    done = spool(*words.split(), root=root)
    lines = [*done.out.splitlines(), *done.err.splitlines()]
    assert lines
    assert words != "status" or "led by m-1" in lines[0]
    assert max(map(len, lines)) <= LINE_MAX, sorted((len(line), line[:80]) for line in lines)[-3:]
    # What a person is asked to confirm is whole, however long.
    assert len(lines) <= LINES_MAX or words in ("show waits", "show ready1"), lines[:3]


def test_of_many_long_notes_the_first_are_shown_with_their_ends_and_the_rest_is_counted(tmp_path: Path) -> None:
    """Black box 3."""
    root = make(tmp_path / "s")
    notes = [f"note {number}: {'very ' * 1000}long. Fix: shorten {number}." for number in range(50)]
    write(root, "heartbeats/w1-aaaaa.5.json", {"node": "w1-aaaaa", "beat": 5, "role": "worker", "notes": notes})
    said = [line for line in spool("workers", root=root).out.splitlines() if line.startswith("w1-aaaaa: ")]
    assert len(said) == 21
    assert all(len(line) <= 1100 for line in said)
    assert said[0].startswith("w1-aaaaa: note 0: very very")
    assert said[0].endswith("Fix: shorten 0.")
    assert said[-1] == "w1-aaaaa: 30 more notes, which its heartbeat has"
    assert len(json.loads(spool("workers", "--json", root=root).out)["workers"][0]["notes"]) == 21
