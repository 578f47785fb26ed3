"""The order numbers that a leader gives: later than every one that it has seen, whatever the clock says.

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
        """Have all orders to come be later than this one; False if it leaves them no room: no leader made it."""
        if micros > MICROS_MAX - ROOM_MICROS:
            return False
        self.last = max(self.last, micros)
        return True

    def next_micros(self, wall: float, count: int = 1) -> int:
        """The next number at this time (s since 1970), later than all before; `count` numbers are taken."""
        micros = max(int(wall * 1e6), self.last + 1)
        self.last = micros + count - 1
        return micros

    def encode(self, micros: int) -> str:
        """The order that such a number makes in this epoch."""
        return encode_order(micros, self.epoch)
