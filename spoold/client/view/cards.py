"""The cards of all tasks: one task in few bytes, the table of all, and how listings and events change them.

Law: nothing here reads. A card is a picture, and no node decides anything by it. There may be a million, so a card
has few fields, and words that many cards share are one object. A listing is the truth at its moment; an event that is
read while the listing is under way is newer, and stays. Journals of several writers are read one after the other, so
an event may come late, or twice. A task only goes on: a later attempt, or a later state of the same attempt. What
goes back has an event of its own (HELD) or a new attempt (RETURNED, RETRIED, REDONE).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from sys import intern
from typing import Any

from spoold.protocol import layout
from spoold.protocol.errors import legible
from spoold.protocol.event import Event
from spoold.protocol.lanes import kind_in, own_lane, parse_lane
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, TaskName, key, order_micros, parse_task, rank_of
from spoold.protocol.result import Code
from spoold.protocol.timestamps import moment
from spoold.store.task_location import Located


class Table:
    """cards: by key; rows: how many cards have the same words; changes: rises with each change.

    rejected: of rejected drops, by the key of the id that they wanted, the key of the last one's card.
    returned: of tasks that were tried again, by key, who decided which attempt: their records have these names.
    """

    def __init__(self) -> None:
        self.cards: dict[str, Card] = {}
        self.rows: Counter[Row] = Counter()
        self.rejected: dict[str, str] = {}
        self.returned: dict[str, dict[int, str]] = {}
        self.changes = 0
        self.tick = 0

    def find(self, task_id: str) -> Card | None:
        """The card of a task; where there is none, that of the last drop that was rejected and wanted its id."""
        name = key(task_id)
        return self.cards.get(name) or self.cards.get(self.rejected.get(name, ""))

    def counts(self) -> Counter[str]:
        """How many cards are in each state."""
        found: Counter[str] = Counter()
        for row, number in self.rows.items():
            found[row[0]] += number
        return found

    @contextmanager
    def changing(self, card: Card) -> Iterator[None]:
        """Change a card of the table within, or one that comes into it."""
        before = card.row
        yield
        after = card.row
        self.changes += 1
        if before != after:
            self._leave(before)
            self.rows[after] += 1

    def put(self, card_key: str, card: Card) -> None:
        """Add a card, in the place of one with the same key."""
        old = self.cards.get(card_key)
        if old is not None:
            self._leave(old.row)
        if card.id == card_key:
            card.id = card_key  # one text for both, of a hundred thousand
        self.cards[card_key] = card
        if card.state == State.REJECTED:
            self.rejected[key(card.id)] = card_key
        self.rows[card.row] += 1
        self.changes += 1

    def drop(self, card_key: str) -> None:
        """Forget a card, if there is one."""
        card = self.cards.pop(card_key, None)
        if card is not None:
            self._leave(card.row)
            self.changes += 1
            if self.rejected.get(key(card.id)) == card_key:
                del self.rejected[key(card.id)]
        self.returned.pop(card_key, None)

    def _leave(self, row: Row) -> None:
        self.rows[row] -= 1
        if self.rows[row] <= 0:
            del self.rows[row]

    def follow(self, move: Move) -> None:
        """Take over what has just happened."""
        card = self.cards.get(key(move.task))
        self._note_return(move)
        if card is None:
            card = Card(move.task, "", attempt=-1)
            make(card, move)
            self.put(key(move.task), card)
        else:
            with self.changing(card):
                make(card, move) if is_news(card, move) else describe(card, move)
        self.tick += 1
        card.tick = self.tick

    def recall(self, move: Move) -> None:
        """Take over what happened before everything was listed: the listing has the place, the event the words."""
        self._note_return(move)
        card = self.cards.get(key(move.task))
        if card is not None:
            with self.changing(card):
                describe(card, move)

    def archive(self, task_id: str) -> None:
        """A task was brought into the archive."""
        card = self.cards.get(key(task_id))
        if card is not None and not card.archived:
            with self.changing(card):
                card.archived = True

    def _note_return(self, move: Move) -> None:
        if move.event == "RETURNED":
            self.returned.setdefault(key(move.task), {})[move.attempt - 1] = move.by


class Sweep:
    """One listing of some states: what it does not meet, and nothing moved meanwhile, is not there any more."""

    def __init__(self, table: Table, states: Collection[State]) -> None:
        self._table, self._states = table, {state.value for state in states}
        self._met: set[str] = set()
        table.tick += 1
        self._began = table.tick

    def meet(self, located: Located) -> None:
        """Take over one task file that was listed. A token that is seen twice has moved: its later place counts."""
        name = card_key(located)
        self._met.add(name)
        old = self._table.cards.get(name)
        if old is not None and old.tick > self._began:
            return
        card = card_of(located, kind_in(own_lane(located.lane)) if located.lane else "")
        if old is not None:
            _inherit(card, old)
        self._table.put(name, card)

    def end(self) -> None:
        """Everything was listed."""
        gone = [
            name
            for name, card in self._table.cards.items()
            if card.state in self._states and name not in self._met and card.tick < self._began
        ]
        for name in gone:
            self._table.drop(name)


def _inherit(card: Card, old: Card) -> None:
    """What a name does not say, and the view knew already."""
    card.type, card.batch, card.read = card.type or old.type, old.batch, old.read
    card.code, card.admitted = old.code, card.admitted or old.admitted
    if card.state == State.COMPLETED:
        card.code = ""
    if (old.state, old.attempt) == (card.state, card.attempt):
        card.since = old.since
        card.file = card.file or old.file
        card.lane = card.lane or old.lane


# One task, as a view knows it.


# What facets count: state, type, batch, worker, code.
Row = tuple[str, str, str, str, str]
ENDED_STATES = frozenset({State.COMPLETED.value, State.FAILED.value, State.SKIPPED.value})


@dataclass(slots=True)
class Card:
    """One task. state: one of SHOWN; times in seconds since 1970, by the clocks of those who wrote them, None where
    they are not known.

    type, batch: '' where the task has none, or it is not known yet (`read` tells); worker: the node that holds it, or
    its decider; since: when it came into its state; code: the error code of the last attempt that failed.
    file: its name in waiting/, ready/ and claimed/; of a drop its path below the spool; '' where it is not known.
    tick: the table's count when an event changed it last.
    """

    id: str
    state: str
    type: str = ""
    batch: str = ""
    priority: int = 0
    attempt: int = 0
    failures: int = 0
    crashes: int = 0
    worker: str = ""
    lane: str = ""
    admitted: float | None = None
    since: float | None = None
    code: str = ""
    file: str = ""
    archived: bool = False
    read: bool = False
    tick: int = 0

    @property
    def row(self) -> Row:
        """The words that facets count."""
        return self.state, self.type, self.batch, self.worker, self.code

    @property
    def conditional(self) -> bool:
        """Whether its name says that its content has conditions."""
        return self.file[-6:-5] == "d" and self.state not in (State.PENDING, State.REJECTED)

    def take_name(self, file: str) -> None:
        """Take over what a name in waiting/, ready/ or claimed/ says; any other name says nothing."""
        name = parse_task(file)
        if name is not None:
            self.take(name, file)

    def take(self, name: TaskName, file: str) -> None:
        """Take over the fields of a name. file: as it can be found under it, '' where it cannot."""
        self.file, self.attempt = file, name.attempt
        self.failures, self.crashes = name.failures, name.crashes
        self.priority = rank_of(0) - name.rank
        self.admitted = order_micros(name.order) / 1e6

    def located(self) -> Located | None:
        """Where its file must be now; None where that is not known."""
        state = State(self.state)
        if state in (State.PENDING, State.REJECTED):
            return Located(state, self.file, self.id, drop=self.file.rpartition("/")[2]) if self.file else None
        if self.state in ENDED_STATES:
            directory = State.FAILED if state is State.SKIPPED else state
            ended = EndedName(self.id, self.attempt, self.worker)
            if self.archived:
                path = layout.join(layout.bucket(self.id), ended.archived(directory))
            else:
                path = layout.join(directory, ended.encode())
            return Located(state, path, self.id, self.attempt, self.worker, archived=self.archived)
        name = parse_task(self.file)
        above = self.worker if state is State.CLAIMED else self.lane
        if name is None or not above:
            return None
        node, lane = (self.worker, "") if state is State.CLAIMED else ("", self.lane)
        return Located(state, layout.join(state, above, self.file), self.id, self.attempt, node, lane, name)


def card_of(located: Located, kind: str = "") -> Card:
    """The card of a task file that was listed. kind: its type, where the lane tells it."""
    # The name of a drop may hold any bytes; what people see and what travels is text.
    card = Card(
        legible(located.id), located.state.value, intern(kind), attempt=located.attempt, worker=intern(located.node)
    )
    card.lane, card.archived = intern(located.lane), located.archived
    if located.name is not None:
        # In returned/ the name has the mover's behind it, and cannot be followed further.
        in_lane = bool(located.lane) or located.state is State.CLAIMED
        card.take(located.name, located.path.rpartition("/")[2] if in_lane else "")
    elif located.state in (State.PENDING, State.REJECTED):
        card.file = located.path
    return card


def card_key(located: Located) -> str:
    """What tells a card from all others: a rejected drop is not the task whose id it wanted."""
    return legible(located.path) if located.state is State.REJECTED else key(legible(located.id))


# What an event of a journal says about the place of its task.


# The state into which each event brings its task; RETURNED brings its next attempt there.
_INTO = {
    "ADMITTED": State.WAITING,
    "WAITING": State.WAITING,
    "RETURNED": State.WAITING,
    "RETRIED": State.WAITING,
    "REDONE": State.WAITING,
    "HELD": State.WAITING,
    "RANKED": State.WAITING,
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
