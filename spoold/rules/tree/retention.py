"""What moves to the archive: ended tasks that are old, or more than a directory should hold.

Ages are counted by the leader from when it first saw the task ended, on its own clock.
"""

from __future__ import annotations

from collections.abc import Mapping


def due(seen: Mapping[str, float], now: float, max_age_s: float, keep: int) -> list[str]:
    """Names that are to be archived now, oldest first.

    seen: name → when it was first seen ended (monotonic, s), in the order of being seen.
    """
    excess = max(0, len(seen) - keep)
    names: list[str] = []
    for index, (name, since) in enumerate(seen.items()):
        if index >= excess and now - since < max_age_s:
            break
        names.append(name)
    return names
