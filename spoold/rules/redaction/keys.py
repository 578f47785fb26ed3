"""Private keys in PEM blocks, over many lines or in a string of JSON: all of one becomes a single mask.

Law: from the first line of a private key on nothing leaves, up to its last line, a sign that no key holds, or MOST
bytes. So a text that only names such a line loses a part of itself, and a key that has no last line leaves nothing.
"""

from __future__ import annotations

import re

from spoold.rules.redaction.sweep import before_escape, mask_of

# More than a key of 16,384 bits takes.
MOST = 16 << 10
MASK = mask_of("private-key")
FIRST = b"-----BEGIN"
_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
_BEGUN = re.compile(rb"-----BEGIN[A-Z0-9 ]{0,90}-{0,4}")
_END = re.compile(rb"-----END (?:[A-Z0-9]{1,16} ){0,3}PRIVATE KEY(?: BLOCK)?-----")
# A key, and not only the name of one: what follows the first line, also after the headers of an old key.
_KEY = re.compile(_BEGIN.pattern + rb"[\s\S]{0,300}?[A-Za-z0-9+/]{40}")
# No line that ends or begins a key is longer; and more than the context of an escape.
_FRAME = 100
_FOREIGN = re.compile(rb"[^A-Za-z0-9+/=\s\\:,|#*._()@<>-]")


class Keys:
    """A stream in which each private key is one mask."""

    def __init__(self) -> None:
        self._text = b""
        self._inside: int | None = None  # so many bytes of a key are gone

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return what may leave."""
        text = self._text + data
        out: list[bytes] = []
        at = 0
        while True:
            if self._inside is None:
                began = _BEGIN.search(text, at) if FIRST in text else None
                if began is None:
                    held = _held(text, at)
                    out.append(text[at:held])
                    self._text = text[held:]
                    break
                out += [text[at : began.start()], MASK]
                at, self._inside = began.end(), 0
            at, over = _key_end(text, at, MOST - self._inside)
            if not over:
                held = max(at, len(text) - _FRAME)
                self._inside += held - at
                self._text = text[held:]
                break
            self._inside = None
        return b"".join(out)

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest; of a key that has no end there is none."""
        rest, inside = self._text, self._inside
        self._text, self._inside = b"", None
        return rest if inside is None else b""


def keys_in(text: bytes) -> list[int]:
    """Return where private keys begin in a text."""
    return [found.start() for found in _KEY.finditer(text)] if FIRST in text else []


def _held(text: bytes, at: int) -> int:
    """Return where the first line of a key may begin that is not there as a whole."""
    if b"-" not in text[-_FRAME:]:
        return len(text)
    began = text.find(FIRST, max(at, len(text) - _FRAME))
    while began >= 0:
        if _BEGUN.fullmatch(text, began):
            return began
        began = text.find(FIRST, began + 1)
    for place in range(max(at, len(text) - len(FIRST) + 1), len(text)):
        if FIRST.startswith(text[place:]):
            return place
    return len(text)


def _key_end(text: bytes, at: int, room: int) -> tuple[int, bool]:
    """Return where a key ends, and True; or where it goes on, and False: more bytes decide."""
    most = at + room
    foreign = _FOREIGN.search(text, at, most)
    stop = min(len(text), most) if foreign is None else foreign.start()
    ended = _END.search(text, at, stop)
    if ended is not None:
        return ended.end(), True
    if foreign is not None:
        # What a backslash escapes stays with it: a string of JSON stays one.
        return before_escape(text, stop, at), True
    return (stop, True) if stop == most else (at, False)
