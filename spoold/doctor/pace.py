"""Trials of the time that each operation takes: median, 99th percentile and maximum, in milliseconds.

Law: one round is always made, however slow the share is, and no other begins after WITHIN_S.

Touches: the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from spoold.doctor.share import Share
from spoold.protocol import layout

_DATA = b"x" * 512
WITHIN_S = 5.0


def try_pace(share: Share, room: str, rounds: int) -> dict[str, Any]:
    """Figures of `pace`: of as many rounds as fit into WITHIN_S. Errors: OSError."""
    place = layout.join(room, "pace")
    share.mkdir(place)
    times: dict[str, list[float]] = {}

    def timed(name: str, act: Callable[..., object], *words: str) -> None:
        before = time.perf_counter()
        act(*words)
        times.setdefault(name, []).append(1000 * (time.perf_counter() - before))

    end = time.monotonic() + WITHIN_S
    for number in range(rounds):
        if number and time.monotonic() > end:
            break
        file, moved, folder = (layout.join(place, f"{kind}{number}") for kind in ("f", "m", "d"))
        timed("write", partial(share.write, data=_DATA, durable=False), file)
        timed("write_fsync", partial(share.write, data=_DATA, durable=True), f"{file}s")
        timed("rename", share.rename, file, moved)
        timed("list", share.list, place)
        timed("read", share.read, moved)
        timed("mkdir", share.mkdir, folder)
        timed("rmdir", share.rmdir, folder)
        timed("unlink", share.unlink, moved)
    return {name: spread(measured) for name, measured in times.items()}


def spread(times: list[float]) -> dict[str, float]:
    """Median, 99th percentile and maximum."""
    ordered = sorted(times)
    return {
        "p50_ms": round(ordered[len(ordered) // 2], 2),
        "p99_ms": round(ordered[min(len(ordered) - 1, len(ordered) * 99 // 100)], 2),
        "max_ms": round(ordered[-1], 2),
    }
