"""What asks a process to leave, or announces sleep: signals, and the end of the process that started it.

The kernel may give a signal to any thread, which does not end a wait of the main thread; Python's write to the wakeup
descriptor does.

Law: a handler only appends to a list, and locks nothing. It runs in the main thread between any two instructions,
also inside a wait: a second Ctrl-C right after the first would wait for ever for a lock of its own thread. A sleep is
over after the machine has slept, also without SIGUSR2. Two clocks show that: only one goes on during sleep. `Nap` is
set by the main thread and read by the loop's as well; single assignments, so no lock is needed. Of standard input
only the end counts, or an error after which nothing can be read any more; the input itself is thrown away.

Touches: files, processes, threads.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
from collections.abc import Callable
from types import FrameType

from spoold.system.clock import Clock


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
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, SLEEP_ANNOUNCED, SLEEP_OVER):
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
        (self.naps if number in (SLEEP_ANNOUNCED, SLEEP_OVER) else self.numbers).append(number)


# Whether this machine is about to sleep: SIGUSR1 announces a sleep, SIGUSR2 its end.


SLEEP_ANNOUNCED, SLEEP_OVER = signal.SIGUSR1, signal.SIGUSR2
# The clocks are read one after the other, and the process may be delayed in between.
SLEPT_S = 1.0


class Nap:
    """Whether a sleep was announced and is not over yet."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._apart_s: float | None = None

    def hear(self, number: int) -> None:
        """Take one of the two signals. A repeated announcement is the same one."""
        if number == SLEEP_OVER:
            self._apart_s = None
        elif not self.due:
            self._apart_s = self._apart()

    @property
    def due(self) -> bool:
        """Whether nothing may run now."""
        apart_s = self._apart_s
        return apart_s is not None and self._apart() - apart_s <= SLEPT_S

    def _apart(self) -> float:
        """Return the difference of the clocks: all the time (s) that the machine has slept since its start."""
        return self._clock.boottime() - self._clock.monotonic()


# The end of standard input as a sign that the process which started this one is gone, however it ended.


STDIN = 0


def at_eof(act: Callable[[], None]) -> None:
    """Call `act`, on its own thread, when standard input ends or fails. Input before that is thrown away."""

    def watch() -> None:
        # Not sys.stdin: a thread inside its buffer would crash the interpreter at its end.
        while _goes_on():
            pass
        act()

    threading.Thread(target=watch, name="eof", daemon=True).start()


def _goes_on() -> bool:
    """Wait for input and throw it away; False at its end."""
    try:
        return os.read(STDIN, 4096) != b""
    except BlockingIOError:
        # Another process has made the input non-blocking, for everyone who has it open.
        poll = select.poll()
        poll.register(STDIN, select.POLLIN)
        poll.poll()
        return True
    except OSError:
        # Such as EIO: the terminal is gone. No input will come, and an end would not be seen either.
        return False
