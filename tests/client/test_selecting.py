"""Which tasks a selection finds while they move, and what unknown ids cost."""

from typing import Any

import pytest

from spoold.client.read import selecting
from spoold.protocol import layout
from spoold.protocol.lifecycle import State
from spoold.rules.answers.selection import Selection
from spoold.store import task_location
from tests.client.trees import WORKER, Tree


def task(tree: Tree, task_id: str, batch: str = "b") -> str:
    path = f"{layout.READY}/type=t/{tree.name(task_id).encode()}"
    tree.put(path, {"id": task_id, "type": "t", "batch": batch})
    return path


def test_a_task_that_is_claimed_while_one_looks_is_selected(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    task(tree, "stays")
    path = task(tree, "moves")
    with tree.spool() as spool:
        look = spool.store.fs.read
        moved: list[str] = []

        def read(found: str, *more: Any, **said: Any) -> bytes:
            if found == path and not moved:
                moved.append(path)
                tree.put(layout.claimed(WORKER, path.rpartition("/")[2]), {"id": "moves", "type": "t", "batch": "b"})
                tree.fs.unlink(path)
            return look(found, *more, **said)

        monkeypatch.setattr(spool.store.fs, "read", read)
        living = (State.WAITING, State.READY, State.CLAIMED)
        found = {one.id: one.state for one in selecting.select(spool.store, Selection(living, batches=("b",)))}
    assert found == {"stays": State.READY, "moves": State.CLAIMED}


def test_a_task_that_cannot_be_read_is_of_no_batch_and_hides_no_other() -> None:
    tree = Tree()
    tree.put(task(tree, "damaged"), b"{")
    task(tree, "sound")
    with tree.spool() as spool:
        assert [one.id for one in selecting.select(spool.store, Selection(batches=("b",)))] == ["sound"]


def test_only_the_first_unknown_ids_are_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    task(tree, "known-1")
    looked: list[str] = []
    search = task_location.locate

    def counting(store: Any, ref: str) -> Any:
        looked.append(ref)
        return search(store, ref)

    monkeypatch.setattr("spoold.store.task_location.locate", counting)
    with tree.spool() as spool:
        found, wrong = selecting.find(spool.store, ["known", *(f"no{n}" for n in range(9)), "known-1"])
    assert [one.id for one in found] == ["known-1"]
    assert (len(wrong), len(looked)) == (10, selecting.LOOKED_INTO)
    assert "Give the whole id" in str(wrong["known"])


def test_files_that_are_read_together_select_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    for number in range(7):
        task(tree, f"of-b-{number}")
    task(tree, "other", "c")
    tree.put(task(tree, "damaged"), b"{")
    tree.put(task(tree, "empty"), b"{}")
    together: list[int] = []
    with tree.spool() as spool:
        alone = list(selecting.select(spool.store, Selection(batches=("B",))))

        def read_together(path: str, names: list[str]) -> dict[str, bytes]:
            together.append(len(names))
            return {name: spool.store.fs.read(f"{path}/{name}") for name in names if "damaged" not in name}

        monkeypatch.setattr(spool.store.fs, "read_together", read_together, raising=False)
        monkeypatch.setattr(selecting, "READ_TOGETHER", 4)
        assert list(selecting.select(spool.store, Selection(batches=("B",)))) == alone
    assert sorted(one.id for one in alone) == [f"of-b-{number}" for number in range(7)]
    assert together == [4, 4, 2]
