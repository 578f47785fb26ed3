"""What tasks left, and what the worker says of it: the removal is never part of its step."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spoold.system.cleaner import ENDED, RUBBISH
from spoold.system.host import SystemHost
from spoold.system.leftovers import Leftovers
from spoold.system.remover import quoted, remove
from spoold.system.scratch import LOANS, WORK, Abandoned, LocalScratch, find_abandoned
from tests.support.trees import deep

WITHIN_S = 60.0


class Idle:
    """A remover that removes nothing, as one that hangs."""

    notes = ("it hangs",)

    def __init__(self) -> None:
        self.asked: list[tuple[str, list[str]]] = []

    def clear(self, tmp: str, roots: list[str]) -> None:
        self.asked.append((tmp, roots))

    def look(self) -> None:
        pass

    def finish(self, within_s: float) -> None:
        pass


def until(done: Callable[[], bool]) -> None:
    give_up_at = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < give_up_at
        time.sleep(0.02)


@pytest.fixture
def tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory for temporary files whose name no pattern would find."""
    made = tmp_path / "with [blank]\nand line"
    made.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(made))
    yield made
    remove(str(made))  # deeper than pytest can remove


def test_the_step_only_renames_what_a_task_left(tmp: Path) -> None:
    """N2, N3: whatever its depth and number, the folder is only given another name."""
    remover = Idle()
    scratch = LocalScratch("w1", "/spool", SystemHost(), remover)
    folder = Path(scratch.open("a.1"))
    deep(folder / WORK, 1200)
    for number in range(100):
        (folder / str(number)).write_bytes(b"")
    scratch.close("a.1")
    assert not folder.exists()
    (aside,) = [name for name in os.listdir(scratch.root) if name.startswith(ENDED)]
    assert len(os.listdir(f"{scratch.root}/{aside}")) == 102
    assert remover.asked == [(str(tmp), [scratch.root])]
    assert scratch.notes == ("it hangs",)
    scratch.remove()
    assert [name.startswith(RUBBISH) for name in os.listdir(tmp)] == [True]


def test_another_process_removes_it(tmp: Path) -> None:
    scratch = LocalScratch("w1", "/spool", SystemHost())
    deep(Path(scratch.open("a.1")) / WORK, 1200)
    scratch.close("a.1")

    def gone() -> bool:
        scratch.look()
        return not any(name.startswith(ENDED) for name in os.listdir(scratch.root))

    until(gone)
    assert scratch.notes == ()
    scratch.remove()
    assert os.listdir(tmp) == []


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_what_a_task_gave_to_another_user_is_removed_too(tmp: Path) -> None:
    """It was passed over as rubbish of somebody else, and nobody named it."""
    scratch = LocalScratch("w1", "/spool", SystemHost())
    (folder := Path(scratch.root, "strange")).mkdir()
    os.chown(folder, 65534, 65534)

    def gone() -> bool:
        scratch.look()
        return os.listdir(scratch.root) == ["owner.json"]

    until(gone)
    scratch.remove()
    assert os.listdir(tmp) == []


def test_what_a_dead_worker_left_is_taken_over_at_once(tmp: Path) -> None:
    """N2: every next worker of that user met the folder again, and died of it. TMPDIR may have any name."""
    dead = tmp / "spoold-scratch-dead"
    dead.mkdir()
    deep(dead, 1200)
    idle = Idle()
    scratch = LocalScratch("w2", "/other", SystemHost(), idle)
    scratch.take_over([Abandoned(str(dead), "w1", "/spool"), Abandoned(str(tmp / "spoold-scratch-gone"), "w0", "/")])
    assert not dead.exists()
    assert idle.asked == [(str(tmp), [scratch.root])]
    assert find_abandoned(SystemHost()) == []
    scratch.remove()
    next_one = LocalScratch("w3", "/spool", SystemHost())
    next_one.take_over([])
    next_one.remove()
    until(lambda: os.listdir(tmp) == [])


def test_a_remover_that_dies_is_started_anew(tmp: Path) -> None:
    now = [0.0]
    leftovers = Leftovers(lambda: now[0], python="/bin/false")
    leftovers.clear(str(tmp), [])

    def told() -> bool:
        leftovers.look()
        return bool(leftovers.notes)

    until(told)
    assert "ended with 1; another is started in 1 s" in leftovers.notes[0]
    now[0] = 2.0

    def again() -> bool:
        leftovers.look()
        return "in 2 s" in leftovers.notes[0]

    until(again)
    leftovers.finish(0.0)


def test_a_remover_that_hangs_is_named_and_replaced(tmp: Path) -> None:
    now = [0.0]
    hanging = tmp / "hangs"
    hanging.write_text("#!/bin/sh\nexec sleep 1000\n")
    hanging.chmod(0o700)
    leftovers = Leftovers(lambda: now[0], python=str(hanging))
    leftovers.clear(str(tmp), [])
    leftovers.look()
    assert list(leftovers.notes) == []
    now[0] = 31.0
    leftovers.look()
    assert "did not answer for 31 s; another is started in 1 s" in leftovers.notes[0]
    leftovers.finish(0.0)


def test_one_that_cannot_be_started_is_said(tmp: Path) -> None:
    leftovers = Leftovers(python=str(tmp / "nothing"))
    leftovers.clear(str(tmp), [])
    assert "cannot be started" in leftovers.notes[0]
    leftovers.finish(0.0)


def test_what_stays_is_told_with_its_reason() -> None:
    leftovers = Leftovers()
    leftovers._take(b'{"n": 1, "left": [["/proc", "something is mounted on it; run: umount /proc", 0, false]]}')
    assert list(leftovers.notes) == [
        "a task left /proc (0.0 MiB), which cannot be removed: something is mounted on it; run: umount /proc"
    ]
    leftovers._take(b"[[[[")
    leftovers._take(b'{"n": 1, "left": []}')
    assert list(leftovers.notes) == []


def test_what_cannot_be_moved_aside_is_told_with_its_size(tmp: Path) -> None:
    """In the folder of loans, in which every task of the worker may write, as in the folder of an attempt."""
    scratch = LocalScratch("w1", "/spool", SystemHost(), Idle())
    folder = Path(scratch.root, LOANS)
    folder.mkdir()
    above = os.open(folder, os.O_RDONLY)
    (folder / "moves" / "in").mkdir(parents=True)
    assert scratch.put_aside("moves", above, f"{folder}/moves")
    assert scratch.put_aside("is gone", above, f"{folder}/is gone")
    assert os.listdir(folder) == []
    # A rename across directories cannot be refused for a user like root; a name that is none can.
    assert not scratch.put_aside("..", above, f"{folder}/..")
    (told, idle) = scratch.notes
    assert told.startswith(f"a task left {quoted(f'{folder}/..')}")
    assert "MiB), which cannot be moved: " in told or "mounted" in told
    assert idle == "it hangs"
    os.close(above)
    scratch.remove()


def test_what_was_left_beside_the_folders_of_attempts_is_put_aside(tmp: Path) -> None:
    """A task that gives its own folder another name leaves it there, and nobody named it."""
    scratch = LocalScratch("w1", "/spool", SystemHost(), Idle())
    first, second = Path(scratch.open("a.1")), Path(scratch.open("b.1"))
    Path(scratch.root, LOANS).mkdir()
    first.rename(old := first.with_name("old"))
    Path(scratch.root, "3").mkdir()  # the name of the next folder
    Path(scratch.root, "link").symlink_to(tmp)
    third = Path(scratch.open("c.1"))
    scratch.look()
    assert old.is_dir(), "an attempt that runs keeps its folder, under any name"
    assert {str(path.name) for path in (second, third, old)} <= set(os.listdir(scratch.root))
    assert not {"3", "link"} & set(os.listdir(scratch.root))
    for key in ("a.1", "b.1", "c.1"):
        scratch.close(key)
    scratch.look()
    left = [name for name in os.listdir(scratch.root) if not name.startswith(ENDED)]
    assert sorted(left) == sorted(["owner.json", LOANS, second.name, third.name])
    assert (tmp / Path(scratch.root).name).is_dir()
    scratch.remove()


def test_one_step_puts_aside_only_so_much(tmp: Path) -> None:
    scratch = LocalScratch("w1", "/spool", SystemHost(), Idle())
    for number in range(40):
        Path(scratch.root, f"left{number}").touch()

    def left() -> int:
        scratch.look()
        return sum(name.startswith("left") for name in os.listdir(scratch.root))

    assert [left(), left(), left()] == [24, 8, 0]
    scratch.remove()
