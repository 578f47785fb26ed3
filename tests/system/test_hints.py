"""Hints: what moves wakes, what reads does not, and where inotify cannot help it says so and stays quiet."""

from __future__ import annotations

import errno
import os
import resource
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from watchdog.observers.inotify_c import InotifyEvent, InotifyFD
from watchdog.observers.polling import PollingObserver

from spoold.system import hints as hints_module
from spoold.system.hints import Hints, Observing
from spoold.system.inotify import Inotify, _Reader
from spoold.system.mounts import Ground, Mount
from spoold.system.wakeup import readable
from tests.runner.processes import eventually

PATIENCE_S = 20.0


@pytest.fixture
def hints(tmp_path: Path) -> Iterator[Hints]:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    hints = Hints(tmp_path)
    yield hints
    hints.close()


def told(hints: Hints, timeout_s: float = PATIENCE_S) -> bool:
    return bool(readable(timeout_s, hints.fileno()))


def test_a_name_made_in_or_moved_into_a_directory_is_told(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    assert hints.reason is None
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)
    assert not hints.clear()
    (tmp_path / "b/y").write_bytes(b"")
    (tmp_path / "b/y").rename(tmp_path / "a/y")
    assert told(hints)
    assert not hints.clear()
    (tmp_path / "a/dir").mkdir()
    assert told(hints)
    assert hints.clear(), "a directory came, which may have to be watched"


def test_the_root_can_be_watched(tmp_path: Path, hints: Hints) -> None:
    hints.watch([""])
    (tmp_path / "spool.json").write_bytes(b"")
    assert told(hints)


def test_what_reads_lists_writes_or_leaves_is_not_told(tmp_path: Path, hints: Hints) -> None:
    (tmp_path / "a/x").write_bytes(b"1")
    (tmp_path / "a/below").mkdir()
    hints.watch(["a"])
    (tmp_path / "a/x").read_bytes()
    os.listdir(tmp_path / "a")
    with open(tmp_path / "a/x", "ab") as file:
        file.write(b"2")
    os.utime(tmp_path / "a/x")
    (tmp_path / "a/below/y").write_bytes(b"")
    (tmp_path / "b/y").write_bytes(b"")
    (tmp_path / "a/x").rename(tmp_path / "b/x")
    assert not told(hints, 0.3)


def test_a_missing_directory_is_watched_once_it_is_there(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["later", "a/file/x"])
    assert hints.reason is None
    (tmp_path / "later").mkdir()
    hints.watch(["later"])
    hints.watch(["later"])
    (tmp_path / "later/x").write_bytes(b"")
    assert told(hints)


def test_a_directory_removed_and_made_again_is_watched_again(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    (tmp_path / "a").rmdir()
    assert told(hints)
    assert hints.clear()
    (tmp_path / "a").mkdir()
    hints.watch(["a"])
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)


def test_more_events_than_one_read_takes_are_cleared_at_once(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    for number in range(2000):
        (tmp_path / f"a/{number:0>40}").write_bytes(b"")
    eventually(lambda: not hints.clear() and not told(hints, 0.05))
    (tmp_path / "a/last").write_bytes(b"")
    assert told(hints)


def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many events each read of inotify brought, as they come."""
    found: list[int] = []
    real = InotifyFD.read_events

    def read_events(self: InotifyFD) -> list[InotifyEvent]:
        events = real(self)
        found.append(len(events))
        return events

    monkeypatch.setattr(InotifyFD, "read_events", read_events)
    return found


def test_who_has_not_heard_yet_is_not_disturbed_again(
    tmp_path: Path, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    hints.watch(["a"])
    (tmp_path / "a/0").write_bytes(b"")
    assert told(hints)
    (tmp_path / "a/1").write_bytes(b"")
    reader = resting(hints)
    found = reads(monkeypatch)
    for number in range(2, 50):
        (tmp_path / f"a/{number}").write_bytes(b"")
    hints.clear()
    assert reader._resting
    assert found == [], "nobody waits for it"
    assert told(hints)
    assert found[0] >= 48, "one notice is enough for all of them"


def resting(hints: Hints) -> _Reader:
    """The thread of these hints, once it rests."""
    assert isinstance(hints._watching, Inotify)
    reader = hints._watching._fd
    eventually(lambda: reader._resting)
    return reader


def test_what_comes_while_the_last_is_being_heard_is_told(tmp_path: Path, hints: Hints) -> None:
    """Heard between the look at the bell and the rest: who then waits may have asked before the thread rested."""
    hints.watch(["a"])
    assert isinstance(hints._watching, Inotify)
    reader = hints._watching._fd
    notice, heard = reader._notice, False

    def hear(changed: bool, gone: object | None) -> bool:
        nonlocal heard
        news = notice(changed, gone)
        if not news and not heard:
            heard = True
            hints.clear()
        return news

    reader._notice = hear
    (tmp_path / "a/0").write_bytes(b"")
    bell = hints.fileno()
    assert readable(PATIENCE_S, bell)
    (tmp_path / "a/1").write_bytes(b"")
    eventually(lambda: heard)
    assert readable(PATIENCE_S, bell)


def test_a_thread_that_rests_ends_at_once(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    (tmp_path / "a/0").write_bytes(b"")
    assert told(hints)
    (tmp_path / "a/1").write_bytes(b"")
    reader = resting(hints)
    hints.close()
    assert not reader.is_alive()


def test_all_that_comes_is_told_whenever_it_comes(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    for number in range(200):
        (tmp_path / f"a/{number}").write_bytes(b"")
        if number % 3:
            (tmp_path / f"a/{number}-").write_bytes(b"")
        assert told(hints), number
        hints.clear()


def test_events_that_were_lost_are_looked_for(hints: Hints) -> None:
    hints.watch(["a"])
    assert isinstance(hints._watching, Inotify)
    hints._watching.on_queue_overflow()
    assert told(hints)
    assert hints.clear(), "a directory may have come"


def test_no_link_is_followed(tmp_path: Path, hints: Hints) -> None:
    (tmp_path / "b/lane").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "b")
    hints.watch(["link", "link/lane"])
    (tmp_path / "b/x").write_bytes(b"")
    (tmp_path / "b/lane/x").write_bytes(b"")
    assert not told(hints, 0.3)
    assert hints.reason is None
    (tmp_path / "link").unlink()
    (tmp_path / "link/lane").mkdir(parents=True)
    hints.watch(["link", "link/lane"])
    (tmp_path / "link/lane/x").write_bytes(b"")
    assert told(hints)


def test_a_link_that_comes_between_the_look_and_the_watch_is_not_followed(tmp_path: Path, hints: Hints) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "b")
    assert hints._watching is not None
    with pytest.raises(NotADirectoryError):
        hints._watching.add(str(tmp_path / "link"))


def test_a_directory_that_may_not_be_read_is_a_reason(
    tmp_path: Path, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What watchdog answers then; root may read everything.
    monkeypatch.setattr("spoold.system.inotify.InotifyFD.add_callback", lambda *_: -1)
    hints.watch(["a"])
    assert hints.reason == "changes cannot be watched here: Permission denied"


def test_nothing_is_left_after_close(tmp_path: Path) -> None:
    def left() -> tuple[int, list[str]]:
        return len(os.listdir("/proc/self/fd")), [thread.name for thread in threading.enumerate()]

    Hints(tmp_path).close()
    before = left()
    for _ in range(3):
        hints = Hints(tmp_path)
        hints.watch([""])
        hints.close()
    assert left() == before


def test_nothing_is_told_after_close(tmp_path: Path, hints: Hints) -> None:
    hints.watch(["a"])
    hints.close()
    hints.close()
    hints.watch(["a"])
    assert hints.fileno() < 0
    assert not hints.clear()


def test_a_network_file_system_gets_no_watch_and_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_nfs = Ground(str(tmp_path), lambda _: Mount("/mnt/spool", "nfs4", "nas:/x", ()))
    monkeypatch.setattr(hints_module, "Ground", lambda root: on_nfs)
    hints = Hints(tmp_path)
    hints.watch([""])
    assert hints.reason is not None
    assert "nfs4" in hints.reason
    assert hints.fileno() < 0
    hints.close()


def test_a_limit_of_instances_is_a_reason_not_an_error(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The lowest free descriptor as the limit: the next one that is asked for cannot be had.
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        hints = Hints(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    hints.close()
    assert hints.reason is not None
    assert "ulimit" in hints.reason


def test_a_limit_of_watches_is_a_reason_and_the_others_go_on(
    tmp_path: Path, hints: Hints, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The real limit belongs to the whole machine; lowering it for a test would take it from everybody.
    def no_more(*_arguments: object) -> int:
        raise OSError(errno.ENOSPC, "no space left on device")

    hints.watch(["a"])
    with monkeypatch.context() as patch:
        patch.setattr("spoold.system.inotify.InotifyFD.add_callback", no_more)
        hints.watch(["a", "b"])
    assert hints.reason is not None
    assert "max_user_watches" in hints.reason
    (tmp_path / "a/x").write_bytes(b"")
    assert told(hints)


@pytest.fixture
def observed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hints]:
    """As on a system without inotify, whose notifications come by watchdog's Observer."""
    monkeypatch.setitem(sys.modules, "spoold.system.inotify", None)
    (tmp_path / "a").mkdir()
    hints = Hints(tmp_path)
    assert isinstance(hints._watching, Observing)
    yield hints
    hints.close()


def test_without_inotify_the_observer_tells(tmp_path: Path, observed: Hints) -> None:
    observed.watch(["a", "missing"])
    (tmp_path / "a/x").write_bytes(b"")
    assert told(observed)
    assert not observed.clear()
    (tmp_path / "a/dir").mkdir()
    eventually(observed.clear)


def test_without_inotify_a_directory_made_again_is_watched_again(tmp_path: Path, observed: Hints) -> None:
    observed.watch(["a"])
    (tmp_path / "a").rmdir()
    eventually(observed.clear)
    (tmp_path / "a").mkdir()
    observed.watch(["a"])
    (tmp_path / "a/x").write_bytes(b"")
    eventually(lambda: told(observed, 0.05))


def test_a_system_that_can_only_be_polled_is_polled_by_us(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "spoold.system.inotify", None)
    monkeypatch.setattr("watchdog.observers.Observer", PollingObserver)
    assert Hints(tmp_path).reason == "changes cannot be watched here: this system does not notify of changes"


def test_a_thread_that_cannot_be_had_is_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_more(_: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("spoold.system.inotify.InotifyFD.start", no_more)
    hints = Hints(tmp_path)
    assert hints.reason == "changes cannot be watched here: can't start new thread"
    assert hints.fileno() < 0
    hints.close()


def test_more_directories_than_the_bound_are_left_to_polling(hints: Hints, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints_module, "MAX_WATCHES", 1)
    hints.watch(["a"])
    assert hints.reason is None
    hints.watch(["a", "b"])
    assert "only 1 " in str(hints.reason)
