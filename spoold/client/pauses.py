"""Pauses, closed limits and halts: made, lifted, and who asked for them, why and until when.

Law: the time of the pool decides whether a moment is past, and never the clock of this machine. A pause whose content
cannot be read still stands: only its texts are empty.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from spoold.client.connection import Connection
from spoold.protocol.errors import SpoolError
from spoold.protocol.request import ENDING, Request, Verb, kind_target
from spoold.store.store import Store, stamp

if TYPE_CHECKING:
    from spoold.protocol.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause or a halt that stands. target: a type, or +all; at, until: RFC 3339; each text may be empty.

    until: when it ends by itself; empty where it stands until a resume.
    """

    verb: str
    target: str
    by: str
    at: str
    reason: str
    until: str = ""

    @property
    def ends(self) -> datetime | None:
        """The moment when it ends by itself; None where it does not."""
        return datetime.fromisoformat(self.until) if self.until else None

    @property
    def told(self) -> str:
        """A sentence on who asked for it, when and why."""
        since = f" since {self.at}" if self.at else ""
        by = f" by {self.by}" if self.by else ""
        return f"asked for{by}{since}" + (f": {self.reason}" if self.reason else "")


def end_of(until: datetime | None, for_s: float | None, pool_time: Callable[[], float]) -> datetime | None:
    """Return the moment at which a new pause ends by itself, None for none. pool_time: see `Connection.pool_time`.

    Errors: SpoolError for two moments, and for one without a zone, in the past, or beyond the calendar.
    """
    if until is None and for_s is None:
        return None
    if until is not None and for_s is not None:
        raise SpoolError("a pause has one end: name `until` or `for_s`, not both.")
    if until is not None and until.utcoffset() is None:
        raise SpoolError(f"{until.isoformat()} has no zone: add one, such as Z for UTC.")
    now = pool_time()
    try:
        end = until or datetime.fromtimestamp(now + (for_s or 0.0), UTC).replace(microsecond=0) + timedelta(seconds=1)
    except (OverflowError, ValueError, OSError):
        raise SpoolError(f"no calendar has the moment in {for_s:g} s: leave it out, and the pause stands.") from None
    if end.timestamp() <= now or (for_s is not None and not for_s > 0):
        raise SpoolError(f"the pause would be over already: name a moment after {stamp(now)}.")
    return end


def list_pauses(
    store: Store, requests: Iterable[Request] | None = None, verbs: Collection[Verb] = (Verb.PAUSE, Verb.HALT)
) -> tuple[Pause, ...]:
    """Return all pauses and halts that stand, or requests with other verbs. requests: as already listed.

    Errors: OSError from listing.
    """
    from spoold.store import control

    found = []
    for request in control.list_requests(store.fs) if requests is None else requests:
        if request.verb in verbs:
            body = control.read(store.fs, request)
            until = body.ends if request.verb in ENDING else ""
            found.append(Pause(request.verb.value, request.target, body.by, body.at, body.reason, until))
    return tuple(found)


def told(store: Store, requests: Iterable[Request]) -> dict[tuple[str, str], str]:
    """Return the sentence on each pause, closed limit and halt, by verb and target; the first of several."""
    standing = list_pauses(store, requests, (*ENDING, Verb.HALT))
    return {(pause.verb, pause.target): pause.told for pause in reversed(standing)}


def with_pauses(store: Store, picture: Snapshot) -> Snapshot:
    """Return the picture with its pauses; control/ is listed only where a pause or a halt stands. Errors: OSError."""
    if not picture.paused and not picture.halted:
        return picture
    pauses = [{**asdict(pause), "told": pause.told} for pause in list_pauses(store)]
    return picture.model_copy(update={"pauses": pauses})


class Pausing(Connection):
    """Types and limits of an open spool."""

    def pause(
        self,
        kind: str | None = None,
        *,
        reason: str = "",
        until: datetime | None = None,
        for_s: float | None = None,
    ) -> datetime | None:
        """Start no more tasks of a type, or of any; running tasks go on. A pause ends with a resume, or at a moment.

        until: with a zone; for_s: in so many seconds. Returns the end, or None. Errors: BadName; SpoolError if past.
        """
        target, end = kind_target(kind), end_of(until, for_s, self.pool_time)
        self.post(Verb.PAUSE, target, reason, until=end)
        return end

    def resume(self, kind: str | None = None, *, reason: str = "") -> None:
        """Take back a pause; without a type every pause, and a halt. Errors: BadName for an invalid type."""
        self.post(Verb.RESUME, kind_target(kind), reason)

    def close_limit(
        self, name: str, *, reason: str = "", until: datetime | None = None, for_s: float | None = None
    ) -> datetime | None:
        """Start no more tasks that use a limit; running tasks go on. until, for_s and the answer as for `pause`.

        Errors: BadFile for a limit that spool.toml does not name; SpoolError if the end is past.
        """
        from spoold.rules.entry.references import limit_named

        with self.reaching():
            target = limit_named(name, self.store.settings)
        end = end_of(until, for_s, self.pool_time)
        self.post(Verb.CLOSE, target, reason, until=end)
        return end

    def open_limit(self, name: str, *, reason: str = "") -> None:
        """Open a limit again, also one that a quota closed, or that spool.toml names no more.

        Errors: BadName for what cannot be a limit, BadFile for one that is neither.
        """
        from spoold.rules.entry.references import limit_named
        from spoold.store import control

        target = kind_target(name)
        with self.reaching():
            standing = control.list_requests(self.store.fs)
            if not any(each.target == target and each.verb in (Verb.CLOSE, Verb.QUOTA) for each in standing):
                limit_named(name, self.store.settings)
        self.post(Verb.OPEN, target, reason)
