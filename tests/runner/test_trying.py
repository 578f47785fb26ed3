"""A short command is run to its end, or to the end of our patience, with all that it started."""

from __future__ import annotations

import threading
import time

import psutil
import pytest

from spoold.runner.start_checks import tried
from tests.e2e.pool import processes, wait_for

ENV = {"PATH": "/usr/bin:/bin"}


@pytest.mark.parametrize(
    ("line", "good", "said"),
    [
        ("echo one; echo ' two '; echo; echo no >&2", True, "two"),
        (":", True, ""),
        ("echo out; echo why >&2; exit 3", False, "why"),
        ("exit 3", False, "its check ended with exit code 3"),
        ("kill -9 $$", False, "its check ended with exit code -9"),
        ('test "$PWD" = / && test -z "$HOME" && ! read line && echo alone', True, "alone"),
    ],
)
def test_its_last_words_are_the_answer(line: str, good: bool, said: str) -> None:
    assert tried(["sh", "-c", line], ENV) == (good, said)


def test_one_that_cannot_be_started_has_failed() -> None:
    assert tried(["/no/program"], ENV) == (
        False,
        "its check /no/program cannot be started: No such file or directory",
    )


def test_one_that_hangs_is_ended_with_its_children() -> None:
    began, mark = time.monotonic(), "7741.25"
    line = f"sleep {mark} & sleep {mark}"
    assert tried(["sh", "-c", line], ENV, 0.3) == (False, "its check did not end within 0.3 s")
    assert time.monotonic() - began < 30
    wait_for(lambda: not processes(f"sleep {mark}") or None, "the end of its processes")


def test_what_it_prints_costs_little_memory() -> None:
    before = psutil.Process().memory_info().rss
    peak = 0

    def watch() -> None:
        nonlocal peak
        while not over.is_set():
            peak = max(peak, psutil.Process().memory_info().rss)
            over.wait(0.02)

    over = threading.Event()
    watching = threading.Thread(target=watch)
    watching.start()
    assert tried(["sh", "-c", "yes | head -c 300000000; echo; echo 1.2"], ENV) == (True, "1.2")
    over.set()
    watching.join()
    assert peak - before < 100 << 20


def test_what_it_leaves_behind_is_not_waited_for() -> None:
    begun = time.monotonic()
    assert tried(["sh", "-c", "sleep 50.25 & echo 1.2"], ENV, within_s=40) == (True, "1.2")
    well, last = tried(["sh", "-c", "echo 1.2; yes more & sleep 0.1"], ENV, within_s=40)
    assert (well, last) in {(True, "more"[:most]) for most in range(1, 5)}, "the last write may be cut"
    assert time.monotonic() - begun < 20
    wait_for(lambda: not processes("sleep 50.25"), "it has ended")
