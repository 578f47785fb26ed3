"""One look for however many readers, and none more often than every few seconds.

Law: however many ask, one of them looks, and the others wait for that look or get the last one if it is fresh. A look
that failed counts as a look: a share that is gone is not asked again at once. A look that hangs holds one reader; the
others are told so after a while.

Touches: threads, the clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from spoold.protocol.errors import SpoolError, Unavailable

# A leader on a share reports every second at most, and Prometheus asks every 15 s as a rule.
EVERY_S = 5.0
# Below the 10 s after which Prometheus gives up by itself, so that its log has our reason.
PATIENCE_S = 8.0


class Page:
    """The last look, and when it was begun."""

    def __init__(
        self,
        look: Callable[[], str],
        *,
        now: Callable[[], float] = time.monotonic,
        every_s: float = EVERY_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._look, self._now = look, now
        self._every_s, self._patience_s = every_s, patience_s
        self._alone = threading.Lock()
        self._looked_at: float | None = None
        self._text, self._error = "", ""

    def text(self) -> str:
        """Return the page. Errors: Unavailable, with the reason of the last look, or since a look still hangs."""
        if not self._alone.acquire(timeout=self._patience_s):
            raise Unavailable(f"the share has not answered for {self._patience_s:g} s.")
        try:
            if self._looked_at is None or self._now() - self._looked_at >= self._every_s:
                self._looked_at = self._now()
                self._refresh()
        finally:
            self._alone.release()
        if self._error:
            raise Unavailable(self._error)
        return self._text

    def _refresh(self) -> None:
        self._text = ""
        try:
            self._text, self._error = self._look(), ""
        except SpoolError as error:
            self._error = str(error)
        except OSError as error:
            self._error = f"the share cannot be read: {error.strerror or error}."
