"""Requirements of `spool_layout.md` for names and files that no other test holds by itself."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel

from spoold.protocol import codec, layout
from spoold.protocol.event import Event
from spoold.protocol.heartbeat import Heartbeat
from spoold.protocol.names import BeatName, TaskName
from spoold.protocol.request_body import RequestBody
from spoold.protocol.result import Result
from spoold.protocol.settings import Marker
from spoold.protocol.snapshot import Snapshot
from spoold.system.filesystem import FileSystem
from tests.protocol.test_layout_document import BLOCKS

NAME = TaskName(4990, "hff58yhhc0-3", "build", 2, 1, 0)


def test_wherever_two_nodes_could_move_one_token_each_has_a_destination_of_its_own() -> None:
    one, other = "laptop1-7f3a", "master-9z9z"
    assert layout.claimed(one, NAME.encode()) != layout.claimed(other, NAME.encode())
    assert NAME.again().encode_returned(one) != NAME.again().encode_returned(other)
    assert NAME.ended(one).encode() != NAME.ended(other).encode()


def test_nobody_can_ask_for_a_name_without_an_error_where_it_is_absent() -> None:
    """What was looked up in vain stays absent on a share: so there is no `exists`, and a directory is listed."""
    verbs = {name for name in vars(FileSystem) if not name.startswith("_")}
    assert "list" in verbs
    assert verbs.isdisjoint({"exists", "is_file", "is_dir", "glob", "walk"})


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        ("result", Result),
        ("heartbeat", Heartbeat),
        ("request", RequestBody),
        ("snapshot", Snapshot),
        ("event", Event),
        ("marker", Marker),
    ],
)
def test_a_field_that_a_later_release_adds_is_no_error(kind: str, model: type[BaseModel]) -> None:
    [text] = [text for language, name, text in BLOCKS if (language, name) == ("json", kind)]
    said: dict[str, Any] = codec.load(text.encode(), kind)
    known, gained = codec.check(model, said, kind), codec.check(model, {**said, "novelty": [1]}, kind)
    assert gained.model_dump(include=set(model.model_fields)) == known.model_dump(include=set(model.model_fields))
    if model is Heartbeat:
        assert codec.load_beat(b'{"novelty": 1, "slots": 2}', BeatName("w-1", 7)).notes == ()
