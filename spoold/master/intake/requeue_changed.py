"""Returns files whose content has changed since they were taken out of pending/, to be judged again as drops.

Law: no reason stays beside a drop that it is not about. A program that has a rejected file open goes on writing
there. An NFS client that still knows the file of a name writes a new drop of that name there. The reason has the size
and a digest of the judged content; each leader compares them until it has watched the file for `drop.watch_s`.
However many there are, a step looks at a few. The old name may belong to another drop by now, so the file comes back
under a name that no other process makes.
"""

from __future__ import annotations

import contextlib
import heapq
import math
from dataclasses import dataclass
from typing import Any

from spoold.master.state.fingerprints import IN_REASON, Content
from spoold.master.state.leader_state import Desk
from spoold.protocol import layout
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import Mover
from spoold.protocol.names import concerns_us, first_stem, parse_task, slug
from spoold.rules.entry import admission
from spoold.store import existence, task_location
from spoold.system.filesystem import NotRegularError

# Between two looks at one (s), first and at most; so many are looked at in one step, and none for so long (s) after.
LOOK_S, LOOK_MOST_S = 1.0, 15.0
LOOKS_PER_STEP, LOOKS_S = 20, 1.0
# So many reasons of former leaders are read in one step, once a second.
READ_PER_STEP, READ_S = 20, 1.0


@dataclass(slots=True)
class _Watched:
    """One drop: its content when it was judged, and since when it is watched (monotonic, s).

    None: it went back to pending/. A person who fixes it may save once more, under the name that they had opened.
    """

    said: Content | None
    since: float


class Rejudging:
    """The drops in rejected/ that may be written again, the one that is due first at the front of the queue."""

    def __init__(self) -> None:
        self._unread: list[str] = []
        self._read_at = 0.0
        self._listed: set[str] | None = None
        self._list_at = -math.inf
        self._watched: dict[str, _Watched] = {}
        self._queue: list[tuple[float, str]] = []
        self._look_at = -math.inf

    def next_due(self) -> float | None:
        """When (monotonic, s) there is something to look at."""
        reading = [self._read_at] if self._unread else []
        looking = [max(self._look_at, self._queue[0][0])] if self._queue else []
        due = min((self._list_at, *reading, *looking))
        return due if due < math.inf else None

    def step(self, desk: Desk, lost: set[str]) -> None:
        """Look at some drops that are due. lost: drops that another process took out of pending/; emptied here.

        Errors: OSError.
        """
        now = desk.step.now.monotonic
        self._learn(desk, lost)
        for name, said in desk.rejects.take_watched().items():
            if name not in self._watched:
                heapq.heappush(self._queue, (now + LOOK_S, name))
            self._watched[name] = _Watched(said, now)
        if now < self._look_at:
            return
        for _ in range(LOOKS_PER_STEP):
            if not self._queue or self._queue[0][0] > now:
                return
            self._look_at_first(desk)
        self._look_at = now + LOOKS_S

    def _look_at_first(self, desk: Desk) -> None:
        desk.breathe()
        now, (_, name) = desk.step.now.monotonic, heapq.heappop(self._queue)
        watched, again = self._watched[name], True
        try:
            with desk.faults.handling("rejected drop", name):
                again = self._look(desk, name, watched)
        finally:
            if again:  # also after an error, which proves nothing about the drop
                unread = watched.said is not None and watched.said.unread
                pause_s = LOOK_S if unread else min(LOOK_MOST_S, max(LOOK_S, (now - watched.since) / 4))
                heapq.heappush(self._queue, (now + pause_s, name))
            else:
                del self._watched[name]

    def _learn(self, desk: Desk, lost: set[str]) -> None:
        """Read the judged content of drops that former leaders rejected.

        The network may carry out a rejection of theirs after this leader has listed rejected/. So it lists rejected/
        once more when their lease is over, and looks for each drop that left pending/ without its own move. A drop
        there without a reason was moved after its leader had taken the move for refused.
        """
        if desk.step.now.monotonic >= self._list_at:
            self._list(desk)
        self._unread += sorted(lost)
        lost.clear()
        if not self._unread or desk.step.now.monotonic < self._read_at:
            return
        asked, self._unread = self._unread[:READ_PER_STEP], self._unread[READ_PER_STEP:]
        before = len(self._unread)
        for name in asked:
            with desk.faults.handling("reason of drop", name):  # it is not watched; nothing else depends on it
                self._learn_one(desk, name)
        unanswered = len(self._unread) - before == len(asked)
        self._read_at = desk.step.now.monotonic + (LOOK_MOST_S if unanswered else READ_S)

    def _learn_one(self, desk: Desk, name: str) -> None:
        try:
            reason = task_location.reason_in(desk.store.fs, layout.join(layout.REJECTED, f"{name}{layout.REASON}"))
        except NotRegularError:
            return
        except OSError:
            self._unread.append(name)  # the share did not answer, which proves nothing about the drop
            return
        said = _said_in(reason, _most(desk, name))
        if said is not None:
            desk.rejects.watch(name, said)
        elif not reason and self._lacks_reason(desk, name):
            self._bring_back(desk, name)

    @staticmethod
    def _lacks_reason(desk: Desk, name: str) -> bool:
        """Whether a drop came there by a rename that had seemed to fail, so that its reason was removed again."""
        names = desk.store.fs.list(layout.REJECTED)
        return name in names and f"{name}{layout.REASON}" not in names

    def _list(self, desk: Desk) -> None:
        names = set(existence.names_unless_blocked(desk.store.fs, layout.REJECTED))
        found = {name for name in names if f"{name}{layout.REASON}" in names or _is_bare(name)}
        if self._listed is None:
            self._unread += sorted(found)
            self._listed = found
            self._list_at = desk.step.now.monotonic + desk.store.settings.heartbeat.dead_after_s
        else:
            self._unread += sorted(found - self._listed - self._watched.keys())
            self._listed.clear()
            self._list_at = math.inf

    def _look(self, desk: Desk, name: str, watched: _Watched) -> bool:
        """Look at a drop; True when it is to be looked at again."""
        fs, path, said, most = desk.store.fs, layout.join(layout.REJECTED, name), watched.said, _most(desk, name)
        young = desk.step.now.monotonic - watched.since < desk.store.settings.drop.watch_s
        if said is None:
            if existence.stands(fs, path) and self._lacks_reason(desk, name):
                watched.since = desk.step.now.monotonic if self._bring_back(desk, name) else watched.since
            return young
        try:
            if said.size > most:
                same = bool(fs.read(path, 1, offset=most))  # whatever was added, it is too large
            else:
                size = said.look(fs, path)
                same = size == said.size or (size is not None and said.open_ended)
        except FileNotFoundError:
            return existence.stands(fs, path)
        except NotRegularError:
            return False
        except OSError:
            same = True
        if not same and self._bring_back(desk, name):
            watched.said, watched.since = None, desk.step.now.monotonic
        return not same or said.unread or young

    @staticmethod
    def _bring_back(desk: Desk, name: str) -> bool:
        """Move it into pending/, to be judged as any drop, and remove its reason; True when it is there."""
        if not judge_anew(desk, layout.join(layout.REJECTED, name), name):
            return False
        with contextlib.suppress(OSError):
            desk.store.fs.unlink(layout.join(layout.REJECTED, f"{name}{layout.REASON}"))
        desk.report.brought_back()
        return True


def _is_bare(name: str) -> bool:
    """Whether a name without a reason beside it may be a drop's: a token's content alone does not say its id."""
    drop = concerns_us(name) and name.endswith((".json", ".jsonl")) and not name.endswith(layout.REASON)
    return drop and parse_task(name) is None


def _most(desk: Desk, name: str) -> int:
    """Return how many bytes a drop of this name may have."""
    drop = desk.store.settings.drop
    return drop.max_batch_bytes if name.lower().endswith(".jsonl") else drop.max_bytes


def _said_in(reason: dict[str, Any], most: int) -> Content | None:
    """Return the drop's content when it was judged; None where the reason lacks it, as for unwatched drops."""
    size, digest, admitted = reason.get("size"), _digest_in(reason), reason.get("admitted")
    if type(size) is not int or size < 0 or not (digest or reason.get("unfinished") is True or size > most):
        return None
    said = Content(size, digest)
    said.open_ended = type(admitted) is int and admitted > 0
    return said


def _digest_in(reason: dict[str, Any]) -> bytes:
    """Return the digest in a reason; empty where there is none."""
    digest = reason.get("digest")
    try:
        found = bytes.fromhex(digest) if isinstance(digest, str) else b""
    except ValueError:
        return b""
    return found if len(found) == IN_REASON else b""


# Return a file that was taken out of pending/, and whose content has changed, to pending/ to be judged as a drop.


def judge_anew(desk: Desk, path: str, drop: str) -> bool:
    """Move the file at `path` into pending/; True when it is there. drop: its name as a drop, with the extension."""
    stem, _, extension = drop.rpartition(".")
    suffix = admission.settle(drop, desk.next_micros(), desk.epoch)[0]
    back = f"{slug(first_stem(stem), 100)}.{suffix}.{extension}"
    moved = desk.store.move(Mover.LEADER, "REJUDGED", path, layout.join(layout.PENDING, back))
    if not desk.went(moved, legible(drop)):
        return False
    desk.journal.note("REJUDGED", drop=legible(drop), renamed=back)
    desk.polling.hasten("pending")
    return True
