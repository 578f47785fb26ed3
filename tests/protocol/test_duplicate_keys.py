"""Goal: in what people write a key that is there twice is an error; in what programs wrote the last value counts.

Method: valid files of each kind, and one of their objects at any depth gets one of its keys again, before or behind,
spelt with an escape or not.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from spoold.protocol import codec, layout
from spoold.protocol.errors import BadFile
from spoold.protocol.event import Event
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName
from spoold.protocol.request import Request, Verb
from spoold.protocol.result import Result
from spoold.protocol.settings_change import load_change
from spoold.protocol.snapshot import Snapshot
from spoold.protocol.toml_file import toml_table
from spoold.store import control
from spoold.store.store import read_marker
from spoold.system.clock import SystemClock
from spoold.system.memory_filesystem import MemoryFileSystem

HOLD = Request(Verb.HOLD, "build", "1")
PAUSE = Request(Verb.PAUSE, "+all", "2")
ASKED = {"by": "anna", "at": "2026-01-01T00:00:00Z", "reason": "a", "until": "2027-01-01T00:00:00Z"}
HUMAN: dict[str, Any] = {
    "drop": {"id": "a", "type": "t", "input": {"x": {"y": 1}, "z": [{"k": 2}]}, "env": {"A": "1"}},
    "change": {"by": "anna", "at": "2026-01-01T00:00:00Z", "settings": {"types": {"t": {"max_concurrent": 2}}}},
    "marker": {"format": layout.FORMAT_VERSION, "spool_id": "s1", "claim": "rename"},
    "hold": ASKED,
    "pause": ASKED,
    "body": {**ASKED, "ask": "may I?", "choices": ["yes", "no"], "answer": {"a": {"b": 1}}},
}
PROGRAMS: dict[type[Any], Any] = {
    Result: {
        "task_id": "a",
        "attempt": 1,
        "worker_id": "w",
        "status": "success",
        "output": {"a": {"b": 1}},
        "cost_usd": 1,
    },
    Snapshot: {"generated_at": "x", "spool_id": "s", "tasks": {"ready": 1}, "gates": {"limit": {"a": {"max": 1}}}},
    Event: {"writer": "w", "event": "CLAIMED", "task": "a", "detail": {"why": {"x": 1}}},
    Heartbeat: {"node": "w1-1", "beat": 3, "role": "worker", "capabilities": {"cpus": 1, "lacks": {"t": "x"}}},
}


def request_reader(name: str, request: Request) -> Callable[[bytes], object]:
    def read(data: bytes) -> object:
        fs = MemoryFileSystem(SystemClock())
        fs.mkdir(layout.CONTROL)
        fs.write(control.path(request), data, durable=False)
        readers = {"hold": control.load, "pause": control.end_of, "body": control.read_body}
        return readers[name](fs, request)

    return read


READERS: dict[str, tuple[str, Callable[[bytes], object]]] = {
    "drop": ("a.json", lambda data: codec.load_sent_task(data, "a.json")),
    "change": ("settings/1.json", lambda data: load_change(data, "settings/1.json")),
    "marker": ("spool.json", lambda data: read_marker(data, "spool.json")),
    "hold": (control.path(HOLD), request_reader("hold", HOLD)),
    "pause": (control.path(PAUSE), request_reader("pause", PAUSE)),
    "body": (control.path(HOLD), request_reader("body", HOLD)),
}


def objects(value: Any) -> list[dict[str, Any]]:
    """All objects within a value that have a key."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return ([value] if isinstance(value, dict) and value else []) + [one for v in inner for one in objects(v)]


def doubled(value: Any, chance: Random) -> tuple[bytes, str, Any]:
    """The text of a value in which one object has a key twice, that key, and the value where the last one counts."""
    chosen = chance.choice(objects(value))
    name = chance.choice(sorted(chosen))

    def written(one: Any) -> str:
        if isinstance(one, dict):
            pairs = [f"{json.dumps(k)}:{' ' * chance.randrange(2)}{written(v)}" for k, v in one.items()]
            if one is chosen:
                spelt = json.dumps(name) if chance.random() < 0.5 else f'"\\u{ord(name[0]):04x}{name[1:]}"'
                pairs.insert(chance.randrange(1 + sorted(one, key=list(one).index).index(name)), f"{spelt}: [1]")
            return "{" + ", ".join(pairs) + "}"
        return f"[{', '.join(map(written, one))}]" if isinstance(one, list) else json.dumps(one)

    return written(value).encode(), name, value


@pytest.mark.parametrize("kind", HUMAN)
def test_a_key_twice_in_what_people_write_is_an_error_with_file_key_and_fix(kind: str) -> None:
    """Black box 4: in settings and requests the last value counted, silently; in drops it was an error."""
    file, read = READERS[kind]
    read(json.dumps(HUMAN[kind]).encode())
    for seed in range(60):
        data, name, _ = doubled(HUMAN[kind], Random(seed))
        with pytest.raises(BadFile) as caught:
            read(data)
        assert caught.value.file == file, data
        assert repr(name) in caught.value.problem
        assert "twice" in caught.value.problem
        assert caught.value.mend


@pytest.mark.parametrize("model", PROGRAMS)
def test_in_what_programs_wrote_the_last_value_of_a_key_counts(model: type[Any]) -> None:
    for seed in range(60):
        data, _, value = doubled(PROGRAMS[model], Random(seed))
        assert codec.load_model(model, data, "f") == model.model_validate(value), data
        if model is Heartbeat:
            assert codec.load_beat(data, BeatName("w1-1", 3)) == model.model_validate(value)


@pytest.mark.parametrize("text", ["[ready]\nwindow = 1\nwindow = 2\n", "[ready]\n[ready]\n", "a.b = 1\na.b = 2\n"])
def test_a_key_twice_in_a_settings_file_is_an_error(text: str) -> None:
    with pytest.raises(BadFile, match=r"spool\.toml"):
        toml_table(text.encode(), "spool.toml")
