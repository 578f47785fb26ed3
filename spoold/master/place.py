"""Where a token is: its state, its directory and its file name.

Law: a value; whether a token is there, only a listing says.
"""

from __future__ import annotations

from dataclasses import dataclass

from spoold.protocol import layout
from spoold.protocol.lifecycle import State, shown_end
from spoold.protocol.names import is_skipped
from spoold.rules.gates.facts import Parent, parent_in


@dataclass(frozen=True, slots=True)
class Place:
    """One place of a token."""

    state: State
    directory: str
    name: str

    @property
    def path(self) -> str:
        """The token's path."""
        return f"{self.directory}/{self.name}"

    @property
    def parent(self) -> Parent:
        """What a task there is to those that wait for it."""
        skipped = self.state is State.FAILED and is_skipped(self.name)
        return parent_in(shown_end(self.state, skipped=skipped))


def waiting_place(lane: str, file: str) -> Place:
    """Return the place of a waiting token."""
    return Place(State.WAITING, layout.join(layout.WAITING, lane), file)
