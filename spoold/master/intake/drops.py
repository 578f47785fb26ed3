"""The drop box: pending/ → a task, a rejection, or not yet. `rules.entry.admission` decides.

Law: a drop is judged once when it is new, and again only while it may still be growing or cannot be decided. Nothing
here follows a link or opens a pipe. A fault of spoold itself rejects the drop that caused it, and no other.
"""

from __future__ import annotations

import contextlib
import errno
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from spoold.master.intake import (
    admission_directories,
    batch_admission,
    batch_validation,
    deferred_drops,
    requeue_changed,
)
from spoold.master.intake.deferred_drops import Growing, Signature, Stuck, signature_of
from spoold.master.state import rejecting
from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import reject, reject_irregular
from spoold.master.state.tree_view import Place
from spoold.master.tasks.scheduler import place_admitted
from spoold.protocol import codec, layout
from spoold.protocol.admission_names import OriginalName
from spoold.protocol.errors import BadFile, legible
from spoold.protocol.lifecycle import State
from spoold.protocol.names import WHOLE, id_in, is_our_batch, is_unique, key, order_micros
from spoold.protocol.settings import ChildrenSettings
from spoold.rules.entry import admission
from spoold.rules.entry.admission import Accepted, Admit, Known, Reject, Young, too_deep, too_many
from spoold.store import existence
from spoold.store.contained_faults import Fault
from spoold.system.errnos import Meaning, classify
from spoold.system.filesystem import NotRegularError

PER_STEP, BYTES_PER_STEP = 200, 32 << 20
# From this many on to make durable, one wait for the whole disk is shorter than one for each.
MANY = 4
_Verdict = Admit | Reject | Young | Known | None


class Drops:
    """Admission, with its memory of drops that are not whole yet (a new leader starts their grace anew).

    lost: drops that were not whole when last seen, and that another process then took out of pending/.
    """

    def __init__(self) -> None:
        self._growing = Growing()
        self._chosen: dict[str, tuple[Admit, bytes]] = {}
        self._judging: dict[str, batch_validation.Judging] = {}
        self._reading: dict[str, batch_validation.Reading] = {}
        self._stuck = Stuck()
        self._originals, self._children = Originals(), Children()
        self._lines = self._judged = 0
        self.lost: set[str] = set()

    def growing(self) -> dict[str, BadFile]:
        """Return the drops that wait for their grace, and their faults so far."""
        return {name: young.error for name, young in self._growing.young.items()}

    def undecided(self, desk: Desk) -> bool:
        """Whether a listed drop is neither admitted nor known to be growing or stuck."""
        return any(drop not in self._growing and drop not in self._stuck for drop in desk.view.pending)

    def next_due(self) -> float | None:
        """When (monotonic, s) the next growing or stuck drop, or original, is to be looked at."""
        dues = (self._growing.next_due(), self._stuck.next_due(), self._originals.next_due())
        return min((due for due in dues if due is not None), default=None)

    def step(self, desk: Desk, *, closed: bool = False) -> int:
        """Judge the drops in pending/, none if closed; returns how many are left to judge. Errors: OSError."""
        self._originals.step(desk)
        drops = desk.view.pending
        remembered: tuple[dict[str, Any], ...] = (
            self._growing.young,
            self._judging,
            self._reading,
            self._stuck.drops,
        )
        for known in remembered:
            for gone in [drop for drop in known if not _stands(drops, drop)]:
                del known[gone]
                self.lost.add(gone)
        if closed:
            return 0
        self._lines, self._chosen, self._judged = batch_validation.CHECKED_PER_STEP, {}, 0
        settled: set[str] = set()
        seen = 0
        try:
            for drop in drops:
                desk.breathe()
                seen += 1
                if self._rests(desk, drop):
                    continue
                if self._judged_enough(desk, drop, settled):
                    seen -= 1
                    break
            self._admit_chosen(desk, settled)
            return len(drops) - seen or int(self._lines <= 0)
        finally:
            # Drops that are still there are listed again; until then they are not opened again.
            drops[:seen] = [drop for drop in drops[:seen] if drop not in settled]

    def _judged_enough(self, desk: Desk, drop: str, settled: set[str]) -> bool:
        """Judge a drop, and note whether that settled it; True when the next step has to do it."""
        if desk.late and self._judged:
            desk.step.leave()
            return True
        if self._judged == PER_STEP or sum(len(data) for _, data in self._chosen.values()) > BYTES_PER_STEP:
            return True
        self._judged += 1
        if self._lines <= 0 and drop.lower().endswith(".jsonl"):
            return False  # the next step reads on in batches
        desk.step.clear_denial()
        told = len(desk.report.notices)
        self._judge_safely(desk, drop)
        if desk.step.denied:
            self._stuck.put_off(desk, drop, told)
            return False
        self._stuck.forget(drop)
        if not any(drop in known for known in (self._growing, self._judging, self._reading, self._chosen)):
            settled.add(drop)
        return False

    def _rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to look at it again."""
        return self._stuck.rests(desk, drop) or self._growing.rests(desk, drop)

    def _judge_safely(self, desk: Desk, drop: str) -> None:
        """Judge a drop; a fault of spoold rejects this drop alone."""
        with desk.faults.handling("drop", drop) as handling:
            self._judge(desk, drop)
        if handling.fault is not None:
            self._judging.pop(drop, None)
            self._reading.pop(drop, None)
            self._set_aside(desk, drop, handling.fault)

    def _set_aside(self, desk: Desk, drop: str, fault: Fault) -> None:
        """Reject a drop that spoold cannot handle; one that it may handle later stays where it is."""
        desk.step.doubt()
        self._chosen.pop(drop, None)
        rejected = False
        if fault.lasts:
            with desk.faults.handling("rejection of drop", drop):
                rejected = self._reject(desk, drop, fault.bad_file(drop))
        if not rejected:
            desk.step.deny()

    def _judge(self, desk: Desk, drop: str) -> None:
        path = layout.join(layout.PENDING, drop)
        batch = drop.lower().endswith(".jsonl")
        if drop in self._judging:
            self._batch(desk, drop)
            return
        if not batch and not drop.lower().endswith(".json"):
            self._judge_kind(desk, drop)
            return
        reading = self._reading.pop(drop, None) or batch_validation.Reading(path, drop)
        read = self._read(desk, drop, reading if batch else None)
        if read is None:
            return
        data, size = read
        refused = admission.judge_kind(drop, "file", size, desk.store.settings)
        if refused is not None:
            self._reject(desk, drop, refused.error, size=size, watched=True)
            return
        if batch:
            self._judging[drop] = batch_validation.Judging(desk, drop, data, reading.digest)
            self._batch(desk, drop)
            return
        order, made_id = admission.settle(drop, desk.next_micros(), desk.epoch)
        verdict: _Verdict = batch_validation.judge_one(desk, drop, data, order, made_id)
        if isinstance(verdict, Admit) and _waits(desk, drop, verdict):
            return
        if isinstance(verdict, Admit) and desk.view.known(verdict.name.id):
            verdict = rejecting.judge_duplicate(desk, drop, verdict, codec.load(data, drop))
        self._act(desk, drop, verdict, data)

    def _read(self, desk: Desk, drop: str, reading: batch_validation.Reading | None) -> tuple[bytes, int] | None:
        """Return the content and the size of a drop, of a batch by its reading; None when it is settled otherwise, or
        the next step reads on. Errors: OSError of the share.
        """
        fs, drops, path = desk.store.fs, desk.store.settings.drop, layout.join(layout.PENDING, drop)
        limit = drops.max_bytes if reading is None else drops.max_batch_bytes
        try:
            if reading is None:
                # One byte more than is allowed: enough to know that it is too much, however huge the file is.
                data = fs.read(path, limit + 1)
            elif (found := reading.go_on(desk)) is None:
                self._reading[drop] = reading
                return None
            else:
                data = found[0] or b""
            return data, len(data) if len(data) <= limit else fs.stat(path).size
        except FileNotFoundError:
            return None
        except batch_validation.TooLarge as large:
            if not (large.young and self._growing.unfinished(desk, drop, large.error, large.seen, large.size)):
                self._reject(desk, drop, large.error, size=large.size, unfinished=large.young, watched=True)
        except NotRegularError:
            self._judge_kind(desk, drop)
        except OSError as error:
            self._unread(desk, drop, error)
        return None

    def _judge_kind(self, desk: Desk, drop: str) -> None:
        """Reject an entry that is no regular file for its kind, unless it was removed meanwhile."""
        try:
            found = desk.store.fs.stat(layout.join(layout.PENDING, drop))
        except FileNotFoundError:
            return
        size = found.size if found.kind == "file" else 0
        refused = admission.judge_kind(drop, found.kind, size, desk.store.settings)
        if isinstance(refused, Young) and self._growing.unfinished(desk, drop, refused.error, b"", size):
            return
        if refused is not None:
            self._reject(desk, drop, refused.error, size=size)

    def _act(self, desk: Desk, drop: str, verdict: _Verdict, data: bytes) -> None:
        if isinstance(verdict, Admit) and verdict.task.parent is not None:
            verdict = self._children.judge(drop, verdict, desk.store.settings.children)
        if isinstance(verdict, Admit):
            self._admit(desk, drop, verdict, data)
        elif isinstance(verdict, Reject):
            self._reject(desk, drop, verdict.error, data, watched=True)
        elif isinstance(verdict, Known):
            with contextlib.suppress(FileNotFoundError):
                desk.store.fs.unlink(layout.join(layout.PENDING, drop))
            desk.journal.note("DUPLICATE", verdict.id, drop=legible(drop))
            desk.step.change()
        elif isinstance(verdict, Young):
            self._wait(desk, drop, verdict.error, data)

    def _admit(self, desk: Desk, drop: str, admit: Admit, data: bytes) -> None:
        """Admit a drop: ours is whole and durable; a stranger's must first be closed, and then made durable."""
        if admit.task.id is not None and is_unique(drop, admit.task.id):
            self._growing.forget(drop)
            admission_directories.admit(desk, drop, admit)
        elif not self._growing.held_open(desk, drop, data):
            self._chosen[drop] = admit, data

    def _admit_chosen(self, desk: Desk, settled: set[str]) -> None:
        """Make the tasks that this step found durable, together, and admit them; note which are settled."""
        many = len(self._chosen) >= MANY and not desk.store.fs.remote
        copies: dict[str, str] = {}
        for drop, (admit, data) in list(self._chosen.items()):
            if wanted(desk, drop, admit):
                told, copy = len(desk.report.notices), None
                with desk.faults.handling("drop to copy", drop):
                    copy = self._originals.copy(desk, drop, admit, data, durable=desk.store.durable and not many)
                if copy is None:
                    self._stuck.put_off(desk, drop, told)
                    del self._chosen[drop]
                else:
                    copies[drop] = copy
        together = many and deferred_drops.must_be_durable(desk) and deferred_drops.make_all_durable(desk)
        for drop, (admit, data) in list(self._chosen.items()):
            desk.breathe()
            if admit.task.id and (desk.view.known(admit.name.id) or _waits(desk, drop, admit)):
                continue  # its id was taken in this very step: the next one compares the two
            desk.step.clear_denial()
            told = len(desk.report.notices)
            durable = together or not deferred_drops.must_be_durable(desk) or (drop in copies and not many)
            with desk.faults.handling("admission of drop", drop) as handling:
                self._admit_one(desk, drop, admit, data, copies.get(drop), durable=durable)
            if handling.fault is not None:
                self._set_aside(desk, drop, handling.fault)
            if desk.step.denied:
                self._stuck.put_off(desk, drop, told)
            else:
                settled.add(drop)

    def _admit_one(
        self, desk: Desk, drop: str, admit: Admit, data: bytes, copy: str | None, *, durable: bool
    ) -> None:
        path = layout.join(layout.PENDING, drop) if copy is None else copy
        if durable or deferred_drops.make_durable(desk, path, deferred_drops.signature_of(data)):
            self._growing.forget(drop)
            if copy is None:
                admission_directories.admit(desk, drop, admit)
            else:
                self._originals.admit(desk, path)

    def _wait(self, desk: Desk, drop: str, error: BadFile, data: bytes) -> None:
        """Look again soon at a drop that is not whole yet; reject it once it has been still for the grace."""
        if not self._growing.unfinished(desk, drop, error, data):
            self._reject(desk, drop, error, data, unfinished=not is_our_batch(drop))

    def _unread(self, desk: Desk, drop: str, error: OSError) -> None:
        """Handle a drop that cannot be opened: its mode may be about to change, a server may be about to wake."""
        if error.errno not in (errno.EACCES, errno.EPERM):
            desk.report.notice(f"pending/{drop} cannot be read: {error.strerror}")
            return
        mend = "let the user that the master runs as read it (chmod, chown), then drop it again."
        unread = BadFile(drop, "", "may not be read by the master.", mend)
        if not self._growing.unfinished(desk, drop, unread, b""):
            self._reject(desk, drop, unread, watched=True)

    def _batch(self, desk: Desk, drop: str) -> None:
        """Read on in a batch, as far as this step may; its verdict comes when all of it was read."""
        trial = self._judging[drop]
        verdict, read = trial.go_on(desk, self._lines)
        self._lines -= read
        if verdict is None:
            return
        del self._judging[drop]
        data, ours = trial.data, is_our_batch(drop)
        if not isinstance(verdict, Accepted):
            self._act(desk, drop, verdict, data)
            return
        at_once = drop.lower().endswith(WHOLE)
        if not ours and self._growing.unsettled(desk, drop, data, trial.digest, at_once=at_once):
            return
        if verdict.born and (refused := self._children.refuses(drop, verdict.born, desk.store.settings.children)):
            self._reject(desk, drop, refused, data)
            return
        path = layout.join(layout.PENDING, drop)
        if (
            not ours
            and deferred_drops.must_be_durable(desk)
            and not deferred_drops.make_durable(desk, path, (len(data), trial.digest))
        ):
            return
        self._growing.forget(drop)
        batch_admission.accept(desk, drop, data, verdict)

    def _reject(
        self, desk: Desk, drop: str, error: BadFile, data: bytes = b"", *, watched: bool = False, **facts: Any
    ) -> bool:
        """Reject; True when it is done. watched: its content was judged, and the file may be written again; one of
        ours never is.
        """
        facts["watched"] = watched and id_in(drop) is None
        rejected = reject(desk, layout.join(layout.PENDING, drop), drop, error, data=data, **facts)
        if rejected:
            self._growing.forget(drop)
        return rejected


def _waits(desk: Desk, drop: str, admit: Admit) -> bool:
    """Whether it names an id that a batch under way has, or may have."""
    task_id = admit.task.id
    return task_id is not None and batch_validation.promised(desk, (key(task_id),), unique=is_unique(drop, task_id))


def _stands(drops: list[str], drop: str) -> bool:
    """Whether the drop is among these, which are sorted."""
    index = bisect_left(drops, drop)
    return index < len(drops) and drops[index] == drop


# Single drops that were not published by rename: a copy becomes the task, and the file itself is removed.


# How long (s) until the next look at an original that a program has open, or that the leader cannot read.
LOOK_S = 1.0
BLANK = b" \t\r\n"


@dataclass(slots=True)
class _Copy:
    """A future task: the judged content, and the original that it was copied from; None while that is in pending/."""

    drop: str
    admit: Admit
    said: Signature
    original: OriginalName | None = None


class Originals:
    """The originals in this leader's door, and their copies, until both are settled."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._copies: dict[str, _Copy] = {}
        self._said: dict[OriginalName, Signature] = {}
        self._look_at: dict[OriginalName, float] = {}

    def next_due(self) -> float | None:
        """When (monotonic, s) to look at the next original."""
        return min(self._look_at.values(), default=None)

    def step(self, desk: Desk) -> None:
        """Go on with unsettled copies and originals, also those of the leader before. Errors: OSError, DoorShut."""
        for path, copy in desk.some(list(self._copies.items()), "copies"):
            with desk.faults.handling("copy of drop", copy.drop):
                self._go_on(desk, path, copy)
        unplaced = {copy.original for copy in self._copies.values()}
        now = desk.step.now.monotonic
        due = [name for name in desk.door.originals - unplaced if self._look_at.get(name, now) <= now]
        for name in desk.some(sorted(due, key=lambda original: original.order), "originals"):
            with desk.faults.handling("original", name.encode()):  # it stays, and is looked at again
                self._compare(desk, name)

    def _go_on(self, desk: Desk, path: str, copy: _Copy) -> None:
        if copy.original is None:
            if _removed(desk, path):
                del self._copies[path]
        elif existence.stands(desk.store.fs, path):
            self._place(desk, path, copy)
        else:
            self._placed_late(desk, path, copy)

    def copy(self, desk: Desk, drop: str, admit: Admit, data: bytes, *, durable: bool) -> str | None:
        """Write a copy of a drop into this leader's door, under a name that it never uses twice; return its path.

        None, with a notice, when that is refused. Errors: OSError, DoorShut.
        """
        path = desk.door.at(f"{next(self._numbers)}.single{admission_directories.LINE}")
        # Recorded before it is there: after an error it may be there all the same.
        self._copies[path] = _Copy(drop, admit, _said_in(data))
        desk.learn_owner(key(admit.name.id), desk.owner_of(layout.join(layout.PENDING, drop)))
        try:
            desk.store.fs.write(path, data, durable=durable)
        except (FileNotFoundError, NotADirectoryError):
            admission_directories.check_open(desk)
            raise
        except OSError as error:
            full = classify(error) is Meaning.FULL
            problem = "waits for room on the share" if full else "cannot be copied, and is tried again"
            desk.report.notice(f"pending/{legible(drop)} {problem}: {error.strerror}")
            return None
        return path

    def admit(self, desk: Desk, path: str) -> None:
        """Move the drop of this copy into the door, and make the copy a task. Errors: OSError, DoorShut."""
        copy = self._copies[path]
        order = copy.admit.name.order
        name = OriginalName(order, admission.settle(copy.drop, order_micros(order), desk.epoch)[1])
        if not admission_directories.through(desk, copy.drop, name.encode()):
            return  # the next step removes the copy
        copy.original = name
        desk.door.came(name)
        desk.view.settle(copy.admit.name.id, State.PENDING, *path.rsplit("/", 1))
        self._place(desk, path, copy)

    def _place(self, desk: Desk, path: str, copy: _Copy) -> None:
        if copy.original is not None and place_admitted(desk, path, copy.admit, copy.drop):
            del self._copies[path]
            self._said[copy.original] = copy.said
            self._compare(desk, copy.original)

    def _placed_late(self, desk: Desk, path: str, copy: _Copy) -> None:
        """The copy is not in the door any more: a move that seemed to fail was made. A listing will show it."""
        del self._copies[path]
        task_key = key(copy.admit.name.id)
        if desk.view.place(task_key) == Place(State.PENDING, *path.rsplit("/", 1)):
            desk.missing.miss(task_key)

    def _compare(self, desk: Desk, name: OriginalName) -> None:
        """Remove an original that says the same as its task; bring back one that does not."""
        fs, path = desk.store.fs, desk.door.at(name.encode())
        self._look_at[name] = desk.step.now.monotonic + LOOK_S
        try:
            with contextlib.suppress(FileNotFoundError):  # it is gone, or seems so: the next call lists the door
                if fs.has_writer(path):
                    return
            data = existence.read(fs, path, desk.store.settings.drop.max_bytes + 1)
        except FileNotFoundError:
            return  # a listing shows it, but reading does not: its content is unknown
        except NotRegularError:
            if not reject_irregular(desk, path, f"{name.stem}.json"):
                return
            data = None
        except OSError as error:
            desk.tell(path, error)
            return
        if data is not None:
            same = self._became(desk, name, data)
            if same is None:
                return
            if not (_removed(desk, path) if same else requeue_changed.judge_anew(desk, path, f"{name.stem}.json")):
                return
            desk.step.change()
        desk.door.left(name)
        self._said.pop(name, None)
        del self._look_at[name]

    def _became(self, desk: Desk, name: OriginalName, data: bytes) -> bool | None:
        """Whether a task says the same as an original does by now; None while that is unknown. Errors: OSError."""
        said = self._said.get(name)
        if said is not None:
            return said == _said_in(data)
        verdict = admission.judge_content(name.prefix, data, name.order, name.prefix, desk.store.settings)
        if not isinstance(verdict, Admit) or not desk.view.known(verdict.name.id):
            return False
        return rejecting.says_the_same(desk, verdict.name.id, codec.load(data, name.prefix))


def _removed(desk: Desk, path: str) -> bool:
    """Remove it; True when it is gone by now. One that cannot be removed stops nothing else. Errors: OSError."""
    try:
        existence.remove(desk.store.fs, path)
    except OSError as error:
        desk.tell(path, error)
        return False
    return True


def wanted(desk: Desk, drop: str, admit: Admit) -> bool:
    """Whether a program may write into this drop after its admission. Not over SMB, whose clients open files by name
    and block moves of open files. A drop of ours was published by rename, under a name that is used once.
    """
    return not desk.store.fs.forgets and (admit.task.id is None or id_in(drop) != admit.task.id)


def _said_in(data: bytes) -> Signature:
    return signature_of(data.strip(BLANK))


# The children of each task, as far as this leader has admitted them: the bounds of `[children]` hold over them.


# So many parents are remembered; the one that had its last child first is forgotten first.
PARENTS = 10_000


@dataclass(slots=True)
class Children:
    """The admitted children, by the keys of their parents; each with its depth."""

    _of: dict[str, dict[str, int]] = field(default_factory=dict)
    _depth: dict[str, int] = field(default_factory=dict)

    def refuses(self, drop: str, born: Iterable[tuple[str, str, int]], bounds: ChildrenSettings) -> BadFile | None:
        """Return why these children may not be admitted together; else count them, and return None.

        born: of each the key of its id, its parent's id, and its depth as it says itself.
        """
        new: dict[str, dict[str, int]] = {}
        for child, parent, said in born:
            depth = max(said, self._depth.get(key(parent), 0) + 1)
            if depth > bounds.max_depth:
                return too_deep(drop, depth, bounds.max_depth)
            known, siblings = self._of.get(key(parent), {}), new.setdefault(key(parent), {})
            if child not in known:
                siblings[child] = depth
            if len(known) + len(siblings) > bounds.max_per_task:
                return too_many(drop, parent, bounds.max_per_task)
        for parent, siblings in new.items():
            self._of[parent] = self._of.pop(parent, {}) | siblings
            self._depth |= siblings
        while len(self._of) > PARENTS:
            for child in self._of.pop(next(iter(self._of))):
                self._depth.pop(child, None)
        return None

    def judge(self, drop: str, admit: Admit, bounds: ChildrenSettings) -> Admit | Reject:
        """Return the verdict on a task that has a parent."""
        assert admit.task.parent is not None
        refused = self.refuses(drop, [(key(admit.name.id), admit.task.parent, admit.task.level)], bounds)
        return admit if refused is None else Reject(refused)
