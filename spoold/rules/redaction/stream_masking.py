"""Masks what a finder finds in a stream of bytes, however the stream is cut into pieces.

Law: what is masked depends on the bytes alone. A finder names the place from which on it needs more bytes to decide,
and everything before it leaves at once. A mask also hides a backslash before it that was to escape what it hides: a
string of JSON stays one.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

# So many bytes that have left are still looked at. So many backslashes in a row are counted.
CONTEXT = 64
_BACKSLASH = 0x5C


def mask_of(name: str) -> bytes:
    """Return what stands in the place of something that is masked."""
    return f"[redacted:{name}]".encode()


class Found(NamedTuple):
    """Something to mask: where it begins and ends, and its mask."""

    start: int
    end: int
    mask: bytes


class Finder(Protocol):
    """Finds what is to be masked."""

    def find(self, text: bytes, start: int) -> list[Found]:
        """Return all of it, by its start; what begins before `start` may be left out."""

    def held(self, text: bytes) -> int:
        """Return the first place at which something may begin that more bytes decide."""

    def begun(self, rest: bytes) -> bytes | None:
        """Return the mask of what surely began with these held bytes, whose end is lost; None for nothing."""


class Stage(Protocol):
    """One step of masking a stream."""

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return what may leave."""

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest. cut: the stream went on, but the rest is lost."""


class Sweep:
    """A stream in which all that a finder finds is masked. What overlaps becomes one mask, that of the first."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._text = b""
        self._done = 0  # so many bytes of the text have left, or are masked

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return what may leave."""
        text = self._text + data
        return self._leave(text, before_escape(text, max(self._finder.held(text), self._done)))

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest. cut: the stream went on, but the rest is lost."""
        text = self._text
        if len(text) == self._done:
            return b""
        if cut:
            held = max(self._finder.held(text), self._done)
            mask = self._finder.begun(text[held:])
            if mask is not None:
                return self._leave(text, before_escape(text, held)) + mask
        return self._leave(text, len(text))

    def _leave(self, text: bytes, limit: int) -> bytes:
        """Return everything before the limit, masked; what is found there may end behind it."""
        out, at = [], self._done
        for start, end, mask in self._finder.find(text, at):
            if start >= limit:
                break
            if start >= at:
                out += [text[at : max(at, before_escape(text, start))], mask]
            at = max(at, end)
        if at < limit:
            out.append(text[at:limit])
            at = limit
        keep = max(0, limit - CONTEXT)
        keep = before_row(text, keep)
        self._text, self._done = text[keep:], at - keep
        return b"".join(out)


def before_row(text: bytes, place: int) -> int:
    """Return the place, or the first of the backslashes that end there: how many they are may decide what follows."""
    least = max(0, place - CONTEXT)
    return least + len(text[least:place].rstrip(b"\\"))


def before_escape(text: bytes, place: int, first: int = 0) -> int:
    """Return the place, or the one before it if a backslash there escapes what follows. first: none before counts."""
    count = 0
    while count < min(CONTEXT, place - first) and text[place - 1 - count] == _BACKSLASH:
        count += 1
    return place - count % 2
