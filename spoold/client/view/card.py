"""One task, as a view knows it.

Law: a card is a picture. No node decides anything by it. There may be a million, so a card has few fields, and words
that many cards share are one object.
"""

from __future__ import annotations

from dataclasses import dataclass
from sys import intern

from spoold.protocol import layout
from spoold.protocol.errors import legible
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, TaskName, key, order_micros, parse_task, rank_of
from spoold.store.locate import Located

# What facets count: state, type, batch, worker, code.
Row = tuple[str, str, str, str, str]
ENDED = frozenset({State.COMPLETED.value, State.FAILED.value, State.SKIPPED.value})


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
        if self.state in ENDED:
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
