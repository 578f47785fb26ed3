"""What a fault says of itself."""

from __future__ import annotations

from dataclasses import dataclass


class Unproven(Exception):
    """The fault did not take place as it should, or what must follow from it was not seen."""


@dataclass(frozen=True, slots=True)
class Told:
    """How many faults there were, and what was measured of them, for people."""

    faults: int
    notes: str = ""
