"""Answers that are kept for a while, and worked out once for all who ask at the same time.

Law: what needs the share is asked one after the other, as its allowance permits. While that is spent an older answer
is given; where there is none, the caller waits for its turn, and gives up with a sentence that says why.

Touches: threads.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar, cast

from spoold.client.view.metered import Allowance
from spoold.protocol.errors import Unavailable

T = TypeVar("T")
KEPT, FEW = 256, 3
# While the allowance is spent, an answer that is at most so old (s) will do; and a caller waits at most so long.
STALE_S, WAIT_S, NAP_S = 120.0, 15.0, 0.1
_NEVER = float("-inf")


class Answers:
    """allowance: of the mount that the answers are read from, None where they come from memory."""

    def __init__(self, monotonic: Callable[[], float], allowance: Allowance | None = None) -> None:
        self._monotonic, self._allowance = monotonic, allowance
        self._lock, self._turn = threading.Lock(), threading.Lock()
        self._few = threading.BoundedSemaphore(FEW)
        self._kept: OrderedDict[tuple[Any, ...], tuple[float, Any]] = OrderedDict()
        self._busy: dict[tuple[Any, ...], threading.Lock] = {}

    def get(self, question: tuple[Any, ...], fresh_s: float, work_out: Callable[[], T]) -> T:
        """Return the answer, at most so old (s). Errors: those of `work_out`, which are not kept; Unavailable."""
        with self._lock:
            busy = self._busy.setdefault(question, threading.Lock())
        try:
            with busy:
                return self._answer(question, fresh_s, work_out)
        finally:
            with self._lock:
                self._busy.pop(question, None)

    def _answer(self, question: tuple[Any, ...], fresh_s: float, work_out: Callable[[], T]) -> T:
        with self._lock:
            at, answer = self._kept.get(question, (_NEVER, None))
        age_s = self._monotonic() - at
        if age_s < fresh_s:
            return cast("T", answer)
        with self._turns():
            if not self._may_read(patient=age_s > STALE_S):
                return cast("T", answer)
            found = work_out()
        self._keep(question, found)
        return found

    def _keep(self, question: tuple[Any, ...], found: object) -> None:
        with self._lock:
            self._kept[question] = self._monotonic(), found
            self._kept.move_to_end(question)
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)

    def _turns(self) -> contextlib.AbstractContextManager[object]:
        """On a share one question is answered at a time; elsewhere a few, since each may hold a large file."""
        if self._allowance is None:
            return contextlib.nullcontext()
        return self._turn if self._allowance.rationed else self._few

    def _may_read(self, *, patient: bool) -> bool:
        """Whether something may be read now. patient: wait until it may. Errors: Unavailable where that lasts."""
        if self._allowance is None:
            return True
        for _ in range(int(WAIT_S / NAP_S)):
            if self._allowance.wait_s() <= 0:
                return True
            if not patient:
                return False
            threading.Event().wait(NAP_S)
        raise Unavailable(
            "the share is asked as often as a view allows itself, and others are waiting too. Try again in a minute, "
            "or ask with the command line, which reads by itself."
        )
