"""What people tell the agent of a task: one message, as an attempt finds it, and as its result says that it has it.
What a task reports of its progress, in words.

Law: a message is named by the UNIQUE of its request, in all attempts of its task. Text of others is text: nothing in
it decides anything.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from spoold.protocol import codec
from spoold.protocol.errors import BadFile

# Of one message, in bytes of UTF-8; and so many may stand for a task.
TEXT_MAX, STANDING_MAX = 16 << 10, 50
# So much (characters) is kept of who says it, and of what it says where it is only mentioned.
BY_MAX = EXCERPT_MAX = 200
# Where a report of progress and the output of an agent say which messages it has.
FIELD = "told"
# Where the output says which it does not have for certain: given in vain, or never.
UNTOLD, GIVEN = "untold", "given"
# Where a report of progress says that its last turn is over, so that it is given nothing more.
JUDGED = "judged"
_MENDS = "shorten it, or write it into a file that the agent can read, and tell it the name."


@dataclass(frozen=True, slots=True)
class Message:
    """One message. name: the UNIQUE of its request; at: as the clock of its sender had it, for people."""

    name: str
    by: str
    at: str
    text: str

    def plain(self) -> dict[str, str]:
        """Return it as a plain object."""
        return asdict(self)


def fault_in(text: str) -> tuple[str, str] | None:
    """Return why this text cannot be told, and the fix; None where it can."""
    if not text.strip():
        return "is empty.", "write what the agent is to know."
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "is no UTF-8 text.", "write it as UTF-8."
    return (f"has {size:,} bytes, and {TEXT_MAX:,} are the most.", _MENDS) if size > TEXT_MAX else None


def lines_of(data: bytes) -> list[Message]:
    """Return the messages of SPOOL_TOLD_FILE, one JSON object a line; a line without an end is not written yet, and
    one that is no message is left out.
    """
    found: list[Any] = []
    for line in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            found.append(codec.load(line, "SPOOL_TOLD_FILE"))
        except BadFile:
            continue
    return list(_messages(found))


def told_in(said: Any) -> list[Message]:
    """Return the messages that the output of an agent says it has had."""
    value = said.get(FIELD) if isinstance(said, dict) else None
    return list(_messages(value)) if isinstance(value, list) else []


def untold_in(said: Any) -> list[tuple[Message, bool]]:
    """Return the messages that the output of an agent says it may not have had, each with whether it was given."""
    value = said.get(UNTOLD) if isinstance(said, dict) else None
    found = [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []
    given = {one.get("name") for one in found if one.get(GIVEN) is True and isinstance(one.get("name"), str)}
    return [(one, one.name in given) for one in _messages(found)]


def names_in(said: Any) -> list[str]:
    """Return the names of the messages that a report of progress says are given."""
    value = said.get(FIELD) if isinstance(said, dict) else None
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _messages(values: Iterable[Any]) -> Iterator[Message]:
    seen = set()
    for value in values:
        if not isinstance(value, dict):
            continue
        name, by, at, text = (value.get(field) for field in ("name", "by", "at", "text"))
        if isinstance(name, str) and isinstance(text, str) and name and name not in seen:
            seen.add(name)
            yield Message(name, by if isinstance(by, str) else "", at if isinstance(at, str) else "", text)


# What a task reports of its progress, for people. What agents report for spoold itself is left out.
_OWN = (FIELD, JUDGED, "served")


def reported(progress: Any) -> str:
    """A program's report of its progress, as a line for people: the fields of an object in a row."""
    if isinstance(progress, dict):
        return ", ".join(f"{name} {reported(value)}" for name, value in progress.items() if name not in _OWN)
    return progress if isinstance(progress, str) else json.dumps(progress, ensure_ascii=False)
