"""The types that requests close: each pause that stands, and a halt of the whole spool.

Law: a request stands as long as its file does, and no longer than its own end. Of several, the longest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from spoold.protocol.request import Request, Verb

NO_ENDS: Mapping[Request, float] = {}


def paused_by(
    requests: Iterable[Request], ends: Mapping[Request, float] = NO_ENDS, now: float = 0.0
) -> dict[str, float | None]:
    """The types that are paused, each with the moment at which its pause ends by itself, if any; +all stands for all.

    ends: the end moments of the requests that name one; now: by the pool's clock. Both in seconds since 1970. If
    several pauses stand for one type, the longest counts.
    """
    found: dict[str, float | None] = {}
    for request in requests:
        end = ends.get(request)
        if request.verb is not Verb.PAUSE or (end is not None and end <= now):
            continue
        before = found.get(request.target, end)
        found[request.target] = None if end is None or before is None else max(end, before)
    return found


def halted_by(requests: Iterable[Request]) -> bool:
    """Whether a halt stands."""
    return any(request.verb is Verb.HALT for request in requests)
