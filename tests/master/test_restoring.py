"""Directories that a person removed under a running spool are made again; what is no spool is left alone."""

import pytest

from spoold.protocol import layout
from spoold.store.initialise import restore
from spoold.system.memory import MemoryFileSystem
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


def test_what_is_no_spool_is_left_alone() -> None:
    fs = MemoryFileSystem()
    assert restore(fs) == []
    assert fs.list("") == []
