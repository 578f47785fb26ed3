"""Signals may come at any instruction, also inside the very wait that they are to end."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import Any

import pytest

from spoold.daemon.signals import Signals


def test_a_signal_at_any_instruction_of_a_wait_is_received_and_locks_nothing() -> None:
    signals = Signals()

    def interrupt(frame: FrameType, event: str, arg: Any) -> Any:
        del event, arg
        frame.f_trace_opcodes = True
        signals._on_signal(signal.SIGTERM, None)
        return interrupt

    def wait() -> None:
        sys.settrace(interrupt)
        try:
            signals.wait(0.01)
        finally:
            sys.settrace(None)

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive(), "the handler waits for a lock that the wait holds"
    assert len(signals.numbers) > 5


def test_a_wait_ends_with_a_signal_that_came_before_it() -> None:
    signals = Signals()
    signals.receive(signal.SIGHUP)
    began = time.monotonic()
    signals.wait(30)
    assert time.monotonic() - began < 10
    assert signals.numbers == [signal.SIGHUP]


def test_waking_is_no_signal() -> None:
    signals = Signals()
    threading.Timer(0.01, signals.wake).start()
    began = time.monotonic()
    signals.wait(30)
    assert time.monotonic() - began < 10
    assert signals.numbers == []


OTHER_THREAD = """
import os, signal, threading, time
from spoold.daemon.signals import Signals
signals = Signals()
signals.catch()
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM)).start()
signals.wait(60)
print(signals.numbers)
"""


def test_a_signal_that_the_kernel_gives_to_another_thread_ends_the_wait() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", OTHER_THREAD], capture_output=True, text=True, check=True)
    assert done.stdout == f"[{int(signal.SIGTERM)}]\n"
    assert time.monotonic() - began < 30


HANGUP = """
import os, signal
from spoold.daemon.signals import Signals
signals = Signals()
signals.catch()
os.kill(os.getpid(), signal.SIGHUP)
os.kill(os.getpid(), signal.SIGTERM)
signals.wait(60)
print(signals.numbers)
"""


@pytest.mark.parametrize(("ignored", "heard"), [(False, [signal.SIGHUP, signal.SIGTERM]), (True, [signal.SIGTERM])])
def test_a_hangup_that_the_parent_ignores_stays_ignored(ignored: bool, heard: list[int]) -> None:
    def as_nohup_does() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)

    done = subprocess.run(
        [sys.executable, "-c", HANGUP], capture_output=True, text=True, check=True, preexec_fn=as_nohup_does
    )
    assert done.stdout == f"{[int(number) for number in heard]}\n"
