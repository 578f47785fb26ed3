"""What a run would else take from this machine and from chance: the names that clients make up.

Law: a seed is one story on every machine. Names decide the order of listings, so chance in a name is chance in a run.
"""

from __future__ import annotations

import getpass
import random
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from spoold.system import kernel_random


@contextmanager
def settled(seed: int) -> Iterator[None]:
    """While this lasts, chance is drawn from the seed, and the machine and its user are nobody's."""
    draws = random.Random(seed)
    with (
        patch.object(kernel_random, "below", draws.randrange),
        patch.object(socket, "gethostname", lambda: "somewhere"),
        patch.object(getpass, "getuser", lambda: "somebody"),
    ):
        yield
