"""The drop box: pending/ → a task, a rejection, or not yet.

A drop is opened once when it is new, and again only while it may still be growing. What a drop is, is decided in
`rules.admission`; nothing here follows a link, opens a pipe or trusts a name.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import logging
from bisect import bisect_left
from dataclasses import dataclass
from typing import Any

from spoold.master import batches, doors
from spoold.master.desk import OF_ONE_FILE_MEND, Desk
from spoold.master.placing import place_admitted
from spoold.master.rejecting import reject
from spoold.protocol import codec, layout
from spoold.protocol.drop import WHOLE, is_unique
from spoold.protocol.errors import BadFile, SpoolError, legible
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key
from spoold.rules import admission
from spoold.rules.admission import Admit, Known, Reject, Young
from spoold.system.filesystem import NotRegularError

log = logging.getLogger("spoold")

PER_STEP = 200
STILL_S = 2.0
# A drop that may not be moved is tried again after so long (s) at first and at most.
STUCK_S, STUCK_MOST_S = 0.5, 60.0
_Verdict = Admit | Reject | Young | Known | None


@dataclass(slots=True)
class _Growing:
    """A drop that was not whole when last read: its size and digest then, and since when that has not changed."""

    signature: tuple[int, bytes]
    since: float
    look_at: float
    error: BadFile


@dataclass(slots=True)
class _Stuck:
    """A drop that may not be moved: when it is tried again, and how long (s) that was put off."""

    look_at: float
    wait_s: float


class Drops:
    """Admission, with what it remembers of drops that are not whole yet (a new leader starts their grace anew)."""

    def __init__(self) -> None:
        self._growing: dict[str, _Growing] = {}
        self._judging: dict[str, batches.Judging] = {}
        self._stuck: dict[str, _Stuck] = {}
        self._lines = 0

    def growing(self) -> dict[str, BadFile]:
        """Drops that wait for their grace, and what is wrong with them so far."""
        return {name: young.error for name, young in self._growing.items()}

    def undecided(self, desk: Desk) -> bool:
        """Whether a drop that is listed is neither admitted nor known to be growing or stuck."""
        return any(drop not in self._growing and drop not in self._stuck for drop in desk.view.pending)

    def next_due(self) -> float | None:
        """When (monotonic, s) the next growing or stuck drop is to be looked at."""
        growing = (young.look_at for young in self._growing.values())
        return min((*growing, *(stuck.look_at for stuck in self._stuck.values())), default=None)

    def step(self, desk: Desk) -> int:
        """Judge what is in pending/. Returns how many drops are left for the next step. Errors: OSError."""
        drops = desk.view.pending
        remembered: tuple[dict[str, Any], ...] = (self._growing, self._judging, self._stuck)
        for known in remembered:
            for gone in [drop for drop in known if not _stands(drops, drop)]:
                del known[gone]
        judged, self._lines = 0, batches.CHECKED_PER_STEP
        settled: set[str] = set()
        index = -1
        try:
            for index, drop in enumerate(drops):
                desk.breathe()
                if self._rests(desk, drop):
                    continue
                if judged == PER_STEP:
                    return len(drops) - index
                judged += 1
                if self._lines <= 0 and drop.lower().endswith(".jsonl"):
                    continue  # the next step reads on in batches
                desk.denied = False
                self._judge_safely(desk, drop)
                if desk.denied:
                    self._put_off(desk, drop)
                    continue
                self._stuck.pop(drop, None)
                if drop not in self._growing and drop not in self._judging:
                    settled.add(drop)
            return int(self._lines <= 0)
        finally:
            # What is still there is listed again; until then nobody opens it once more.
            drops[: index + 1] = [drop for drop in drops[: index + 1] if drop not in settled]

    def _rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to look at it again."""
        stuck, young = self._stuck.get(drop), self._growing.get(drop)
        if stuck is not None and desk.now.monotonic < stuck.look_at:
            desk.notices.append(f"pending/{legible(drop)} may not be moved; {OF_ONE_FILE_MEND}")
            return True
        return young is not None and desk.now.monotonic < young.look_at

    def _put_off(self, desk: Desk, drop: str) -> None:
        """It may not be moved: somebody else's directory, or one that an SMB client has open. Ever more seldom."""
        stuck = self._stuck.get(drop)
        wait_s = min(STUCK_MOST_S, stuck.wait_s * 2) if stuck else STUCK_S
        self._stuck[drop] = _Stuck(desk.now.monotonic + wait_s, wait_s)

    def _judge_safely(self, desk: Desk, drop: str) -> None:
        """Whatever a drop makes of us is the drop's own trouble."""
        try:
            self._judge(desk, drop)
        except (OSError, SpoolError):
            raise
        except Exception as error:
            log.exception("judging pending/%s", legible(drop))
            self._judging.pop(drop, None)
            problem = f"made spoold itself fail: {error!r}."
            self._reject(desk, drop, BadFile(drop, "", problem, "please report this as a bug, with the file."))

    def _judge(self, desk: Desk, drop: str) -> None:
        fs, drops = desk.store.fs, desk.store.settings.drop
        path = layout.join(layout.PENDING, drop)
        batch = drop.lower().endswith(".jsonl")
        if drop in self._judging:
            self._batch(desk, drop)
            return
        limit = drops.max_batch_bytes if batch else drops.max_bytes
        try:
            # One byte more than is allowed: enough to tell that it is too much, however huge the file is.
            data = fs.read(path, limit + 1)
            size = len(data) if len(data) <= limit else fs.stat(path).size
        except FileNotFoundError:
            return
        except NotRegularError:
            self._judge_kind(desk, drop)
            return
        except OSError as error:
            self._unread(desk, drop, error)
            return
        refused = admission.judge_kind(drop, "file", size, desk.store.settings)
        if refused is not None:
            self._reject(desk, drop, refused.error, size=size)
            return
        if batch:
            self._judging[drop] = batches.Judging(desk, drop, data)
            self._batch(desk, drop)
            return
        order, made_id = admission.settle(drop, desk.next_micros(), desk.epoch)
        verdict: _Verdict = admission.judge_content(drop, data, order, made_id, desk.store.settings)
        if isinstance(verdict, Admit) and verdict.task.id and batches.promised(desk, (key(verdict.name.id),)):
            return
        if isinstance(verdict, Admit) and desk.view.known(verdict.name.id):
            verdict = self._duplicate(desk, drop, verdict, codec.load(data, drop))
        self._act(desk, drop, verdict, data)

    def _judge_kind(self, desk: Desk, drop: str) -> None:
        """What is no regular file is rejected for what it is, unless it was taken away meanwhile."""
        try:
            kind = desk.store.fs.stat(layout.join(layout.PENDING, drop)).kind
        except FileNotFoundError:
            return
        refused = admission.judge_kind(drop, kind, 0, desk.store.settings)
        if refused is not None:
            self._reject(desk, drop, refused.error)

    def _act(self, desk: Desk, drop: str, verdict: _Verdict, data: bytes) -> None:
        if isinstance(verdict, Admit):
            self._growing.pop(drop, None)
            _admit(desk, drop, verdict)
        elif isinstance(verdict, Reject):
            self._reject(desk, drop, verdict.error, data=data)
        elif isinstance(verdict, Known):
            with contextlib.suppress(FileNotFoundError):
                desk.store.fs.unlink(layout.join(layout.PENDING, drop))
            desk.journal.note("DUPLICATE", verdict.id, drop=legible(drop))
            desk.busy = True
        elif isinstance(verdict, Young):
            self._wait(desk, drop, verdict.error, data)

    def _wait(self, desk: Desk, drop: str, error: BadFile, data: bytes) -> None:
        """Not whole yet: look again soon; reject it once it has been still for the grace."""
        grace_s = desk.store.settings.drop.grace_s
        young = self._grow(desk, drop, error, data)
        if desk.now.monotonic - young.since >= grace_s:
            self._reject(desk, drop, error, data=data)
            return
        young.look_at = min(desk.now.monotonic + min(1.0, grace_s / 4), young.since + grace_s)

    def _grow(self, desk: Desk, drop: str, error: BadFile, data: bytes) -> _Growing:
        """Remember how the drop looks; `since` is when it began to look so."""
        now = desk.now.monotonic
        signature = (len(data), hashlib.blake2b(data, digest_size=16).digest())
        young = self._growing.get(drop)
        if young is None or young.signature != signature:
            young = self._growing[drop] = _Growing(signature, now, now, error)
        young.error = error
        return young

    def _unread(self, desk: Desk, drop: str, error: OSError) -> None:
        """A drop that cannot be opened: its mode may still be about to change, a server may be about to wake."""
        if error.errno not in (errno.EACCES, errno.EPERM):
            desk.notices.append(f"pending/{drop} cannot be read: {error.strerror}")
            return
        mend = "let the user that the master runs as read it (chmod, chown), then drop it again."
        self._wait(desk, drop, BadFile(drop, "", "may not be read by the master.", mend), b"")

    def _batch(self, desk: Desk, drop: str) -> None:
        """Read on in a batch, as far as this step may; what it becomes is settled when all of it was read."""
        judging = self._judging[drop]
        verdict, read = judging.go_on(desk, self._lines)
        self._lines -= read
        if verdict is None:
            return
        del self._judging[drop]
        data = judging.data
        if not isinstance(verdict, batches.Accepted):
            self._act(desk, drop, verdict, data)
            return
        if not drop.lower().endswith(WHOLE):
            # A copy that was cut at a line's end looks whole: it has to be still for a moment.
            unsure = BadFile(drop, "", "may still be growing.", "wait, or publish it by rename as NAME.whole.jsonl.")
            young = self._grow(desk, drop, unsure, data)
            young.look_at = young.since + min(desk.store.settings.drop.grace_s, STILL_S)
            if desk.now.monotonic < young.look_at:
                return
        self._growing.pop(drop, None)
        batches.accept(desk, drop, data, verdict)

    @staticmethod
    def _duplicate(desk: Desk, drop: str, admit: Admit, new: Any) -> Known | Reject | None:
        """A drop whose id is taken. None: the other task is moving just now, ask again in the next step."""
        same = desk.says_the_same(admit.name.id, new)
        return None if same is None else admission.judge_duplicate(drop, admit.name.id, same=same)

    def _reject(self, desk: Desk, drop: str, error: BadFile, *, data: bytes = b"", size: int | None = None) -> None:
        if reject(desk, layout.join(layout.PENDING, drop), drop, error, data=data, size=size):
            self._growing.pop(drop, None)


def _stands(drops: list[str], drop: str) -> bool:
    """Whether it is among them; they are sorted."""
    index = bisect_left(drops, drop)
    return index < len(drops) and drops[index] == drop


def _admit(desk: Desk, drop: str, admit: Admit) -> None:
    """The drop becomes a task. One whose id another drop may have goes through the leader's own door, see `doors`.

    Without an id, or with one that no other drop has, it is admitted at most once as it is: whoever admits it, the
    source is this one name.
    """
    src = layout.join(layout.PENDING, drop)
    if admit.task.id is not None and not is_unique(drop, admit.task.id):
        file = admit.name.encode()
        if not doors.through(desk, drop, file):
            return
        desk.half.add(file)
        desk.view.settle(admit.name.id, State.PENDING, desk.door, file)
        src = layout.join(desk.door, file)
    if place_admitted(desk, src, admit, drop):
        desk.half.discard(admit.name.encode())
