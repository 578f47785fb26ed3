"""This worker's lease, and the attempts that were frozen while it had none: those whose claim is still its own go on.

Law: only a published beat extends the lease, and the time counts from before that beat was written. So it is over
before any node may take this worker for dead. A lease that was over before it was extended is broken: certainties
under it do not hold under the next, which has another number. It may touch the clock that counts on through suspend.

After a silence a claim that is listed proves nothing for the future. A leader that took this worker for dead may have
sent the rename that takes the claim away, and the network may carry it out at any time. So the worker renames the
claim itself, within its own directory, to a name that it never had: one of the two renames finds its source gone. It
does so after a beat of its own, and the attempt goes on only while the lease of that beat lasts unbroken: a leader
lists the beats once more between listing the claims and taking them, and so never takes the new name.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import replace

from spoold.protocol import layout
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import DELAY_MAX_MS, TaskName, key, parse_task
from spoold.runner.job import RunnerPort
from spoold.store.journal import Journal
from spoold.store.mover import Fate, Moved
from spoold.store.step_timing import Slice
from spoold.store.store import Store, stamp
from spoold.system.clock import Clock
from spoold.worker.attempts.attempt import Attempt
from spoold.worker.attempts.claims import Claims
from spoold.worker.attempts.settling import Settling

# How many late claims that were renamed are remembered.
REMEMBERED = 100


def renamed(name: TaskName) -> TaskName:
    """Return the same attempt under a name that it never had: its rest, which is over, is a millisecond longer."""
    return replace(name, delay_ms=name.delay_ms % DELAY_MAX_MS + 1)


class Resuming:
    """Renames the claims of one worker's frozen attempts, and lets these attempts go on."""

    def __init__(
        self,
        store: Store,
        runner: RunnerPort,
        claims: Claims,
        journal: Journal,
        settling: Settling,
        lease: OwnLease,
    ) -> None:
        self._store = store
        self._runner = runner
        self._claims = claims
        self._journal = journal
        self._settling = settling
        self._lease = lease
        self._sure: dict[str, int] = {}  # claims that could not start yet, and in which lease they were renamed

    def resume(self, attempts: Iterable[Attempt]) -> int:
        """Move the claims of frozen attempts, also of those whose last such move ended in doubt. Return how many."""
        frozen, moved = self._runner.frozen(), 0
        for attempt in attempts:
            with self._store.faults.handling("frozen task", attempt.name.id, attempt.name.id, attempt.name.attempt):
                moved += self._resume(attempt, frozen.get(attempt.key))
        return moved

    def _resume(self, attempt: Attempt, since: float | None) -> bool:
        if since is not None and attempt.frozen_at is None:
            attempt.frozen_at = since
            self._journal.note("FROZEN", attempt.name.id, attempt.name.attempt, since=stamp(since))
        in_doubt = attempt.next is not None
        if attempt.fenced or not (in_doubt or since is not None) or self._lease.over:
            return False
        return self._move(attempt, since is not None)

    def adopt(self, late: set[str], running: Container[str]) -> tuple[int, list[TaskName]]:
        """Take over claims whose rename seemed to fail; return how many went back, and which are to be started, under
        their new names.

        late: found before this step's commits, since a share may still show a committed task by its old name. A claim
        whose attempt is over here goes back, and one that cannot be moved is tried again. running: keys.
        """
        back, taken, time = 0, list[TaskName](), Slice(self._store.clock)
        for number, file in enumerate(sorted(late)):
            if number and time.over:
                self._claims.doubt()
                break
            name = parse_task(file)
            if name is None:
                continue
            if self._claims.is_spent(name):
                again = self._claims.give_back(file)
                if again is not None:
                    back += 1
                    said = "its claim was there again after its end"
                    self._journal.note("RETURNED", again.id, again.attempt, message=said)
                continue
            if key(name.id) in running:
                continue
            with self._store.faults.handling("late claim of the task", name.id, name.id, name.attempt):
                mine = self._make_sure(name)
                taken += [] if mine is None else [mine]
        return back, taken

    def _make_sure(self, name: TaskName) -> TaskName | None:
        """Return a claim's name that no late rename takes away while the lease lasts unbroken; None if unsure."""
        if self._sure.get(name.encode()) == self._lease.number:
            return name
        again = renamed(name)
        if self._lease.over or not self._rename(name, again):
            return None
        self._claims.spend(name.encode())
        self._sure = {again.encode(): self._lease.number, **dict(list(self._sure.items())[:REMEMBERED])}
        return again

    def _move(self, attempt: Attempt, frozen: bool) -> bool:
        if attempt.next is None:
            attempt.next, attempt.ordered_in = renamed(attempt.name), self._lease.number
        moved = self._rename(attempt.name, attempt.next)
        if moved.fate is Fate.LOST:
            attempt.next = None
            self._claims.doubt()  # that look stops it, or finds that this worker was shut out
            return False
        if not moved:
            attempt.notes = [f"{attempt.key} is frozen: its claim cannot be moved yet: {moved.error}"]
            return False
        unbroken = attempt.ordered_in == self._lease.number
        self._claims.spend(attempt.file)
        attempt.resume()
        if frozen and unbroken and not self._lease.over:
            self._runner.thaw(attempt.key, self._lease.until)
            self._tell(attempt)
        return True

    def _rename(self, name: TaskName, again: TaskName) -> Moved:
        worker = self._store.writer
        moved = self._store.move(
            Mover.WORKER, "RESUMED", layout.claimed(worker, name.encode()), layout.claimed(worker, again.encode())
        )
        if not moved:
            self._claims.doubt()
        return moved

    def _tell(self, attempt: Attempt) -> None:
        assert attempt.frozen_at is not None
        seconds = max(0.0, self._store.clock.wall() - attempt.frozen_at)
        attempt.frozen_at, attempt.frozen_s = None, attempt.frozen_s + seconds
        self._journal.note("RESUMED", attempt.name.id, attempt.name.attempt, frozen_s=round(seconds, 1))
        self._settling.logs.remark(attempt, f"[frozen for {seconds:.0f} s, while its worker had no lease]")


# This worker's lease: until when tasks that it has claimed may begin, and tasks that it runs may move.


class OwnLease:
    """The lease of one worker; over until the first beat is out."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._until, self._number = 0.0, 0

    @property
    def until(self) -> float:
        """When it ends, in seconds of CLOCK_BOOTTIME."""
        return self._until

    @property
    def number(self) -> int:
        """A number that stays the same while the lease lasts unbroken, and never comes again."""
        return self._number

    @property
    def over(self) -> bool:
        """Whether it has ended: other workers may then get the tasks that this worker has claimed."""
        return self._clock.boottime() >= self._until

    def extend(self, until: float) -> None:
        """After a published beat, let it last until then, in seconds of CLOCK_BOOTTIME."""
        if self.over:
            self._number += 1
        self._until = until
