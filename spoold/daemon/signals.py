"""The signals that ask a process to leave, or announce sleep; its main thread can wait for them.

The kernel may give a signal to any thread, which does not end a wait of the main thread; Python's write to the wakeup
descriptor does.

Law: a handler only appends to a list, and locks nothing. It runs in the main thread between any two instructions,
also inside a wait: a second Ctrl-C right after the first would wait for ever for a lock of its own thread.

Touches: files, processes.
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
        """Receive SIGTERM, SIGINT, SIGHUP, SIGUSR1 and SIGUSR2 from now on. For the main thread, once in a process.

        A SIGHUP that the parent has ignored stays ignored: `nohup` does nothing else.
        """
        signal.set_wakeup_fd(self._ring, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, ANNOUNCED, OVER):
            if number == signal.SIGHUP and signal.getsignal(number) is signal.SIG_IGN:
                continue
            signal.signal(number, self._on_signal)

    def receive(self, number: int) -> None:
        """Act as if the signal had come; from any thread."""
        self.numbers.append(number)
        self.wake()

    def wake(self) -> None:
        """End a wait, this one or the next; from any thread."""
        with contextlib.suppress(BlockingIOError):  # a full pipe also ends the wait
            os.write(self._ring, b"\0")

    def wait(self, timeout_s: float) -> None:
        """Wait until a signal comes, `wake` is called, or the time (s) is over."""
        if select.select([self._bell], [], [], timeout_s)[0]:
            os.read(self._bell, 4096)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        del frame
        (self.naps if number in (ANNOUNCED, OVER) else self.numbers).append(number)
