"""How many of the attempts that ended last have failed.

Law: an attempt that was handed back or cancelled is no failure and no success. A leader that has not watched for long
enough knows nothing: the attempts of before are none of its own.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

# Of so many attempts at most, within so long (s); fewer than LEAST prove nothing.
LAST, OVER_S, LEAST = 100, 3600.0, 20


@dataclass(frozen=True, slots=True)
class Failures:
    """So many attempts ended, and so many of them failed. known: whether that is all there was to see."""

    ended: int
    failed: int
    known: bool

    @property
    def rate(self) -> float:
        """The part that failed; 0 of too few attempts."""
        return self.failed / self.ended if self.ended >= LEAST else 0.0


class Outcomes:
    """The attempts that ended while one leader watched. Times are monotonic, in seconds."""

    def __init__(self) -> None:
        self._last: deque[tuple[float, bool]] = deque(maxlen=LAST)
        self._charges: dict[str, int] = {}
        self._since: float | None = None

    def watch(self, now: float) -> None:
        """Count from now on; what came before was not seen to end."""
        if self._since is None:
            self._since = now

    def charged(self, task_key: str, charges: int) -> None:
        """A task that has not ended was seen, with so many charges on its retry budget."""
        if charges:
            self._charges[task_key] = charges

    def returned(self, now: float, task_key: str, charges: int) -> None:
        """An attempt ended, and its task came back: as a failure if that charged something."""
        failed = charges > self._charges.get(task_key, 0)
        self.charged(task_key, charges)
        if failed:
            self._add(now, failed=True)

    def ended(self, now: float, task_key: str, *, failed: bool | None) -> None:
        """A task ended. failed: None for one that did neither succeed nor fail, such as one that was cancelled."""
        self._charges.pop(task_key, None)
        if failed is not None:
            self._add(now, failed=failed)

    def _add(self, now: float, *, failed: bool) -> None:
        if self._since is not None:
            self._last.append((now, failed))

    def now(self, now: float) -> Failures:
        """The attempts that ended last."""
        while self._last and now - self._last[0][0] > OVER_S:
            self._last.popleft()
        ended, failed = len(self._last), sum(failed for _, failed in self._last)
        watched = self._since is not None and now - self._since >= OVER_S
        return Failures(ended, failed, known=watched or ended >= LEAST)
