"""The state of a leader's step so far, and the part that it leaves to the next one.

Law: only the methods here change it, each says what happened, and anyone may read it. A test holds it so. `unsure`
stays over steps that fail, until a step has listed everything; all else is of one step. A stage whose time is up
leaves the rest to the next step: see `Desk.some`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from spoold.master.changes import Wanted
from spoold.rules.scheduling.moment import Now


@dataclass(slots=True)
class StepState:
    """now: the moment of this step; listed: its listings; busy: whether anything has changed; denied: an operation
    was not allowed, since this was cleared; unsure: the next step lists everything. until: when (monotonic, s) the
    time of this stage is up; cut: it has left something to the next step; left: a stage of this step has.
    """

    now: Now
    listed: Wanted = field(default_factory=Wanted)
    busy: bool = False
    denied: bool = False
    unsure: bool = True
    until: float = math.inf
    cut: bool = False
    left: bool = False

    def begin(self, now: Now, *, followed: bool = False) -> None:
        """Begin a step. followed: it goes on with the listings made just before, and with their changes."""
        self.now, self.busy, self.left = now, self.busy and followed, False

    def begin_stage(self, until: float) -> None:
        """Begin a stage, which has until then (monotonic, s)."""
        self.until, self.cut = until, False

    def leave(self) -> None:
        """The time of this stage is up, and the next step goes on with the rest."""
        self.cut = self.left = True

    def looked(self, wanted: Wanted, *, changed: bool) -> None:
        """Record which listings were made. changed: they showed something new."""
        self.listed = wanted
        self.unsure = self.unsure and not wanted.everything
        self.busy = self.busy or changed

    def change(self) -> None:
        """Something was moved, written or removed, or may go on now: another step follows soon."""
        self.busy = True

    def deny(self) -> None:
        """Something was not allowed, so it is not tried again at once."""
        self.denied = True

    def clear_denial(self) -> None:
        """Clear `denied`, so that the next operation is judged by itself."""
        self.denied = False

    def doubt(self) -> None:
        """A token may be elsewhere than the listings have shown."""
        self.unsure = True
