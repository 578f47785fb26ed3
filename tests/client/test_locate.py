"""A task is found wherever it is, by listing, and called missing only when it was missed twice."""

import re
from collections.abc import Callable
from random import Random
from typing import Any

import pytest

from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.lifecycle import State
from spoold.protocol.names import task_drop
from spoold.protocol.result import Code
from spoold.store.state_counts import census
from spoold.store.store import Store
from spoold.store.task_location import Located, complete, iter_tasks, list_unexplained, locate, locate_many
from tests.client.trees import WORKER, Tree

PLACES: list[tuple[Callable[[Tree], Any], str, int, str]] = [
    (lambda t: t.put(f"pending/{task_drop(5, 'x-1', unique=False)}", {"type": "t", "id": "x-1"}), "pending", 0, ""),
    (lambda t: t.put("pending/by-hand.json", {"type": "t", "id": "x-1"}), "pending", 0, ""),
    (lambda t: t.put("pending/many.jsonl", b'{"type":"t","id":"a"}\n\n{"type":"t","id":"x-1"}\n'), "pending", 0, ""),
    (lambda t: t.put("pending/many.JSONL", b'{"type":"t","id":"x-1"}\n'), "pending", 0, ""),
    (lambda t: t.put("admitting/1.m-1-aaaaa.1/0000000001-1.x.jsonl", b'{"type":"t"}\n'), "pending", 0, ""),
    (lambda t: t.waits("x-1"), "waiting", 1, ""),
    (lambda t: t.ready("x-1", attempt=2), "ready", 2, ""),
    (lambda t: t.claimed("x-1"), "claimed", 1, WORKER),
    (lambda t: t.returned("x-1", attempt=3), "waiting", 3, WORKER),
    (lambda t: t.ends("x-1"), "completed", 1, WORKER),
    (lambda t: t.ends("x-1", 4, code=Code.MAX_RETRIES), "failed", 4, WORKER),
    (lambda t: t.ends_archived("x-1"), "completed", 1, WORKER),
    (lambda t: t.rejects("bad.json", "x-1"), "rejected", 0, ""),
    (lambda t: t.rejects(task_drop(5, "x-1", unique=True)), "rejected", 0, ""),
]


@pytest.fixture
def tree() -> Tree:
    return Tree()


def store_of(tree: Tree) -> Store:
    return tree.spool().store


@pytest.mark.parametrize("ref", ["x-1", "X-1"])
@pytest.mark.parametrize(("place", "state", "attempt", "node"), PLACES)
def test_a_task_is_found_wherever_it_is(
    tree: Tree, place: Callable[[Tree], Any], state: str, attempt: int, node: str, ref: str
) -> None:
    place(tree)
    tree.ready("x-2")
    found = locate(store_of(tree), ref)
    assert (found.id, found.state, found.attempt, found.node) == ("x-1", state, attempt, node)
    # The path is where the file is: it can be read there.
    assert tree.fs.read(found.path)


def test_a_drop_without_an_id_is_found_by_its_name(tree: Tree) -> None:
    tree.put("pending/by-hand.json", {"type": "t"})
    assert locate(store_of(tree), "by-hand.json").state is State.PENDING


def test_a_damaged_drop_hides_nothing(tree: Tree) -> None:
    tree.put("pending/torn.json", b'{"id": "x-1", "type"')
    tree.fs.mkdir("pending/dir.json")
    tree.ready("x-1")
    assert locate(store_of(tree), "x-1").state is State.READY


def test_a_task_that_is_handed_back_while_one_looks_is_found(tree: Tree) -> None:
    """From claimed/ over returned/ to waiting/ it moves against the order of the look."""
    store = store_of(tree)
    path = tree.claimed("x-1")
    listed = tree.fs.list

    def list_and_move(directory: str) -> list[str]:
        names = listed(directory)
        if directory == layout.CLAIMED and path.rpartition("/")[2] in listed(f"claimed/{WORKER}"):
            tree.fs.unlink(path)
            tree.waits("x-1", attempt=2)
        return names

    tree.fs.list = list_and_move  # type: ignore[method-assign, assignment]
    assert locate(store, "x-1").state is State.WAITING


def test_what_is_nowhere_is_not_found(tree: Tree) -> None:
    tree.ready("other")
    with pytest.raises(NotFound, match=r"no task 'x-1'.*spool ls"):
        locate(store_of(tree), "x-1")


def test_nothing_is_the_id_of_no_task(tree: Tree) -> None:
    tree.ready("a")
    with pytest.raises(NotFound):
        locate(store_of(tree), "")


def test_the_beginning_of_an_id_names_no_task(tree: Tree) -> None:
    """N16: `wait deploy-1 && ship` passed on the task deploy-11, where deploy-1 was gone."""
    tree.ready("review-1f3a")
    with pytest.raises(NotFound, match=r"no task 'review-1'.*; at least 1 id begins with it: review-1f3a\. G"):
        locate(store_of(tree), "review-1")


def test_a_person_may_complete_the_beginning_of_an_id_if_there_is_only_one(tree: Tree) -> None:
    tree.ready("review-1f3a")
    tree.ends("build-77")
    store = store_of(tree)
    assert complete(store, "revi").id == "review-1f3a"
    assert complete(store, "build-7").id == "build-77"
    tree.waits("review-2b2b")
    with pytest.raises(NotFound, match="2 ids begin with it: review-1f3a, review-2b2b"):
        complete(store, "review")
    with pytest.raises(NotFound, match=r"no task 'rev'.* A prefix needs 4 characters"):
        complete(store, "rev")
    with pytest.raises(NotFound, match=r"no task 'rex'.*spool ls"):
        complete(store, "rex")


_BEGIN = re.compile(r"at least (\d+) ids? begins? with it: ([^.]+?)(?: and (\d+) more)?\. ")


@pytest.mark.parametrize("seed", range(20))
def test_how_many_ids_begin_so_is_never_said_wrongly(tree: Tree, seed: int) -> None:
    """Black box 1: of build, build-1 and build-10 it said "only 1 id" for the text b, and for build while build-2 was
    in the archive."""
    chance = Random(seed)
    ids: list[str] = []
    for number in range(chance.randrange(1, 12)):
        task_id = chance.choice(["b", "build", "build-", "bui", "c"]) + str(number)
        ids.append(task_id)
        places: list[Callable[[str], Any]] = [tree.ready, tree.waits, tree.claimed, tree.ends, tree.ends_archived]
        chance.choice([*places, tree.rejects])(task_id)
    tree.put("pending/many.jsonl", b'{"type":"t","id":"build-in-a-batch"}\n')
    ids.append("build-in-a-batch")
    store = store_of(tree)
    for text in ("b", "bu", "bui", "buil", "build", "build-", "c"):
        there = [one for one in ids if one.startswith(text)]
        for find in (locate, complete):
            said = told(find, store, text)
            if said in there:
                continue
            if found := _BEGIN.search(said):
                count, named, more = found.groups()
                assert 1 <= int(count) <= len(there)
                assert set(named.split(", ")) <= set(there)
                assert int(count) == len(named.split(", ")) + int(more or 0)
                assert "Give the whole id" in said or "more of it" in said
            else:
                assert "`spool ls`" in said
                assert "only" not in said


def told(find: Callable[[Store, str], Located], store: Store, text: str) -> str:
    """The id that was found, or the words of the error."""
    try:
        return find(store, text).id
    except NotFound as error:
        return str(error)


def test_text_that_is_no_utf_8_is_no_task(tree: Tree) -> None:
    tree.ready("a")
    with pytest.raises(NotFound, match=r"no task '\\udcff'"):
        locate(store_of(tree), "\udcff")


def test_an_exact_id_goes_before_longer_ones(tree: Tree) -> None:
    tree.ready("build-1")
    tree.ends("build")
    assert locate(store_of(tree), "build").state is State.COMPLETED


def test_a_rejected_second_drop_does_not_hide_the_task(tree: Tree) -> None:
    tree.ends("x-1")
    tree.rejects("again.json", "x-1")
    assert locate(store_of(tree), "x-1").state is State.COMPLETED


def test_a_list_shows_a_rejected_second_drop_beside_the_task_that_has_the_id(tree: Tree) -> None:
    tree.ends("x-1")
    tree.rejects("again.json", "x-1")
    tree.rejects("once-more.json", "x-1")
    rows = [(found.id, found.state.value, found.drop) for found in iter_tasks(store_of(tree))]
    assert rows == [
        ("x-1", "completed", ""),
        ("x-1", "rejected", "again.json"),
        ("x-1", "rejected", "once-more.json"),
    ]


def test_what_is_rejected_without_a_reason_is_listed_as_status_counts_it(tree: Tree) -> None:
    tree.rejects("bad.json")
    tree.put("rejected/alone", b"?")
    tree.put(f"rejected/{task_drop(5, 'x-1', unique=True)}", b"?")
    tree.put("rejected/gone.json.reason.json", {"id": "gone"})
    store = store_of(tree)
    rows = [found.id for found in iter_tasks(store, [State.REJECTED])]
    assert sorted(rows) == ["alone", "bad.json", "x-1"]
    assert len(rows) == census(store.fs).tasks.rejected
    assert locate(store, "alone").path == "rejected/alone"


def test_a_drop_whose_reason_a_listing_missed_is_not_without_one(tree: Tree) -> None:
    tree.rejects("bad.json")
    store, listed = store_of(tree), tree.fs.list
    late = iter([["bad.json"]])
    tree.fs.list = lambda path: next(late, listed(path)) if path == "rejected" else listed(path)  # type: ignore[method-assign]
    assert list(list_unexplained(store.fs)) == []


def test_many_are_found_in_one_look(tree: Tree) -> None:
    tree.ready("a")
    tree.ends("b")
    tree.ends("c")
    tree.archives("c")
    found = locate_many(store_of(tree), ["A", "b", "c", "nope"])
    assert {ref: (where.state.value, where.archived) for ref, where in found.items()} == {
        "A": ("ready", False),
        "b": ("completed", False),
        "c": ("completed", True),
    }


def test_a_list_shows_each_task_once_and_the_archive_on_request(tree: Tree) -> None:
    tree.put("pending/by-hand.json", {"type": "t"})
    tree.waits("a")
    tree.claimed("b")
    tree.returned("c")
    tree.ends("d")
    tree.ends("e", code=Code.TIMEOUT)
    tree.ends("f")
    tree.archives("f")
    tree.rejects("bad.json")
    tree.ready("d")  # a move that was seen at both ends
    store = store_of(tree)
    rows = [(found.id, found.state.value) for found in iter_tasks(store)]
    assert sorted(rows) == [
        ("a", "waiting"),
        ("b", "claimed"),
        ("bad.json", "rejected"),
        ("by-hand.json", "pending"),
        ("c", "waiting"),
        ("d", "ready"),
        ("e", "failed"),
    ]
    assert [found.id for found in iter_tasks(store, [State.COMPLETED], archived=True)] == ["d", "f"]
