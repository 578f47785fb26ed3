"""What an attempt wrote: followed, with its colours, searched.

Law: of a long log a window is held, and the title says which bytes of how many. Of what a program writes for
terminals only colours count; `spoold.pictures.log_colours` sees to that.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from spoold.faces.top.page import OfTask
from spoold.faces.top.source import Room, Source
from spoold.faces.top.text_layout import Line, Picture, Row, Word, age, short, shown, wrap
from spoold.protocol.amount import amount

if TYPE_CHECKING:
    from spoold.pictures.log_colours import Span

WINDOW = 256 * 1024
_PIECE = 64 * 1024
_ERROR = re.compile(r"\b(error|exception|traceback|fatal|panic|failed)\b", re.IGNORECASE)


class Log(OfTask):
    """The log of one task."""

    name = "log"
    about = "what a task wrote, followed"
    every_s = 1.0
    share = True

    def __init__(self, task_id: str) -> None:
        super().__init__(task_id)
        self.follow = True
        self._attempt: int | None = None
        self._attempts: list[int] = []
        self._lines: list[list[Span]] = []
        self._rows: list[Row] = []
        self._laid: tuple[object, ...] = ()
        self._at: int | None = None
        self._cursor = -1
        self._grew = 0.0
        self._anew()

    def _anew(self) -> None:
        """Forget what was read; the next look reads the end."""
        self._data, self._begin, self._size, self._ended = b"", -1, 0, False

    def filter(self, typed: str) -> None:
        """Look for these words; the first match after the cursor is shown."""
        self.typed = typed
        self._laid = ()

    def moved(self, at: int, count: int) -> None:
        """Stop following where the cursor leaves the end, and follow again where it is back there."""
        self.follow = at >= count - 1
        self._at, self._cursor = None, at

    def press(self, key: str, at: int = 0) -> bool:
        """Take a key of this page."""
        if key in ("next", "previous"):
            self._jump(at, [n for n, row in enumerate(self._rows) if self._found(row)], back=key == "previous")
        elif key == "error":
            self._jump(-1, [n for n, row in enumerate(self._rows) if _ERROR.search(_text(row))], back=False)
        elif key in ("older", "newer"):
            self._shift(-1 if key == "older" else 1)
        elif key in ("attempt-", "attempt+") and self._attempts:
            now = self._attempts.index(self._attempt) if self._attempt in self._attempts else len(self._attempts) - 1
            self._attempt = self._attempts[max(0, min(now + (1 if key[-1] == "+" else -1), len(self._attempts) - 1))]
            self._anew()
            self.follow = True
        else:
            return False
        return True

    def _jump(self, at: int, places: Sequence[int], *, back: bool) -> None:
        if places:
            self.follow = False
            later = [place for place in places if (place < at if back else place > at)]
            self._at = self._cursor = (later or places)[-1 if back else 0]

    def _shift(self, by: int) -> None:
        """Move the window by half of it."""
        if self._size > WINDOW:
            begin = max(0, min(self._begin + by * WINDOW // 2, self._size - WINDOW))
            self._data, self._begin, self.follow = b"", begin, False

    def gather(self, source: Source, room: Room) -> Picture:
        """Read what is new, and return the lines of the window."""
        self._read(source)
        if not self._attempts:
            return shown(f"log {self.id}", [Row((Word("this task has written nothing yet", "mute"),))])
        self._lay(room.width)
        hits = [number for number, row in enumerate(self._rows) if self._found(row)] if self.typed else []
        at, self._at = self._at, None
        if self._cursor in hits:
            said = f"match {hits.index(self._cursor) + 1} of {len(hits)}"
        else:
            said = amount(len(hits), "match", "matches") if self.typed else ""
        notes = [self._where(), said, self._how(source.now())]
        picture = shown(f"log {self.id}", self._rows, note=", ".join(filter(None, notes)))
        return replace(picture, end=self.follow and at is None, at=at)

    def _where(self) -> str:
        number = self._attempts.index(self._attempt) + 1 if self._attempt in self._attempts else len(self._attempts)
        which = f"attempt {self._attempt}" + (
            f" ({number} of {len(self._attempts)})" if len(self._attempts) > 1 else ""
        )
        if self._begin > 0 or self._begin + len(self._data) < self._size:
            end = self._begin + len(self._data)
            return f"{which}, bytes {short(self._begin)}–{short(end)} of {short(self._size)}"
        return f"{which}, {amount(len(self._rows), 'line')}"

    def _how(self, now: float) -> str:
        if self._ended:
            return "ended"
        still = now - self._grew
        return f"{'followed' if self.follow else 'not followed'}" + (
            f", silent for {age(still)}" if still > 60 else ""
        )

    def _read(self, source: Source) -> None:
        view = source.view
        self._attempts = view.logs(self.id)
        if not self._attempts:
            return
        if self._attempt is None or (self.follow and self._ended and self._attempt != self._attempts[-1]):
            self._attempt = self._attempts[-1]
            self._anew()
        if self._begin < 0:
            part = view.log(self.id, attempt=self._attempt, offset=-WINDOW, most=_PIECE)
            self._begin, self._data, self._grew = part.begin, part.data, source.now()
            self._size, self._ended = part.size, part.ended
        for _ in range(WINDOW // _PIECE + 1):
            end = self._begin + len(self._data)
            full = len(self._data) >= WINDOW and not self.follow
            if full:
                break
            part = view.log(self.id, attempt=self._attempt, offset=end, most=_PIECE)
            if part.data and end >= self._size:
                self._grew = source.now()
            self._size, self._ended = part.size, part.ended
            self._data += part.data
            if len(self._data) > WINDOW:
                self._begin += len(self._data) - WINDOW
                self._data = self._data[-WINDOW:]
            if not part.data or self._begin + len(self._data) >= self._size:
                break

    def _lay(self, width: int) -> None:
        """Lay the lines out, if they or the width have changed."""
        from spoold.pictures.log_colours import lines

        state = (self._attempt, self._begin, len(self._data), width, self.typed)
        if state == self._laid:
            return
        data = self._data
        if self._begin > 0:
            data = data[data.find(b"\n") + 1 :]
        self._lines = lines(data)
        self._rows = list(self._wrapped(width))
        self._laid = state

    def _wrapped(self, width: int) -> Iterator[Row]:
        number = 0
        for spans in self._lines:
            words = tuple(Word(span.text, f"sgr:{' '.join(span.style.words)}".removesuffix("sgr:")) for span in spans)
            for line in wrap(_hit(words, self.typed), width) or [()]:
                yield Row(line, f"{self._begin} {number}")
                number += 1

    def _found(self, row: Row) -> bool:
        return bool(self.typed) and self.typed.casefold() in _text(row).casefold()


def _text(row: Row) -> str:
    return "".join(each.text for each in row.line)


def _hit(line: Line, typed: str) -> Line:
    """Return the line with what is looked for in a style of its own."""
    if not typed:
        return line
    found: list[Word] = []
    for each in line:
        parts = re.split(f"({re.escape(typed)})", each.text, flags=re.IGNORECASE)
        same = typed.casefold()
        found += [Word(part, "match" if part.casefold() == same else each.style) for part in parts if part]
    return tuple(found)
