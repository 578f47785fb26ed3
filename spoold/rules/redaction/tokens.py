"""The finder of well-known shapes of tokens.

Law: it first looks for long runs of letters and digits, and for the beginnings of tokens in these only. A text
without them costs little, and the patterns are not even compiled.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from spoold.rules.redaction.shapes import BEHIND, MOST, RUN, SHAPES, WORD
from spoold.rules.redaction.sweep import Found, mask_of

_STARTS = tuple(sorted({start.encode() for shape in SHAPES for start in shape.starts}, key=len, reverse=True))
# Most marks hold one of these signs: a text without it, such as base64, need not be searched for them.
_SIGNS = frozenset(b"_-.=")
_MARKS = tuple(
    tuple((mark.encode(), _SIGNS & frozenset(mark.encode())) for mark in shape.marks or shape.starts)
    for shape in SHAPES
)
_PARTS = frozenset(start[:count] for start in _STARTS for count in range(1, len(start)))
_LONGEST = max(map(len, _STARTS))
_IN_RUN = frozenset(WORD) - frozenset(b"./+=")
_RUNS = bytes(0x61 if byte in _IN_RUN else 0x20 for byte in range(256))
_RUN = b"a" * RUN
# If more words than that are long, at less than so many bytes each, taking them out costs more than it saves.
_FEW, _APART = 100, 1000
# What a run of these only holds is a number, a hash, a UUID or a line, and no token.
_DULL = b"0123456789abcdef_-"


class Tokens:
    """Finds the tokens of all known shapes."""

    def find(self, text: bytes, start: int) -> list[Found]:
        """Return all tokens from there on, one after the other."""
        found = []
        for at, number in sorted(_places(text, start)):
            one = _pattern(number).match(text, at) if at >= start else None
            if one is not None:
                found.append(Found(at, one.end(), mask_of(SHAPES[number].name)))
                start = one.end()
        return found

    def held(self, text: bytes) -> int:
        """Return where in the last word a token may begin."""
        word = text[-MOST - 1 :]
        first = len(text) - len(word) + len(word.rstrip(WORD))
        if first == len(text):
            return first
        began = _first_start(text, first)
        if began is not None:
            return began
        for at in range(max(first, len(text) - _LONGEST + 1), len(text)):
            if text[at:] in _PARTS:
                return at
        return len(text)

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of a token whose end is lost."""
        for start in _STARTS:
            if rest.startswith(start):
                return next(mask_of(shape.name) for shape in SHAPES if start.decode() in shape.starts)
        return None


def _first_start(text: bytes, first: int) -> int | None:
    places = [at for at in (text.find(start, first) for start in _STARTS) if at >= 0]
    return min(places, default=None)


def _places(text: bytes, first: int) -> Iterator[tuple[int, int]]:
    """Return where tokens may begin, and the numbers of their shapes."""
    words = _long_words(text)
    signs = frozenset(sign for sign in _SIGNS if sign in words)
    for number, marks in enumerate(_MARKS if words else ()):
        if any(needed <= signs and mark in words for mark, needed in marks):
            for start in SHAPES[number].starts:
                at = text.find(start.encode(), first)
                while at >= 0:
                    yield at, number
                    at = text.find(start.encode(), at + 1)


def _long_words(text: bytes) -> bytes:
    """Return what in a text is long enough for a token, with what stands before it; or all, if that is most of it."""
    runs = text.translate(_RUNS)
    words = []
    at = runs.find(_RUN)
    while at >= 0:
        end = runs.find(b" ", at + RUN)
        end = len(text) if end < 0 else end
        if text[at:end].strip(_DULL):
            words.append(text[max(0, at - BEHIND) : end])
            if len(words) > _FEW + len(text) // _APART:
                return text
        at = runs.find(_RUN, end)
    return b" ".join(words)


@cache
def _pattern(number: int) -> re.Pattern[bytes]:
    return re.compile(SHAPES[number].pattern.encode())
