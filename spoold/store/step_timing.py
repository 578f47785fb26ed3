"""When each look at the share is due, and what each part of a step takes besides its calls to the share.

If a server holds the files, every look is a round trip that competes with all other nodes, so each kind of look has
its own interval. If the files are local a look is nearly free, and all are due at every step.

A look is one or two requests over NFS and five over SMB (two queries for the spool and the directory, two for the
listing, one to close). So on SMB, looks that only speed things up are half as often.

Law: a look that is put off may delay a decision and never makes one wrong, since every decision is a rename that
fails when things have changed. A part of a step that takes longer than LONG_S of its own is named in the log, once in
the life of the node; so nobody has to guess why a node was late. The processor time in that line tells a part that
worked from one in which the node was stopped or starved.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from spoold.store.store import Store
from spoold.system.beating_filesystem import Breather
from spoold.system.clock import Clock

DEAR = 2.0
# On mounts where looks are dear, a node that was idle for so long (s) looks even less often.
AT_REST_S = 60.0


class Polling:
    """One node's looks, by name. Times in seconds on its monotonic clock.

    dear: the factor between two looks that only speed things up; never for those by which a node judges others or
    itself.
    """

    def __init__(self, store: Store) -> None:
        self._fs = store.fs
        self._clock = store.clock
        self._taken: dict[str, float] = {}
        self._active_at = self._clock.monotonic()

    @property
    def rationed(self) -> bool:
        """Whether a look costs something. A share may be mounted while a node runs."""
        return self._fs.remote

    @property
    def dear(self) -> float:
        """The factor on the wait between two looks that only speed things up."""
        return DEAR if self._fs.forgets else 1.0

    def active(self) -> None:
        """There is work to do: look as often as allowed."""
        self._active_at = self._clock.monotonic()

    @property
    def slow(self) -> float:
        """The additional factor on that wait at rest."""
        return self.dear if self._clock.monotonic() - self._active_at > AT_REST_S else 1.0

    def take(self, look: str, every_s: float, local_s: float = 0.0) -> bool:
        """Whether to look now; then it counts as taken, whatever its outcome.

        local_s: the interval if files are local, for a look that costs something there, too.
        """
        every_s = every_s if self.rationed else local_s
        now = self._clock.monotonic()
        taken = self._taken.get(look)
        if taken is not None and now - taken < every_s:
            return False
        self._taken[look] = now
        return True

    def next_due(self, look: str, every_s: float) -> float:
        """When (monotonic, s) a look with this interval is due."""
        taken = self._taken.get(look)
        return self._clock.monotonic() if taken is None else taken + every_s

    def hasten(self, look: str) -> None:
        """Make the look due at once, after an event."""
        self._taken.pop(look, None)


# The own time of a node's steps: what each part of a step takes besides its calls to the share.


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
