"""Batches all of whose lines are tasks, and whose writer may go on: watched for a while, then removed.

Law: bytes that a writer adds to an admitted file are not lost. A program that has the file open goes on writing into
it wherever the file is moved. So a batch that was not published by rename stays in the leader's door until no program
has it open for writing, where that can be known, and else until it was still for `drop.watch_s`. The added lines are
judged as a batch by themselves: all of them, or none. How much is admitted, how much is done, and a digest of the
admitted bytes are in the name of the file. If the admitted bytes have changed, the file is a new drop: it goes back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from spoold.master import anew, durability, gauging, judging
from spoold.master.contents import IN_NAME, Content, digest_of
from spoold.master.desk import Desk
from spoold.master.growing import STILL_S
from spoold.master.rejecting import reject, reject_irregular
from spoold.protocol.door import BatchName
from spoold.protocol.errors import BadFile
from spoold.protocol.lifecycle import Mover
from spoold.rules.entry.admission import Reject, Young
from spoold.rules.entry.batch import Accepted
from spoold.store import absence
from spoold.system.filesystem import NotRegularError

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
    reading: gauging.Reading | None = None
    judging: judging.Judging | None = None


class Kept:
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
                with desk.faults.handling("watched batch", name.encode()), desk.reading(path_of(desk, name)):
                    self._look(desk, name, watched)
            except FileNotFoundError:
                if absence.stands(desk.store.fs, path_of(desk, name)):
                    raise
                desk.door.left(name)
                desk.door.doubt()  # removed; or renamed, and a server forgot that
            except OSError as error:
                irregular = isinstance(error, NotRegularError)
                if irregular and reject_irregular(desk, path_of(desk, name), f"{name.stem}.jsonl"):
                    desk.door.left(name)
                else:
                    desk.tell(path_of(desk, name), error)
            watched.told = tuple(desk.report.notices[told:])
            still_s = now - watched.since
            watched.look_at = now + min(LOOK_MOST_S, max(LOOK_S, still_s / 4))

    def _look(self, desk: Desk, name: BatchName, watched: _Watched) -> None:
        fs, path, now = desk.store.fs, path_of(desk, name), desk.step.now.monotonic
        writer = fs.has_writer(path)  # before the size: a writer that has closed the file adds no more
        size = watched.said.look(fs, path)
        if size is None:
            if anew.judge_anew(desk, path, f"{name.stem}.jsonl"):
                desk.door.left(name)
            return
        if size != watched.size:
            watched.size, watched.since, watched.reading, watched.judging = size, now, None, None
        still_s, settings = now - watched.since, desk.store.settings.drop
        over = writer is False or (writer is None and still_s >= settings.watch_s)
        if watched.size == name.done:
            if over and not watched.said.unread:
                absence.remove(fs, path)
                desk.door.left(name)
            return
        if not writer and still_s >= (settings.grace_s if writer is None else min(settings.grace_s, STILL_S)):
            self._judge_rest(desk, name, watched, over)

    @staticmethod
    def _judge_rest(desk: Desk, name: BatchName, watched: _Watched, over: bool) -> None:
        """Judge the added lines, which have been still for a while. over: nothing more will come."""
        if watched.judging is None:
            reading = watched.reading or gauging.Reading(path_of(desk, name), f"{name.stem}.jsonl")
            watched.reading = None
            try:
                found = reading.go_on(desk)
            except gauging.TooLarge as large:
                if over or not large.young:
                    reject_rest(desk, name, large.error, size=large.size)
                return
            if found is None:
                watched.reading = reading
                return
            data = found[0] or b""
            if not digest_of(data[: name.done]).startswith(in_name(name)):
                return  # it was overwritten since this look began; the next look sees it
            watched.judging = judging.Judging(desk, f"{name.stem}.jsonl", data, reading.digest, name.done or 0)
        verdict, _ = watched.judging.go_on(desk, judging.CHECKED_PER_STEP)
        if isinstance(verdict, Accepted):
            _admit_rest(desk, name, watched.judging.data, verdict)
        elif isinstance(verdict, Reject) or (isinstance(verdict, Young) and over):
            if watched.judging.data[name.done :].strip():
                reject_rest(desk, name, verdict.error, watched.judging.data)
            else:
                absence.remove(desk.store.fs, path_of(desk, name))
                desk.door.left(name)
        if verdict is not None:
            watched.judging = None


def in_name(name: BatchName) -> bytes:
    """Return the digest of the admitted bytes in the name; empty where it has none."""
    return bytes.fromhex(name.digest or "")


def path_of(desk: Desk, name: BatchName) -> str:
    """Return the path of the batch."""
    return desk.door.at(name.encode())


def keep(desk: Desk, name: BatchName) -> bool:
    """Record in the name that all admitted lines are tasks; True when it is done. Errors: OSError."""
    done = replace(name, done=name.size or 0)
    if done != name and not desk.went(
        desk.store.move(Mover.LEADER, "RECEIVED", path_of(desk, name), path_of(desk, done)), name.prefix
    ):
        return False
    desk.door.came(done)
    desk.step.change()
    return True


def _admit_rest(desk: Desk, name: BatchName, data: bytes, accepted: Accepted) -> None:
    """Admit the added lines as further lines of the batch. Errors: OSError."""
    path = path_of(desk, name)
    if durability.needed(desk) and not durability.make(desk, path, durability.signature(data)):
        return
    more = replace(name, size=len(data), digest=accepted.digest[:IN_NAME].hex())
    if desk.went(desk.store.move(Mover.LEADER, "RECEIVED", path, path_of(desk, more)), name.prefix):
        desk.door.left(name)
        desk.door.begin(more, accepted)
        desk.journal.note("GREW", batch=more.encode(), lines=len(accepted.ids), mend=ADVICE)


def reject_rest(desk: Desk, name: BatchName, error: BadFile, data: bytes = b"", *, size: int | None = None) -> None:
    """Reject added lines that are no task: the file goes, and the reason says that the lines before were admitted.

    data: the whole file, as it was judged; size: in bytes, where it was not read.
    """
    problem = f"{error.problem} The lines before it in the file were admitted, and none that were added later."
    said = BadFile(error.file, error.field, problem, f"drop the added lines as a file of their own; {ADVICE}.")
    facts: dict[str, Any] = {"data": data, "size": size, "admitted": name.done or 0}
    if reject(desk, path_of(desk, name), f"{name.stem}.jsonl", said, watched=bool(data or size), **facts):
        desk.door.left(name)
        desk.door.finish(name)
