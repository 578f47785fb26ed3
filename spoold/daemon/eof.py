"""The end of standard input as a sign that the process which started this one is gone, however it ended.

Law: only the end of the input counts, and the input itself is thrown away. The descriptor is read and not
`sys.stdin`, since a thread inside its buffer would crash the interpreter at its end.

Touches: files, threads.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

STDIN = 0


def at_eof(act: Callable[[], None]) -> None:
    """Call `act`, on its own thread, when standard input ends. Input before that is thrown away."""

    def watch() -> None:
        # Not sys.stdin: a thread inside its buffer would crash the interpreter at its end.
        while os.read(STDIN, 4096):
            pass
        act()

    threading.Thread(target=watch, name="eof", daemon=True).start()
