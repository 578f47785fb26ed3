"""A .jsonl drop → many tasks: all of its lines or none, and each exactly once, whoever finishes the work.

The batch file is the token of all its lines. It moves into batches/ under the name of the leader that expands it;
each line is staged in that leader's tmp directory and published by rename. A leader that takes over a half-expanded
batch first removes the former one's tmp directory: what that one had staged and not yet published is gone, so a late
rename of it finds no source. Only then the new leader looks which lines exist already, and goes on with the rest.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from spoold.master.desk import Desk
from spoold.protocol import codec, layout
from spoold.protocol.errors import legible
from spoold.protocol.names import BatchName, parse_batch
from spoold.rules import batch
from spoold.rules.admission import Reject, Young, taken
from spoold.rules.batch import Accepted, Line
from spoold.store.lanes import list_tasks, move_into_lane
from spoold.store.store import clear_directory

PER_STEP = 200

__all__ = ["Accepted", "Batches", "accept", "judge", "take_over"]


def judge(desk: Desk, drop: str, data: bytes, order: str, prefix: str) -> Accepted | Reject | Young | None:
    """The verdict on a whole batch. None: a task it names is moving just now, ask again in the next step."""
    verdict = batch.check(data, drop, order, prefix, desk.store.settings)
    if not isinstance(verdict, Accepted) or not any(desk.view.known(k) for k in verdict.named):
        return verdict
    for line in batch.lines(data, drop, order, prefix, desk.store.settings):
        if line.admit.task.id is None or not desk.view.known(line.admit.name.id):
            continue
        old = desk.read_known(line.admit.name.id)
        if old is None:
            return None
        if not codec.same_content(codec.load(line.data, drop), old):
            return Reject(taken(f"{drop} line {line.number}", line.admit.name.id))
    return verdict


def accept(desk: Desk, drop: str, data: bytes, order: str, prefix: str) -> None:
    """The batch becomes mine to expand; its order numbers are taken, so that its tasks stay together."""
    desk.next_micros(data.count(b"\n") + 2)
    name = BatchName(order, prefix, desk.store.writer)
    moved = desk.store.move(layout.join(layout.PENDING, drop), layout.join(layout.BATCHES, name.encode()))
    if desk.went(moved, drop):
        desk.journal.note("BATCH", drop=legible(drop), batch=name.encode())
        desk.batches.add(name)


def take_over(desk: Desk) -> None:
    """Make every unfinished batch mine, shutting the door on the leaders before. Errors: OSError.

    Called before the new leader lists waiting/ and the rest, so that what it sees afterwards is all there will be.
    """
    me = desk.store.writer
    for found in map(parse_batch, sorted(desk.store.fs.list(layout.BATCHES))):
        if found is None:
            continue
        mine = BatchName(found.order, found.prefix, me)
        if found.holder == me:
            _withdraw_all(desk)  # an earlier epoch of mine may have staged something and lost sight of it
        else:
            if not clear_directory(desk.store.fs, layout.join(layout.TMP, found.holder)):
                raise OSError(f"tmp/{found.holder} keeps filling: its writer still lives")
            src = layout.join(layout.BATCHES, found.encode())
            if not desk.store.move(src, layout.join(layout.BATCHES, mine.encode())):
                continue
        desk.batches.add(mine)


@dataclass(slots=True)
class _Open:
    """A batch under way: its lines still to come."""

    name: BatchName
    lines: Iterator[Line]


class Batches:
    """Expands the leader's batches, a bounded number of lines each step."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._staged: dict[str, Line] = {}

    def step(self, desk: Desk) -> int:
        """Publish some lines. Returns how many batches are still open. Errors: OSError."""
        self._resolve(desk)
        if self._open is None and desk.batches:
            name = min(desk.batches, key=lambda b: b.order)
            try:
                data = desk.store.fs.read(layout.join(layout.BATCHES, name.encode()))
            except FileNotFoundError:
                desk.batches.discard(name)  # finished by an unlink whose reply was lost, or taken over
                return len(desk.batches)
            self._open = _Open(name, batch.lines(data, name.encode(), name.order, name.prefix, desk.store.settings))
        if self._open is not None:
            self._expand(desk, self._open)
        return len(desk.batches)

    def _expand(self, desk: Desk, under_way: _Open) -> None:
        """Stage some lines, make them durable together, then publish them one by one.

        Durable first: a published line may be run at once, and a power cut must not leave it without its content.
        """
        try:
            lines = list(islice(under_way.lines, PER_STEP))
            for line in lines:
                if not desk.view.known(line.admit.name.id):
                    self._staged[desk.store.stage(line.data, durable=False)] = line
            if self._staged and desk.store.durable:
                desk.store.fs.flush()
            for staged in list(self._staged):
                self._publish(desk, staged)
            if len(lines) < PER_STEP:
                self._finish(desk, under_way.name)
        except BaseException:
            # Whatever stopped this line, the next step starts over: lines that exist are passed over.
            self._open = None
            raise

    def _finish(self, desk: Desk, name: BatchName) -> None:
        """All lines are tasks: the batch file has no more to say."""
        with contextlib.suppress(FileNotFoundError):
            desk.store.fs.unlink(layout.join(layout.BATCHES, name.encode()))
        desk.batches.discard(name)
        desk.busy = True
        self._open = None

    def _publish(self, desk: Desk, staged: str) -> None:
        """One line becomes a task in waiting/."""
        line = self._staged[staged]
        admit = line.admit
        moved = move_into_lane(desk.store, staged, layout.WAITING, admit.lane, admit.name.encode())
        if not moved:
            raise moved.error or OSError(f"{admit.name.id}: publishing ended as {moved.fate}")
        del self._staged[staged]
        _admitted(desk, line)

    def _resolve(self, desk: Desk) -> None:
        """What was not seen to be published may still be, until its source is gone: then look."""
        for staged, line in list(self._staged.items()):
            with contextlib.suppress(FileNotFoundError):
                desk.store.fs.unlink(staged)
            admit = line.admit
            there = list_tasks(desk.store.fs, layout.join(layout.WAITING, admit.lane))
            if admit.name.encode() in there and not desk.view.known(admit.name.id):
                _admitted(desk, line)
            del self._staged[staged]


def _admitted(desk: Desk, line: Line) -> None:
    admit = line.admit
    desk.enlist(admit.name, admit.lane, admit.task)
    desk.journal.note("ADMITTED", admit.name.id, admit.name.attempt, lane=admit.lane)


def _withdraw_all(desk: Desk) -> None:
    directory = layout.join(layout.TMP, desk.store.writer)
    for name in desk.store.fs.list(directory):
        with contextlib.suppress(FileNotFoundError):
            desk.store.fs.unlink(layout.join(directory, name))
