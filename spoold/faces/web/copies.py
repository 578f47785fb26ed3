"""Finished pages, made once for all who ask.

Law: a page is made once for each URL and version of the view, however many ask at the same moment; those who come
meanwhile wait for that one. What reads files of the share is made anew after a while, too. The memory is bounded.

Touches: threads.
"""

from __future__ import annotations

import gzip
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

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
