"""Drops that wait: they may be incomplete, cannot be moved for now, or are not durable yet.

Law: a drop that was not published by rename is never judged by one look. It has to be still for a while, on the
leader's own clock, and for several looks, since a leader that was slow has seen nothing of that while; and while a
program is known to have it open for writing, it is not finished. One that cannot be moved is tried again ever more
rarely, at the latest after STUCK_MOST_S, and its notices are repeated in every step until then.

With `durability.fsync`, an admitted drop survives a power cut of the machine that holds the files. `spool submit`
waits for that itself, and an NFS client when it closes the file; for copies by any other program, nothing has ensured
it. A leader on another machine outlives the power cut and remembers what it has read; so the durable content is
compared with that.
"""

from __future__ import annotations

import errno
import hashlib
from dataclasses import dataclass

from spoold.master.state.leader_state import Desk
from spoold.protocol import layout
from spoold.protocol.errors import BadFile
from spoold.system.filesystem import NotRegularError

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


# Drops that cannot be moved: another user's directory, or a file that an SMB client has open.


# How long (s) until a drop is tried again, at first and at most.
STUCK_S, STUCK_MOST_S = 0.5, 60.0


@dataclass(slots=True)
class _Stuck:
    """One drop: when it is tried again, how long (s) that was put off, and its notices."""

    look_at: float
    wait_s: float
    notices: list[str]


class Stuck:
    """All stuck drops, by name."""

    def __init__(self) -> None:
        self.drops: dict[str, _Stuck] = {}

    def __contains__(self, drop: str) -> bool:
        return drop in self.drops

    def next_due(self) -> float | None:
        """When (monotonic, s) to try the next one again."""
        return min((stuck.look_at for stuck in self.drops.values()), default=None)

    def rests(self, desk: Desk, drop: str) -> bool:
        """Whether it is too early to try it again; then its notices are repeated."""
        stuck = self.drops.get(drop)
        if stuck is None or desk.step.now.monotonic >= stuck.look_at:
            return False
        desk.report.notice(*stuck.notices)
        return True

    def put_off(self, desk: Desk, drop: str, told: int) -> None:
        """Put off a refused drop. told: how many notices there were before that."""
        stuck = self.drops.get(drop)
        wait_s = min(STUCK_MOST_S, stuck.wait_s * 2) if stuck else STUCK_S
        self.drops[drop] = _Stuck(desk.step.now.monotonic + wait_s, wait_s, desk.report.notices[told:])

    def forget(self, drop: str) -> None:
        """Forget a drop that was not refused this time."""
        self.drops.pop(drop, None)


# Drops of strangers are made durable before they are admitted, where `durability.fsync` asks for it.


# Of a judged content: its size in bytes, and a digest.
Signature = tuple[int, bytes]
# The leader can read the drop, but may not open it in a way that could request a flush: nothing more can be done.
_NOT_GRANTED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def signature_of(data: bytes) -> Signature:
    """Return a signature that differs between contents of a drop."""
    return len(data), hashlib.blake2b(data, digest_size=16).digest()


def must_be_durable(desk: Desk) -> bool:
    """Whether the content of a stranger's drop may not be on disk yet."""
    fs = desk.store.fs
    return desk.store.durable and (fs.forgets or not fs.remote)


def make_durable(desk: Desk, path: str, judged: Signature) -> bool:
    """Make one drop durable. False when its content is no longer the judged one, so it has to be judged again; also
    when that failed: then it is refused for now (`desk.step.denied`), with a notice.
    """
    try:
        desk.store.fs.persist(path)
    except FileNotFoundError:
        return False
    except OSError as error:
        if error.errno not in _NOT_GRANTED:
            return _put_off(desk, path, error)
        mend = "let the user that the master runs as write it"
        desk.journal.note("NOT_DURABLE", drop=path, problem=f"{error.strerror}", mend=mend)
    return not desk.store.fs.forgets or _is_still(desk, path, judged)


def _is_still(desk: Desk, path: str, judged: Signature) -> bool:
    """Whether a drop's content is unchanged. Since it was read, the server may have lost its power, and the content;
    then it has made an empty file durable.
    """
    try:
        return signature_of(desk.store.fs.read(path, judged[0] + 1)) == judged
    except (FileNotFoundError, NotRegularError):
        return False
    except OSError as error:
        return _put_off(desk, path, error)


def _put_off(desk: Desk, path: str, error: OSError) -> bool:
    desk.step.deny()
    desk.report.notice(f"{path} cannot be made durable: {error.strerror}; it is tried again")
    return False


def make_all_durable(desk: Desk) -> bool:
    """Make all of them durable at once, where the files are local; False where each must be done by itself."""
    if desk.store.fs.remote:
        return False
    try:
        desk.store.fs.flush()
    except OSError:
        return False
    return True
