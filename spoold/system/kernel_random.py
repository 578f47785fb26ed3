"""Chance for names that no other process makes.

Law: all of it comes from the kernel and never from a seed: two machines that start alike must not make the same
names. Touches: the kernel's random numbers.
"""

from __future__ import annotations

import os

# So many bits beyond any limit that no number is likelier than another.
_BYTES = 24


def below(limit: int) -> int:
    """A number from 0 up to but not including `limit`, which has at most 64 bits; it cannot be guessed.

    As `secrets.randbelow`, but that module takes longer to import than a drop takes to write.
    """
    return int.from_bytes(os.urandom(_BYTES)) % limit
