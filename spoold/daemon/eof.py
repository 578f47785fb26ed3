"""The end of standard input as a sign that the process which started this one is gone, however it ended.

Law: only the end of the input counts, or an error after which nothing can be read any more. The input itself is
thrown away. The descriptor is read and not `sys.stdin`, since a thread inside its buffer would crash the interpreter
at its end.

Touches: files, threads.
"""

from __future__ import annotations

import os
import select
import threading
from collections.abc import Callable

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
