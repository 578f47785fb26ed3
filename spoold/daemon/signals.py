"""The signals that ask a process to leave, or tell of sleep, as something its main thread can wait for.

A handler runs in the main thread between any two instructions, also inside a wait: it must not lock anything, or a
second Ctrl-C right after the first would wait for ever for what the thread itself holds. And the kernel may give a
signal to any thread, which does not end a wait of the main one; what Python writes to the wakeup descriptor does.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
from types import FrameType

from spoold.daemon.nap import ANNOUNCED, OVER


class Signals:
    """Requests to leave (`numbers`) and news of sleep (`naps`), in the order in which they came; both only grow."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.naps: list[int] = []
        self._bell, self._ring = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._ring, False)

    def catch(self) -> None:
        """From now on SIGTERM, SIGINT, SIGHUP, and SIGUSR1 and 2 are received here. For the main thread, once in a
        process.

        A SIGHUP that the parent has ignored stays ignored: that is all that `nohup` does.
        """
        signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, ANNOUNCED, OVER):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._on_signal)

    def receive(self, number: int) -> None:
        """As if the signal had come; from any thread."""
        self.numbers.append(number)
        self.wake()

    def wake(self) -> None:
        """End a wait, this one or the next; from any thread."""
        with contextlib.suppress(BlockingIOError):  # full of what will end the wait just as well
            os.write(self._ring, b"\0")

    def wait(self, timeout_s: float) -> None:
        """Until a signal comes, somebody wakes us, or the time (s) is over."""
        if select.select([self._bell], [], [], timeout_s)[0]:
            os.read(self._bell, 4096)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        (self.naps if number in (ANNOUNCED, OVER) else self.numbers).append(number)
