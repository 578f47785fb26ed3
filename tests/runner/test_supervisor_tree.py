"""The tree: /proc is read as the kernel means it, and only what was asked for is killed."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from spoold.runner import process_tree
from tests.runner.processes import eventually, marked, new_mark


def test_a_name_with_blanks_and_parentheses_is_no_trouble(tmp_path: Path) -> None:
    program = tmp_path / "a) S 1 (b"
    program.symlink_to("/bin/sleep")
    process = subprocess.Popen([str(program), "60"])
    try:
        eventually(lambda: Path(f"/proc/{process.pid}/comm").read_text() == "a) S 1 (b\n")
        seen = process_tree.look(process.pid)
        assert seen is not None
        assert (seen.parent, seen.group, seen.session) == (os.getpid(), os.getpgrp(), os.getsid(0))
        assert seen.alive
        eventually(
            lambda: (seen := process_tree.look(process.pid)) is not None and seen.rss > 0
        )  # its name comes first
        process.kill()
        eventually(lambda: (seen := process_tree.look(process.pid)) is not None and not seen.alive)
    finally:
        process.wait()
    assert process_tree.look(process.pid) is None


@pytest.mark.parametrize("listed", [True, False])
def test_descendants_are_found_with_and_without_the_kernels_lists(
    monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    monkeypatch.setattr(process_tree, "_CHILDREN_LISTED", listed)
    mark = new_mark()
    started: list[subprocess.Popen[bytes]] = []
    script = f"sleep {mark} & setsid sh -c 'sleep {mark}; :' & wait"
    # A child belongs to the thread that started it, and is the process's child all the same.
    thread = threading.Thread(target=lambda: started.append(subprocess.Popen(["sh", "-c", script])))
    thread.start()
    thread.join()
    (process,) = started
    try:
        eventually(lambda: len(marked(mark)) == 4)
        assert {seen.pid for seen in process_tree.below(process.pid)} | {process.pid} == set(marked(mark))
        assert process.pid in {seen.pid for seen in process_tree.below(os.getpid())}
    finally:
        left = process_tree.end(lambda: process_tree.below(process.pid), lambda: False, patience_s=10)
        process.kill()
        process.wait()
    assert left == []
    # Whoever lost its parent is nobody's here, since this process adopts none: killed, and out of sight as it dies.
    eventually(lambda: marked(mark) == [])


def test_the_spared_and_their_group_live() -> None:
    mark = new_mark()
    script = f"import subprocess, time\nfor i in (1, 2): subprocess.Popen(['sleep', '{mark}'])\ntime.sleep(60)"
    process = subprocess.Popen([sys.executable, "-c", script], start_new_session=True)
    try:
        eventually(lambda: len(marked(mark)) == 3)
        spare = frozenset({process.pid})
        assert process_tree.end(lambda: process_tree.below(process.pid), lambda: False, spare, 10) == []
        assert marked(mark) == [process.pid]
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()


def test_a_search_that_cannot_succeed_gives_up_and_says_who_is_left() -> None:
    process = subprocess.Popen(["sleep", new_mark()], start_new_session=True)
    seen = process_tree.look(process.pid)
    assert seen is not None
    assert process_tree.end(lambda: [seen], lambda: False, patience_s=0.05) == [process.pid]
    process.wait()


def test_becoming_a_subreaper_is_seen() -> None:
    script = (
        "from spoold.runner import process_tree as t; print(t.is_subreaper(), t.become_subreaper(), t.is_subreaper())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False True True\n"
