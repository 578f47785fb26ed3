"""A directory of another user, or a link, is in a task's way: people are told what to fix, and the fix works."""

import pytest

from spoold.client.read.explanation import explain
from spoold.client.spool.spool_status import status
from spoold.store.store import Store, open_store
from spoold.system.host import FakeHost
from tests.support.cluster import Cluster


def cluster() -> Cluster:
    """A leader and a worker at rest."""
    made = Cluster()
    made.master("m1")
    made.worker("w1")
    made.settle()
    made.witness.losses_allowed = True  # somebody takes files and whole directories away
    return made


def reader(made: Cluster) -> Store:
    return open_store(made.fs, made.clock, "cli-1", "/spool")


def plant(made: Cluster, path: str) -> None:
    """Another user, with umask 022, makes a directory: this one may not write to it."""
    made.fs.mkdir(path)
    made.fs.shut.add(made.fs.stat(path).inode)


def test_of_a_directory_of_another_user_the_leader_names_the_directory_itself() -> None:
    made, path = cluster(), "pending/x.json"
    plant(made, path)
    made.advance(40)
    seen = status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance)
    (told,) = [warning for warning in seen.warnings if "cannot be moved" in warning]
    assert f"{path} is a directory of another user" in told
    assert f"its owner (or root) removes it, or runs `chmod g+rwx {path}`" in told
    made.fs.shut.clear()
    made.advance(130)
    with pytest.raises(FileNotFoundError):
        made.fs.stat(path)


def test_an_empty_one_under_a_dead_workers_claim_goes_by_itself() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    path = made.find("a").path
    made.crash("w1")
    made.fs.unlink(path)
    plant(made, path)
    made.advance(40)
    assert made.fs.list("claimed") == []
    (told,) = status(reader(made), FakeHost("desk"), made.clock, sleep=made.advance).warnings
    assert told.startswith(f"1 task vanished, since another program removed the file: a (it was {path})")


def test_a_task_that_cannot_end_is_explained_by_what_stands_in_the_way() -> None:
    made = cluster()
    made.submit("a.json", '{"id": "a", "command": ["work"]}')
    made.settle()
    made.fs.rename("results", "results.old")
    made.fs.make_symlink("results", "elsewhere")
    made.finish("a")
    made.advance(5)
    explained = explain(reader(made), FakeHost("desk"), made.clock, "a", sleep=made.advance)
    assert "or has ended and cannot say so: results is a link where a directory should be" in explained.verdict
    assert "`rm results; mkdir results`" in explained.verdict
