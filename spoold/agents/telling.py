"""What people tell an agent while its task waits or runs: which of it goes into the next turn, and what it has had.

Law: pure but for the reading. A message goes into one turn of a conversation, and into the first turn of each new
one, which knows nothing of what was said in another. In a session that goes on, a message counts as said after a turn
in which the agent named its session or came to something: its prompt is the first that a session holds. After a turn
without a word it is said again in a later attempt, and never twice in one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spoold.protocol import agent_messages
from spoold.protocol.agent_messages import Message


class Inbox:
    """The messages of one attempt."""

    def __init__(self, read: Callable[[], bytes], before: Any) -> None:
        """read: the file of messages as it is now; before: the output of the attempt before this one."""
        self._read = read
        self._before = {one.name: one for one in agent_messages.told_in(before)}
        self._known = dict(self._before)
        self._given = dict[str, Message]()
        self._had = dict[str, Message]()

    def go_on(self) -> None:
        """The session of the attempt before goes on, which has its messages."""
        self._had, self._given = dict(self._before), dict(self._before)

    def lost(self) -> None:
        """That session is gone: all messages are said again, in the prompt of a new one."""
        self._had = {}

    @property
    def news(self) -> bool:
        """Whether something was given that the attempt before had not."""
        return not self._given.keys() <= self._before.keys()

    @property
    def known(self) -> list[Message]:
        """All messages, the oldest first."""
        return list(self._known.values())

    def next(self) -> list[Message]:
        """Return those that were not given yet, the oldest first: they are given with the next turn."""
        self._look()
        new = [one for name, one in self._known.items() if name not in self._given]
        self._given |= {one.name: one for one in new}
        return new

    def _look(self) -> None:
        self._known |= {one.name: one for one in agent_messages.lines_of(self._read()) if one.name not in self._known}

    def over(self, *, well: bool) -> None:
        """A turn is over. well: the agent has said something, so it has had what it was given with."""
        if well:
            self._had |= self._given

    @property
    def given(self) -> dict[str, list[str]]:
        """The field of a report of progress: what this attempt was given so far; nothing for nothing."""
        return {agent_messages.FIELD: list(self._given)} if self._given else {}

    @property
    def had(self) -> Mapping[str, Any]:
        """The field of the result: the messages that its conversation has; nothing for none."""
        return {agent_messages.FIELD: [one.plain() for one in self._had.values()]} if self._had else {}

    @property
    def untold(self) -> Mapping[str, Any]:
        """The field of the result: the messages that its conversation may not have; nothing for none."""
        self._look()
        left = [one for name, one in self._known.items() if name not in self._had]
        said = [{**one.plain(), agent_messages.GIVEN: one.name in self._given} for one in left]
        return {agent_messages.UNTOLD: said} if said else {}
