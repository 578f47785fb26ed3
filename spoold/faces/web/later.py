"""What takes long to read: a page waits for it a little, and is shown without it meanwhile.

Law: who asks for what is being read waits for that reading. Threads and memory are bounded. A page that was made
without a part says so, and is asked for again.

Touches: threads, the clock.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from spoold.client.view import Card, View
from spoold.protocol.errors import SpoolError

T = TypeVar("T")
KEPT, THREADS = 400, 3
PATIENCE_S = 0.5


@dataclass(frozen=True, slots=True)
class Answer(Generic[T]):
    """What was read, or why it was not. pending: it is being read; what is there is from before, or nothing."""

    value: T | None = None
    error: str = ""
    pending: bool = False


class Later:
    """Answers by what they are about."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="spool-later")
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, tuple[float, Any]] = OrderedDict()
        self._asked: dict[Hashable, Future[Any]] = {}

    def get(
        self, of: Hashable, read: Callable[[], T], *, fresh_s: float, patience_s: float = PATIENCE_S
    ) -> Answer[T]:
        """Return an answer, read again where it is older than so many seconds; within the patience, or pending."""
        with self._lock:
            at, kept = self._kept.get(of, (float("-inf"), None))
            if time.monotonic() - at < fresh_s:
                return Answer(kept)
            future = self._asked.get(of)
            if future is None:
                future = self._asked[of] = self._pool.submit(self._read, of, read)
        wait([future], patience_s)
        if not future.done():
            return Answer(kept, pending=True)
        error = future.exception()
        if isinstance(error, SpoolError):
            return Answer(None, str(error))
        return Answer(future.result())

    def _read(self, of: Hashable, read: Callable[[], T]) -> T:
        try:
            found = read()
            with self._lock:
                self._kept[of] = time.monotonic(), found
                self._kept.move_to_end(of)
                while len(self._kept) > KEPT:
                    self._kept.popitem(last=False)
            return found
        finally:
            with self._lock:
                self._asked.pop(of, None)

    def reasons(self, view: View, cards: Sequence[Card]) -> tuple[dict[str, str], bool]:
        """Return by id why these tasks failed, each read once; and whether some are still being read."""
        found, pending, until = dict[str, str](), False, time.monotonic() + PATIENCE_S
        for card in cards:
            left_s = max(0.0, until - time.monotonic())
            answer = self.get(
                ("reason", card.id, card.state, card.attempt),
                lambda task=card.id: view.info(task).reason,  # type: ignore[misc]
                fresh_s=float("inf"),
                patience_s=left_s,
            )
            pending = pending or answer.pending
            if not answer.pending:
                found[card.id] = answer.value or answer.error
        return found, pending

    def close(self) -> None:
        """Read no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
