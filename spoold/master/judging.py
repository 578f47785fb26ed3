"""A .jsonl drop on trial: its lines are read, some at each step, and compared with the tasks that have their ids.

Law: the verdict is on the whole: one line whose id belongs to a task with other content rejects all lines. No batch
is accepted while a batch under way may still make a task with one of its ids.
"""

from __future__ import annotations

from collections.abc import Collection

from spoold.master.desk import Desk
from spoold.master.duplicates import says_the_same
from spoold.protocol import codec
from spoold.protocol.errors import BadFile
from spoold.protocol.names import key
from spoold.rules.entry import admission, batch
from spoold.rules.entry.admission import Reject, Young, taken
from spoold.rules.entry.batch import Accepted
from spoold.rules.entry.naming import UnknownName

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
        self._check = batch.Check(data, drop, desk.store.settings, done, digest)
        self._sound: Accepted | None = None

    def go_on(self, desk: Desk, most: int) -> tuple[Accepted | Reject | Young | None, int]:
        """Return the verdict on the whole, and how many tasks were read for it, at most `most`. Errors: OSError.

        None: there is more to read, or a task that it names moves or comes just now; ask again in the next step.
        """
        before = self._check.count
        if self._sound is None:
            verdict = self._check_some(desk, most)
            if isinstance(verdict, Reject) and outdated(desk, verdict.error):
                self._check = batch.Check(self.data, self._drop, desk.store.settings, self._done, self.digest)
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
        for line in batch.lines(
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
