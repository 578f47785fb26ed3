"""Which records of attempts the feed has handed on: the last one of each task.

Law: the attempts of a task end one after the other, so the last one stands for all before it. All answers come from
names alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from spoold.master.ends import End, end_at
from spoold.master.place import Place
from spoold.protocol.lanes import kind_in
from spoold.protocol.lifecycle import State
from spoold.protocol.names import EndedName, key, parse_ended, parse_task


class Coverage:
    """The last record of each task that was handed on, or skipped for good. names: of files in results/."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._last: dict[str, EndedName] = {}
        for name in map(parse_ended, names):
            if name is not None:
                self.add(name)

    def __len__(self) -> int:
        return len(self._last)

    def lacks(self, name: EndedName) -> bool:
        """Whether this attempt, decided by this node, was not handed on.

        Another decider of the same attempt is news: a server that lost its power may forget a commit, and then the
        attempt is decided again.
        """
        last = self._last.get(key(name.id))
        return last is None or name.attempt > last.attempt or (name.attempt == last.attempt and name != last)

    def add(self, name: EndedName) -> None:
        """Record that it was handed on, or skipped for good."""
        last = self._last.get(key(name.id))
        if last is None or name.attempt >= last.attempt:
            self._last[key(name.id)] = name

    def keep(self, known: Callable[[str], bool]) -> None:
        """Forget tasks that are not known by their key: their records have left results/."""
        for task_key in [task_key for task_key in self._last if not known(task_key)]:
            del self._last[task_key]

    def names(self) -> list[str]:
        """Return the names from which another coverage can be made."""
        return [name.encode() for name in self._last.values()]

    def behind(self, names: Iterable[str], place_of: Callable[[str], Place | None]) -> list[End]:
        """Return the attempts of these names of results/ that ended and were not handed on, earlier attempts first.

        place_of: where the token of a key is. A record counts if its token's name says so, or if the token has gone
        on to a later attempt. In the second case nothing says which decider counts, so the first record by name does.
        """
        found: dict[tuple[str, int], End] = {}
        for name in map(parse_ended, sorted(names)):
            place = place_of(key(name.id)) if name is not None else None
            if name is None or place is None or not self.lacks(name):
                continue
            end, last = _end_of(name, place), self._last.get(key(name.id))
            again = last is not None and name.attempt == last.attempt
            if end is not None and (end.final or not again):
                found.setdefault((key(name.id), name.attempt), end)
        return sorted(found.values(), key=lambda end: (end.name.attempt, key(end.name.id)))


def _end_of(name: EndedName, place: Place) -> End | None:
    """Return the end that this record is of, given its token's place; None if it has not ended, or does not count."""
    at = end_at(place)
    if at is not None:
        if name.attempt < at.name.attempt:
            return End(name, final=False)
        return at if name == at.name else None
    task = parse_task(place.name) if place.state in (State.WAITING, State.READY, State.CLAIMED) else None
    if task is None or name.attempt >= task.attempt:
        return None
    lane = place.directory.partition("/")[2] if place.state is not State.CLAIMED else ""
    return End(name, kind_in(lane) or None, final=False)
