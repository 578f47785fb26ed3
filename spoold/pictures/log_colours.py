"""Logs with their colours, for a page and for a terminal: of all that programs write for terminals, only SGR counts.

SGR sets colours, bold and the like. Everything else could do harm: an OSC sets the clipboard or a title, a CSI moves
the cursor over other lines, a DCS makes some terminals answer as if a person typed.

Law: pure. No escape sequence but SGR is left, and every other character that cannot be seen becomes an escape that
can be read; so does a carriage return within a line, since what follows would be written over what was there. The
visible text is that of the log, in its order. Colours are the 16 of a terminal; others become the nearest.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from spoold.pictures.wording import SEQUENCE, visible

_SGR = re.compile("(?:\x1b\\[|\x9b)([0-9;:]*)m")
# The start of a sequence at the end of a piece: the rest may come with the next one.
_BEGUN = re.compile(
    "(?:\x1b\\[|\x9b)[0-?]*[ -/]*\\Z"
    "|(?:\x1b\\]|\x9d)[^\x07\x1b\x9c\n]*\x1b?\\Z"
    "|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f])[^\x1b\x9c\n]*\x1b?\\Z"
    "|\x1b[ -/]*\\Z"
    "|(?<!\r)\r+\\Z"
)
_BREAK = re.compile("(?<!\r)\r+\n")
_HELD_MOST = 4096
# The numbers of SGR that switch one thing on or off.
_ON = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "inverse", 9: "strike"}
_OFF = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("inverse",), 29: ("strike",)}
# The 16 colours, as most terminals show them.
_SHADES = (
    *((0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)),
    *((127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255)),
    (255, 255, 255),
)


@dataclass(frozen=True, slots=True)
class Style:
    """How a piece of text looks. ink, ground: one of 16 colours, None for the usual one."""

    ink: int | None = None
    ground: int | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    inverse: bool = False
    strike: bool = False

    @property
    def _colours(self) -> tuple[int | None, int | None]:
        """Ink and ground; neither where they are the same, since that hides the text."""
        return (None, None) if self.ink == self.ground else (self.ink, self.ground)

    @property
    def words(self) -> list[str]:
        """What differs from plain text, as names: `ink-1`, `bold`."""
        named = zip(("ink", "ground"), self._colours, strict=True)
        colours = [f"{name}-{value}" for name, value in named if value is not None]
        return colours + [name for name in _ON.values() if getattr(self, name)]

    @property
    def codes(self) -> list[int]:
        """The numbers of SGR that make it."""
        found = [number for number, name in _ON.items() if getattr(self, name)]
        ink, ground = self._colours
        for value, dark, bright in ((ink, 30, 90), (ground, 40, 100)):
            if value is not None:
                found.append(dark + value if value < 8 else bright + value - 8)
        return found


PLAIN = Style()


@dataclass(frozen=True, slots=True)
class Span:
    """Text of one style: visible, but for line breaks and tabs."""

    text: str
    style: Style = PLAIN


class Reader:
    """Reads a log piece by piece; a character or a sequence may be cut anywhere."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._held = ""
        self._style = PLAIN

    def feed(self, data: bytes, *, last: bool = False) -> list[Span]:
        """Return what this piece shows. last: no other piece comes."""
        text = self._held + self._decoder.decode(data, last)
        self._held = ""
        begun = _BEGUN.search(text[-_HELD_MOST:]) if not last else None
        if begun is not None:
            cut = len(text) - len(begun[0])
            text, self._held = text[:cut], text[cut:]
        return list(self._spans(_BREAK.sub("\n", text)))

    def _spans(self, text: str) -> Iterator[Span]:
        at = 0
        for found in SEQUENCE.finditer(text):
            if found.start() > at:
                yield Span(_shown(text[at : found.start()]), self._style)
            if (sgr := _SGR.fullmatch(found[0])) is not None:
                self._style = styled(self._style, sgr[1])
            at = found.end()
        if at < len(text):
            yield Span(_shown(text[at:]), self._style)


def styled(style: Style, numbers: str) -> Style:
    """Return the style after an SGR with these numbers; what is no SGR changes nothing."""
    given = [int(number) if number else 0 for number in re.split("[;:]", numbers) if len(number) <= 5]
    while given:
        number = given.pop(0)
        if number == 0:
            style = PLAIN
        elif number in _ON:
            style = _with(style, {_ON[number]: True})
        elif number in _OFF:
            style = _with(style, dict.fromkeys(_OFF[number], False))
        elif number in (38, 48):
            colour, used = _extended(given)
            del given[:used]
            style = _with(style, {"ink" if number == 38 else "ground": colour})
        elif number in (39, 49):
            style = _with(style, {"ink" if number == 39 else "ground": None})
        elif number // 10 in (3, 4, 9, 10) and number % 10 < 8:
            value = number % 10 + (8 if number >= 90 else 0)
            style = _with(style, {"ink" if number // 10 in (3, 9) else "ground": value})
    return style


def _with(style: Style, changes: Mapping[str, Any]) -> Style:
    return replace(style, **changes)


def _extended(numbers: list[int]) -> tuple[int | None, int]:
    """The colour of `38;5;N` or `38;2;R;G;B`, as the nearest of 16, and how many numbers it takes."""
    if numbers[:1] == [5] and len(numbers) >= 2:
        number = numbers[1]
        if number < 16:
            return number, 2
        if number < 232:
            steps = (0, 95, 135, 175, 215, 255)
            red, green, blue = (steps[(number - 16) // size % 6] for size in (36, 6, 1))
            return _nearest(red, green, blue), 2
        grey = min(8 + 10 * (number - 232), 255)
        return _nearest(grey, grey, grey), 2
    if numbers[:1] == [2] and len(numbers) >= 4:
        return _nearest(*numbers[1:4]), 4
    return None, len(numbers)


def _nearest(*shade: int) -> int:
    def far(place: int) -> int:
        return sum((one - other) ** 2 for one, other in zip(shade, _SHADES[place], strict=True))

    return min(range(16), key=far)


def _shown(text: str) -> str:
    """The text with what cannot be seen as escapes; breaks and tabs stay."""
    return "".join(part if part in ("\n", "\t") else visible(part) for part in re.split("([\n\t])", text))


def lines(data: bytes) -> list[list[Span]]:
    """Return a whole piece of a log in lines; what follows the last line break is a line, unless it is empty."""
    found: list[list[Span]] = [[]]
    for span in Reader().feed(data, last=True):
        for part in re.split("(\n)", span.text):
            if part == "\n":
                found.append([])
            elif part:
                found[-1].append(replace(span, text=part.expandtabs(4)))
    return found if found[-1] else found[:-1]


class Terminal:
    """A log for a terminal, piece by piece: text and SGR."""

    def __init__(self) -> None:
        self._reader = Reader()
        self._style = PLAIN

    def feed(self, data: bytes, *, last: bool = False) -> str:
        """Return what to write. last: no other piece comes; then the terminal is as it was before."""
        written = []
        for span in self._reader.feed(data, last=last):
            if span.style != self._style:
                written.append(_sgr(span.style))
                self._style = span.style
            written.append(span.text)
        if last and self._style != PLAIN:
            written.append(_sgr(PLAIN))
            self._style = PLAIN
        return "".join(written)


def _sgr(style: Style) -> str:
    return f"\x1b[{';'.join(map(str, (0, *style.codes)))}m"
