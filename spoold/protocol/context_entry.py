"""What the tasks of a batch share: `context/BATCH/NUMBER.BASE.NODE.NAME.json`, entries that never change.

The latest entry of a name counts: the one with the highest number, and of several with that number the one whose
node comes last. BASE is the number of the entry that its author had seen as the latest, 0 for none.

Law: an entry is never replaced; a new one has a higher number. Two names that differ by case alone are one.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from spoold.protocol import layout
from spoold.protocol.names import NODE, key, number, sure

NAME_MAX, BYTES_MAX, ENTRIES_MAX = 64, 256 << 10, 1000
_NAME = rf"[A-Za-z0-9](?:[A-Za-z0-9_=+,.-]{{0,{NAME_MAX - 2}}}[A-Za-z0-9_=+,-])?"
_ENTRY = re.compile(rf"{number(9)}\.{number(9)}\.({NODE})\.({_NAME})\.json")


@dataclass(frozen=True, slots=True, order=True)
class EntryName:
    """`NUMBER.BASE.NODE.NAME.json` in the directory of a batch. Sorts by number, then by who made it."""

    number: int
    node: str
    name: str
    base: int

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.number}.{self.base}.{self.node}.{self.name}.json", parse_entry)


def parse_entry(name: str) -> EntryName | None:
    """A name in the directory of a batch, or None."""
    match = _ENTRY.fullmatch(name)
    return EntryName(int(match[1]), match[3], match[4], int(match[2])) if match else None


def is_name(text: str) -> bool:
    """Whether an entry may have this name."""
    return re.fullmatch(_NAME, text) is not None


def directory(batch: str) -> str:
    """Where the entries of a batch are."""
    return layout.join(layout.CONTEXT, key(batch))


class Entry(BaseModel):
    """One entry: its content as `text`, or in base64 where it is no text. task, attempt: in which it was made, '' and
    0 for none; by, at (RFC 3339): for people.
    """

    model_config = ConfigDict(frozen=True, extra="allow", defer_build=True)

    task: str = ""
    attempt: int = 0
    by: str = ""
    at: str = ""
    text: str | None = None
    base64: str | None = None

    @property
    def data(self) -> bytes:
        """The content; nothing where the file holds none that can be read."""
        if self.text is not None:
            return self.text.encode(errors="surrogatepass")
        try:
            return base64.b64decode(self.base64 or "", validate=True)
        except ValueError:
            return b""


def content(data: bytes) -> dict[str, str]:
    """The fields that hold this content."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
