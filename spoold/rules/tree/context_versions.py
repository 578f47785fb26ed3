"""Which entries of a batch's context count, and which of them do not know each other.

Law: pure. Every entry that was made without knowledge of an earlier one of its name is a conflict, until a later one
was made with knowledge of both.
"""

from __future__ import annotations

from collections.abc import Iterable

from spoold.protocol.context_entry import EntryName
from spoold.protocol.names import key


def latest(entries: Iterable[EntryName]) -> dict[str, EntryName]:
    """The entry of each name that counts, by key."""
    return {key(entry.name): entry for entry in sorted(entries)}


def version(entries: Iterable[EntryName], name: str) -> int:
    """The number of the entry of a name that counts, 0 for none."""
    found = latest(entries).get(key(name))
    return 0 if found is None else found.number


def rivals(entries: Iterable[EntryName], mine: EntryName) -> list[EntryName]:
    """The other entries of its name that its author had not seen."""
    return [
        each
        for each in sorted(entries)
        if key(each.name) == key(mine.name) and each != mine and each.number > mine.base
    ]


def unseen(entries: Iterable[EntryName], name: str) -> list[EntryName]:
    """The earlier entries of a name that the author of the one that counts had not seen: their content is nowhere in
    it. One that a later entry was made with knowledge of is settled.
    """
    own = sorted(each for each in entries if key(each.name) == key(name))
    return [each for each in own[:-1] if each.number > own[-1].base]
