"""What a leader's step has come to so far, and what it leaves to the next one.

Law: only the methods here change it, each says what happened, and anyone may read it. A test holds it so. What is
unsure stays so over steps that fail, until a step has listed everything; all else is of one step.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spoold.master.changes import Wanted
from spoold.rules.scheduling.backlog import Now


@dataclass(slots=True)
class StepState:
    """now: the moment of this step; listed: what it has listed; busy: whether anything has changed; denied: something
    that was tried was not allowed, since this was cleared; unsure: the next step lists everything.
    """

    now: Now
    listed: Wanted = field(default_factory=Wanted)
    busy: bool = False
    denied: bool = False
    unsure: bool = True

    def begin(self, now: Now, *, followed: bool = False) -> None:
        """A step begins. followed: it goes on with what was listed just before, and with what that changed."""
        self.now, self.busy = now, self.busy and followed

    def looked(self, wanted: Wanted, *, changed: bool) -> None:
        """This was listed. changed: it showed something new."""
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
        """What comes next is judged by itself."""
        self.denied = False

    def doubt(self) -> None:
        """A token may stand elsewhere than the listings have shown."""
        self.unsure = True
