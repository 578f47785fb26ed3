"""The patterns that the owner of a machine adds: regular expressions, each within a line.

Law: a line is looked at as a whole, and held until it is one; a longer line than MOST bytes is taken for several. The
patterns are masked one after the other, in their order.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MOST = 64 << 10
_LINE = re.compile(rb"[^\n]{1,%d}\n?|\n" % MOST)


class Lines:
    """A stream in which everything is masked that the patterns find."""

    def __init__(self, patterns: Iterable[re.Pattern[str]]) -> None:
        self._patterns = [(pattern, f"[redacted:pattern-{count}]") for count, pattern in enumerate(patterns, 1)]
        self._text = b""

    def feed(self, data: bytes) -> bytes:
        """Take in the next piece; return the lines that are whole."""
        lines = _LINE.findall(self._text + data)
        whole = not lines or lines[-1].endswith(b"\n")
        self._text = b"" if whole else lines.pop()
        return b"".join(map(self._masked, lines))

    def end(self, *, cut: bool = False) -> bytes:
        """Return the rest."""
        rest, self._text = self._text, b""
        return self._masked(rest)

    def _masked(self, line: bytes) -> bytes:
        body = line.rstrip(b"\n")
        text = body.decode("utf-8", "surrogateescape")
        for pattern, mask in self._patterns:
            text = _put(pattern, mask, text)
        return text.encode("utf-8", "surrogateescape") + line[len(body) :]


def _put(pattern: re.Pattern[str], mask: str, text: str) -> str:
    """Return the text with the mask in the place of all that the pattern finds; an empty place stays one."""
    return pattern.sub(lambda one: mask if one[0] else "", text)
