"""What requests close: each pause of a type, each closed limit, and a halt of the whole spool.

Law: a request stands as long as its file does, and no longer than its own end. Of several, the longest counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spoold.protocol.request import Request, Verb

NO_ENDS: Mapping[Request, float] = {}


@dataclass(frozen=True, slots=True)
class Closed:
    """A closed limit. until: when it opens by itself (s since 1970), None for never; quota: an attempt closed it."""

    until: float | None
    quota: bool


def paused_by(
    requests: Iterable[Request], ends: Mapping[Request, float] = NO_ENDS, now: float = 0.0
) -> dict[str, float | None]:
    """The types that are paused, each with the moment at which its pause ends by itself, if any; +all stands for all.

    ends: the end moments of the requests that name one; now: by the pool's clock. Both in seconds since 1970. If
    several pauses stand for one type, the longest counts.
    """
    return _standing(requests, Verb.PAUSE, ends, now)


def closed_by(
    requests: Iterable[Request], ends: Mapping[Request, float] = NO_ENDS, now: float = 0.0
) -> dict[str, Closed]:
    """The limits that are closed. ends and now as for `paused_by`; a quota outweighs a person who opens earlier."""
    found = {name: Closed(until, quota=False) for name, until in _standing(requests, Verb.CLOSE, ends, now).items()}
    for name, until in _standing(requests, Verb.QUOTA, ends, now).items():
        own = found.get(name)
        if own is None or (own.until is not None and (until is None or until > own.until)):
            found[name] = Closed(until, quota=True)
    return found


def _standing(
    requests: Iterable[Request], verb: Verb, ends: Mapping[Request, float], now: float
) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for request in requests:
        end = ends.get(request)
        if request.verb is not verb or (end is not None and end <= now):
            continue
        before = found.get(request.target, end)
        found[request.target] = None if end is None or before is None else max(end, before)
    return found


def halted_by(requests: Iterable[Request]) -> bool:
    """Whether a halt stands."""
    return any(request.verb is Verb.HALT for request in requests)
