"""What a program sees of a spool: pages that neither repeat nor miss, events once each, changes and nothing else."""

import json

import pytest

import spoold
from spoold import BadFile, Page, State, Status
from spoold.protocol import layout
from spoold.protocol.result import Code
from tests.client.trees import Tree


def test_all_pages_together_are_all_tasks_in_the_order_of_their_life() -> None:
    tree = Tree()
    for number in range(5):
        tree.waits(f"w{number}")
        tree.ready(f"r{number}")
    tree.claimed("c")
    tree.ends("f", code=Code.TIMEOUT)
    with tree.spool() as spool:
        alone = spool.tasks()
        seen, cursor, pages = [], "", 0
        while True:
            page = spool.tasks(cursor=cursor, limit=3)
            seen += page.items
            pages += 1
            cursor = page.cursor
            if not cursor:
                break
        assert ([row.id for row in alone.items], alone.cursor) == ([row.id for row in seen], "")
        assert [row.state for row in seen] == ["waiting"] * 5 + ["ready"] * 5 + ["claimed", "failed"]
        assert (pages, len({row.id for row in seen})) == (4, 12)
        assert [row.id for row in spool.tasks(states=["failed"]).items] == ["f"]
        assert [row.reason for row in spool.tasks(states=[State.FAILED]).items] == ["TIMEOUT: it broke"]


def test_a_task_that_has_gone_meanwhile_ends_no_page() -> None:
    tree = Tree()
    paths = [tree.ready(f"r{number}") for number in range(4)]
    with tree.spool() as spool:
        first = spool.tasks(limit=2)
        tree.fs.unlink(paths[1])
        assert [row.id for row in spool.tasks(cursor=first.cursor).items] == ["r2", "r3"]


def test_events_come_once_whoever_keeps_the_cursor() -> None:
    tree = Tree()

    def happen(number: int) -> None:
        line = {"at": f"2026-01-01T00:00:0{number}.000Z", "writer": "m-1", "seq": number, "event": f"E{number}"}
        tree.fs.append(layout.join(layout.EVENTS, "m-1.0.jsonl"), json.dumps(line).encode() + b"\n")

    happen(1)
    with tree.spool() as spool:
        page = spool.events()
        happen(2)
        happen(3)
    with tree.spool() as other:
        more = other.events(page.cursor)
        assert [event.event for event in (*page.items, *more.items)] == ["E1", "E2", "E3"]
        assert other.events(more.cursor).items == []


@pytest.mark.parametrize("cursor", ["x", "3", "[1]", '{"a": "b"}'])
def test_a_cursor_that_is_none_says_so(cursor: str) -> None:
    with Tree().spool() as spool:
        for ask in (spool.events, lambda cursor: spool.tasks(cursor=cursor)):
            with pytest.raises(BadFile, match=r"cursor.*is not from this call"):
                ask(cursor)


def test_the_pool_is_seen_again_only_when_it_has_changed() -> None:
    tree = Tree()
    looks = 0

    class OverError(Exception):
        pass

    def sleep(seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == 2:
            tree.ready("late")
        if looks == 4:
            raise OverError

    seen: list[Status] = []
    with tree.spool() as spool, pytest.raises(OverError):
        seen.extend(spool.watch(sleep=sleep))
    assert [picture.tasks.ready for picture in seen] == [0, 1]


def test_why_a_task_is_where_it_is() -> None:
    tree = Tree()
    tree.ready("r")
    with tree.spool() as spool:
        assert spool.explain("r").state == "ready"


def test_what_is_exported_is_what_the_calls_give() -> None:
    tree = Tree()
    tree.ends("done")
    with tree.spool() as spool:
        assert isinstance(spool.status(), spoold.Status)
        assert isinstance(spool.result("done"), spoold.Result)
        assert isinstance(spool.show("done"), spoold.TaskInfo)
        assert isinstance(spool.tasks(), Page)
        assert spool.state("done") is spoold.State.COMPLETED
