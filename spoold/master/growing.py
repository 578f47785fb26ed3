"""Drops that may be incomplete: how each looked last, since when, and when to look again.

Law: a drop that was not published by rename is never judged by one look. It has to be still for a while, on the
leader's own clock, and for several looks, since a leader that was slow has seen nothing of that while; and while a
program is known to have it open for writing, it is not finished.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from spoold.master.desk import Desk
from spoold.protocol import layout
from spoold.protocol.errors import BadFile

# How long (s) a batch must be still where it can be seen that no program has it open for writing.
STILL_S = 2.0
# So many looks at least that show a drop as no task, before it is rejected.
LOOKS = 4
# Between two looks (s): while a small file may soon be closed, and later.
SOON_S, LATER_S = 0.1, 1.0


@dataclass(slots=True)
class Young:
    """A drop that was not finished when last read: its size and digest then, since when and for how many looks they
    have not changed.
    """

    signature: tuple[int, bytes]
    since: float
    look_at: float
    error: BadFile
    looks: int = 0


class Growing:
    """All incomplete drops, by name. A new leader starts their grace anew."""

    def __init__(self) -> None:
        self.young: dict[str, Young] = {}

    def __contains__(self, drop: str) -> bool:
        return drop in self.young

    def rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to look at the drop again."""
        young = self.young.get(drop)
        return young is not None and desk.step.now.monotonic < young.look_at

    def next_due(self) -> float | None:
        """When (monotonic, s) to look at the next one."""
        return min((young.look_at for young in self.young.values()), default=None)

    def forget(self, drop: str) -> None:
        """Forget a drop that was settled."""
        self.young.pop(drop, None)

    def note(
        self, desk: Desk, drop: str, error: BadFile, data: bytes, size: int | None = None, digest: bytes = b""
    ) -> Young:
        """Remember how the drop looks; `since` is when it began to look so. size: in bytes, if not that of data;
        digest: of the data, where it is known.
        """
        now = desk.step.now.monotonic
        digest = digest or hashlib.blake2b(data, digest_size=16).digest()
        signature = (len(data) if size is None else size, digest)
        young = self.young.get(drop)
        if young is None or young.signature != signature:
            young = self.young[drop] = Young(signature, now, now, error)
        young.error = error
        young.looks += 1
        return young

    def unfinished(self, desk: Desk, drop: str, error: BadFile, data: bytes, size: int | None = None) -> bool:
        """Whether to wait for a drop that is no task: until it was still for its grace, and has no writer."""
        grace_s, now = self._grace_s(desk, data, size), desk.step.now.monotonic
        young = self.note(desk, drop, error, data, size)
        if now - young.since >= grace_s and young.looks >= LOOKS and not has_writer(desk, drop):
            return False
        # A small file that was seen in the middle of its copying is whole soon; where a look is nearly free, look.
        soon = not desk.store.fs.remote and now - young.since < LATER_S
        young.look_at = min(
            now + min(SOON_S if soon else LATER_S, grace_s / 4), max(young.since + grace_s, now + SOON_S)
        )
        return True

    def held_open(self, desk: Desk, drop: str, data: bytes) -> bool:
        """Whether to wait for a whole task, since a program has it open for writing, and more bytes would make it no
        task. The wait is not longer than the grace.
        """
        if not has_writer(desk, drop):
            return False
        now = desk.step.now.monotonic
        young = self.note(desk, drop, held(drop), data)
        age_s = now - young.since
        young.look_at = now + (SOON_S if age_s < LATER_S else LATER_S)
        return age_s < desk.store.settings.drop.grace_s

    def unsettled(self, desk: Desk, drop: str, data: bytes, digest: bytes, *, at_once: bool = False) -> bool:
        """Whether to wait for a batch that looks whole: one that was cut at a line's end looks so, too.

        digest: of the data; at_once: its name promises that it was published by rename, so only an open file says
        otherwise.
        """
        writer, now = has_writer(desk, drop), desk.step.now.monotonic
        grace_s = 0.0 if at_once else desk.store.settings.drop.grace_s
        if writer:
            error = held(drop)
        else:
            error = BadFile(drop, "", "may still be growing.", "wait, or publish it by rename as NAME.whole.jsonl.")
        young = self.note(desk, drop, error, data, digest=digest)
        until = young.since + (grace_s if writer is None else min(grace_s, STILL_S))
        young.look_at = now + LATER_S if writer else until
        return writer is True or now < until

    @staticmethod
    def _grace_s(desk: Desk, data: bytes, size: int | None) -> float:
        """An NFS client sends written data when the file is closed, or after half a minute."""
        drops = desk.store.settings.drop
        if desk.store.fs.remote and not size and not data.strip(b"\0 \t\r\n"):
            return max(drops.grace_s, drops.empty_grace_s)
        return drops.grace_s


def held(drop: str) -> BadFile:
    """Return the error for a drop that a program has open for writing."""
    return BadFile(drop, "", "is still open for writing.", "close it, or end the program that writes it.")


def has_writer(desk: Desk, drop: str) -> bool | None:
    """Whether a program has the drop open for writing; None where that cannot be known."""
    try:
        return desk.store.fs.has_writer(layout.join(layout.PENDING, drop))
    except OSError:
        return None
