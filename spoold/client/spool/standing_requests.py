"""What stands for the whole pool until its end: pauses, closed limits, halts and reservations; made, lifted, and who
asked for them, why and until when.

Law: the time of the pool decides whether a moment is past, and never the clock of this machine. A pause whose content
cannot be read still stands: only its texts are empty. A reservation is a request that ends by itself: nothing that
conflicts with it begins meanwhile. The leader says in its snapshot when it is granted; nobody else judges that.
Within a task it carries the task and its attempt, and ends with that.

Touches: files, the clock, the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from spoold.client.spool.connection import Connection, caller
from spoold.client.spool.submission import suffix
from spoold.protocol.errors import NotFound, SpoolError, WaitTimeout, WrongValue, legible
from spoold.protocol.names import base36
from spoold.protocol.request import ENDING, EVERYTHING, Request, Verb, kind_target
from spoold.store.store import Store, stamp

if TYPE_CHECKING:
    from spoold.protocol.event import Event
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
        return f"asked for by {self.by or 'an unknown user'}{since}" + (f": {self.reason}" if self.reason else "")


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


# What a person or a running task reserves: nothing that conflicts with it begins meanwhile.


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation: its name, patterns and end (RFC 3339), whether it is granted; behind: who holds it if not."""

    name: str
    write: tuple[str, ...]
    read: tuple[str, ...]
    until: str
    granted: bool
    behind: str = ""


class Reserving:
    """Reserve, release, and see who holds what, over one connection."""

    def __init__(self, spool: Connection) -> None:
        self._spool = spool

    def reserve(
        self,
        write: str | Iterable[str] = (),
        *,
        read: str | Iterable[str] = (),
        ttl_s: float | None = None,
        wait: bool = True,
        timeout: float | None = None,
        reason: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> Reservation:
        """Reserve patterns for ttl_s (default: `locks.reserve_s`). From now on nothing that conflicts begins; returns
        once nothing that conflicts runs any more.

        wait: without it the reservation is given back if it is not granted at once, and the result says who holds.
        timeout: in seconds, for the wait. Errors: SpoolError for a pattern or time that is none, or if a release
        ended it meanwhile; WaitTimeout, and the reservation is given back.
        """
        patterns = _patterns(write), _patterns(read)
        name = self._post_reservation(*patterns, self._length_s(ttl_s), reason)
        pace, begun = self._pace(), self._spool.store.clock.monotonic()
        found: Reservation | None = None
        try:
            while True:
                found, stands = self._reservation(name) or found, self._stands(name)
                if found is not None and (found.granted or not wait):
                    break
                if not stands:
                    raise SpoolError(f"reservation {name} was ended before it was granted; reserve again.")
                if timeout is not None and self._spool.store.clock.monotonic() - begun > timeout:
                    raise WaitTimeout(f"{' '.join(patterns[0] + patterns[1])} is not free after {timeout:g} s.")
                sleep(pace.pause_s())
        except BaseException:
            self._spool.post(Verb.RELEASE, name, "it was not waited for any longer")
            raise
        if not found.granted:
            self._spool.post(Verb.RELEASE, name, "it was not to wait")
        return found

    def release(self, names: str | Iterable[str] = ()) -> list[str]:
        """Give reservations back; without names, those of this task, or outside of a task those of this user on this
        machine. Returns the names. Errors: SpoolError for one that is over, NotFound for a name that is none; then
        nothing is given back.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        standing = self._reservations()
        if missing := [name for name in wanted if name not in standing]:
            self.raise_if_over(missing)
            raise NotFound(f"there is no reservation {missing[0]!r}; `spool locks` shows them.")
        for name in (found := wanted or self.own(standing)):
            self._spool.post(Verb.RELEASE, name, "")
        return found

    def own(self, standing: dict[str, Request] | None = None) -> list[str]:
        """Return the names of this task's reservations; outside of a task of those of this user on this machine."""
        seen = self._reservations() if standing is None else standing
        return [name for name, request in seen.items() if self._is_mine(request)]

    def raise_if_over(self, names: Iterable[str]) -> None:
        """Look in the journals for the end of these. Errors: SpoolError that says since when one of them is over."""
        from spoold.store.journal import Reader

        for name in names:
            with self._spool.reaching():
                events = Reader(self._spool.store.fs, about=name).read()
            said = [how for event in events if (how := _end_of(name, event))]
            if said:
                raise SpoolError(f"reservation {name} is over: {said[0]}.")

    def reserved(self) -> frozenset[str]:
        """Return the names of all reservations that stand."""
        return frozenset(self._reservations())

    def locks(self) -> dict[str, Any]:
        """Return who holds locks and who waits for them, as the leader's newest snapshot says; `holders` and
        `waiters` are lists of objects, with words for people in `told` and `locks`."""
        from spoold.rules.gates.lock_holders import locks_seen
        from spoold.store import snapshots

        with self._spool.reaching():
            latest = snapshots.latest(self._spool.store.fs)
        return locks_seen(latest[1].gates if latest is not None else {})

    def _post_reservation(self, write: tuple[str, ...], read: tuple[str, ...], ttl_s: float, reason: str) -> str:
        if not write and not read:
            raise SpoolError("nothing to reserve: name a pattern.")
        now = self._spool.pool_time()
        # The pool's time and not this machine's: of two reservations the one whose name comes first goes first.
        name = f"{base36(int(now * 1e6), 10)}-{suffix()}"
        task, attempt = self._task()
        until = datetime.fromtimestamp(now + ttl_s, UTC)
        self._spool.post(
            Verb.RESERVE,
            task or EVERYTHING,
            reason,
            until=until,
            unique=name,
            write=write,
            read=read,
            attempt=attempt,
        )
        return name

    def _length_s(self, ttl_s: float | None) -> float:
        settings = self._spool.store.settings.locks
        length_s = settings.reserve_s if ttl_s is None else ttl_s
        if not 0 < length_s <= settings.max_reserve_s:
            most = f"{settings.max_reserve_s:g} s ([locks] max_reserve_s in spool.toml)"
            raise SpoolError(f"a reservation cannot last {length_s:g} s: give it more than 0, and at most {most}.")
        return length_s

    def _reservation(self, name: str) -> Reservation | None:
        """The reservation as the leader sees it; None while it has not."""
        for row in self.locks()["holders"]:
            if row.get("reservation") == name and "granted" in row:  # else the leader has not read it yet
                until = datetime.fromtimestamp(row["until"], UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                return Reservation(
                    name, tuple(row["write"]), tuple(row["read"]), until, row["granted"], row.get("behind", "")
                )
        return None

    def _reservations(self) -> dict[str, Request]:
        """The reservations that stand, by name."""
        from spoold.store import control

        with self._spool.reaching():
            listed = control.list_requests(self._spool.store.fs)
        return {request.unique: request for request in listed if request.verb is Verb.RESERVE}

    def _stands(self, name: str) -> bool:
        return name in self._reservations()

    def _is_mine(self, request: Request) -> bool:
        from spoold.store import control

        task, attempt = self._task()
        body = control.read(self._spool.store.fs, request)
        if task is not None:
            return request.target == task and body.attempt == attempt
        return request.target == EVERYTHING and body.by == caller()

    def _task(self) -> tuple[str | None, int | None]:
        """The task of this spool in which this process runs, and its attempt; None outside of a task."""
        task, attempt = os.environ.get("SPOOL_TASK_ID"), os.environ.get("SPOOL_ATTEMPT", "")
        here = os.path.realpath(os.environ.get("SPOOL_ROOT", "")) == os.path.realpath(self._spool.directory)
        return (task, int(attempt)) if task and attempt.isdecimal() and here else (None, None)

    def _pace(self) -> Any:
        from spoold.client.spool.waiting import Pace

        return Pace(self._spool.store.clock, self._spool.store.settings.poll)


def _end_of(name: str, event: Event) -> str:
    """How and when a reservation of this name ended, as an event says; '' for any other event."""
    from spoold.protocol.event import ASKED

    detail = event.detail if isinstance(event.detail, dict) else {}
    if event.event == "RESERVATION_ENDED" and detail.get("name") == name:
        return f"it ended by itself at {event.at}"
    if event.event == ASKED and (detail.get("request"), detail.get("target")) == (Verb.RELEASE, name):
        return f"{legible(str(detail.get('by') or 'an unknown user'))} gave it back at {event.at}"
    return ""


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    """Patterns in their one spelling. Errors: SpoolError."""
    from spoold.protocol.lock_patterns import pattern

    try:
        return tuple(map(pattern, [given] if isinstance(given, str) else given))
    except WrongValue as error:
        raise SpoolError(f"{error.problem}: {error.mend}.") from error
