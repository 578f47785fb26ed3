"""What a person or a running task reserves: nothing that conflicts with it begins meanwhile.

Law: a reservation is a request that ends by itself. The leader says when it is granted, in its snapshot; nobody else
judges that. Within a task it carries the task and its attempt, and ends with that.
Touches: files, the clock, the environment.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from spoold.client.connection import Connection, caller
from spoold.client.submission import suffix
from spoold.protocol.errors import NotFound, SpoolError, WaitTimeout, WrongValue
from spoold.protocol.names import base36
from spoold.protocol.request import EVERYTHING, Request, Verb


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
        machine. Returns the names. Errors: NotFound for a name that is none, and then nothing is given back.
        """
        wanted = [names] if isinstance(names, str) else list(names)
        standing = self._reservations()
        if missing := [name for name in wanted if name not in standing]:
            raise NotFound(f"there is no reservation {missing[0]!r}; `spool locks` shows them.")
        for name in (found := wanted or self.own(standing)):
            self._spool.post(Verb.RELEASE, name, "")
        return found

    def own(self, standing: dict[str, Request] | None = None) -> list[str]:
        """Return the names of this task's reservations; outside of a task of those of this user on this machine."""
        seen = self._reservations() if standing is None else standing
        return [name for name, request in seen.items() if self._is_mine(request)]

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
        from spoold.client.pace import Pace

        return Pace(self._spool.store.clock, self._spool.store.settings.poll)


def _patterns(given: str | Iterable[str]) -> tuple[str, ...]:
    """Patterns in their one spelling. Errors: SpoolError."""
    from spoold.protocol.lock_patterns import pattern

    try:
        return tuple(map(pattern, [given] if isinstance(given, str) else given))
    except WrongValue as error:
        raise SpoolError(f"{error.problem}: {error.mend}.") from error
