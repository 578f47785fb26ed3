"""Secrets in work, looked for before it is pushed.

    secrets   that the task was given: no object that holds one leaves this machine, in no spelling that is masked
    tokens    of well-known shapes, keys, and what the owner's patterns find: pushed, and named

A token may be an example of the work, and a reference of one attempt goes again, so it is pushed and makes the work
one that is not accepted: the next attempt goes on from there, and is told what to remove. A secret of the task is
known to be one, and what was pushed once cannot be taken back. Then nothing of the work is pushed: its commits may
hold the secret where its files no longer do. The attempt is blocked, since a next one could only begin without the
work, and pay for all of it again; the workspace stays, and a person decides.

Law: nothing here returns, or says in an error, what it found: only where, and under which name. Every object that the
remote does not have is looked at, and no other. Only attempts of a profile know its secrets: in a workspace that
`spool workspace gc` saves, after its own process was killed, nothing but tokens and patterns is looked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import IO

from spoold.agents.workspace.added import added
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.remote import WorkspaceFailed
from spoold.protocol.amount import some
from spoold.rules.redaction.masking import Scanner

_PIECE = 4 << 20
# So many places are named.
PLACES_MAX = 10


class HoldsSecret(WorkspaceFailed):
    """The work holds a secret of its task; the words say where."""


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
            for piece, fresh in _pieces(said, int(size), scanner.longest):
                for at, name in scanner.secrets(piece):
                    yield _where(kind, paths.get(one, ""), line + piece.count(b"\n", 0, at), name)
                line += piece.count(b"\n", 0, fresh)
            said.read(1)


def _pieces(said: IO[bytes], size: int, overlap: int) -> Iterator[tuple[bytes, int]]:
    """Yield the content of an object in pieces, each with the end of the one before; and how much of it goes."""
    kept = b""
    while size:
        piece = kept + said.read(min(size, _PIECE))
        size -= len(piece) - len(kept)
        gone = max(0, len(piece) - overlap)
        yield piece, gone
        kept = piece[gone:]


def _where(kind: str, path: str, line: int, name: str) -> str:
    if kind == "blob":
        return f"{path}:{line} ({name})"
    return f"the names in {path or 'its top folder'} ({name})" if kind == "tree" else f"the text of a commit ({name})"
