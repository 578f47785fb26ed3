"""The scratch: a folder per attempt, empty to begin with whatever the attempt before did to it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from spoold.system.host import FakeHost, SystemHost
from spoold.system.scratch import DEPS, TASK, WORK, Abandoned, LocalScratch, find_abandoned


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalScratch]:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    scratch = LocalScratch("w1", "/spool", SystemHost())
    yield scratch
    scratch.remove()
    assert os.listdir(tmp_path) == []


def as_made(folder: Path) -> bool:
    """Whether it is what an attempt is promised."""
    inside = {path.relative_to(folder).as_posix() for path in folder.rglob("*")} - {TASK}
    return inside == {WORK, DEPS} and all(os.access(folder / part, os.R_OK | os.W_OK | os.X_OK) for part in inside)


def test_a_folder_in_which_only_files_were_left_is_used_again(scratch: LocalScratch) -> None:
    folder = Path(scratch.open("a.1"))
    assert as_made(folder)
    scratch.write("a.1", "task.json", b"{}")
    (folder / "result.json").write_bytes(b"1")
    (folder / "link").symlink_to("/")
    scratch.close("a.1")
    assert as_made(folder)
    assert scratch.open("b.1") == str(folder)
    assert scratch.open("c.1") != str(folder)


def test_a_folder_that_was_left_alone_is_told_by_its_times(
    scratch: LocalScratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path(scratch.open("a.1"))
    scratch.write("a.1", TASK, b"{}")
    scratch.close("a.1")
    time.sleep(0.06)  # a tick of the clock of directories, after which they tell of every change
    listed: list[int] = []
    scandir = os.scandir

    def look(path: int) -> Any:
        listed.append(path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", look)
    scratch.open("b.1")
    scratch.write("b.1", TASK, b"[]")
    assert (folder / TASK).read_bytes() == b"[]"
    scratch.close("b.1")
    assert listed == []
    scratch.open("c.1")
    (folder / WORK / "x").write_bytes(b"")
    scratch.close("c.1")
    assert listed


SPOILT: dict[str, Callable[[Path], object]] = {
    "kept elsewhere": lambda file: (file.parent.parent / "kept").hardlink_to(file),
    "read only": lambda file: file.chmod(0o400),
    "removed": lambda file: file.unlink(),
    "a pipe": lambda file: (file.unlink(), os.mkfifo(file)),  # type: ignore[func-returns-value]
    "a link": lambda file: (file.unlink(), file.symlink_to("/dev/null")),  # type: ignore[func-returns-value]
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=list(SPOILT))
def test_a_task_file_is_never_written_into_what_an_attempt_made_of_it(
    scratch: LocalScratch, spoil: Callable[[Path], object]
) -> None:
    folder = Path(scratch.open("a.1"))
    scratch.write("a.1", TASK, b"first")
    spoil(folder / TASK)
    scratch.close("a.1")
    folder = Path(scratch.open("b.1"))
    scratch.write("b.1", TASK, b"2")
    assert (folder / TASK).read_bytes() == b"2"
    kept = folder.parent / "kept"
    assert not kept.exists() or kept.read_bytes() == b"first"


def replaced_by_a_link(folder: Path) -> None:
    (folder / WORK).rmdir()
    (folder / WORK).symlink_to("/tmp")


MESS: dict[str, Callable[[Path], object]] = {
    "a file in work": lambda folder: (folder / WORK / "x").write_bytes(b""),
    "a file in deps": lambda folder: (folder / DEPS / "x").write_bytes(b""),
    "a directory": lambda folder: (folder / "more/below").mkdir(parents=True),
    "no work": lambda folder: (folder / WORK).rmdir(),
    "a link for work": replaced_by_a_link,
    "a work that cannot be written": lambda folder: (folder / WORK).chmod(0o500),
    "another folder": lambda folder: folder.rename(f"{folder}x"),
}


@pytest.mark.parametrize("mess", MESS.values(), ids=list(MESS))
def test_any_other_mess_is_never_seen_by_another_attempt(
    scratch: LocalScratch, mess: Callable[[Path], object]
) -> None:
    folder = Path(scratch.open("a.1"))
    mess(folder)
    scratch.close("a.1")
    assert not folder.exists()
    again = Path(scratch.open("b.1"))
    assert again != folder
    assert as_made(again)


def test_the_same_attempt_opened_again_begins_anew(scratch: LocalScratch) -> None:
    scratch.open("a.1")
    scratch.write("a.1", "output", b"old")
    scratch.open("a.1")
    assert scratch.read("a.1", "output") == b""


def test_what_clears_old_files_away_takes_no_folder_from_the_next_attempt(scratch: LocalScratch) -> None:
    folder = Path(scratch.open("a.1"))
    scratch.close("a.1")
    (folder / WORK).rmdir()
    again = Path(scratch.open("b.1"))
    assert as_made(again)


def test_a_root_that_was_cleared_away_is_made_anew(scratch: LocalScratch) -> None:
    scratch.open("a.1")
    scratch.open("b.1")
    scratch.close("a.1")
    before = scratch.root
    shutil.rmtree(before)
    again = Path(scratch.open("c.1"))
    assert as_made(again)
    assert scratch.root != before
    assert (Path(scratch.root) / "owner.json").is_file()
    scratch.close("b.1")
    assert as_made(Path(scratch.open("d.1")))


def test_a_root_that_cannot_be_owned_is_not_left_behind(
    scratch: LocalScratch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(scratch.root)
    monkeypatch.setattr("spoold.system.scratch._OWNER", "no/such/place")
    with pytest.raises(FileNotFoundError):
        scratch.open("a.1")
    assert os.listdir(tmp_path) == []


def test_what_is_read_is_a_part_of_a_regular_file_or_nothing(scratch: LocalScratch) -> None:
    folder = Path(scratch.open("a.1"))
    scratch.write("a.1", "output", b"0123456789")
    assert scratch.read("a.1", "output", 2, 3) == b"234"
    assert scratch.read("a.1", "output", 4) == b"456789"
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("output")
    assert [scratch.read("a.1", name) for name in ("pipe", "link", WORK, "missing")] == [b""] * 4
    scratch.close("a.1")
    assert scratch.read("a.1", "output") == b""
    scratch.close("a.1")


def test_a_pipe_where_a_record_is_looked_for_blocks_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/tmp is everybody's, and a worker looks there when it starts."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trap = tmp_path / "spoold-scratch-trap"
    trap.mkdir()
    os.mkfifo(trap / "owner.json")
    found: list[list[Abandoned]] = []
    looking = Thread(target=lambda: found.append(find_abandoned(SystemHost())), daemon=True)
    looking.start()
    looking.join(5)
    assert found == [[]]


def test_a_scratch_is_abandoned_once_its_lock_is_free_whatever_its_record_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """N1, N12: the owner seems to have run in another boot, and at another moment, and lives."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    elsewhere = FakeHost("laptop")
    scratch = LocalScratch("w1", "/spool", elsewhere)
    assert find_abandoned(SystemHost()) == []
    elsewhere.reboot()
    assert find_abandoned(elsewhere.another()) == []
    scratch._release()  # as the kernel does when the process ends
    (left,) = find_abandoned(SystemHost())
    assert left.worker == "w1"


@pytest.mark.parametrize("content", [b"[" * 200_000, b"\xff" * 10, b'{"host": 3}', b"0" * 100_000])
def test_what_strangers_call_a_record_keeps_no_worker_from_starting(
    content: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    trap = tmp_path / "spoold-scratch-0evil"
    trap.mkdir()
    (trap / "owner.json").write_bytes(content)
    assert find_abandoned(SystemHost()) == []
    os.truncate(trap / "owner.json", 1 << 40)
    assert find_abandoned(SystemHost()) == []


MOUNTING = """
import os, subprocess, sys, tempfile
from spoold.system.host import SystemHost
from spoold.system.scratch import LocalScratch
tempfile.tempdir, precious = sys.argv[1:]
os.mkdir(tempfile.tempdir), os.mkdir(precious)
open(precious + "/kept", "w").write("kept")
scratch = LocalScratch("w1", "/spool", SystemHost())
seen = []
for number, place in enumerate(["work", "deps", "task.json", "output", "."]):
    folder = scratch.open(f"{number}.1")
    assert folder not in seen, place
    seen.append(folder)
    scratch.write(f"{number}.1", "task.json", b"{}")
    where = os.path.normpath(f"{folder}/{place}")
    if not os.path.exists(where):
        open(where, "w").close()
    source = precious if os.path.isdir(where) else precious + "/kept"
    subprocess.run(["mount", "--bind", source, where], check=True)
    assert scratch.read(f"{number}.1", place) == b"" or place == "task.json"
    scratch.close(f"{number}.1")
again = scratch.open("more.1")
assert again not in seen
scratch.write("more.1", "task.json", b"[]")
assert "run: umount" in scratch.notes[0], scratch.notes
scratch.remove()
assert os.listdir(precious) == ["kept"] and open(precious + "/kept").read() == "kept"
"""


def test_what_a_task_mounted_is_neither_met_by_the_next_nor_changed(tmp_path: Path) -> None:
    """N4: also over the files of the folder, which the next attempt's task is written into."""
    own = ["unshare", "--mount", "--propagation", "private", *([] if os.geteuid() == 0 else ["--map-root-user"])]
    if shutil.which("unshare") is None or subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this machine gives no mount namespace")
    script = [sys.executable, "-c", MOUNTING, str(tmp_path / "tmp"), str(tmp_path / "precious")]
    done = subprocess.run([*own, *script], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode(errors="backslashreplace")


TRAPS: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda place, other: place.symlink_to(other),
    "a link to nothing": lambda place, other: place.symlink_to(other / "gone"),
    "a second name": lambda place, other: os.link(other, place) if other.is_file() else place.symlink_to(other),
    "a pipe": lambda place, _: os.mkfifo(place),
    "a directory": lambda place, _: place.mkdir(),
    "a file": lambda place, _: place.write_text("x"),
}


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("taken", ["task.json", "deps", "deps/a.json", "."])
@pytest.mark.parametrize("name", ["task.json", "deps/a.json", "answer.json"])
def test_nothing_outside_is_written_or_removed_through_what_a_task_put_in_its_folder(
    name: str, taken: str, trap: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names-f: with a link in the place of deps/, the file of that name behind the link was removed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outside = tmp_path / "outside"
    (outside / "deps").mkdir(parents=True)
    for precious in ("task.json", "a.json", "answer.json", "deps/a.json"):
        (outside / precious).write_text("precious")
    before = {path: path.is_dir() or path.read_text() for path in outside.rglob("*")}
    scratch = LocalScratch("w", "s", FakeHost("h"))
    try:
        folder = Path(scratch.open("t.1"))
        place = folder / taken
        if place.is_dir():
            place.rename(folder.with_name("moved"))
        other = outside if taken in (".", "deps") else outside / taken
        TRAPS[trap](folder if taken == "." else place, other)
        with suppress(OSError):
            scratch.write("t.1", name, b"new")
        scratch.close("t.1")
    finally:
        scratch.remove()
    assert {path: path.is_dir() or path.read_text() for path in outside.rglob("*")} == before
