"""A .jsonl drop → many tasks: each line at most once, even if another leader finishes it.

A batch is accepted or rejected whole. All lines of an accepted one become tasks, with two exceptions. If its file
is written again meanwhile, and this leader has not read the accepted content, the other lines are lost, and the new
content is judged as a drop. If the file has a wrong line by then, as after a change of settings, it goes to rejected/
with the reason, and so does one that spoold cannot handle. In all cases the lines that are tasks already stay tasks.

The batch file is the token of all its lines. It stands in its leader's door (see `admission_directories`). Its lines
are staged beside it and published by rename.

Law: no line becomes a task before the whole batch was accepted, and none becomes a task twice. A leader that takes
over a half-expanded batch first removes the old door with all that was staged in it, so a late rename finds no
source. Only then does it check which lines exist, and goes on.

Bytes that a writer adds to an admitted file are not lost. A program that has the file open goes on writing into it
wherever the file is moved. So a batch that was not published by rename stays in the leader's door until no program
has it open for writing, where that can be known, and else until it was still for `drop.watch_s`. The added lines are
judged as a batch by themselves: all of them, or none. How much is admitted, how much is done, and a digest of the
admitted bytes are in the name of the file. If the admitted bytes have changed, the file is a new drop: it goes back.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from spoold.master.intake import admission_directories, batch_validation, deferred_drops, requeue_changed
from spoold.master.intake.deferred_drops import STILL_S, Stuck
from spoold.master.listing import refresh
from spoold.master.state.fingerprints import IN_NAME, Content, digest_of
from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import reject, reject_irregular, take_away
from spoold.master.state.tree_view import waiting_place
from spoold.protocol import layout
from spoold.protocol.admission_names import BatchName
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import is_our_batch, key
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Accepted, Line, Reject, Young
from spoold.store import existence
from spoold.store.attempt_records import is_taken
from spoold.store.lanes_and_archive import move_into_lane
from spoold.store.path_conflicts import WAITED_FOR
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import NotRegularError

# Lines that become tasks in one step: few enough that other work goes on beside them. On a slow share: as many as can
# be written and published in this time (s), or in the time that all other work took since the last lines.
PER_STEP = 500
STAGING_S = 4.0
# An entry under a batch's name that is no file promises no ids.
NOTHING = Accepted({}, [], [], b"")
OVERWRITTEN = (
    "was written again before all its lines were tasks: the other lines are lost, unless the new content has them"
)


def accept(desk: Desk, drop: str, data: bytes, accepted: Accepted) -> None:
    """Take the batch through the door to expand it, and reserve its order numbers, so that its tasks stay together.

    The name of a stranger's batch says how much of it was admitted: its writer may go on.
    """
    order, prefix = admission.settle(drop, desk.next_micros(), desk.epoch)
    desk.next_micros(data.count(b"\n") + 2)
    digest = accepted.digest[:IN_NAME].hex()
    name = BatchName(order, prefix) if is_our_batch(drop) else BatchName(order, prefix, 0, len(data), digest)
    if admission_directories.through(desk, drop, name.encode()):
        desk.journal.note("BATCH", drop=legible(drop), batch=name.encode())
        desk.door.begin(name, accepted)


@dataclass(slots=True)
class _Open:
    """A batch under way and its remaining lines. vanished: the desk's count when the first line was read; owner: the
    user whose file it is, as far as that matters.
    """

    name: BatchName
    lines: Iterator[Line]
    vanished: int
    settled: bool = False
    owner: int | None = None


class Batches:
    """Expands the leader's batches, a bounded number of lines each step."""

    def __init__(self) -> None:
        self._open: _Open | None = None
        self._staging = Staging()
        self._rested_at = math.inf
        self._reading: tuple[BatchName, batch_validation.Reading] | None = None
        self._read: tuple[BatchName, bytes, bytes] | None = None  # the content of a batch, and its digest
        self._overwritten: dict[BatchName, float] = {}
        self._stuck = Stuck()

    def step(self, desk: Desk) -> int:
        """Publish some lines. Returns how many batches are open and do not wait for room. Errors: OSError."""
        resolved = self._staging.resolve(desk)
        for gone in [name for name, until in self._overwritten.items() if desk.step.now.monotonic >= until]:
            del self._overwritten[gone]
        desk.report.notice(*[f"batch {name.prefix} {OVERWRITTEN}" for name in self._overwritten])
        oldest, told = self._oldest_due(desk), len(desk.report.notices)
        name = self._open.name if self._open is not None else oldest
        if name is None or not resolved:
            return 0
        went_on = self._go_on_safely(desk, name)
        if went_on is None:
            return 0
        if went_on:
            self._stuck.forget(name.encode())
        else:
            self._stuck.put_off(desk, name.encode(), told)
        return len(desk.door.batches) - len(self._stuck.drops.keys() & self._names(desk).keys())

    def _go_on_safely(self, desk: Desk, name: BatchName) -> bool | None:
        """Begin a batch, or go on with it. One that spoold cannot handle is rejected, from the first line that is no
        task yet. Returns and errors as `_expand_if_room`.
        """
        with desk.faults.handling("batch", name.encode()) as handling:
            if self._open is not None or (begun := self._begin(desk, name)):
                return True if self._open is None else self._expand_if_room(desk, self._open)
            return begun
        self._open = None
        desk.step.doubt()
        if handling.fault is not None and handling.fault.lasts:
            with desk.faults.handling("rejection of batch", name.encode()):
                reject_lines_left(desk, name, handling.fault.bad_file(f"{name.stem}.jsonl"))
        return name not in desk.door.batches

    def next_due(self) -> float | None:
        """When (monotonic, s) to try the next stuck batch again."""
        return self._stuck.next_due()

    def _oldest_due(self, desk: Desk) -> BatchName | None:
        """Return the oldest batch that is not stuck: no batch waits for a stuck one."""
        if not self._stuck.drops:
            return min(desk.door.batches, key=_age, default=None)
        names = self._names(desk)
        for gone in self._stuck.drops.keys() - names.keys():
            self._stuck.forget(gone)
        return min(
            (name for file, name in names.items() if not self._stuck.rests(desk, file)), key=_age, default=None
        )

    def _names(self, desk: Desk) -> dict[str, BatchName]:
        """All batches by file name; empty when none is stuck, since there may be thousands, in every step."""
        return {name.encode(): name for name in desk.door.batches} if self._stuck.drops else {}

    def _begin(self, desk: Desk, name: BatchName) -> bool:
        """Read a batch, or settle it; False, with a notice, where neither can be done now. Errors: OSError."""
        path, before = path_of_batch(desk, name), self._reading
        reading = before[1] if before is not None and before[0] == name else None
        reading, self._reading = reading or batch_validation.Reading(path, f"{name.prefix}.jsonl", name), None
        try:
            with desk.reading(path):
                found = reading.go_on(desk)
            if found is None:
                self._reading = name, reading
                return True
            (data,) = found
        except OSError as error:
            return self._unread(desk, name, error)
        except batch_validation.TooLarge as large:
            reject_lines_left(desk, name, large.error, size=large.size)
            return name not in desk.door.batches
        if desk.door.promised.get(name) is NOTHING:
            desk.door.unread(name)  # another process has put a file there meanwhile
        if data is None:
            # It was finished by an unlink or a rename whose reply was lost, or another leader took it over.
            desk.door.left(name)
            desk.door.doubt()
            return True
        admitted = self._as_admitted(desk, name, data, reading.digest)
        if admitted is None:
            return name not in desk.door.batches
        data, digest = admitted
        sound, settings = desk.door.promised.get(name), desk.store.settings
        lines = admission.lines(data, name.encode(), name.order, name.prefix, settings, sound, name.done or 0, digest)
        self._open, self._rested_at = _Open(name, lines, desk.missing.vanished, owner=desk.owner_of(path)), math.inf
        return True

    @staticmethod
    def _unread(desk: Desk, name: BatchName, error: OSError) -> bool:
        """Reject an entry that is no file. An unreadable file stays, and keeps its ids, though they are unknown: a
        line whose id another drop took meanwhile would be lost. True when it is gone. Errors: OSError.
        """
        path = path_of_batch(desk, name)
        if isinstance(error, NotRegularError):
            desk.door.promise(name, NOTHING)
            if not reject_irregular(desk, path, f"{name.stem}.jsonl"):
                return False
            desk.door.finish(name)
            return True
        known, besides = desk.door.promised.get(name), ""
        if known is None or known.named:
            besides = f"; {WAITED_FOR} {'an id' if known is None else 'one of its ids'} waits for it"
        desk.tell(path, error, besides)
        return False

    def _as_admitted(self, desk: Desk, name: BatchName, data: bytes, digest: bytes) -> tuple[bytes, bytes] | None:
        """Return the batch's content as admitted, and its digest, whatever was written into its file since; None if
        that is lost. digest: of the data.

        This leader may have read it before. Otherwise the lines that are no tasks yet are unknown, and the file is a
        new drop.
        """
        admitted = in_name(name)
        if not digest.startswith(admitted):
            if self._read is None or self._read[0] != name:
                if requeue_changed.judge_anew(desk, path_of_batch(desk, name), f"{name.stem}.jsonl"):
                    desk.door.finish(name)
                    self._overwritten[name] = desk.step.now.monotonic + desk.store.settings.drop.watch_s
                    desk.journal.note("OVERWRITTEN", batch=name.encode(), problem=OVERWRITTEN, mend=ADVICE)
                return None
            _, data, digest = self._read
        self._read = (name, data, digest) if admitted else None
        return data, digest

    def _expand_if_room(self, desk: Desk, under_way: _Open) -> bool | None:
        """Expand it. None on a full share, where work that needs no room goes on. False when all is done but the
        file could not be removed. Errors: OSError.
        """
        try:
            return self._expand(desk, under_way)
        except BadFile as error:
            reject_lines_left(desk, under_way.name, error)
            return under_way.name not in desk.door.batches
        except OSError as error:
            if classify(error) is not Meaning.FULL:
                raise
            desk.report.notice(f"batch {under_way.name.prefix} waits for room on the share: {error.strerror}")
            return None

    def _expand(self, desk: Desk, under_way: _Open) -> bool:
        """Stage some lines, make them durable together, then publish them one by one. On a share each is durable as
        it is written, and published before the client has to ask the server about it again.

        Durable first: a published line may run at once, and a power cut must not leave it without its content.
        """
        try:
            all_read = self._stage_some(desk, under_way)
            if self._staging.lines and desk.store.durable and not desk.store.fs.remote:
                desk.store.fs.flush()
            for staged in list(self._staging.lines):
                desk.breathe()
                self._staging.publish(desk, staged)
            if all_read and (not desk.store.fs.forgets or self._kept(desk, under_way)):
                return self._finish(desk, under_way.name)
            self._rested_at = desk.store.clock.monotonic()
            return True
        except BaseException:
            # Whatever stopped this line, the next step starts over and skips lines that exist.
            self._open = None
            raise

    def _stage_some(self, desk: Desk, under_way: _Open) -> bool:
        """Stage as many lines as one step may; True when there are no more. Errors: OSError, DoorShut."""
        clock = desk.store.clock
        now = clock.monotonic()
        until = now + max(STAGING_S, now - self._rested_at)
        count = 0
        for line in islice(under_way.lines, PER_STEP):
            count += 1
            desk.breathe()
            if not desk.view.known(line.name.id):
                desk.learn_owner(key(line.name.id), under_way.owner)
                staged = self._staging.stage(desk, line)
                if desk.store.fs.remote:
                    self._staging.publish(desk, staged)
            if clock.monotonic() >= until:
                return False
        return count < PER_STEP

    def _kept(self, desk: Desk, under_way: _Open) -> bool:
        """Whether every line is a task that no power cut of the server can undo any more. Errors: OSError.

        Lines that the server forgot before it settled are absent from listings, and all of these come after that.
        """
        if not under_way.settled:
            desk.store.settle(layout.WAITING, {})
            under_way.settled = True
            desk.step.doubt()
            return False
        if not desk.missing:
            refresh.relist(desk)
        if not desk.missing and desk.missing.vanished != under_way.vanished:
            self._open = None  # once more from the first line, skipping those that exist
        return self._open is not None and not desk.missing

    def _finish(self, desk: Desk, name: BatchName) -> bool:
        """All lines are tasks: remove the batch file, or keep it if its writer may go on. False where it stays."""
        desk.step.clear_denial()
        if not (take_away(desk, path_of_batch(desk, name)) if name.size is None else keep_watched(desk, name)):
            if name.size is None or desk.step.denied:
                self._open = None
                return False
            return True  # it may have been renamed, or the rename may come late: the next step tries once more
        desk.door.finish(name)
        desk.step.change()
        self._open = self._read = None
        return True


def _age(name: BatchName) -> str:
    return name.order


# The lines of a batch on their way: written into the leader's door, then published by rename.


# How many names are tried for a line in one step.
NAMES_TRIED = 100


class Staging:
    """The lines that are staged, by path."""

    def __init__(self) -> None:
        self.lines: dict[str, Line] = {}
        self._written = 0

    def stage(self, desk: Desk, line: Line) -> str:
        """Write a line into this leader's door, under a name that it never uses twice; return its path.

        Errors: OSError, DoorShut.
        """
        tried = 0
        while True:
            desk.breathe()
            self._written += 1
            path = desk.door.at(f"{self._written}{admission_directories.LINE}")
            self.lines[path] = line
            try:
                desk.store.fs.write(path, line.data, durable=desk.store.durable and desk.store.fs.remote)
            except FileNotFoundError:
                admission_directories.check_open(desk)
                raise
            except OSError as error:
                tried += 1
                if not is_taken(error):
                    raise
                del self.lines[path]
                if tried == NAMES_TRIED:
                    raise
            else:
                return path

    def publish(self, desk: Desk, staged: str) -> None:
        """Make one line a task in waiting/. Errors: OSError."""
        line = self.lines[staged]
        file = line.name.encode()
        moved = move_into_lane(desk.store, "ADMITTED", staged, layout.WAITING, line.lane, file)
        if not moved:
            raise moved.error or OSError(f"{line.name.id}: publishing ended as {moved.fate}")
        del self.lines[staged]
        _admitted(desk, line, file)

    def resolve(self, desk: Desk) -> bool:
        """Remove staged files, then look which lines were published unseen: until then each may be. Errors: OSError.

        False while one could not be removed: a second file of its line would be one task too many.
        """
        for staged, line in list(self.lines.items()):
            if not take_away(desk, staged):
                continue
            file = line.name.encode()
            there = existence.stands(desk.store.fs, layout.waiting(line.lane, file))
            if there and not desk.view.known(line.name.id):
                _admitted(desk, line, file)
            del self.lines[staged]
        return not self.lines


def _admitted(desk: Desk, line: Line, file: str) -> None:
    desk.view.members.see(key(line.name.id), line.batch)
    place = waiting_place(line.lane, file)
    enlist = partial(desk.enlist, file, line.lane, line.task, line.name.delay_ms)
    desk.contained("new task", place, line.name, enlist)  # the other lines go on
    batch = {"batch": line.batch} if line.batch else {}
    desk.journal.note("ADMITTED", line.name.id, line.name.attempt, lane=line.lane, file=file, **batch)


# Batches all of whose lines are tasks, and whose writer may go on: watched for a while, then removed.


# Between two looks (s), first and at most.
LOOK_S, LOOK_MOST_S = 1.0, 10.0
ADVICE = "write elsewhere, then rename it into pending/ as NAME.whole.jsonl"


@dataclass(slots=True)
class _Watched:
    """One batch: its admitted content, its size when last seen and since when, when to look again, the notices of the
    last look.
    """

    said: Content
    size: int
    since: float
    look_at: float
    told: tuple[str, ...] = ()
    reading: batch_validation.Reading | None = None
    judging: batch_validation.Judging | None = None


class WatchedBatches:
    """The batches that are watched, with how they looked last (a new leader watches them from the beginning)."""

    def __init__(self) -> None:
        self._watched: dict[BatchName, _Watched] = {}

    def next_due(self) -> float | None:
        """When (monotonic, s) to look at the next one."""
        return min((watched.look_at for watched in self._watched.values()), default=None)

    def step(self, desk: Desk) -> None:
        """Look at the batches that are due. Errors: OSError."""
        for gone in self._watched.keys() - desk.door.kept:
            del self._watched[gone]
        now = desk.step.now.monotonic
        for name in sorted(desk.door.kept, key=lambda batch: batch.order):
            desk.breathe()
            done = name.done or 0
            watched = self._watched.setdefault(name, _Watched(Content(done, in_name(name)), done, now, now))
            if watched.size > done:
                more = f"{watched.size - done:,} bytes came after its admission"
                desk.report.notice(f"batch {name.prefix}: {more}; {ADVICE}")
            if now < watched.look_at:
                desk.report.notice(*watched.told)
                continue
            told = len(desk.report.notices)
            try:
                # One that spoold cannot handle stays, and is looked at again: its first lines are tasks already.
                with desk.faults.handling("watched batch", name.encode()), desk.reading(path_of_batch(desk, name)):
                    self._look(desk, name, watched)
            except FileNotFoundError:
                if existence.stands(desk.store.fs, path_of_batch(desk, name)):
                    raise
                desk.door.left(name)
                desk.door.doubt()  # removed; or renamed, and a server forgot that
            except OSError as error:
                irregular = isinstance(error, NotRegularError)
                if irregular and reject_irregular(desk, path_of_batch(desk, name), f"{name.stem}.jsonl"):
                    desk.door.left(name)
                else:
                    desk.tell(path_of_batch(desk, name), error)
            watched.told = tuple(desk.report.notices[told:])
            still_s = now - watched.since
            watched.look_at = now + min(LOOK_MOST_S, max(LOOK_S, still_s / 4))

    def _look(self, desk: Desk, name: BatchName, watched: _Watched) -> None:
        fs, path, now = desk.store.fs, path_of_batch(desk, name), desk.step.now.monotonic
        writer = fs.has_writer(path)  # before the size: a writer that has closed the file adds no more
        size = watched.said.look(fs, path)
        if size is None:
            if requeue_changed.judge_anew(desk, path, f"{name.stem}.jsonl"):
                desk.door.left(name)
            return
        if size != watched.size:
            watched.size, watched.since, watched.reading, watched.judging = size, now, None, None
        still_s, settings = now - watched.since, desk.store.settings.drop
        over = writer is False or (writer is None and still_s >= settings.watch_s)
        if watched.size == name.done:
            if over and not watched.said.unread:
                existence.remove(fs, path)
                desk.door.left(name)
            return
        if not writer and still_s >= (settings.grace_s if writer is None else min(settings.grace_s, STILL_S)):
            self._judge_rest(desk, name, watched, over)

    @staticmethod
    def _judge_rest(desk: Desk, name: BatchName, watched: _Watched, over: bool) -> None:
        """Judge the added lines, which have been still for a while. over: nothing more will come."""
        if watched.judging is None:
            reading = watched.reading or batch_validation.Reading(path_of_batch(desk, name), f"{name.stem}.jsonl")
            watched.reading = None
            try:
                found = reading.go_on(desk)
            except batch_validation.TooLarge as large:
                if over or not large.young:
                    reject_lines_left(desk, name, large.error, size=large.size)
                return
            if found is None:
                watched.reading = reading
                return
            data = found[0] or b""
            if not digest_of(data[: name.done]).startswith(in_name(name)):
                return  # it was overwritten since this look began; the next look sees it
            watched.judging = batch_validation.Judging(
                desk, f"{name.stem}.jsonl", data, reading.digest, name.done or 0
            )
        verdict, _ = watched.judging.go_on(desk, batch_validation.CHECKED_PER_STEP)
        if isinstance(verdict, Accepted):
            _admit_rest(desk, name, watched.judging.data, verdict)
        elif isinstance(verdict, Reject) or (isinstance(verdict, Young) and over):
            if watched.judging.data[name.done :].strip():
                reject_lines_left(desk, name, verdict.error, watched.judging.data)
            else:
                existence.remove(desk.store.fs, path_of_batch(desk, name))
                desk.door.left(name)
        if verdict is not None:
            watched.judging = None


def in_name(name: BatchName) -> bytes:
    """Return the digest of the admitted bytes in the name; empty where it has none."""
    return bytes.fromhex(name.digest or "")


def path_of_batch(desk: Desk, name: BatchName) -> str:
    """Return the path of the batch."""
    return desk.door.at(name.encode())


def keep_watched(desk: Desk, name: BatchName) -> bool:
    """Record in the name that all admitted lines are tasks; True when it is done. Errors: OSError."""
    done = replace(name, done=name.size or 0)
    if done != name and not desk.went(
        desk.store.move(Mover.LEADER, "RECEIVED", path_of_batch(desk, name), path_of_batch(desk, done)), name.prefix
    ):
        return False
    desk.door.came(done)
    desk.step.change()
    return True


def _admit_rest(desk: Desk, name: BatchName, data: bytes, accepted: Accepted) -> None:
    """Admit the added lines as further lines of the batch. Errors: OSError."""
    path = path_of_batch(desk, name)
    if deferred_drops.must_be_durable(desk) and not deferred_drops.make_durable(
        desk, path, deferred_drops.signature_of(data)
    ):
        return
    more = replace(name, size=len(data), digest=accepted.digest[:IN_NAME].hex())
    if desk.went(desk.store.move(Mover.LEADER, "RECEIVED", path, path_of_batch(desk, more)), name.prefix):
        desk.door.left(name)
        desk.door.begin(more, accepted)
        desk.journal.note("GREW", batch=more.encode(), lines=len(accepted.ids), mend=ADVICE)


def reject_lines_left(
    desk: Desk, name: BatchName, error: BadFile, data: bytes = b"", *, size: int | None = None
) -> None:
    """Reject added lines that are no task: the file goes, and the reason says that the lines before were admitted.

    data: the whole file, as it was judged; size: in bytes, where it was not read.
    """
    problem = f"{error.problem} The lines before it in the file were admitted, and none that were added later."
    said = BadFile(error.file, error.field, problem, f"drop the added lines as a file of their own; {ADVICE}.")
    facts: dict[str, Any] = {"data": data, "size": size, "admitted": name.done or 0}
    if reject(desk, path_of_batch(desk, name), f"{name.stem}.jsonl", said, watched=bool(data or size), **facts):
        desk.door.left(name)
        desk.door.finish(name)
