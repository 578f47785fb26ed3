"""The files that attempts say they changed, and which of them ran at the same time.

Law: a remark for people: it decides nothing. What is not understood counts as nothing changed, and `wrong_files` says
what that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# The event by which a worker says what an attempt changed.
CHANGED = "FILES_CHANGED"
# So many files of one attempt count, and so many characters of each.
FILES_MAX, LENGTH_MAX = 1000, 500


@dataclass(frozen=True, slots=True)
class Touched:
    """What one attempt changed, and when it began and ended (s since 1970, the pool's clock)."""

    task: str
    attempt: int
    began: float
    ended: float
    files: tuple[str, ...]


def files_in(said: Any) -> tuple[str, ...]:
    """The files that a result lists, each in one spelling; none if it is no list of texts."""
    if not isinstance(said, list):
        return ()
    texts = [text[:LENGTH_MAX] for text in said[:FILES_MAX] if isinstance(text, str)]
    return tuple(dict.fromkeys(filter(None, map(_spelled, texts))))


def wrong_files(said: Any) -> Iterator[tuple[int | None, str, str]]:
    """What `files_in` does not take as it stands: where in the list (None: the list itself), why, and the fix. Of
    several places with one fault the first.
    """
    if not isinstance(said, list):
        yield None, "which is no list, so it counts as empty.", 'write a list of paths, such as ["src/a.py"].'
        return
    counted = said[:FILES_MAX]
    wrong = [at for at, one in enumerate(counted) if not isinstance(one, str) or not _spelled(one)]
    if wrong:
        more = f" So are {len(wrong) - 1:,} others." if wrong[1:] else ""
        yield wrong[0], f"which names no file, and is passed over.{more}", "write each path as a text, in quotes."
    long = [at for at, one in enumerate(counted) if isinstance(one, str) and len(one) > LENGTH_MAX]
    if long:
        yield long[0], f"of which only the first {LENGTH_MAX} characters count.", "name a directory above it."
    if len(said) > FILES_MAX:
        yield None, f"of which only the first {FILES_MAX:,} of {len(said):,} count.", "name directories instead."


def _spelled(path: str) -> str:
    """A path in its one spelling; '' where it names none."""
    return "/".join(part for part in path.split("/") if part not in ("", "."))


def touched_in(event: Any) -> Touched | None:
    """What a line of a journal says of changed files; None if it is another line."""
    if not isinstance(event, dict) or event.get("event") != CHANGED or not isinstance(event.get("detail"), dict):
        return None
    said = event["detail"]
    task, attempt, began, ended = event.get("task"), event.get("attempt"), said.get("began"), said.get("ended")
    if not (isinstance(task, str) and isinstance(attempt, int)):
        return None
    if not (isinstance(began, int | float) and isinstance(ended, int | float)):
        return None
    return Touched(task, attempt, began, ended, files_in(said.get("files")))


def common(mine: Touched, others: Iterable[Touched]) -> tuple[dict[str, Any], ...]:
    """The attempts of other tasks that ran while mine did and changed a file that mine changed, with these files."""
    files, found = set(mine.files), {}
    for other in others:
        same = sorted(files.intersection(other.files))
        if same and other.task != mine.task and other.began < mine.ended and mine.began < other.ended:
            found[other.task, other.attempt] = {"task": other.task, "attempt": other.attempt, "files": same}
    return tuple(found[key] for key in sorted(found))
