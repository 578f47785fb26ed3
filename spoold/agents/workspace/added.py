"""The lines that commits add, one run of lines after the other, as git's own difference says.

Law: a difference is read by its counts: no line of a file is taken for one of the difference. Neither settings nor
attributes hide a file, and a file of any size takes no more than a piece of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO

from spoold.agents.workspace.git import Git

# Of one difference against what was there before, in lines alone.
WORDS = ("-p", "-U0", "--no-renames", "--no-ext-diff", "--no-textconv", "--text", "--no-color")
_PREFIXES = ("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPED = re.compile(rb"\\(?:([0-7]{3})|(.))")
# A longer run comes in pieces, each of which begins with the end of the one before.
PIECE, OVERLAP = 4 << 20, 16 << 10


@dataclass(frozen=True, slots=True)
class Added:
    """A run of lines. path: of the file; line: the number of the first one."""

    path: str
    line: int
    text: bytes

    def at(self, place: int) -> str:
        """Return path and line of a place in the text."""
        line = self.line + self.text.count(b"\n", 0, place)
        return f"{self.path}:{line}"


def added(git: Git, *words: str) -> Iterator[Added]:
    """Yield what a command adds that prints differences, such as `diff-tree A B` or `log A..B`. Errors: GitFailed."""
    command, *rest = words
    with git.piped(command, *WORDS, *_PREFIXES, *rest) as said:
        yield from _read(said)


def lines_of(git: Git, *words: str) -> int:
    """Return how many lines such a command adds and removes, also in files that are no text. Errors: GitFailed."""
    command, *rest = words
    found = 0
    with git.piped(command, *WORDS, *_PREFIXES, *rest) as said:
        while line := said.readline(PIECE):
            if (hunk := _HUNK.match(line)) is not None:
                before, _, after = _counts(hunk)
                _skip(said, before)
                found += before + after + sum(0 for _ in _run(said, "", 0, after))
    return found


def _read(said: IO[bytes]) -> Iterator[Added]:
    path = ""
    while line := said.readline(PIECE):
        if line.startswith(b"+++ "):
            path = _path(line[4:].rstrip(b"\n"))
        elif (hunk := _HUNK.match(line)) is not None:
            before, first, after = _counts(hunk)
            _skip(said, before)
            yield from _run(said, path, first, after)


def _counts(hunk: re.Match[bytes]) -> tuple[int, int, int]:
    """Return how many lines a hunk removes, the number of the first that it adds, and how many these are."""
    before, first, after = hunk.groups()
    return int(before or 1), int(first), int(after or 1)


def _skip(said: IO[bytes], lines: int) -> None:
    while lines and (part := said.readline(PIECE)):
        lines -= part.endswith(b"\n")


def _run(said: IO[bytes], path: str, first: int, lines: int) -> Iterator[Added]:
    text, begins = bytearray(), True
    while lines and (part := said.readline(PIECE)):
        if begins and part.startswith(b"\\"):  # "No newline at end of file", of what was there before
            continue
        text += part[1:] if begins else part
        begins = part.endswith(b"\n")
        lines -= begins
        if len(text) > PIECE:
            yield Added(path, first, bytes(text))
            first += text.count(b"\n", 0, len(text) - OVERLAP)
            del text[:-OVERLAP]
    if text:
        yield Added(path, first, bytes(text))


def _path(said: bytes) -> str:
    if said.startswith(b'"'):  # a name with signs that would end the line
        plain = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}
        said = _ESCAPED.sub(lambda one: bytes([int(one[1], 8)]) if one[1] else plain.get(one[2], one[2]), said[1:-1])
    return said.removeprefix(b"b/").rstrip(b"\t").decode("utf-8", "replace")
