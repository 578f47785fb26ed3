"""Secrets in work, looked for before it is pushed.

    secrets   that the task was given: no object that holds one leaves this machine, in no spelling that is masked
    tokens    of well-known shapes, keys, and what the owner's patterns find: pushed, and named

A token may be an example of the work, and a reference of one attempt goes again, so it is pushed and makes the work
one that is not accepted: the next attempt goes on from there, and is told what to remove. A secret of the task is
known to be one, and what was pushed once cannot be taken back. Then nothing of the work is pushed: its commits may
hold the secret where its files no longer do. The attempt is blocked, since a next one could only begin without the
work, and pay for all of it again; the workspace stays, and a person decides.

Law: nothing here returns, or says in an error, what it found: only where, and under which name. Every object that the
remote does not have is looked at, and no other. Only attempts of a profile know its secrets, so only they push what
may hold one: work of a killed attempt waits for the next one of its profile, and nobody else pushes what was blocked.

A difference is read by its counts: no line of a file is taken for one of the difference. Neither settings nor
attributes hide a file, and a file of any size takes no more than a piece of memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO

from spoold.agents.workspace.git import Git, WorkspaceFailed
from spoold.protocol.amount import some
from spoold.rules.redaction.masking import Scanner

_PIECE = 4 << 20
# So many places are named.
PLACES_MAX = 10


class HoldsSecret(WorkspaceFailed):
    """The work holds a secret of its task; the words say where."""


def unknown(names: Sequence[str], profile: str, task: str, folder: str) -> str:
    """Return why no process that does not know these secrets of a task pushes its work."""
    holds = f"it may hold a secret ({some(list(names), PLACES_MAX)})"
    who = f"only an attempt of {profile} on this machine knows, and pushes it, such as that of `spool retry {task}`"
    return f"{holds}, which {who}; or save what is to stay of {folder}, and remove that folder"


def refuse(git: Git, commits: Sequence[str], known: Iterable[str], scanner: Scanner, folder: str) -> None:
    """See that nothing which these commits add holds a secret. known: commits that the remote has; folder: of the
    workspace, for people. Errors: HoldsSecret, GitFailed."""
    if not commits or not scanner.knows_secrets:
        return
    asked = "".join(f"{one}\n" for one in (*commits, *(f"^{one}" for one in known if one)))
    found = chain(_holding(git, asked, scanner), _as_paths(git, asked, scanner))
    where = list(dict.fromkeys(found))
    if where:
        raise HoldsSecret(
            f"nothing was pushed, since the work holds a secret: {some(where, PLACES_MAX)}. Fix: remove it from the "
            f"files and commits in {folder}, or save what is to stay and remove that folder; then retry the task."
        )


def tokens(git: Git, base: str, commit: str, scanner: Scanner) -> list[str]:
    """Return where a commit adds tokens to its base, as sentences. Errors: GitFailed."""
    fork = (git.ask("merge-base", base, commit).out.split() or [base])[0]
    found = [
        f"{run.at(at)} ({name})"
        for run in added(git, "diff-tree", fork, commit)
        for at, name in scanner.tokens(run.text)
    ]
    where = list(dict.fromkeys(found))
    return [f"{one} looks like a secret, and has been pushed: remove it, and revoke it" for one in where[:PLACES_MAX]]


def _as_paths(git: Git, asked: str, scanner: Scanner) -> Iterator[str]:
    """Yield the names of secrets that new paths hold: one with a `/` in it is in no single name."""
    new = git("rev-list", "--stdin", given=asked).out
    named = git("diff-tree", "--stdin", "-r", "-m", "--root", "--no-renames", "--name-only", "-z", given=new).names
    for _, name in scanner.secrets("\0".join(dict.fromkeys(named)).encode("utf-8", "surrogateescape")):
        yield f"the path of a file ({name})"


def _holding(git: Git, asked: str, scanner: Scanner) -> Iterator[str]:
    """Yield where new objects hold secrets. asked: which commits, as `git rev-list --stdin` takes it."""
    rows = git("rev-list", "--objects", "--stdin", given=asked).lines
    paths = {one: path for one, _, path in (row.partition(" ") for row in rows)}
    with git.piped("cat-file", "--batch", "--buffer", given="".join(f"{one}\n" for one in paths)) as said:
        while header := said.readline():
            one, kind, size = header.decode().split()
            line = 1
            for piece, fresh in pieces(said, int(size), scanner.longest):
                for at, name in scanner.secrets(piece):
                    yield _where(kind, paths.get(one, ""), line + piece.count(b"\n", 0, at), name)
                line += piece.count(b"\n", 0, fresh)
            said.read(1)


def pieces(said: IO[bytes], size: int, overlap: int) -> Iterator[tuple[bytes, int]]:
    """Yield the content of an object in pieces, each with the end of the one before; and how much of it goes. size:
    of the object, overlap: of that end, both in bytes. Errors: OSError."""
    kept = b""
    while size and (more := said.read(min(size, _PIECE))):  # git may be ended: then its caller learns of it
        size -= len(more)
        piece = kept + more
        gone = max(0, len(piece) - overlap)
        yield piece, gone
        kept = piece[gone:]


def _where(kind: str, path: str, line: int, name: str) -> str:
    if kind == "blob":
        return f"{path}:{line} ({name})"
    return f"the names in {path or 'its top folder'} ({name})" if kind == "tree" else f"the text of a commit ({name})"


# The lines that commits add, one run of lines after the other, as git's own difference says.


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
