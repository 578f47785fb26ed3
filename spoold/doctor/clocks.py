"""Trials of the server's clock against this machine's, the resolution of mtimes, and change hints.

Law: the server's time is the mtime of a file that was just written, compared with the middle of that call and the
look after it. A hint of our own change says nothing about changes by other machines.

Touches: the clock.
"""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

from spoold.doctor.share import Share
from spoold.protocol import layout
from spoold.system.bell import readable
from spoold.system.hints import Hints

HINT_WITHIN_S = 1.0
LOOKS = 12


def try_clock(share: Share, room: str) -> dict[str, Any]:
    """Figures of `clock`: the mtime of a file that was just written is the server's time. Errors: OSError."""
    offsets: list[float] = []
    stamps: list[int] = []
    for number in range(LOOKS):
        file = layout.join(room, f"clock.{number}")
        before = time.time()
        share.write(file, b"x", durable=False)
        stamp = share.stat(file).mtime_ns
        offsets.append(stamp / 1e9 - (before + time.time()) / 2)
        stamps.append(stamp)
    steps = [after - before for before, after in pairwise(sorted(set(stamps)))]
    # The median: an offset from a call that had to wait is worth less than the others.
    return {"offset_s": round(sorted(offsets)[LOOKS // 2], 3), "mtime_step_ns": min(steps, default=None)}


def try_hints(share: Share, room: str) -> dict[str, Any]:
    """Figures of `hints`: whether this machine gets a hint of its own change within one second."""
    works, hints = False, Hints(share.root)
    try:
        hints.watch([room])
        if hints.reason is None:
            share.write(layout.join(room, "hint"), b"", durable=False)
            works = bool(readable(HINT_WITHIN_S, hints.fileno()))
        reason = hints.reason or ("" if works else "no hint came for a new file")
    finally:
        hints.close()
    return {"works": works, "reason": reason}
