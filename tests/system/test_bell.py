"""The bell: rung before or during a wait it ends the wait once, and after close it harms nobody."""

from __future__ import annotations

import os
import threading
import time

from spoold.system.wakeup import Bell, readable


def test_a_bell_ends_one_wait_however_often_it_was_rung() -> None:
    bell = Bell()
    try:
        assert readable(0, bell.fileno()) == set()
        for _ in range(3):
            bell.ring()
        assert readable(60, bell.fileno(), -1) == {bell.fileno()}
        bell.hush()
        bell.hush()
        assert readable(0.001, bell.fileno()) == set()
    finally:
        bell.close()


def test_a_bell_is_rung_from_another_thread() -> None:
    bell = Bell()
    ringer = threading.Timer(0.01, bell.ring)
    ringer.start()
    began = time.monotonic()
    assert readable(60, bell.fileno())
    assert time.monotonic() - began < 30
    ringer.join()
    bell.close()


def test_a_late_ring_writes_to_nobody() -> None:
    bell = Bell()
    bell.close()
    source, sink = os.pipe()  # these get the numbers of the bell
    os.set_blocking(source, False)
    bell.ring()
    assert readable(0, source) == set()
    os.close(source)
    os.close(sink)
