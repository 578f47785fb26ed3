"""The pauses between two looks, and how long to bear with a share that does not answer.

Law: a pause is never shorter than `poll.busy_s`, unless `poll.idle_s` is shorter still, and never longer than
`poll.idle_s`. A share that fails is forgiven until OUTAGE_S after the last good look.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from spoold.protocol.settings import PollSettings
from spoold.system.clock import Clock

T = TypeVar("T")

# A pause may take this part of the time waited so far: short tasks are seen at once, and long ones cost little.
PATIENCE = 0.1
# A file server may restart during a wait of hours; only after so long without a good look is that an error.
OUTAGE_S = 60.0


class Pace:
    """Pauses between the spool's `poll.busy_s` and `poll.idle_s`: longer, the longer nothing has happened."""

    def __init__(self, clock: Clock, poll: PollSettings) -> None:
        self._clock = clock
        self._poll = poll
        self._quiet_since = self._good_at = clock.monotonic()

    def something_happened(self) -> None:
        """Look often again."""
        self._quiet_since = self._clock.monotonic()

    def pause_s(self) -> float:
        """Seconds until the next look."""
        quiet_s = self._clock.monotonic() - self._quiet_since
        return min(max(quiet_s * PATIENCE, self._poll.busy_s), self._poll.idle_s)

    def forgiving(self, look: Callable[[], T], otherwise: T) -> T:
        """Return the look's result; `otherwise` if the share failed. Errors: OSError after OUTAGE_S of failures."""
        try:
            found = look()
        except OSError:
            if self._clock.monotonic() - self._good_at > OUTAGE_S:
                raise
            return otherwise
        self._good_at = self._clock.monotonic()
        return found
