"""The order numbers that a leader gives: later than all that it has seen, whatever the clock says.

Law: a number is given once. Numbers are microseconds since 1970.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol.order import MICROS_MAX, encode_order

ROOM_MICROS = 10**13  # four months of orders


@dataclass(slots=True)
class Orders:
    """The numbers of one epoch; last: the latest that was given or seen."""

    epoch: int
    last: int = 0

    def saw(self, micros: int) -> bool:
        """Make later orders exceed this one; False if that leaves no room for them: no leader made it."""
        if micros > MICROS_MAX - ROOM_MICROS:
            return False
        self.last = max(self.last, micros)
        return True

    def next_micros(self, wall: float, count: int = 1) -> int:
        """Return the next number at this time (s since 1970), later than all before, and take `count` numbers."""
        micros = max(int(wall * 1e6), self.last + 1)
        self.last = micros + count - 1
        return micros

    def encode(self, micros: int) -> str:
        """Return the order that such a number makes in this epoch."""
        return encode_order(micros, self.epoch)
