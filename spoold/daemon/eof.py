"""The end of standard input as a sign that whoever started this process is gone, however it went."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

STDIN = 0


def at_eof(act: Callable[[], None]) -> None:
    """Call `act`, on a thread of its own, when standard input ends. What comes in before is thrown away."""

    def watch() -> None:
        # Not sys.stdin: a thread that is inside its buffer when the interpreter ends makes that end a crash.
        while os.read(STDIN, 4096):
            pass
        act()

    threading.Thread(target=watch, name="eof", daemon=True).start()
