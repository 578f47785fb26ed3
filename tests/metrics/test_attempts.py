"""Goal: what the journals say of attempts is counted once, and only what was seen from its beginning is measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from spoold.client.spool.metrics_source import Figures
from spoold.client.spool_client import SpoolClient
from spoold.faces.metrics import attempt_counters as module
from spoold.faces.metrics import exposition as f
from spoold.faces.metrics.attempt_counters import Attempts
from spoold.faces.metrics.exposition import OTHER, Histogram
from spoold.protocol.event import Event
from spoold.protocol.heartbeat import Heartbeat
from spoold.store.journal import Journal, Reader
from tests.cli.command import make, opened


def event(second: float, what: str, task: str = "t", writer: str = "w", attempt: int = 1, **detail: Any) -> Event:
    stamp = f"2026-02-02T09:00:{second:06.3f}Z"
    return Event(at=stamp, writer=writer, event=what, task=task, attempt=attempt, detail=detail)


def counted(attempts: Attempts, family: f.Family) -> dict[str, Any]:
    rows = attempts.samples()[family]
    return {
        " ".join(labels): (value.number, value.total) if isinstance(value, Histogram) else value
        for labels, value in rows.items()
    }


def took(*events: Event, figures: Figures | None = None) -> Attempts:
    attempts = Attempts()
    attempts.begin(figures or Figures())
    attempts.take(events, figures or Figures())
    return attempts


def test_a_task_waits_from_its_admission_to_its_first_start_and_runs_as_its_worker_says() -> None:
    found = took(
        event(0, "ADMITTED", writer="m"),
        event(4, "STARTED", type="review"),
        event(9, "RETURNED", duration_s=5.5, code="TIMEOUT"),
        event(20, "STARTED", attempt=2, type="review"),
        event(21, "COMPLETED", attempt=2, duration_s=1, exit_code=0),
    )
    assert counted(found, f.WAIT) == {"review": (1, 4.0)}
    assert counted(found, f.RAN) == {"review": (2, 6.5)}
    assert counted(found, f.FINISHED) == {"completed": 1, "failed": 0, "cancelled": 0, "skipped": 0}
    assert counted(found, f.WAIT_UNSEEN) == {"": 0}


def test_ends_are_counted_by_result() -> None:
    found = took(
        event(1, "COMPLETED", "a", duration_s=0.1),
        event(1, "FAILED", "b", code="MAX_RETRIES", duration_s=0.1),
        event(1, "FAILED", "c", code="CANCELLED"),
        event(1, "SKIPPED", "d", code="SKIPPED"),
        Event(writer="m", event="LEADING"),
        event(1, "READY", "e"),
    )
    assert counted(found, f.FINISHED) == {"completed": 1, "failed": 1, "cancelled": 1, "skipped": 1}


def test_a_start_that_is_read_before_its_admission_waits_for_it() -> None:
    attempts = took(event(3, "STARTED", type="t"))
    attempts.take([event(1, "ADMITTED", writer="m")], Figures())
    assert counted(attempts, f.WAIT) == {"t": (1, 2.0)}


def test_a_wait_whose_beginning_was_not_seen_is_counted_and_not_guessed() -> None:
    found = took(event(3, "STARTED", type="t"), event(4, "COMPLETED", duration_s=1))
    assert counted(found, f.WAIT) == {}
    assert counted(found, f.WAIT_UNSEEN) == {"": 1}
    assert counted(found, f.RAN) == {"t": (1, 1)}


def test_stamps_are_corrected_by_what_their_writers_say_of_their_clocks() -> None:
    beats = {
        node: Heartbeat(node=node, beat=1, clock_ahead_s=ahead)
        for node, ahead in (("m", -3.0), ("w", 2.0), ("x", None))
    }
    found = took(
        event(10, "ADMITTED", writer="m"),
        event(20, "STARTED", type="t"),
        event(10, "ADMITTED", "u", writer="m"),
        event(11, "STARTED", "u", writer="x", type="t"),
        figures=Figures(beats=beats),
    )
    # 10 + 3 to 20 - 2; and 10 + 3 to 11, which is no negative wait.
    assert counted(found, f.WAIT) == {"t": (2, 5.0)}


def test_what_runs_when_the_server_begins_has_the_type_of_its_heartbeat() -> None:
    beat = Heartbeat.model_validate({"node": "w", "beat": 1, "running": [{"id": "t", "type": "review"}]})
    found = took(event(1, "COMPLETED", duration_s=7), figures=Figures(beats={"w": beat}))
    assert counted(found, f.RAN) == {"review": (1, 7)}
    assert counted(took(event(1, "COMPLETED", duration_s=7)), f.RAN) == {"+unknown": (1, 7)}


def test_what_is_remembered_and_shown_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REMEMBERED", 3)
    monkeypatch.setattr(module, "TYPES_MOST", 2)
    found = took(*(event(1, "ADMITTED", f"t{n}", writer="m") for n in range(5)))
    found.take([event(2, "STARTED", f"t{n}", type=f"k{n}") for n in range(5)], Figures())
    assert counted(found, f.WAIT) == {"k2": (1, 1.0), "k3": (1, 1.0), OTHER: (1, 1.0)}


def test_strange_lines_are_passed_over() -> None:
    found = took(
        event(1, "STARTED", "a", type=7),
        event(1, "COMPLETED", "a", duration_s="long"),
        Event(writer="w", event="COMPLETED", task="b", at="never", detail=[1]),
        Event(writer="w", event="ADMITTED", task="c", at="never"),
    )
    assert counted(found, f.RAN) == {}
    assert counted(found, f.FINISHED)["completed"] == 2


def test_a_server_begins_at_the_end_of_the_journals(tmp_path: Path) -> None:
    root = make(tmp_path / "s")
    journal = Journal(opened(root, "w-0001"))
    journal.note("BEFORE")
    journal.flush(last=True)
    with SpoolClient(str(root)) as spool:
        cursor = spool.events_from_now()
        assert spool.events(cursor).items == []
        journal.note("AFTER")
        journal.flush(last=True)
        page = spool.events(cursor)
        assert [one.event for one in page.items] == ["AFTER"]
        assert spool.events(page.cursor).items == []
    reader = Reader(opened(root, "w-0002").fs)
    reader.skip()
    assert reader.read() == []


def test_journals_of_nodes_that_have_left_are_read_once_and_not_opened_again(tmp_path: Path) -> None:
    store = opened(make(tmp_path / "s"), "w-0001")
    left, stays = Journal(store), Journal(opened(tmp_path / "s", "w-0002"))
    reader = Reader(store.fs)
    for journal in (left, stays):
        journal.note("ONE")
        journal.flush(last=True)
    assert len(reader.read(writers=())) == 2  # none was ever read
    for journal in (left, stays):
        journal.note("TWO")
        journal.flush(last=True)
    assert [one.writer for one in reader.read(writers={"w-0002"})] == ["w-0002"]
    assert [one.writer for one in reader.read(writers={"w-0001"})] == ["w-0001"]
    assert reader.read() == []
