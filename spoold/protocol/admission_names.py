"""The grammar of admitting/: a leader's door, and what stands in it beside tasks.

Law: the name of an entry says what it is and, of a growing batch, how much of it is admitted and how many tasks are
made. A staged file has none of these names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from spoold.protocol.names import ID, NODE, ORDER, TaskName, number, parse_task, sure

_BATCH = re.compile(rf"({ORDER})\.({ID})\.(?:jsonl|{number(12)}-{number(12)}(?:-([0-9a-f]{{8}}))?\.growing)")
_ORIGINAL = re.compile(rf"({ORDER})\.({ID})\.original")
_MADE = re.compile(r"-[0-9a-z]{8}$")
_DOOR = re.compile(rf"{number(12)}\.({NODE})\.{number(9)}")


def _stem(prefix: str) -> str:
    """The drop's name, without its extension and without the suffix that made its prefix unique."""
    return _MADE.sub("", prefix)


@dataclass(frozen=True, slots=True)
class BatchName:
    """`ORDER.PREFIX.jsonl`, or `ORDER.PREFIX.DONE-SIZE[-DIGEST].growing`: SIZE bytes are admitted, DONE are tasks.

    digest: of the SIZE bytes, eight hexadecimal digits.
    """

    order: str
    prefix: str
    done: int | None = None
    size: int | None = None
    digest: str | None = None

    @property
    def stem(self) -> str:
        """The drop's name, without its extension."""
        return _stem(self.prefix)

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        end = (
            "jsonl"
            if self.size is None
            else f"{self.done}-{self.size}{f'-{self.digest}' if self.digest else ''}.growing"
        )
        return sure(self, f"{self.order}.{self.prefix}.{end}", parse_batch)


def parse_batch(name: str) -> BatchName | None:
    """The name of a batch, or None."""
    match = _BATCH.fullmatch(name)
    if match is None:
        return None
    done, size = (int(count) if count else None for count in match.group(3, 4))
    return BatchName(match[1], match[2], done, size, match[5])


@dataclass(frozen=True, slots=True)
class OriginalName:
    """`ORDER.PREFIX.original`: a drop whose copy becomes the task of that ORDER, called PREFIX if it names no id."""

    order: str
    prefix: str

    @property
    def stem(self) -> str:
        """The drop's name, without its extension."""
        return _stem(self.prefix)

    def encode(self) -> str:
        """The file name. Errors: BadName."""
        return sure(self, f"{self.order}.{self.prefix}.original", parse_original)


def parse_original(name: str) -> OriginalName | None:
    """The name of an original, or None."""
    match = _ORIGINAL.fullmatch(name)
    return OriginalName(match[1], match[2]) if match else None


DoorEntry = TaskName | BatchName | OriginalName


def parse_standing(name: str) -> DoorEntry | None:
    """The parsed name of an entry in a door; None for a file that is staged there, and for foreign files."""
    return parse_task(name) or parse_batch(name) or parse_original(name)


@dataclass(frozen=True, slots=True, order=True)
class DoorName:
    """`EPOCH.HOLDER.NUMBER` in admitting/: a leader's way in. A new one has another number: see `master.intake`."""

    epoch: int
    holder: str
    number: int

    def encode(self) -> str:
        """The directory name. Errors: BadName."""
        return sure(self, f"{self.epoch}.{self.holder}.{self.number}", parse_door)


def parse_door(name: str) -> DoorName | None:
    """A name in admitting/, or None."""
    match = _DOOR.fullmatch(name)
    return DoorName(int(match[1]), match[2], int(match[3])) if match else None
