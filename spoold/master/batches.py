"""A .jsonl drop → many tasks: all of its lines or none, and each exactly once, whoever finishes the work.

The batch file is the token of all its lines. It stands in its leader's door (see `doors`); its lines are staged
beside it and published by rename. A leader that takes over a half-expanded batch has removed that door first: what
stood staged in it is gone, so a late rename finds no source. Only then it looks which lines exist, and goes on.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice

from spoold.master import doors, takeover
from spoold.master.desk import Desk
from spoold.protocol import codec, layout
from spoold.protocol.errors import legible
from spoold.protocol.names import BatchName, key
from spoold.rules import admission, batch
from spoold.rules.admission import Reject, Young, taken
from spoold.rules.batch import Accepted, Line
from spoold.store import absence
from spoold.store.lanes import move_into_lane
from spoold.system.errnos import Meaning, classify

# Lines that are read, and lines that become tasks, in one step: few enough that all else goes on beside it. On a slow
# share as many as can be written in this time (s), or in as long as all else took since the last ones.
CHECKED_PER_STEP = 2000
PER_STEP = 500
STAGING_S = 2.0

__all__ = ["Accepted", "Batches", "Judging", "accept", "promised"]


class Judging:
    """A batch whose lines are being read, some at each step."""

    def __init__(self, desk: Desk, drop: str, data: bytes) -> None:
        self.data = data
        self._drop = drop
        self._check = batch.Check(data, drop, desk.store.settings)
        self._sound: Accepted | None = None

    def go_on(self, desk: Desk, most: int) -> tuple[Accepted | Reject | Young | None, int]:
        """The verdict on the whole, and how many tasks were read for it, `most` of them. Errors: OSError.

        None: there is more to read, or a task that it names moves or comes just now; ask again in the next step.
        """
        before = self._check.count
        if self._sound is None:
            verdict = self._check.go_on(most)
            if not isinstance(verdict, Accepted):
                return verdict, self._check.count - before
            self._sound = verdict
        return self._compare(desk, self._sound), self._check.count - before

    def _compare(self, desk: Desk, sound: Accepted) -> Accepted | Reject | None:
        """A batch whose ids are taken says the same as what has them, or is refused whole."""
        if promised(desk, sound.named):
            return None
        if not any(desk.view.known(k) for k in sound.named):
            return sound
        for line in batch.lines(self.data, self._drop, desk.order(0), "", desk.store.settings, sound):
            desk.breathe()
            if key(line.name.id) not in sound.named or not desk.view.known(line.name.id):
                continue
            same = desk.says_the_same(line.name.id, codec.load(line.data, self._drop), alone=False)
            if same is None:
                return None
            if not same:
                return Reject(taken(f"{self._drop} line {line.number}", line.name.id))
        return sound


def promised(desk: Desk, keys: Collection[str]) -> bool:
    """Whether a batch under way will make a task with one of these ids; of one that was taken over, it may be any.

    Whoever wants the same id has to wait for it: a line whose id was taken meanwhile would be passed over as made.
    """
    if not keys:
        return False
    found = [desk.promised.get(name) for name in desk.batches]
    return any(sound is None or not sound.named.keys().isdisjoint(keys) for sound in found)


def accept(desk: Desk, drop: str, data: bytes, accepted: Accepted) -> None:
    """The batch becomes mine to expand; its order numbers are taken, so that its tasks stay together."""
    order, prefix = admission.settle(drop, desk.next_micros(), desk.epoch)
    desk.next_micros(data.count(b"\n") + 2)
    name = BatchName(order, prefix)
    if doors.through(desk, drop, name.encode()):
        desk.journal.note("BATCH", drop=legible(drop), batch=name.encode())
        desk.promised[name] = accepted
        desk.batches.add(name)


@dataclass(slots=True)
class _Open:
    """A batch under way: its lines still to come. vanished: of the desk, when the first was read."""

    name: BatchName
    lines: Iterator[Line]
    vanished: int
    settled: bool = False


class Batches:
    """Expands the leader's batches, a bounded number of lines each step."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._staged: dict[str, Line] = {}
        self._written = 0
        self._rested_at = math.inf

    def step(self, desk: Desk) -> int:
        """Publish some lines. Returns how many batches are still open, and not waiting for room. Errors: OSError."""
        self._resolve(desk)
        if self._open is None and desk.batches:
            name = min(desk.batches, key=lambda b: b.order)
            path = layout.join(desk.door, name.encode())
            try:
                data = absence.read(desk.store.fs, path)
            except OSError as error:
                desk.tell(path, error)
                return 0
            if data is None:
                desk.batches.discard(name)  # finished by an unlink whose reply was lost, or taken over
                return len(desk.batches)
            sound, settings = desk.promised.get(name), desk.store.settings
            found = batch.lines(data, name.encode(), name.order, name.prefix, settings, sound)
            self._open, self._rested_at = _Open(name, found, desk.vanished), math.inf
        if self._open is not None and not self._expand_if_room(desk, self._open):
            return 0
        return len(desk.batches)

    def _expand_if_room(self, desk: Desk, under_way: _Open) -> bool:
        """Expand it; False on a full share, where all else goes on that needs no room. Errors: OSError."""
        try:
            self._expand(desk, under_way)
        except OSError as error:
            if classify(error) is not Meaning.FULL:
                raise
            desk.notices.append(f"batch {under_way.name.prefix} waits for room on the share: {error.strerror}")
            return False
        return True

    def _expand(self, desk: Desk, under_way: _Open) -> None:
        """Stage some lines, make them durable together, then publish them one by one.

        Durable first: a published line may be run at once, and a power cut must not leave it without its content.
        """
        try:
            all_read = self._stage_some(desk, under_way)
            if self._staged and desk.store.durable and not desk.store.fs.remote:
                desk.store.fs.flush()
            for staged in list(self._staged):
                desk.breathe()
                self._publish(desk, staged)
            if all_read and (not desk.store.fs.forgets or self._kept(desk, under_way)):
                self._finish(desk, under_way.name)
            self._rested_at = desk.store.clock.monotonic()
        except BaseException:
            # Whatever stopped this line, the next step starts over: lines that exist are passed over.
            self._open = None
            raise

    def _stage_some(self, desk: Desk, under_way: _Open) -> bool:
        """Stage as many lines as one step may; whether there are no more. Errors: OSError, DoorShut."""
        clock = desk.store.clock
        now = clock.monotonic()
        until = now + max(STAGING_S, now - self._rested_at)
        count = 0
        for line in islice(under_way.lines, PER_STEP):
            count += 1
            desk.breathe()
            if not desk.view.known(line.name.id):
                self._stage(desk, line)
            if clock.monotonic() >= until:
                return False
        return count < PER_STEP

    def _kept(self, desk: Desk, under_way: _Open) -> bool:
        """Whether every line is a task, and no power cut of the server can undo that any more. Errors: OSError.

        What it forgot before it had settled shows in listings, all of which come after that.
        """
        if not under_way.settled:
            desk.store.settle(layout.WAITING, {})
            desk.unsure = under_way.settled = True
            return False
        if not desk.missing:
            takeover.relist(desk)
        if not desk.missing and desk.vanished != under_way.vanished:
            self._open = None  # once more from the first line: those that are there are passed over
        return self._open is not None and not desk.missing

    def _finish(self, desk: Desk, name: BatchName) -> None:
        """All lines are tasks: the batch file has no more to say."""
        absence.remove(desk.store.fs, layout.join(desk.door, name.encode()))
        desk.batches.discard(name)
        desk.promised.pop(name, None)
        desk.busy = True
        self._open = None

    def _stage(self, desk: Desk, line: Line) -> None:
        """Write a line into this leader's door, under a name that it never uses twice. Errors: OSError, DoorShut."""
        self._written += 1
        path = layout.join(desk.door, f"{self._written}{doors.LINE}")
        self._staged[path] = line  # on record before it is there: an error does not say that it is not
        try:
            desk.store.fs.write(path, line.data, durable=desk.store.durable and desk.store.fs.remote)
        except FileNotFoundError:
            doors.check_open(desk)
            raise

    def _publish(self, desk: Desk, staged: str) -> None:
        """One line becomes a task in waiting/."""
        line = self._staged[staged]
        file = line.name.encode()
        moved = move_into_lane(desk.store, staged, layout.WAITING, line.lane, file)
        if not moved:
            raise moved.error or OSError(f"{line.name.id}: publishing ended as {moved.fate}")
        del self._staged[staged]
        _admitted(desk, line, file)

    def _resolve(self, desk: Desk) -> None:
        """What was not seen to be published may still be, until its source is gone: then look."""
        for staged, line in list(self._staged.items()):
            absence.remove(desk.store.fs, staged)
            file = line.name.encode()
            there = absence.stands(desk.store.fs, layout.waiting(line.lane, file))
            if there and not desk.view.known(line.name.id):
                _admitted(desk, line, file)
            del self._staged[staged]


def _admitted(desk: Desk, line: Line, file: str) -> None:
    desk.enlist(file, line.lane, line.task, line.name.delay_ms)
    desk.journal.note("ADMITTED", line.name.id, line.name.attempt, lane=line.lane)
