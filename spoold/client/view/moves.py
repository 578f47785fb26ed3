"""What an event of a journal says about the place of its task.

Law: pure. Journals of several writers are read one after the other, so an event may come late, or twice. A task only
goes on: a later attempt, or a later state of the same attempt. What goes back has an event of its own (HELD) or a new
attempt (RETURNED, RETRIED, REDONE).
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern
from typing import Any

from spoold.client.view.card import Card
from spoold.protocol.event import Event
from spoold.protocol.lanes import parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.result import Code
from spoold.protocol.timestamps import moment

# The state into which each event brings its task; RETURNED brings its next attempt there.
_INTO = {
    "ADMITTED": State.WAITING,
    "WAITING": State.WAITING,
    "RETURNED": State.WAITING,
    "RETRIED": State.WAITING,
    "REDONE": State.WAITING,
    "HELD": State.WAITING,
    "READY": State.READY,
    "CLAIMED": State.CLAIMED,
    "RESUMED": State.CLAIMED,
    "COMPLETED": State.COMPLETED,
    "FAILED": State.FAILED,
}
_RANK = {State.PENDING: -1, State.WAITING: 0, State.READY: 1, State.CLAIMED: 2}
_OVER = 3
# The ends of attempts that are no failures.
_NO_FAILURE = frozenset({"", Code.HANDED_BACK.value})


@dataclass(frozen=True, slots=True)
class Move:
    """A task came into a state: for which attempt, when (s since 1970, None: unknown), and by whom.

    code: of the attempt that ended with it, '' for none; lane, batch, file: '' where the event does not say it.
    """

    event: str
    task: str
    state: State
    attempt: int
    at: float | None
    by: str
    code: str = ""
    lane: str = ""
    batch: str = ""
    file: str = ""

    @property
    def stage(self) -> tuple[int, int]:
        """What sorts the states of one task: the attempt, then how far it has come."""
        return self.attempt, _RANK.get(self.state, _OVER)


def move_of(event: Event) -> Move | None:
    """Return what an event says about the place of its task; None where it says nothing."""
    into = _INTO.get(event.event)
    if into is None or event.task is None or event.attempt is None:
        return None
    said: dict[str, Any] = event.detail if isinstance(event.detail, dict) else {}
    code = _text(said, "code")
    why = _text(said, "cause") or code  # that retries are spent is not why the attempt failed
    if event.event == "ADMITTED" and said.get("ready") is True:
        into = State.READY
    if into is State.FAILED and code == Code.SKIPPED:
        into = State.SKIPPED
    attempt = event.attempt + (event.event == "RETURNED")
    lane, batch, file = _text(said, "lane"), _text(said, "batch"), _text(said, "file")
    return Move(
        event.event, event.task, into, attempt, moment(event.at), intern(event.writer), why, lane, batch, file
    )


def is_news(card: Card, move: Move) -> bool:
    """Whether the task of a card has gone on by this move, or gone back by one that may."""
    here = (card.attempt, _RANK.get(State(card.state), _OVER))
    return move.stage > here or (move.event == "HELD" and here == (move.attempt, _RANK[State.READY]))


def is_here(card: Card, move: Move) -> bool:
    """Whether the card is where this move brought its task."""
    return (card.attempt, card.state) == (move.attempt, move.state.value)


def make(card: Card, move: Move) -> None:
    """Bring a card where a move brings its task."""
    if move.state is State.CLAIMED or move.stage[1] == _OVER:
        card.worker = move.by
    else:
        card.worker = ""
    if move.event == "RETURNED":
        card.file, card.lane = "", ""  # its next name has other counts
    if move.stage[1] == _OVER:
        card.file, card.lane = "", ""  # its name is made of its id, its attempt and its decider
    card.state, card.attempt, card.since = intern(move.state.value), move.attempt, move.at
    describe(card, move)


def describe(card: Card, move: Move) -> None:
    """Take over what a move says beside the place: it holds for the card even where the move is an old one."""
    if move.batch:
        card.batch = intern(move.batch)
    if move.event == "ADMITTED":
        card.read = card.read or bool(move.file)  # earlier releases told neither the name nor the batch
        card.admitted = card.admitted or move.at
    if move.lane:
        lane = parse_lane(move.lane)
        card.type = intern(lane.own_type) if lane is not None else card.type
    if is_here(card, move):
        card.lane = intern(move.lane) if move.lane else card.lane
        card.since = move.at if card.since is None else card.since
        if move.file:
            card.take_name(move.file)
    failed = move.code not in _NO_FAILURE and (
        is_here(card, move) or (move.event == "RETURNED" and move.attempt == card.attempt)
    )
    if failed:
        card.code = intern(move.code)
    elif card.state == State.COMPLETED:
        card.code = ""


def _text(said: dict[str, Any], name: str) -> str:
    value = said.get(name)
    return value if isinstance(value, str) else ""
