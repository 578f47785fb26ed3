"""What programs of handlers left on a machine is told by its worker, in bounds, until somebody has seen to it."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from spoold.system.clock import ManualClock
from spoold.worker.handlers import handler_notes
from spoold.worker.handlers.handler import Handler
from spoold.worker.handlers.handler_notes import LISTED_MAX, LOOK_EVERY_S, HandlerNotes, notes_in

SPOOL = "/srv/spool"


def leave(path: Path, note: str, spool: str = SPOOL) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{spool}\n{note}\n")
    return path


def test_a_note_is_told_to_its_own_spool_alone(tmp_path: Path) -> None:
    leave(tmp_path / "a", "the work of a is here alone")
    leave(tmp_path / "b", "the work of b", "/srv/other")
    leave(tmp_path / "c", "", SPOOL)
    (tmp_path / "d").mkdir()
    os.mkfifo(tmp_path / "e")
    (tmp_path / "f").write_bytes(b"\xff" * 100_000)
    assert notes_in(str(tmp_path), SPOOL) == ["the work of a is here alone"]


def test_a_note_of_work_that_goes_on_or_is_gone_is_none(tmp_path: Path) -> None:
    note = leave(tmp_path / "work" / "a" / "note", "a")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a").symlink_to("../work/a/note")
    with note.open("r+") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert notes_in(str(notes), SPOOL) == []
    assert notes_in(str(notes), SPOOL) == ["a"]
    note.unlink()
    assert notes_in(str(notes), SPOOL) == []


def test_of_many_notes_the_first_are_told_and_the_number_of_the_others(tmp_path: Path) -> None:
    for name in "edcba":
        leave(tmp_path / name, f"note {name} {'x' * 9000}\x1b[2J")
    told = notes_in(str(tmp_path), SPOOL)
    assert [line[:6] for line in told] == ["note a", "note b", "note c", "and 2 "]
    assert told[-1] == f"and 2 more notes of this kind, in {tmp_path}"
    assert max(map(len, told)) <= 500
    for number in range(LISTED_MAX):
        leave(tmp_path / f"more{number}", "n")
    assert f"{LISTED_MAX - 3:,} more notes or more of this kind" in notes_in(str(tmp_path), SPOOL)[-1]


def test_a_folder_that_cannot_be_read_is_named_and_one_that_is_not_there_is_fine(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert notes_in(str(tmp_path / "none"), SPOOL) == []
    assert notes_in(str(tmp_path / "file"), SPOOL) == [
        f"{tmp_path / 'file'}, where handlers leave notes for people, cannot be read: Not a directory"
    ]


def handlers(*folders: Path) -> list[Handler]:
    return [Handler(command=("x",), notes=str(folder)) for folder in folders] + [Handler(command=("x",))]


def test_they_are_looked_for_now_and_then_and_each_folder_once(tmp_path: Path) -> None:
    clock, root = ManualClock(), tmp_path / "spool"
    root.mkdir()
    (tmp_path / "link").symlink_to(root)
    looking = HandlerNotes(handlers(tmp_path / "n", tmp_path / "n"), str(tmp_path / "link"), clock)

    def look() -> tuple[str, ...]:
        looking.look()
        assert looking._thread is not None
        looking._thread.join(60)
        return looking.told

    assert look() == ()
    leave(tmp_path / "n" / "a", "a", str(root))
    assert look() == (), "not yet"
    clock.advance(LOOK_EVERY_S)
    assert look() == ("a",)


def test_a_look_that_hangs_hangs_nobody_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, looks = threading.Event(), []

    def hang(*_: object) -> list[str]:
        looks.append(1)
        gate.wait(60)
        return []

    monkeypatch.setattr(handler_notes, "notes_in", hang)
    clock = ManualClock()
    looking = HandlerNotes(handlers(tmp_path), "/srv/spool", clock)
    for _ in range(3):
        looking.look()
        clock.advance(2 * LOOK_EVERY_S)
    assert (looks, looking.told) == ([1], ())
    gate.set()
    assert looking._thread is not None
    looking._thread.join(60)


def test_without_such_handlers_nothing_is_looked_for() -> None:
    looking = HandlerNotes(handlers(), "/srv/spool", ManualClock())
    looking.look()
    assert looking._thread is None
