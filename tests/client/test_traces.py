"""The spans of a spool: of what was named, with the ids of what others name, at one read for each file."""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import pytest

from spoold.client.read.graph_data import Traces
from spoold.pictures.traces import conventions as said
from spoold.pictures.traces.span import Span
from spoold.protocol import layout
from spoold.protocol.errors import NotFound
from spoold.protocol.names import EventsName
from spoold.protocol.result import Code
from spoold.protocol.trace_ids import span_of, trace_of
from tests.client.test_scenes import BEGAN, ended, put
from tests.client.trees import WORKER, Tree

SPOOL = "test"


def traces(tree: Tree, *names: str, **more: Any) -> Traces:
    with tree.spool() as spool:
        return spool.traces(names, **more)


def by_part(found: Traces) -> dict[tuple[Any, str], Span]:
    """By task and name; a phase has no task of its own."""
    spans = (span for span in found.spans if said.MESSAGING_MESSAGE in span.attributes)
    return {(span.attributes[said.MESSAGING_MESSAGE], span.name.split()[0]): span for span in spans}


def journal(tree: Tree, *events: tuple[str, str, float, int], writer: str = WORKER) -> None:
    """Of each: what happened, to which task, how long (s) after the beginning, in which attempt."""
    lines = [
        orjson.dumps(
            {
                "at": f"2026-01-01T00:00:{1 + at:09.6f}Z",
                "writer": writer,
                "seq": number,
                "event": name,
                "task": task,
                "attempt": attempt,
            }
        )
        for number, (name, task, at, attempt) in enumerate(events, 1)
    ]
    tree.put(layout.join(layout.EVENTS, EventsName(writer, 0).encode()), b"\n".join([*lines, b""]))


def ids(found: Traces) -> set[Any]:
    return {task for task, _ in by_part(found)}


def test_a_batch_a_task_or_all_with_the_archive_only_where_it_is_meant() -> None:
    tree = Tree()
    ended(tree, "a")
    ended(tree, "b", batch="c")
    ended(tree, "old")
    tree.archives("old")
    put(tree, layout.join(layout.bucket("old"), f"old.1.{WORKER}.completed.json"))
    put(tree, tree.waits("later"))
    tree.put(layout.join(layout.PENDING, "new.json"), {"id": "new", "type": "t", "batch": "b"})
    assert ids(traces(tree, "b")) == {"b"}, "the task comes before the batch of the same name"
    assert ids(traces(tree, "c")) == {"b"}
    assert ids(traces(tree, "A", "c")) == {"a", "b"}
    assert ids(traces(tree)) == {"a", "b", "later"}
    assert ids(traces(tree, archived=True)) == {"a", "b", "later", "old"}
    assert ids(traces(tree, "old")) == {"old"}
    assert (traces(tree).tasks, traces(tree, "new").spans) == (3, ())


def test_of_a_batch_the_archived_tasks_are_told_too() -> None:
    tree = Tree()
    ended(tree, "old")
    tree.archives("old")
    put(tree, layout.join(layout.bucket("old"), f"old.1.{WORKER}.completed.json"))
    assert ids(traces(tree, "b")) == {"old"}


def test_a_name_of_nothing_is_an_error_that_guesses() -> None:
    tree = Tree()
    ended(tree, "a", batch="nightly")
    with pytest.raises(NotFound, match="Fix: did you mean nightly"):
        traces(tree, "nightli")
    with pytest.raises(NotFound, match=r"no task and no batch 'zzz' in this spool\. Fix: `spool ls` shows the tasks"):
        traces(tree, "zzz")
    assert traces(Tree()).spans == ()


def test_the_journals_tell_of_waiting_and_of_phases() -> None:
    tree = Tree()
    ended(tree, "a")
    journal(tree, ("ADMITTED", "A", -0.9, 1), ("CLAIMED", "a", -0.5, 1), ("CLAIMED", "b", 50, 1))
    for names in (("a",), ("b",), ()):  # a single task, its batch, all
        spans = traces(tree, *names).spans
        assert [span.name for span in spans] == ["wait", "send t", "process t", "prepare", "run"]
        wait = next(span for span in spans if span.name == "wait")
        assert (wait.start, wait.end) == (round((BEGAN - 0.9) * 1e9), round((BEGAN - 0.5) * 1e9))


def test_links_lead_to_attempts_that_are_not_exported_themselves() -> None:
    tree = Tree()
    ended(tree, "fetch", attempt=2, batch="c")
    tree.result("fetch", 1, code=Code.EXIT_NONZERO, started_at="2026-01-01T00:00:00Z")
    ended(tree, "a", after=["FETCH", "nowhere"])
    process = by_part(traces(tree, "a"))["a", "process"]
    assert [(link.why, link.to.span_id, link.to.trace_id) for link in process.links][1:] == [
        ("dependencies", span_of(SPOOL, "fetch", 2, "process"), trace_of(SPOOL, "fetch", "c"))
    ]


def test_a_child_is_below_its_parents_attempt_also_where_that_runs_and_is_not_exported() -> None:
    tree = Tree()
    put(tree, tree.claimed("a", attempt=2))
    tree.result("a", 1, code=Code.EXIT_NONZERO, started_at="2026-01-01T00:00:00Z")
    put(tree, tree.waits("kid"), parent="A", created_at="2026-01-01T00:00:09Z")
    journal(tree, ("CLAIMED", "a", 5, 2), ("ADMITTED", "kid", 9, 1))
    for names in (("kid",), ("b",), ()):
        assert by_part(traces(tree, *names))["kid", "send"].parent == span_of(SPOOL, "a", 2, "process")
    assert traces(tree, "b").open == 1


def test_what_cannot_be_read_is_left_out() -> None:
    tree = Tree()
    ended(tree, "a")
    tree.fs.write(layout.join(layout.COMPLETED, f"a.1.{WORKER}.json"), b"{", durable=False)
    tree.fs.write(layout.join(layout.RESULTS, f"a.1.{WORKER}.json"), b"{", durable=False)
    tree.put(layout.join(layout.EVENTS, EventsName(WORKER, 0).encode()), b'{"no": 1}\n')
    assert traces(tree).spans == ()


def test_each_file_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = Tree()
    for number in range(5):
        ended(tree, f"t{number}", after=[f"t{number - 1}"] if number else [], parent="t0" if number else None)
    journal(tree, ("ADMITTED", "t0", 0, 1))
    read = Counter[str]()
    before = tree.fs.read

    def counted(path: str, *args: Any, **more: Any) -> bytes:
        read[path] += 1
        return before(path, *args, **more)

    with tree.spool() as spool:
        monkeypatch.setattr(tree.fs, "read", counted)
        spool.traces(["b"])
    files = {path: count for path, count in read.items() if path.startswith((layout.COMPLETED, layout.RESULTS))}
    assert set(files.values()) == {1}
    assert len(files) == 10
    assert read[layout.join(layout.EVENTS, EventsName(WORKER, 0).encode())] == 1


def test_twice_is_the_same() -> None:
    tree = Tree()
    ended(tree, "a")
    put(
        tree,
        layout.join(layout.COMPLETED, f"a.1.{WORKER}.json"),
        meta={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"},
    )
    first, second = traces(tree), traces(tree)
    assert first == second
    assert {span.context.trace_id for span in first.spans} == {"a" * 32}
    assert by_part(first)["a", "send"].parent == "b" * 16
