"""A .jsonl drop on trial: read in pieces, some at each step, and each line compared with the task that has its id.

Law: the verdict is on the whole: one line whose id belongs to a task with other content rejects all lines. No batch
is accepted while a batch under way may still make a task with one of its ids. A file without a line's end, such as
one that is a hole from its first byte to its last, costs no more memory than the longest line that is allowed, and
some MiB: reading stops at the first line that is too long. A long read goes on over steps, and other drops are
admitted meanwhile. Lines are found by searches, so that a gigabyte of line ends costs no more than any other
gigabyte.
"""

from __future__ import annotations

import hashlib
import io
import math
from collections.abc import Collection

from spoold.master.state.leader_state import Desk
from spoold.master.state.rejecting import says_the_same
from spoold.protocol import codec
from spoold.protocol.admission_names import BatchName
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.rules.entry import admission
from spoold.rules.entry.admission import NEWLINE, Accepted, Reject, Young, taken, too_large
from spoold.rules.entry.references import UnknownName
from spoold.store import existence

# Lines that are read in one step: few enough that other work goes on beside them. After each EACH of them, which may
# be long, it is seen whether there is time for more.
CHECKED_PER_STEP, EACH = 2000, 20


class Judging:
    """A batch whose lines are being read, some at each step."""

    def __init__(self, desk: Desk, drop: str, data: bytes, digest: bytes, done: int = 0) -> None:
        """digest: of the data; done: how many of its bytes are tasks already."""
        self.data, self.digest = data, digest
        self._drop = drop
        self._done = done
        self._check = admission.Check(data, drop, desk.store.settings, done, digest)
        self._sound: Accepted | None = None

    def go_on(self, desk: Desk, most: int) -> tuple[Accepted | Reject | Young | None, int]:
        """Return the verdict on the whole, and how many tasks were read for it, at most `most`. Errors: OSError.

        None: there is more to read, or a task that it names moves or comes just now; ask again in the next step.
        """
        before = self._check.count
        if self._sound is None:
            verdict = self._check_some(desk, most)
            if isinstance(verdict, Reject) and outdated(desk, verdict.error):
                self._check = admission.Check(self.data, self._drop, desk.store.settings, self._done, self.digest)
                return None, 0
            if not isinstance(verdict, Accepted):
                return verdict, self._check.count - before
            self._sound = verdict
        return self._compare(desk, self._sound), self._check.count - before

    def _check_some(self, desk: Desk, most: int) -> Accepted | Reject | Young | None:
        left = most
        while left > 0:
            verdict = self._check.go_on(min(EACH, left))
            left -= EACH
            if verdict is not None:
                return verdict
            desk.breathe()
            if desk.late:
                break
        desk.step.leave()
        return None

    def _compare(self, desk: Desk, sound: Accepted) -> Accepted | Reject | None:
        """Accept a batch if each task that has one of its ids says the same as its line; else reject it whole."""
        if promised(desk, sound.named):
            return None
        if not any(desk.view.known(k) for k in sound.named):
            return sound
        for line in admission.lines(
            self.data, self._drop, desk.orders.encode(0), "", desk.store.settings, sound, self._done, self.digest
        ):
            desk.breathe()
            if key(line.name.id) not in sound.named or not desk.view.known(line.name.id):
                continue
            same = says_the_same(desk, line.name.id, codec.load(line.data, self._drop), alone=False)
            if same is None:
                return None
            if not same:
                return Reject(taken(f"{self._drop} line {line.number}", line.name.id))
        return sound


def judge_one(desk: Desk, drop: str, data: bytes, order: str, made_id: str) -> admission.Judgement:
    """Judge a drop of one task, by the settings as they are now if they matter. Errors: OSError."""
    verdict = admission.judge_content(drop, data, order, made_id, desk.store.settings)
    if isinstance(verdict, Reject) and outdated(desk, verdict.error):
        return admission.judge_content(drop, data, order, made_id, desk.store.settings)
    return verdict


def outdated(desk: Desk, error: BadFile) -> bool:
    """Whether a name that the settings did not have may be in them now: they were looked up again, and have changed.

    A user who adds a limit and then drops a task must not be told that there is no such limit. Errors: OSError.
    """
    if not isinstance(error, UnknownName):
        return False
    before = desk.store.revisions.revision
    desk.store.revisions.look()
    return desk.store.revisions.revision != before


def promised(desk: Desk, keys: Collection[str], *, unique: bool = False) -> bool:
    """Whether a batch under way will make a task with one of these ids; one that was taken over may make any.

    A drop with the same id has to wait for it: a line whose id was taken meanwhile would be skipped as already made.
    unique: no other drop has these ids, so an unread batch does not have them either.
    """
    if not keys:
        return False
    found = [desk.door.promised.get(name) for name in desk.door.batches]
    return any(not unique if sound is None else not sound.named.keys().isdisjoint(keys) for sound in found)


# Reads a .jsonl in pieces, some in each step: a member may drop one that no memory can hold.


# A file that is not longer is read at once.
PIECE = 4 << 20


class TooLarge(Exception):
    """The file, or a line of it, has more bytes than the settings allow.

    size: of the file, in bytes; young: it has zeros there, perhaps bytes that an NFS client has not sent yet; seen:
    a digest of the bytes that were read.
    """

    def __init__(self, error: BadFile, size: int, young: bool, seen: bytes) -> None:
        super().__init__(str(error))
        self.error, self.size, self.young, self.seen = error, size, young, seen


class Reading:
    """The content of one .jsonl, as far as it was read; a new drop, or what was admitted of a batch."""

    def __init__(self, path: str, file: str, admitted: BatchName | None = None) -> None:
        """file: its name for people."""
        self._path, self._file, self._admitted = path, file, admitted
        self._content, self._read = io.BytesIO(), 0
        self._hash = hashlib.blake2b(digest_size=16)
        self._number, self._length, self._zeros = 1, 0, False  # of the line that the last piece ended in

    @property
    def digest(self) -> bytes:
        """The digest of what was read, as `rules.entry.admission` makes it."""
        return self._hash.digest()

    def whole(self, desk: Desk) -> bytes | None:
        """Read on to the end, whatever time it takes, as `go_on`."""
        while (data := self._go_on(desk)) is None:
            desk.breathe()
        return data[0]

    def go_on(self, desk: Desk) -> tuple[bytes | None] | None:
        """Read for as long as this stage has time. Return the content, or None in its place when the file of a batch
        is gone; None while there is more to read.

        Errors: TooLarge; OSError, DoorShut. Begin with a new Reading then.
        """
        while (data := self._go_on(desk)) is None:
            desk.breathe()
            if desk.late:
                desk.step.leave()
                return None
        return data

    def _go_on(self, desk: Desk) -> tuple[bytes | None] | None:
        """Read a piece."""
        limit = desk.store.settings.drop.max_batch_bytes
        most: float = limit + 1
        if self._admitted is not None:
            most = math.inf if self._admitted.size is None else self._admitted.size
        wanted = int(min(PIECE + (not self._read), most - self._read))
        if self._admitted is None:
            piece: bytes | None = desk.store.fs.read(self._path, wanted, offset=self._read)
        else:
            piece = existence.read(desk.store.fs, self._path, wanted, self._read)
        if piece is None:
            return (None,)
        self._take(desk, piece)
        if len(piece) < wanted or self._read >= most:
            return (self._content.getvalue(),)
        if self._read == wanted and self._admitted is None and desk.store.fs.read(self._path, 1, offset=limit):
            self._refuse_size(desk, limit)
        return None

    def _take(self, desk: Desk, piece: bytes) -> None:
        limit = desk.store.settings.drop.max_batch_bytes
        if self._admitted is None and self._read + len(piece) > limit:
            self._refuse_size(desk, limit)
        self._hash.update(piece)
        self._content.write(piece)
        self._read += len(piece)
        # The lines of a small file are judged by its admission. Those of an admitted batch were, unless anyone has
        # made its file larger than the limit since.
        admitted = self._admitted
        judged = self._read <= PIECE if admitted is None else (admitted.size or self._read) <= limit
        if admitted is None or admitted.size is None or not judged:
            self._gauge(desk, piece, refuse=not judged)

    def _refuse_size(self, desk: Desk, limit: int) -> None:
        size = desk.store.fs.stat(self._path).size
        raise TooLarge(too_large(self._file, size, "max_batch_bytes", limit), size, False, b"")

    def _gauge(self, desk: Desk, piece: bytes, *, refuse: bool) -> None:
        """Look for a line that is too long. refuse: whether that is an error here. Errors: TooLarge; OSError."""
        limit, start = desk.store.settings.drop.max_bytes, 0
        while True:
            # All lines up to the last line's end within the limit are short enough: one search for many of them.
            end = piece.rfind(NEWLINE, start, start + max(limit - self._length, 0) + 1)
            if end < 0:
                break
            self._number += piece.count(NEWLINE, start, end + 1)
            self._length, self._zeros, start = 0, False, end + 1
        end = piece.find(NEWLINE, start)
        end = len(piece) if end < 0 else end
        self._zeros = self._zeros or piece.find(b"\0", start, end) >= 0
        self._length += end - start
        if refuse and self._length > limit:
            size = max(self._read, desk.store.fs.stat(self._path).size)
            error = too_large(f"{self._file} line {self._number}", None, "max_bytes", limit)
            raise TooLarge(error, size, self._zeros, self.digest)
