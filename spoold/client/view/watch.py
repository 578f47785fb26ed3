"""A thread that keeps a view up to date.

Law: it ends with its `with`, but for a look that a silent share holds: the thread is a daemon, and keeps no program
from ending.

Touches: threads.
"""

from __future__ import annotations

import gc
import threading
from typing import Self

from spoold.client.view.view import View

_END_S = 2.0


class Watch:
    """Use it in a `with`. alone: the program does little else, so what the view holds is kept out of the garbage
    collector's rounds once it is complete: there are hundreds of thousands of objects, and none of them is garbage.
    """

    def __init__(self, view: View, *, alone: bool = False) -> None:
        self._view, self._alone = view, alone
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="spool-view", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join(_END_S)

    def wait(self, version: int, timeout_s: float) -> int:
        """Wait until the view has changed since this version; return its present one, also after the timeout."""
        return self._view.wait(version, timeout_s)

    def _run(self) -> None:
        while not self._over.is_set():
            self._view.look()
            if self._alone and self._view.complete:
                self._alone = False
                gc.freeze()
            self._over.wait(self._view.pause_s())
