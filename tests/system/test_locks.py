"""The kernel's lock on a file: one holder among threads and processes, a bounded wait, none where there is none."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock
import pytest

from spoold.system.errnos import Meaning, advice, classify
from spoold.system.posix import NO_LOCKS, FileLock
from tests.house.sources import CHECKOUT

PATIENCE_S = 30.0
COUNT = 40

COUNTS = f"""
import sys
from spoold.system.posix import FileLock
lock, figure = FileLock(sys.argv[1]), sys.argv[2]
for _ in range({COUNT}):
    with lock.held({PATIENCE_S}):
        with open(figure) as file:
            number = int(file.read())
        with open(figure, "w") as file:
            file.write(str(number + 1))
"""
HOLDS = f"""
import sys
from spoold.system.posix import FileLock
with FileLock(sys.argv[1]).held({PATIENCE_S}):
    print("held", flush=True)
    sys.stdin.read()
"""
FORKS = f"""
import os, sys
from spoold.system.posix import FileLock
lock = FileLock(sys.argv[1])
child, parent = os.pipe()
with lock.held({PATIENCE_S}):
    if os.fork() == 0:
        os.close(parent)
        os.read(child, 1)  # until the other one has ended
        os._exit(0)
with lock.held(0):
    print("mine again")
"""


@pytest.fixture
def path(tmp_path: Path) -> str:
    made = tmp_path / "spool.lock"
    made.touch()
    return str(made)


def python(code: str, *arguments: str) -> subprocess.Popen[str]:
    env = {**os.environ, "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)


@contextmanager
def held_elsewhere(path: str) -> Iterator[subprocess.Popen[str]]:
    """Another process has it inside."""
    with python(HOLDS, path) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        try:
            yield holder
        finally:
            holder.kill()


def test_one_process_at_a_time(path: str, tmp_path: Path) -> None:
    figure = tmp_path / "figure"
    figure.write_text("0")
    crowd = [python(COUNTS, path, str(figure)) for _ in range(4)]
    assert [process.wait(PATIENCE_S * 4) for process in crowd] == [0, 0, 0, 0]
    for process in crowd:
        process.communicate()
    assert figure.read_text() == str(4 * COUNT)


def test_one_thread_at_a_time_also_with_one_object(path: str) -> None:
    lock, inside, most = FileLock(path), [0], [0]

    def work() -> None:
        for _ in range(COUNT):
            with lock.held(PATIENCE_S):
                inside[0] += 1
                most[0] = max(most[0], inside[0])
                time.sleep(0)
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert (inside, most) == ([0], [1])


@pytest.mark.parametrize("wait_s", [0.0, 0.3])
def test_the_wait_has_an_end_and_is_an_error_that_is_tried_again(path: str, wait_s: float) -> None:
    with held_elsewhere(path):
        began = time.monotonic()
        with pytest.raises(BlockingIOError, match="others held the lock") as caught, FileLock(path).held(wait_s):
            raise AssertionError("two holders")
        assert wait_s <= time.monotonic() - began
    assert classify(caught.value) is Meaning.UNKNOWN


def test_a_waiter_gets_it_when_the_holder_is_killed(path: str) -> None:
    with held_elsewhere(path) as holder:
        threading.Timer(0.2, holder.kill).start()
        with FileLock(path).held(PATIENCE_S):
            assert holder.wait(PATIENCE_S) != 0


def test_it_is_given_back_by_a_body_that_fails(path: str) -> None:
    with pytest.raises(ZeroDivisionError), FileLock(path).held(0):
        raise ZeroDivisionError
    with FileLock(path).held(0):
        assert os.listdir(os.path.dirname(path)) == ["spool.lock"]


def test_a_process_that_was_forked_meanwhile_does_not_hold_it_on(path: str) -> None:
    with python(FORKS, path) as forking:
        said, _ = forking.communicate(timeout=PATIENCE_S)
    assert said == "mine again\n"


def test_a_lock_file_that_is_missing_is_never_made(tmp_path: Path) -> None:
    """An empty mount point must stay empty: a lock there would be one among the processes of this machine."""
    for lost in (tmp_path / "spool.lock", tmp_path / "mount" / "spool.lock"):
        with pytest.raises(OSError, match="make it again") as caught, FileLock(str(lost)).held(0):
            raise AssertionError("a lock on nothing")
        assert caught.value.errno == errno.ENOLCK
    assert os.listdir(tmp_path) == []


def test_a_link_is_no_lock_file(path: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(OSError, match=os.strerror(errno.ELOOP)), FileLock(str(tmp_path / "link")).held(0):
        raise AssertionError("a lock on another file")


@pytest.mark.parametrize("code", NO_LOCKS)
def test_where_there_are_no_locks_nothing_takes_their_place(
    path: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, **__: object) -> bool:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(filelock, "lock_descriptor", refuse)
    before = os.listdir("/proc/self/fd")
    with pytest.raises(OSError, match=os.strerror(code)) as caught, FileLock(path).held(PATIENCE_S):
        raise AssertionError("a lock that is none")
    assert classify(caught.value) is Meaning.CONFIG
    assert "spool doctor" in advice(caught.value)
    assert os.listdir(os.path.dirname(path)) == ["spool.lock"]
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_lock_on_a_file_that_was_removed_meanwhile_is_none(path: str) -> None:
    errors: list[OSError] = []

    def wait() -> None:
        try:
            with FileLock(path).held(PATIENCE_S):
                errors.append(OSError(0, "two holders"))
        except OSError as error:
            errors.append(error)

    with FileLock(path).held(0):
        waiter = threading.Thread(target=wait)
        waiter.start()
        until = time.monotonic() + PATIENCE_S
        while _opened(path) < 2:
            assert time.monotonic() < until, "the other one has the file open"
            time.sleep(0.005)
        os.unlink(path)
        Path(path).touch()
    waiter.join(PATIENCE_S)
    assert [error.errno for error in errors] == [errno.EAGAIN]


def _opened(path: str) -> int:
    """How many descriptors this process has on that file."""
    found = 0
    for fd in os.listdir("/proc/self/fd"):
        try:
            found += os.readlink(f"/proc/self/fd/{fd}") == path
        except OSError:
            continue
    return found
