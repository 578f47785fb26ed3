"""Directories that a person removed under a running spool are made again; what is no spool is left alone."""

import errno
import json

import pytest

from spoold.protocol import layout
from spoold.store.initialise import restore
from spoold.system.memory_filesystem import MemoryFileSystem
from tests.support.cluster import Cluster


@pytest.mark.parametrize("directory", sorted({*layout.TREE} - {layout.MASTER, layout.TMP}))
def test_a_leader_makes_again_what_was_removed_and_goes_on(directory: str) -> None:
    made = Cluster()
    made.master("m1")
    made.settle()
    for path in made.fs.files(directory):
        made.fs.unlink(path)
    for branch in made.fs.list(directory):
        made.fs.rmdir(f"{directory}/{branch}")
    made.fs.rmdir(directory)
    made.submit("t.json", '{"id": "t", "command": ["work"]}') if directory != layout.PENDING else None
    made.advance(3)
    if directory == layout.PENDING:
        made.submit("t.json", '{"id": "t", "command": ["work"]}')
    made.advance(35)
    assert set(layout.TREE) <= set(made.fs.list(""))
    assert made.state("t") == "ready"


def test_a_leader_whose_door_was_removed_begins_anew_and_uses_no_name_twice() -> None:
    made = Cluster()
    leader = made.master("m1").master
    made.settle()
    door, snapshots = made.fs.list("admitting"), set(made.fs.list("status"))
    made.fs.rmdir(f"admitting/{door[0]}")
    made.submit("t.json", '{"id": "t", "command": ["work"]}')
    made.settle()
    assert (made.state("t"), leader.leadership.epoch) == ("ready", 1)
    assert set(door).isdisjoint(made.fs.list("admitting"))
    made.advance(5)
    assert snapshots.isdisjoint(made.fs.list("status"))
    assert min(snapshots) < min(made.fs.list("status"))


@pytest.mark.parametrize("drop", ["t.json", "t.whole.jsonl"])
@pytest.mark.parametrize("verb", ["rename", "list", "write"])
def test_a_door_that_does_not_show_itself_for_a_moment_is_not_gone(drop: str, verb: str) -> None:
    """The share is not mounted just then; the whole tree need not be read again for it."""
    made = Cluster()
    leader = made.master("m1")
    made.settle()
    desk = leader.master.desk
    made.submit(drop, '{"id": "t", "command": ["work"]}')
    for away in {verb, "list"}:
        leader.fs.fail(away, "admitting/", errno.ENOENT)
    made.advance(3)
    assert made.state("t") == "ready"
    assert leader.master.desk is desk


def test_what_is_no_spool_is_left_alone() -> None:
    fs = MemoryFileSystem()
    assert restore(fs) == []
    assert fs.list("") == []


def test_a_record_that_an_older_tree_took_away_is_written_again_before_its_task_ends() -> None:
    """The leader wrote it in an earlier step, and the move that was to follow was refused."""
    made = Cluster()
    node = made.master("m1")
    made.submit("a.json", json.dumps({"id": "a", "command": ["x"], "dependencies": ["nobody"]}))
    made.advance(3.0)
    node.fs.fail("rename", "failed/", errno.EACCES, times=3)
    made.fs.write("control/cancel.a.x.json", b'{"reason": "enough"}', durable=False)
    made.advance(1.0)
    assert (made.state("a"), made.fs.list("results")) == ("waiting", ["a.1.m1.json"])
    made.fs.unlink("results/a.1.m1.json")
    made.advance(15.0)
    assert (made.state("a"), made.fs.list("results")) == ("failed", ["a.1.m1.json"])
