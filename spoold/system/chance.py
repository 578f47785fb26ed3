"""Chance for names that nobody else makes up. Touches: the kernel's random numbers."""

from __future__ import annotations

import os

# So many more bits than any limit has that no number is likelier than another.
_BYTES = 24


def below(limit: int) -> int:
    """A number from 0 up to but not including `limit`, which has at most 64 bits; nobody can guess it.

    As `secrets.randbelow`, whose module takes longer to import than a drop to write.
    """
    return int.from_bytes(os.urandom(_BYTES)) % limit
