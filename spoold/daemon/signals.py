"""The signals that ask a process to leave, as something its main thread can wait for.

A handler runs in the main thread between any two instructions, also inside a wait: it may only touch what does not
lock, or a second Ctrl-C right after the first would wait for ever for a lock that the thread itself holds. An Event
is such a lock; SimpleQueue is made for this.
"""

from __future__ import annotations

import contextlib
import queue
import signal
from types import FrameType


class Signals:
    """Requests to leave, in the order in which they came; `numbers` only ever grows."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()

    def catch(self) -> None:
        """From now on SIGTERM, SIGINT and SIGHUP are received here. For the main thread."""
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._on_signal)

    def receive(self, number: int) -> None:
        """As if the signal had come; from any thread."""
        self.numbers.append(number)
        self.wake()

    def wake(self) -> None:
        """End a wait, this one or the next; from any thread."""
        self._woken.put(None)

    def wait(self, timeout_s: float) -> None:
        """Until a signal comes, somebody wakes us, or the time (s) is over."""
        with contextlib.suppress(queue.Empty):
            self._woken.get(timeout=timeout_s)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        self.receive(number)
