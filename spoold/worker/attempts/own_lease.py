"""This worker's lease: until when tasks that it has claimed may begin, and tasks that it runs may move.

Law: only a published beat extends it, and the time counts from before that beat was written. So it is over before any
node may take this worker for dead. A lease that was over before it was extended is broken: certainties under it do
not hold under the next, which has another number. It may touch the clock that counts on through suspend.
"""

from __future__ import annotations

from spoold.system.clock import Clock


class OwnLease:
    """The lease of one worker; over until the first beat is out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until, self._number = 0.0, 0

    @property
    def until(self) -> float:
        """When it ends, in seconds of CLOCK_BOOTTIME."""
        return self._until

    @property
    def number(self) -> int:
        """A number that stays the same while the lease lasts unbroken, and never comes again."""
        return self._number

    @property
    def over(self) -> bool:
        """Whether it has ended: other workers may then get the tasks that this worker has claimed."""
        return self._clock.boottime() >= self._until

    def extend(self, until: float) -> None:
        """After a published beat, let it last until then, in seconds of CLOCK_BOOTTIME."""
        if self.over:
            self._number += 1
        self._until = until
