"""`spool show`: what a task waits for, with how far that is, and the last lines that it wrote."""

import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from spoold.client.read.attempt_logs import TAIL_BYTES
from spoold.protocol.names import encode_order
from spoold.store import task_location
from spoold.store.store import Store
from spoold.store.task_location import Located
from tests.cli.command import make
from tests.cli.commands import spool
from tests.cli.test_verbs import end, put


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return make(tmp_path / "s")


def waits(root: Path, task_id: str, **more: Any) -> None:
    order = encode_order(int(time.time() * 1e6), 1)
    put(root, f"waiting/type=t/5000.{order}.{task_id}.a1f0c0d.json", {"id": task_id, "type": "t", **more})


def said(root: Path, task_id: str, label: str) -> str:
    """What a row of `show` says."""
    lines = spool("show", task_id, root=root).lines
    return next((line[13:] for line in lines if line[:13].strip() == label), "")


def test_each_task_that_it_comes_after_is_named_with_its_state(root: Path) -> None:
    end(root, "good")
    end(root, "bad", "failed")
    waits(root, "late")
    waits(root, "one", after=["good", "Late", "gone"], after_failed=["bad"], after_any=["late"], after_batch="b1")
    assert said(root, "one", "after") == "good (completed), gone (unknown)"
    assert said(root, "one", "after any") == "late (waiting)"
    assert said(root, "one", "after failed") == "bad (failed)"
    assert said(root, "one", "after batch") == "b1"
    assert said(root, "late", "after") == ""


def test_many_tasks_are_shown_with_one_look_for_what_they_come_after(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    end(root, "good")
    for number in range(5):
        waits(root, f"t{number}", after=["good"])
    looked: list[object] = []
    look = task_location.locate_many

    def spy(store: Store, refs: Collection[str]) -> dict[str, Located]:
        looked.append(refs)
        return look(store, refs)

    monkeypatch.setattr(task_location, "locate_many", spy)
    done = spool("show", *(f"t{number}" for number in range(5)), root=root)
    assert done.lines.count("after        good (completed)") == 5
    assert len(looked) <= 1  # for the ids themselves


@pytest.mark.parametrize(
    ("written", "title", "shown"),
    [
        (b"", "", []),
        (b"one\r\n\x1b[31mtwo\x1b[0m\n\n", "all of it", ["one", "two"]),
        (b"".join(b"%d\n" % n for n in range(30)), "its last 10 lines", [str(n) for n in range(20, 30)]),
        (b"x" * TAIL_BYTES + b"\nend\n", "its last 2 lines", ["…", "end"]),
        (b"10 %\r20 %\r30 %\n\x1b[2Jdone\n", "all of it", ["30 %", "done"]),
        (b"w" * 3000, "all of it", ["w" * 495 + "…"]),
    ],
)
def test_the_last_lines_of_the_last_attempt_are_shown(
    root: Path, written: bytes, title: str, shown: list[str]
) -> None:
    end(root, "a")
    (root / "logs" / "a.1.w-aaaaa.log").write_bytes(written)
    lines = spool("show", "a", root=root).lines
    assert [line[4:] for line in lines if line.startswith("  | ")] == shown
    heading = [line for line in lines if line.startswith("output of attempt 1")]
    assert bool(heading) is bool(title)
    assert not title or f"({title}" in heading[0]


def test_below_what_a_person_is_to_confirm_no_task_writes_anything(root: Path) -> None:
    waits(root, "ask", approval={"ask": "Deploy?"})
    (root / "logs" / "ask.1.w-aaaaa.log").write_bytes(b"command: harmless\n")
    out = spool("show", "ask", root=root).out
    assert "harmless" not in out
    assert "approves exactly this" in out.splitlines()[-1]
