"""What the tasks of a batch share: nothing is overwritten, and who did not know of another is told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from spoold.client.context_and_steps import Conflict, SharedContext
from spoold.client.spool_client import SpoolClient
from spoold.protocol.context_entry import BYTES_MAX, ENTRIES_MAX, Entry, EntryName
from spoold.protocol.errors import BadFile, NotFound, SpoolError
from spoold.store.store import Store
from spoold.store.tree_repair import survey
from spoold.store.versioned_files import ENTRIES, Shelf
from tests.client.cluster import Cluster


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def shared(cluster: Cluster) -> Iterator[SharedContext]:
    """The context of a batch, of a program outside of tasks."""
    with SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock) as spool:
        yield SharedContext(spool, "Nightly")


def other(cluster: Cluster) -> SharedContext:
    """The same, of another program."""
    return SharedContext(SpoolClient("spool", filesystem=cluster.fs, clock=cluster.clock), "nightly")


def test_the_latest_counts_and_the_others_stay(shared: SharedContext, cluster: Cluster) -> None:
    assert shared.current() == []
    assert shared.put("api.md", b"one").version == 1
    assert other(cluster).put("API.md", b"two").version == 2
    assert shared.put("logo.png", b"\xff\x00").version == 3
    found, data = shared.get("api.md")
    assert (found.version, found.base, found.name, data, found.size) == (2, 1, "API.md", b"two", 3)
    assert found.at.endswith("Z")
    assert shared.get("api.md", 1)[1] == b"one"
    assert shared.get("logo.png")[1] == b"\xff\x00"
    assert [(each.name, each.version) for each in shared.current()] == [("API.md", 2), ("logo.png", 3)]
    assert [each.version for each in shared.log()] == [1, 2, 3]
    assert sorted(path.split("/")[1] for path in cluster.fs.files("context")) == ["nightly"] * 3


def test_a_put_on_a_condition(shared: SharedContext) -> None:
    shared.put("a", b"one", if_version=0)
    with pytest.raises(Conflict, match="is at version 1, not 0") as told:
        shared.put("a", b"two", if_version=0)
    assert told.value.version == 0
    assert shared.get("a")[1] == b"one"
    assert shared.put("a", b"two", if_version=1).version == 2


@pytest.mark.parametrize("condition", [None, 1])
def test_two_at_the_same_moment(
    shared: SharedContext, cluster: Cluster, monkeypatch: pytest.MonkeyPatch, condition: int | None
) -> None:
    shared.put("a", b"one")
    late, publish = other(cluster), Shelf.publish

    def slowly(
        shelf: Shelf[EntryName, Entry], store: Store, batch: str, name: EntryName, entry: dict[str, object]
    ) -> None:
        monkeypatch.setattr(Shelf, "publish", publish)
        # The other one looked before this one published.
        publish(shelf, late._spool.store, batch, EntryName(2, "z", "a", 1), {"text": "theirs"})
        publish(shelf, store, batch, name, entry)

    late._spool.store.open_tmp()
    monkeypatch.setattr(Shelf, "publish", slowly)
    if condition is None:
        assert shared.put("a", b"mine").conflicts == (2,)
    else:
        with pytest.raises(Conflict, match="Both stand") as told:
            shared.put("a", b"mine", if_version=condition)
        assert told.value.version == 2
    found, data = shared.get("a")
    assert (data, found.conflicts) == (b"theirs", (2,))
    assert shared.current()[0].conflicts == (2,)
    assert shared.put("a", b"merged").conflicts == ()
    assert shared.get("a")[0].conflicts == ()


def test_what_is_not_taken(shared: SharedContext, cluster: Cluster) -> None:
    with pytest.raises(SpoolError, match="cannot name an entry"):
        shared.put("../a", b"")
    with pytest.raises(SpoolError, match="at most 256 KiB"):
        shared.put("a", b"x" * (BYTES_MAX + 1))
    assert shared.put("a", b"\x00" * BYTES_MAX).version == 1
    assert len(shared.get("a")[1]) == BYTES_MAX
    with pytest.raises(NotFound, match="no b in the context of batch Nightly"):
        shared.get("b")
    with pytest.raises(NotFound, match="version 7"):
        shared.get("a", 7)
    for number in range(2, ENTRIES_MAX + 1):
        cluster.fs.write(f"context/nightly/{number}.0.w.b.json", b"{}", durable=False)
    with pytest.raises(SpoolError, match="1,000 entries"):
        shared.put("a", b"")


def test_which_batch(shared: SharedContext, monkeypatch: pytest.MonkeyPatch) -> None:
    spool = shared._spool
    with pytest.raises(SpoolError, match="which batch"):
        SharedContext(spool)
    with pytest.raises(SpoolError, match="cannot be the name of a batch"):
        SharedContext(spool, "a/b")
    monkeypatch.setenv("SPOOL_ROOT", spool.directory)
    monkeypatch.setenv("SPOOL_TASK_ID", "t")
    monkeypatch.setenv("SPOOL_ATTEMPT", "2")
    monkeypatch.setenv("SPOOL_BATCH", "own")
    own = SharedContext(spool)
    own.put("a", b"x")
    found, _ = own.get("a")
    assert (own.batch, found.task, found.attempt) == ("own", "t", 2)


def test_a_file_that_is_no_entry(shared: SharedContext, cluster: Cluster) -> None:
    shared.put("a", b"x")
    cluster.fs.write("context/nightly/9.1.w.a.json", b"no json", durable=False)
    cluster.fs.write("context/nightly/strange", b"", durable=False)
    with pytest.raises(BadFile):
        shared.get("a")
    assert [each.version for each in shared.log()] == [1, 9]


def test_a_spool_of_an_earlier_release(shared: SharedContext, cluster: Cluster) -> None:
    cluster.fs.rmdir("context")
    assert shared.current() == []
    assert ENTRIES.owners(cluster.fs) == []
    assert shared.put("a", b"x").version == 1
    assert ENTRIES.owners(cluster.fs) == ["nightly"]


def test_an_audit_knows_it(shared: SharedContext, cluster: Cluster) -> None:
    shared.put("a", b"x")
    assert [path for path in survey(cluster.store).foreign if path.startswith("context/")] == []
    cluster.fs.write("context/nightly/strange", b"", durable=False)
    cluster.fs.mkdir("context/No")
    assert [path for path in survey(cluster.store).foreign if path.startswith("context/")] == [
        *("context/No", "context/nightly/strange")
    ]
