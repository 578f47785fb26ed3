"""The life of a task as a table.

`spool_layout.md` prints this table and a test holds the two equal. The store refuses a move that is not in it, that
belongs to another mover, or that is journalled as another event.

Law: every change of state is one rename; a move that is not in the table does not exist.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from spoold.protocol.errors import LawBroken


class State(StrEnum):
    """Where a task is. The value is the name of the directory, and what `spool show` prints.

    SKIPPED is no directory: people are shown so a task in failed/ whose name says that it was skipped.
    """

    PENDING = "pending"
    WAITING = "waiting"
    READY = "ready"
    CLAIMED = "claimed"
    RETURNED = "returned"
    COMPLETED = "completed"
    FAILED = "failed"
    SKIPPED = "skipped"
    REJECTED = "rejected"
    ARCHIVE = "archive"


DIRECTORIES = tuple(state for state in State if state is not State.SKIPPED)
# The states that people are shown, in the order of a task's life: a returned one waits, an archived one is its end.
SHOWN = (
    State.PENDING,
    State.WAITING,
    State.READY,
    State.CLAIMED,
    State.COMPLETED,
    State.FAILED,
    State.SKIPPED,
    State.REJECTED,
)
ENDED = frozenset({State.COMPLETED, State.FAILED, State.SKIPPED, State.REJECTED})


def shown_end(state: State, *, skipped: bool) -> State:
    """The state that people are shown of an ended task. state: its directory; skipped: as its name says."""
    return State.SKIPPED if skipped and state is State.FAILED else state


class Mover(StrEnum):
    """Who may make a move."""

    SUBMITTER = "submitter"
    LEADER = "leader"
    WORKER = "worker"
    FSCK = "fsck"


@dataclass(frozen=True, slots=True)
class Move:
    """One line of the table: source and destination directory, mover, condition, and the event in the journal."""

    source: str
    target: str
    mover: Mover
    event: str
    when: str


_LIVE = ("waiting", "ready", "returned")
_TOKENS = ("waiting", "ready", "returned", "claimed", "completed", "failed", "archive")
L, W, S, F = Mover.LEADER, Mover.WORKER, Mover.SUBMITTER, Mover.FSCK
MOVES: tuple[Move, ...] = (
    Move("tmp", "pending", S, "SUBMITTED", "published, after the content is durable"),
    Move("pending", "rejected", L, "REJECTED", "not a task, once it has stopped changing for the drop grace"),
    Move("pending", "waiting", L, "ADMITTED", "valid, and its id is settled"),
    Move("pending", "ready", L, "ADMITTED", "valid, every gate passes and the lane's window has room"),
    Move(
        "pending",
        "admitting",
        L,
        "RECEIVED",
        "a valid .jsonl, a task whose id others may name, or a drop that was copied: into the leader's own door",
    ),
    Move(
        "admitting",
        "admitting",
        L,
        "RECEIVED",
        "a new leader shuts an earlier leader's door; or more of a batch is admitted, or has become tasks",
    ),
    Move("admitting", "waiting", L, "ADMITTED", "a task, or one line of a batch"),
    Move(
        "admitting",
        "ready",
        L,
        "ADMITTED",
        "a task, or one line of a batch, when every gate passes and the lane's window has room",
    ),
    Move(
        "admitting",
        "rejected",
        L,
        "REJECTED",
        "its id was taken meanwhile by a task with other content; "
        "or lines that were added to a batch are no tasks; or it is no regular file",
    ),
    Move(
        "admitting", "pending", L, "REJUDGED", "its file was changed after its admission, and is judged as a new drop"
    ),
    Move("rejected", "pending", L, "REJUDGED", "its file has other content than when it was rejected"),
    Move("waiting", "ready", L, "READY", "every gate passes and the lane's window has room"),
    Move(
        "ready",
        "waiting",
        L,
        "HELD",
        "a gate closed again, more urgent work needs its place or what it holds, another share has its turn, "
        "or its own type is open again",
    ),
    Move("waiting", "waiting", L, "RANKED", "`spool priority`: under another RANK"),
    Move("ready", "waiting", L, "RANKED", "`spool priority`: under another RANK"),
    Move(
        "waiting", "failed", L, "FAILED", "dependency failed, skipped, cycle, deadline, cancelled, or it is no task"
    ),
    Move("ready", "failed", L, "FAILED", "deadline, cancelled, or it is no task"),
    Move("ready", "claimed", W, "CLAIMED", "the claim"),
    Move(
        "claimed",
        "claimed",
        W,
        "RESUMED",
        "its lease had run out, and the attempt goes on under a name that it never had",
    ),
    Move("claimed", "completed", W, "COMPLETED", "success; the result is already durable"),
    Move("claimed", "failed", W, "FAILED", "the retry rule gives up, or a request cancels"),
    Move("claimed", "returned", W, "RETURNED", "the retry rule grants another attempt, or a hand-back"),
    Move("claimed", "failed", L, "FAILED", "the worker is dead, and the crash limit is reached or it is no task"),
    Move("claimed", "returned", L, "RETURNED", "the worker is dead"),
    Move("returned", "waiting", L, "WAITING", "placed again; the backoff counts from when the leader first saw it"),
    Move("returned", "failed", L, "FAILED", "cancelled, or it is no task"),
    Move("waiting", "rejected", L, "REJECTED", "a second token with an id that is already taken"),
    Move("returned", "rejected", L, "REJECTED", "a second token of a task that has completed"),
    Move("ready", "rejected", L, "REJECTED", "a second token of a task that has completed"),
    Move(
        "claimed", "rejected", L, "REJECTED", "a second token of a task that has completed, when its worker is dead"
    ),
    Move(
        "failed",
        "waiting",
        L,
        "RETRIED",
        "`spool retry`, or `spool reject --redo`: the next attempt, with a fresh budget",
    ),
    Move("archive", "waiting", L, "RETRIED", "`spool retry` of a task that was archived as failed"),
    Move("completed", "waiting", L, "REDONE", "`spool reject --redo`: the next attempt, with a fresh budget"),
    Move("waiting", "waiting", L, "REDONE", "`spool reject --redo`: the rejected task asks anew, under a new ORDER"),
    Move("completed", "archive", L, "ARCHIVED", "retention"),
    Move("failed", "archive", L, "ARCHIVED", "retention"),
    *(Move(source, "waiting", F, "REPAIRED", "its lane or its name contradicts its content") for source in _LIVE),
    Move("completed", "waiting", F, "REPAIRED", "it was committed without a sound result: the next attempt"),
    *(Move(source, "failed", F, "REPAIRED", "its content is no task") for source in (*_LIVE, "claimed")),
    *(Move(source, "rejected", F, "REPAIRED", "a second token with an id that is taken") for source in _TOKENS),
)

TABLE: dict[tuple[str, str], tuple[Move, ...]] = {
    (m.source, m.target): tuple(n for n in MOVES if (n.source, n.target) == (m.source, m.target)) for m in MOVES
}


_LINES = frozenset((m.mover, m.event, m.source, m.target) for m in MOVES)


def allowed(source: str, target: str) -> tuple[Move, ...]:
    """The lines of the table between two directories; empty when there is no such move."""
    return TABLE.get((source, target), ())


def insist(mover: Mover, event: str, src: str, dst: str) -> None:
    """Check that the table has a line by which this mover makes this move and journals it as this event.

    src and dst: paths below the spool. Errors: LawBroken.
    """
    source, target = src.partition("/")[0], dst.partition("/")[0]
    if (mover, event, source, target) not in _LINES:
        line = f"{source}/ to {target}/ by the {mover} as {event}"
        raise LawBroken(f"no line of the lifecycle table moves {line} ({src} → {dst})")
