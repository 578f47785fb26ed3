"""What must not land, whatever its tests say: bounds of this machine's owner on a piece of work.

    max_files, max_lines, max_file_mb   what it changes, against its merge base with the branch; the last also in each
                                        commit, since the branch would have the file for ever
    secret                              what its commits add, also those that a later one takes back, their texts and
                                        authors, and names of files
    protected                           paths that it changes, or that merging it changes: a person says yes, or not

Law: work is judged before its tests run, and each piece by itself. A yes is for one commit and these paths. Figures
are named with their bound, and a secret with its place, never with itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from spoold.agents.configuration.merge_settings import MergeConfig
from spoold.agents.merge.candidates import Candidate, Refused
from spoold.agents.workspace.git import Git
from spoold.agents.workspace.lfs import sizes
from spoold.agents.workspace.secret_scan import OVERLAP, added, lines_of, pieces
from spoold.protocol.amount import amount, some
from spoold.protocol.errors import legible
from spoold.rules.redaction.masking import Scanner

_NAMED = 10
_LINK = "160000"
# Whether people let work change these paths.
Ask = Callable[[Candidate, tuple[str, ...]], bool]


@dataclass(frozen=True, slots=True)
class _Change:
    """A file that work changes. size: of the new one, bytes; 0 where it is removed."""

    path: str
    size: int


class Guards:
    """The guards of one merge. ask: asks people; scanner: finds secrets."""

    def __init__(self, config: MergeConfig, ask: Ask, scanner: Scanner) -> None:
        self._config, self._ask, self._scanner = config, ask, scanner
        self._allowed: set[tuple[str, tuple[str, ...]]] = set()

    def refused(self, git: Git, tip: str, one: Candidate) -> Refused | None:
        """Return why work must not land, for what is in it; None where nothing is against it. Errors: GitFailed."""
        fork = _fork(git, tip, one.commit)
        if fork is None:
            return None  # it does not merge, and that is said elsewhere
        why = self._too_much(git, tip, fork, one.commit) or self._leaks(git, tip, fork, one.commit)
        return None if why is None else Refused(one.task, *why)

    def protected(self, git: Git, tip: str, one: Candidate) -> tuple[str, ...]:
        """Return the protected paths for whose change nobody has said yes yet. Errors: GitFailed."""
        fork = _fork(git, tip, one.commit)
        if not self._config.protect or fork is None:
            return ()
        found = _matching(git, fork, one.commit, self._config.protect)
        merged = git.ask("merge-tree", "--write-tree", "-z", "--no-messages", tip, one.commit)
        if merged.code == 0:  # a file may have another name in the branch by now
            found |= _matching(git, tip, merged.names[0], self._config.protect)
        paths = tuple(sorted(found))
        return () if (one.commit, paths) in self._allowed else paths

    def asked(self, one: Candidate, paths: tuple[str, ...]) -> Refused | None:
        """Ask people for protected paths; returns why the work is left out, None for a yes."""
        if self._ask(one, paths):
            self._allowed.add((one.commit, paths))
            return None
        return Refused(one.task, "protected", f"it got no yes to its change of {some(list(paths), _NAMED)}")

    def _too_much(self, git: Git, tip: str, fork: str, commit: str) -> tuple[str, str] | None:
        config = self._config
        changes = _changes(git, fork, commit) if config.max_files or config.max_file_mb else []
        if config.max_files is not None and len(changes) > config.max_files:
            return "max_files", f"it changes {amount(len(changes), 'file')}, and {config.max_files} may be changed"
        if config.max_file_mb is not None and (said := _too_large(git, tip, commit, changes, config.max_file_mb)):
            return "max_file_mb", f"{said}, and a file may have {config.max_file_mb:g} MiB"
        lines = 0 if config.max_lines is None else lines_of(git, "diff-tree", "-r", fork, commit)
        if config.max_lines is not None and lines > config.max_lines:
            return "max_lines", f"it adds and removes {amount(lines, 'line')}, and {config.max_lines} may be"
        return None

    def _leaks(self, git: Git, tip: str, fork: str, commit: str) -> tuple[str, str] | None:
        if not self._config.no_secrets:
            return None
        every = ("log", "--format=", "--remerge-diff", commit, f"^{tip}")
        inside = (*self._places(git, "diff-tree", "-r", fork, commit), *self._places(git, *every))
        places = dict.fromkeys([*inside, *self._beside_lines(git, tip, commit)])
        return ("secret", f"what looks like a secret is in {some(list(places), _NAMED)}") if places else None

    def _places(self, git: Git, *words: str) -> Iterator[str]:
        for run in added(git, *words):
            for at, name in self._found(run.text):
                yield f"{run.at(at)} ({name})"

    def _beside_lines(self, git: Git, tip: str, commit: str) -> Iterator[str]:
        """Yield where secrets are in what the branch would get besides lines: texts and authors of commits, and names
        of files, which are not told."""
        words = ("log", "--format=", "--name-only", "-z", "--no-renames", "--remerge-diff", commit, f"^{tip}")
        for path in dict.fromkeys(git(*words).names):
            for _, name in self._found(path.encode("utf-8", "surrogateescape")):
                yield f"the name of a file ({name})"
        for one, where, part in _commits(git, tip, commit, max(self._scanner.longest, OVERLAP)):
            for _, name in self._found(part):
                yield f"the {where} of commit {one[:12]} ({name})"

    def _found(self, text: bytes) -> list[tuple[int, str]]:
        return [*self._scanner.secrets(text), *self._scanner.tokens(text)]


def _commits(git: Git, tip: str, commit: str, overlap: int) -> Iterator[tuple[str, str, bytes]]:
    """Yield the text of each commit that is not in the branch yet, in pieces that overlap by so many bytes: the name
    of the commit, where the piece is in it, and the piece. Errors: GitFailed."""
    asked = git("rev-list", commit, f"^{tip}").out
    with git.piped("cat-file", "--batch", given=asked) as said:
        while header := said.readline():
            one, _, size = header.decode().split()
            within = True
            for piece, _ in pieces(said, int(size), overlap):
                message = piece
                if within:
                    head, _, message = piece.partition(b"\n\n")
                    within = not message
                    # Hashes are of git, and a pattern may fit them.
                    lines = [line for line in head.split(b"\n") if not line.startswith((b"tree ", b"parent "))]
                    yield one, "author or head", b"\n".join(lines)
                yield one, "message", message
            said.read(1)


def _too_large(git: Git, tip: str, commit: str, changes: list[_Change], most_mb: float) -> str:
    """Return which files have more than so many MiB, of what work changes or else of what one of its commits brings;
    '' for none. Errors: GitFailed."""
    most = most_mb * (1 << 20)
    large = [one for one in changes if one.size > most]
    where = "" if large else " in one of its commits"
    large = large or [one for one in _brought(git, tip, commit) if one.size > most]
    return some([f"{one.path} has {one.size / (1 << 20):.1f} MiB{where}" for one in large], _NAMED)


def _brought(git: Git, tip: str, commit: str) -> Iterator[_Change]:
    """Yield the files of all commits that are not in the branch yet, each content once, as git says them: they may be
    too many to hold. Errors: GitFailed."""
    with git.piped("rev-list", "--objects", commit, f"^{tip}") as objects:
        asked = "cat-file", "--buffer", "--batch-check=%(objecttype) %(objectsize) %(rest)"
        with git.piped(*asked, given=objects.fileno()) as said:
            for row in said:
                kind, _, rest = row.rstrip(b"\n").partition(b" ")
                if kind == b"blob":
                    size, _, path = rest.partition(b" ")
                    yield _Change(legible(path.decode("utf-8", "surrogateescape")), int(size))


def _fork(git: Git, tip: str, commit: str) -> str | None:
    found = git.ask("merge-base", tip, commit).out.split()
    return found[0] if found else None


def _changes(git: Git, fork: str, commit: str) -> list[_Change]:
    """Return the files that work changes, with the sizes of those that it leaves."""
    rows = git("diff-tree", "-r", "-z", "--raw", "--no-renames", fork, commit).names
    found = [(row.split(" "), path) for row, path in zip(rows[::2], rows[1::2], strict=True)]
    there = sizes(git, (words[3] for words, _ in found if words[4] != "D" and words[1] != _LINK))
    return [_Change(legible(path), there.get(words[3], 0)) for words, path in found]


def _matching(git: Git, before: str, after: str, patterns: tuple[str, ...]) -> set[str]:
    """Return the changed paths that patterns match. A folder's pattern is that of the folder, too: a link may come
    into its place."""
    wanted = [one for pattern in patterns for one in (pattern, pattern.removesuffix("/**"))]
    specs = [f":(glob,icase){pattern}" for pattern in dict.fromkeys(wanted)]
    done = git("diff-tree", "-r", "-z", "--name-only", "--no-renames", before, after, "--", *specs)
    return {legible(path) for path in done.names}
