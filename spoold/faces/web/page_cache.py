"""Finished pages, made once for all who ask; and what takes long to read, without which a page is shown meanwhile.

Law: a page is made once for each URL and version of the view, however many ask at the same moment; those who come
meanwhile wait for that one. What reads files of the share is made anew after a while, too. A page that was made
without a part says so, and is asked for again. Threads and memory are bounded.

Touches: threads, the clock.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from spoold.client.view import Card, View
from spoold.protocol.errors import SpoolError

COPIES_MOST, BYTES_MOST = 200, 24 << 20
# Level 6 takes three times as long for 3 % less.
_LEVEL = 4


@dataclass(frozen=True, slots=True)
class Copy:
    """One answer. packed: the same, compressed. version: of the view, at: the moment (s) when it was begun."""

    status: int
    kind: str
    body: bytes
    packed: bytes
    tag: str
    version: int
    at: float

    @property
    def size(self) -> int:
        """How many bytes it keeps."""
        return len(self.body) + len(self.packed)


def copy_of(text: str | bytes, version: int, at: float, status: int = 200, kind: str = "text/html") -> Copy:
    """Return an answer that is ready to be sent."""
    body = text.encode() if isinstance(text, str) else text
    tag = f'"{hashlib.sha256(body).hexdigest()[:20]}"'
    return Copy(status, f"{kind}; charset=utf-8", body, gzip.compress(body, _LEVEL, mtime=0), tag, version, at)


class Copies:
    """The pages that were made last."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic
        self._lock = threading.Lock()
        self._kept: OrderedDict[Hashable, Copy] = OrderedDict()
        self._busy: dict[Hashable, threading.Lock] = {}
        self._bytes = 0

    def get(self, of: Hashable, version: int, fresh_s: float, make: Callable[[float], Copy]) -> Copy:
        """Return the copy of this version, not older than so many seconds; made now where there is none. make: gets
        the moment.
        """
        with self._lock:
            busy = self._busy.setdefault(of, threading.Lock())
        with busy:
            with self._lock:
                kept = self._kept.get(of)
            now = self.monotonic()
            if kept is not None and kept.version >= version and now - kept.at < fresh_s:
                return kept
            try:
                made = make(now)
                self._keep(of, made)
            finally:
                with self._lock:
                    self._busy.pop(of, None)
            return made

    def _keep(self, of: Hashable, made: Copy) -> None:
        with self._lock:
            old = self._kept.pop(of, None)
            self._bytes += made.size - (old.size if old is not None else 0)
            self._kept[of] = made
            while len(self._kept) > COPIES_MOST or (self._bytes > BYTES_MOST and len(self._kept) > 1):
                _, gone = self._kept.popitem(last=False)
                self._bytes -= gone.size


# What takes long to read: a page waits for it a little, and is shown without it meanwhile.


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
