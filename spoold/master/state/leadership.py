"""The one token in master/: take it, renew it, lose it, resign it. `rules.cluster.election` decides.

Law: a renewal and a takeover rename the very name that was seen, so only one of two masters succeeds. A look that
failed proves nothing about the holder. In doubt this master does not plan.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from spoold.protocol import layout
from spoold.protocol.names import LeaseName
from spoold.rules.cluster import election
from spoold.rules.cluster.liveness import Absence, Watch
from spoold.store import mover
from spoold.store.leader_files import list_leases
from spoold.store.mover import Fate, Moved
from spoold.store.own_heartbeat import LEAP
from spoold.store.store import Store
from spoold.system import kernel_random
from spoold.system.errnos import Meaning, classify

log = logging.getLogger("spoold")

_TOKEN = "token"


class Leadership:
    """This master's side of the token. Times in seconds on the observer's monotonic clock.

    absence: when this master saw nothing of the share, also as a standby.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        beat = store.settings.heartbeat
        self._lease_s = beat.dead_after_s
        # Three chances to renew within the lease time, and never rarer than every 2.5 seconds, so that a
        # one-shot reader that looks twice can distinguish a live leader from a dead one.
        self._renew_s = min(self._lease_s / 3, 2.5)
        self.absence = Absence(beat.interval_s, self._lease_s)
        self._watch = Watch(beat.interval_s, self._lease_s, self.absence)
        self._seen: LeaseName | None = None
        self._changes = 0
        self._renewed_at: float | None = None
        self._missing_since: float | None = None
        self._told = False
        self._kept_epoch: int | None = None
        self._failing_since: float | None = None
        self._aside_until = 0.0
        self._highest: LeaseName | None = None  # that this master has ordered
        self._ousts = False  # a twin of the same name may lead by the token that was last ordered
        self.token: LeaseName | None = None

    @property
    def epoch(self) -> int:
        """The epoch in which this master leads, or the last one that it saw."""
        seen = self.token or self._seen
        return seen.epoch if seen else 0

    @property
    def holder(self) -> str | None:
        """The holder of the token, as last seen."""
        seen = self.token or self._seen
        return seen.holder if seen else None

    @property
    def missing(self) -> bool:
        """Whether there has been no token for as long as a lease lasts, so that no master can lead."""
        return self._told

    def hold(self, now: float, gone: Callable[[str], bool]) -> bool:
        """Look at the token once and act on it; True when this master leads. Errors: OSError (then do not plan).

        gone: whether a holder's process is known to be dead. Also raises ShutOut: another process leads as this one.
        """
        tokens = list_leases(self._store.fs)
        token = max(tokens, default=None)
        self._look(token, now)
        if (
            token is not None
            and token.holder == self._store.writer
            and (self._highest is None or token > self._highest)
        ):
            raise self._store.has_twin(_path(token))
        if self._ousts and token is not None and token.holder == self._store.writer:
            return (
                self._swap(token, LeaseName(token.epoch + 1, kernel_random.below(LEAP), token.holder), now)
                and self._kept()
            )
        renew = now >= self.renew_due
        decision = election.decide(
            tokens,
            self._store.writer,
            silent_s=self._watch.silent_s(_TOKEN),
            lease_s=self._lease_s,
            renew=renew,
            gone=token is not None and token.holder != self._store.writer and gone(token.holder),
        )
        if isinstance(decision, election.Swap) and (now >= self._aside_until or decision.to.epoch == self.epoch):
            assert token is not None
            return self._swap(token, decision.to, now) and self._kept()
        if isinstance(decision, election.Keep):
            self.token = token
            return self._kept()
        self.token = None
        self._mind_missing(isinstance(decision, election.Missing), now)
        return False

    @property
    def renew_due(self) -> float:
        """When (monotonic, s) to renew the token."""
        return 0.0 if self._renewed_at is None else self._renewed_at + self._renew_s

    @property
    def renew_must(self) -> float:
        """When (monotonic, s) the token must be renewed even in the middle of a step: the renewal costs some round
        trips, and at least half of the lease is then left for it.
        """
        return 0.0 if self._renewed_at is None else self._renewed_at + 1.5 * self._renew_s

    def untrusted(self) -> None:
        """Note that a look failed, which proves nothing about the holder."""
        self._watch.untrusted()

    def came_to(self, error: OSError | None, now: float) -> None:
        """Record the outcome of a step as leader: `error` if it failed, None if it did all that was due.

        If all steps for a lease fail, on a share that shows this master its token, the cause may be local (its
        rights, its mount) and not hinder others. It resigns, and leaves them the time of two leases to take over.
        """
        if error is None:
            self._failing_since = None
        elif self._failing_since is None:
            self._failing_since = now
        elif now - self._failing_since >= self._lease_s:
            log.warning("no step has succeeded for %.0f s, another master may lead: %s", self._lease_s, error)
            self._failing_since, self._aside_until = None, now + 2 * self._lease_s
            self.resign()

    def resign(self) -> None:
        """Name no master in the token, so that a standby need not wait for the lease. Errors: OSError."""
        if self.token is not None and not self._store.shared:
            token, self.token = self.token, None
            mover.move(self._store.fs, _path(token), _path(election.resigned(token)))

    def _mind_missing(self, missing: bool, now: float) -> None:
        """Warn once that no master can lead. Between two names of the token a listing may show neither."""
        if not missing:
            self._missing_since, self._told = None, False
            return
        self._missing_since = now if self._missing_since is None else self._missing_since
        if not self._told and now - self._missing_since >= self._lease_s:
            self._told = True
            log.warning("%s; %s", election.MISSING, election.MISSING_MEND)

    def _look(self, token: LeaseName | None, now: float) -> None:
        if token != self._seen:
            self._seen, self._changes = token, self._changes + 1
        # The watch compares numbers, and any new name of the token is a new beat.
        self._watch.look({_TOKEN: self._changes}, (), now, self._store.clock.monotonic())

    def _swap(self, token: LeaseName, to: LeaseName, now: float) -> bool:
        """Rename the token; True if this master did it. If only a look says so, a twin of the same name may have done
        it, and may lead: then take the token over from it, as from any leader, to a name drawn by chance.
        """
        moved = self._order(token, to)
        if moved.by_look:
            token, to = to, LeaseName(to.epoch + 1, kernel_random.below(LEAP), to.holder)
            self._ousts = True
            moved = self._order(token, to)
        if moved and not moved.by_look:
            self._ousts = False
            self.token, self._renewed_at = to, now
            return True
        self.token = None
        if moved.fate is Fate.REFUSED and moved.error is not None:
            raise moved.error  # the environment's fault: without a token no master leads, and people must see why
        return False

    def _order(self, token: LeaseName, to: LeaseName) -> Moved:
        self._highest = to if self._highest is None else max(self._highest, to)
        return mover.move(self._store.fs, _path(token), _path(to))

    def _kept(self) -> bool:
        """Whether no power cut of the server can undo any more that the epoch is this master's. Errors: OSError.

        An epoch that was led in and forgotten would be taken once more, and two leaders could give one name to two
        things. An epoch in which no master has led yet may be forgotten.
        """
        assert self.token is not None
        if self.token.epoch == self._kept_epoch or not self._store.fs.forgets:
            return True
        try:
            self._store.settle(layout.MASTER, {})
        except OSError as error:
            # A full share needs a leader more than most, and work that needs no room goes on there.
            if classify(error) is not Meaning.FULL:
                raise
        if self.token not in list_leases(self._store.fs):
            self.token = None
            return False
        self._kept_epoch = self.token.epoch
        return True


def _path(token: LeaseName) -> str:
    return layout.join(layout.MASTER, token.encode())
