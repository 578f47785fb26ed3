"""A bell that a loop sleeps on: any thread may ring it, and other descriptors may end the wait, too. And the callback
of a watcher that rings it.

Law: no call blocks longer than asked, and ringing never blocks. A callback is called in a thread of the watcher, is
quick and never raises. Touches pipes of its own and poll(2).

Touches: files.
"""

from __future__ import annotations

import os
import select
from collections.abc import Callable
from contextlib import suppress


def readable(timeout_s: float, *descriptors: int) -> set[int]:
    """Wait at most that long until a descriptor is readable; return the readable ones. Negative ones do not count."""
    poll = select.poll()
    for descriptor in descriptors:
        if descriptor >= 0:
            poll.register(descriptor, select.POLLIN)
    # Rounded up, so that the call does not wake just before the time and spin.
    return {descriptor for descriptor, _ in poll.poll(int(timeout_s * 1000) + 1 if timeout_s > 0 else 0)}


class Bell:
    """Rung from any thread or signal handler; ends a wait, present or next."""

    def __init__(self) -> None:
        self._bell, self._rope = os.pipe()
        os.set_blocking(self._bell, False)
        os.set_blocking(self._rope, False)

    def ring(self) -> None:
        """End a wait."""
        # An error means that the pipe is full, so it rings already, or closed, so no loop waits.
        with suppress(OSError):
            os.write(self._rope, b"\0")

    def fileno(self) -> int:
        """Readable once it was rung, until `hush`."""
        return self._bell

    def hush(self) -> None:
        """Stop ringing: the loop has heard it."""
        with suppress(BlockingIOError):
            os.read(self._bell, 4096)

    def close(self) -> None:
        """Close the bell: no loop waits any more. A late ring must not write to whatever gets this number next."""
        rope, self._rope = self._rope, -1
        os.close(rope)
        os.close(self._bell)


# The callback of a watcher, for a change in a directory.


# Arguments: whether a directory came or went; the watch that has ended, None for any other event. Returns whether
# that was news: False while the last notice is unread.
Notice = Callable[[bool, object | None], bool]
