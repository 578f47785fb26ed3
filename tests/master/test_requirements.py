"""Requirements of `spool_layout.md` for a leader that no other test holds by itself."""

from __future__ import annotations

import errno
import json
from typing import Any

import pytest

from spoold.master.state.leader_state import Desk
from spoold.master.tasks import scheduler
from spoold.protocol import layout
from spoold.store.pool_clock import CommonClock
from spoold.store.store import stamp
from tests.support.cluster import Cluster

HOUR = 3600.0


def test_a_new_leader_makes_its_door_shuts_the_others_and_lists_waiting_last(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Cluster()
    made.fs.make_dirs("admitting/7.m9.1", "ready/type=x", "waiting/type=x")
    node = made.master("m1")
    said: list[str] = []
    for verb in ("mkdir", "rmdir", "list"):
        _note(node.fs, verb, said)
    first = scheduler.reject_copies

    def plans(desk: Desk) -> None:
        said.append("it plans")
        first(desk)

    monkeypatch.setattr(scheduler, "reject_copies", plans)
    made.step("m1")
    assert node.master.leading
    (door,) = made.fs.list("admitting")
    assert said.index(f"mkdir admitting/{door}") < said.index("rmdir admitting/7.m9.1")
    shut = said.index("rmdir admitting/7.m9.1")
    rooms = {
        room: said.index(f"list {room}", shut) for room in ("ready", "claimed", "returned", "completed", "failed")
    }
    assert sorted(rooms, key=lambda room: rooms[room]) == list(rooms), "in the order of the flow"
    last = said.index("list waiting", shut)
    assert max(rooms.values()) < last
    polled = (layout.PENDING, layout.READY, layout.CLAIMED, layout.RETURNED)
    assert {f"list {room}" for room in polled} <= set(said[last : said.index("it plans")]), (
        "what is polled is listed once more"
    )


def _note(fs: Any, verb: str, said: list[str]) -> None:
    call = getattr(fs, verb)

    def noted(path: str, *more: Any, **named: Any) -> Any:
        said.append(f"{verb} {path}")
        return call(path, *more, **named)

    setattr(fs, verb, noted)


def test_the_reason_is_there_before_the_drop_is_in_rejected() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    seen: list[list[str]] = []
    made.nodes["m1"].fs.hang("rename", "pending/bad", lambda: seen.append(made.fs.list("rejected")))
    made.submit("bad.json", '{"comand": 1}')
    made.step("m1")
    assert seen == [["bad.json.reason.json"]]
    assert sorted(made.fs.list("rejected")) == ["bad.json", "bad.json.reason.json"]


def test_a_leader_that_the_server_has_not_told_its_time_judges_no_deadline() -> None:
    made = Cluster()
    node = made.master("m1")
    node.clock.set_wall(node.clock.wall() + HOUR)
    node.master.store.common = CommonClock(node.clock)
    node.fs.fail("stat", "tmp/m1", errno.EIO, times=1_000)
    moment = stamp(made.clock.wall() + 600)
    made.submit("t0.json", json.dumps({"id": "t0", "command": ["work"], "deadline": moment}))
    made.advance(5)
    assert made.fs.list("failed") == []
    node.fs.faults.clear()
    made.settle()
    assert made.state("t0") == "ready", "an hour ahead, it goes by the server's time"


def test_a_batch_goes_through_the_door_before_any_line_of_it_is_a_task() -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    fs, moves = made.nodes["m1"].fs, []
    move = fs.rename

    def noted(src: str, dst: str) -> None:
        moves.append((src.partition("/")[0], dst.partition("/")[0]))
        move(src, dst)

    fs.rename = noted  # type: ignore[method-assign]
    made.submit("many.whole.jsonl", '{"id": "a", "command": ["work"]}\n{"id": "b", "command": ["work"]}\n')
    made.settle()
    assert {made.state("a"), made.state("b")} == {"ready"}
    tokens = [way for way in moves if way[1] in ("admitting", "waiting", "ready")]
    assert tokens[0] == ("pending", "admitting")
    assert {source for source, _ in tokens[1:]} <= {"admitting", "waiting", "tmp"}
