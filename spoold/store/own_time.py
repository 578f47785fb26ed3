"""The own time of a node's steps: what each part of a step takes besides its calls to the share.

Law: a step makes calls to the share, and bounded work of its own. A part that takes longer than LONG_S of its own is
named in the log, once in the life of the node; so nobody has to guess why a node was late. The processor time in that
line tells a part that worked from one in which the node was stopped or starved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from spoold.system.breathing import Breather
from spoold.system.clock import Clock

log = logging.getLogger("spoold")

# Seconds: what is reported, and what a part of a step may take for things of which others decide how many there are.
LONG_S, SLICE_S = 1.0, 0.5


class Slice:
    """The time that a part of a step has for such things; at least one of them is done in any case."""

    def __init__(self, clock: Clock, seconds: float = SLICE_S) -> None:
        self._clock, self._until = clock, clock.monotonic() + seconds

    @property
    def over(self) -> bool:
        """Whether the next step should go on."""
        return self._clock.monotonic() >= self._until


class OwnTime:
    """Measures the parts of one node's steps."""

    def __init__(self, clock: Clock, breather: Breather) -> None:
        self._clock, self._breather = clock, breather
        self._told: set[str] = set()

    @contextmanager
    def of(self, part: str) -> Iterator[None]:
        """Measure one part of a step."""
        began, waited_s, used_s = self._clock.monotonic(), self._breather.waited_s, self._clock.used()
        try:
            yield
        finally:
            called_s = self._breather.waited_s - waited_s
            own_s = self._clock.monotonic() - began - called_s
            if own_s > LONG_S and part not in self._told:
                self._told.add(part)
                log.warning(
                    "`%s` took %.1f s of this node's own time in one step, besides %.1f s of calls to the share; "
                    "it used %.1f s of processor time, and all its other work stood still meanwhile. "
                    "This is said once for each part of a step",
                    part,
                    own_s,
                    called_s,
                    self._clock.used() - used_s,
                )
