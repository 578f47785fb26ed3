"""The names of files in pending/. Other people's may be anything; ours state what a reader can then skip opening.

Law: a name is only believed where the content says the same, or where nothing is decided by it.
"""

from __future__ import annotations

import re

from spoold.protocol.names import is_id
from spoold.protocol.order import ORDER, base36

# Editors, browsers, rsync and shells first write under such names; these files are not finished.
UNFINISHED = (".tmp", ".part", ".partial", ".crdownload", ".filepart", ".swp", "~")
# Editors, patch and version control keep earlier states of a file beside it; Windows its own notes of a folder.
BACKUPS = (".bak", ".orig", ".rej", ".save", ".swo", ",v")
OF_FOLDERS = frozenset({"thumbs.db", "ehthumbs.db", "desktop.ini", "icon\r", "$recycle.bin", "__macosx"})
WHOLE = ".whole.jsonl"
# An id never holds an @, so the text before the @ is the id and nothing else.
UNIQUE = "@unique.json"
_WIDTH = 10
_AGAIN = re.compile(rf"\.{ORDER}$")
_OURS = re.compile(rf"[0-9a-z]{{{_WIDTH}}}\.([^@]+)(?:@unique)?\.json")
_OUR_BATCH = re.compile(rf"[0-9a-z]{{{_WIDTH}}}\.batch-.+{re.escape(WHOLE)}")


def first_stem(stem: str) -> str:
    """The drop's first name, without the order that it got when it was given a free name."""
    return _AGAIN.sub("", stem)


def concerns_us(drop: str) -> bool:
    """Whether an entry of pending/ is ours to judge: not hidden, and not under a name by which other programs keep
    unfinished files, backups, locks and notes of a folder.
    """
    name = drop.lower()
    autosaved = name.startswith("#") and name.endswith("#")  # Emacs
    return not (
        name.startswith((".", "~$")) or name.endswith(UNFINISHED + BACKUPS) or autosaved or name in OF_FOLDERS
    )


def task_drop(micros: int, task_id: str, *, unique: bool) -> str:
    """The name that we drop a task under: it sorts by age and states the id, so the file need not be opened.

    micros: microseconds since 1970; unique: whether the id was made for this drop alone, see `is_unique`.
    """
    return f"{base36(micros, _WIDTH)}.{task_id}{UNIQUE if unique else '.json'}"


def batch_drop(micros: int, word: str) -> str:
    """The name that we drop a batch under, which is published by rename."""
    return f"{base36(micros, _WIDTH)}.batch-{word}{WHOLE}"


def is_our_batch(drop: str) -> bool:
    """Whether spoold itself dropped this batch: by a rename, after its content was durable.

    In other people's names WHOLE is only a promise: `mv` from another file system is a slow copy under that name.
    """
    return _OUR_BATCH.fullmatch(drop) is not None


def id_in(drop: str) -> str | None:
    """The id in a name that spoold made; None for other names."""
    match = _OURS.fullmatch(drop)
    return match[1] if match is not None and is_id(match[1]) else None


def is_unique(drop: str, task_id: str) -> bool:
    """Whether the name promises that no other drop, before or after, has the id in this drop's content."""
    return drop.endswith(UNIQUE) and id_in(drop) == task_id
