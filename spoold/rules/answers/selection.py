"""The tasks that a person means who gives no ids, and the word that a wrong one was meant to be.

Law: every part that is given must fit, and a part that is not given fits every task. A task whose type or batch is
not known ('') fits no given one. The case of a batch does not count.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from spoold.protocol.errors import nearest
from spoold.protocol.lifecycle import State
from spoold.protocol.names import key


@dataclass(frozen=True, slots=True)
class Selection:
    """A task fits when its state, its type and its batch are each among the given ones; none given: any."""

    states: tuple[State, ...] = ()
    types: tuple[str, ...] = ()
    batches: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.states or self.types or self.batches)

    def fits(self, kind: str, batch: str) -> bool:
        """Whether a task in one of the states fits. kind: its type; '' if it cannot be read, which fits none."""
        of_batch = not self.batches or (batch != "" and key(batch) in map(key, self.batches))
        return (not self.types or kind in self.types) and of_batch

    def words(self) -> Iterator[str]:
        """The selection as command-line options."""
        if self.states:
            yield f"--state {','.join(self.states)}"
        if self.types:
            yield f"--type {','.join(self.types)}"
        for batch in self.batches:
            yield f"--batch {batch}"


def suggestion(word: str, known: Iterable[str], named: int = 8) -> str:
    """The advice for an unknown word: the similar known one, else the first few."""
    words = list(known)
    close = nearest(word, words)
    if close:
        return f"did you mean {close!r}?"
    if not words:
        return "there is none yet."
    more = f" and {len(words) - named} more" if len(words) > named else ""
    return f"use one of {', '.join(words[:named])}{more}."
