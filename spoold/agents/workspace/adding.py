"""Brings files into an index, whatever one of them is: git alone stops at the first file that it cannot convert.

    a file that cannot be read                  is named, and all others are added
    one that is not in the encoding which       is added with the bytes that it has, and named
    its `.gitattributes` name for it

Law: the number of git's commands does not grow with the number of such files.

Touches: files.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection, Iterable, Sequence

from spoold.agents.workspace.git import Done, Git, GitFailed

_NOT_READ = ("error:", "fatal:", "warning: could not open", "warning: unable to access")
_ENCODING = "working-tree-encoding"
_NONE = ("unspecified", "unset", "set")
_MISENCODED = re.compile(r"'(.+)' (?:from|if encoded as) ")
_NO_NAME = re.compile(r"error: invalid path '(.+)'", re.IGNORECASE)
_EXECUTABLE = 0o100


def add_all(git: Git, but: Sequence[str]) -> list[str]:
    """Add all files that are not ignored, but for what is below these paths; returns what was not added, or not as it
    should be. Errors: GitFailed."""
    done, odd = _added(git, but), list[str]()
    if done.code not in (0, 1):
        encoded = _encoded(git, but)
        odd = sorted(_misencoded(git, encoded))
        done = _added(git, [*but, *odd]) if odd else done
        if done.code not in (0, 1) and encoded:
            odd = encoded  # git says of some only when it writes them
            done = _added(git, [*but, *odd])
    unread = [line for line in done.errors.splitlines() if line.startswith(_NOT_READ)]
    if done.code not in (0, 1) or (done.code and not unread):
        raise GitFailed(("add", "--all"), done.code, done.errors)
    return _plain(unread) + _as_they_are(git, odd)


def add_these(git: Git, names: Collection[str]) -> list[str]:
    """Add these files, and take those that are gone out of the index; returns what was not added, or not as it should
    be. Errors: GitFailed."""
    if not _updated(git, names):
        return []
    unread = {name for name in names if not _may_be_read(git, name)}
    odd = _misencoded(git, _with_encoding(git, sorted(set(names) - unread)))
    failed = _updated(git, set(names) - unread - odd)
    said = [f"{name}: it cannot be read" for name in sorted(unread)]
    return [*said, *([failed] if failed else []), *_as_they_are(git, sorted(odd))]


def _added(git: Git, but: Iterable[str]) -> Done:
    words = ("add", "--all", "--ignore-errors", "--pathspec-from-file=-", "--pathspec-file-nul")
    return git.ask(*words, given="\0".join([":(top)", *(f":(exclude,top,literal){path}" for path in but)]))


def _plain(lines: Sequence[str]) -> list[str]:
    """Return what git said, each path once, and in words where its own say little."""
    names = [found[1] for line in lines if (found := _NO_NAME.fullmatch(line))]
    again = {f"error: unable to add '{name}' to index" for name in names}
    rest = [line for line in lines if line not in again and not _NO_NAME.fullmatch(line)]
    return [*(f"{name}: git takes nothing of this name" for name in names), *rest]


def _updated(git: Git, names: Iterable[str]) -> str:
    """Add files, or none of them; returns why none was, '' where all were."""
    done = git.ask("update-index", "-z", "--add", "--remove", "--stdin", given="\0".join(sorted(names)))
    return " ".join(done.errors.split())[-300:] or f"git ended with {done.code}" if done.code else ""


def _encoded(git: Git, but: Sequence[str]) -> list[str]:
    """Return the files for which attributes name an encoding."""
    outside = [f":(exclude,top,literal){path}" for path in but]
    words = ("ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":(top)", *outside)
    return _with_encoding(git, sorted(set(git(*words).names)))


def _with_encoding(git: Git, names: Sequence[str]) -> list[str]:
    said = git("check-attr", "-z", "--stdin", _ENCODING, given="\0".join(names)).names
    found = [name for name, value in zip(said[::3], said[2::3], strict=False) if value not in _NONE]
    return [name for name in found if _may_be_read(git, name)]


def _misencoded(git: Git, names: Sequence[str]) -> set[str]:
    """Return those of these files that git cannot convert: it goes on after each, where it writes nothing."""
    plain = [name for name in names if "\n" not in name]
    done = git.ask("hash-object", "--stdin-paths", given="".join(f"{name}\n" for name in plain))
    said = {found[1] for line in done.errors.splitlines() if (found := _MISENCODED.search(line))}
    return said.intersection(plain) | (set(names) - set(plain))


def _as_they_are(git: Git, names: Sequence[str]) -> list[str]:
    """Add files with their own bytes; returns what is to be said of each."""
    plain = [name for name in names if "\n" not in name]
    done = git("hash-object", "-w", "--no-filters", "--stdin-paths", given="".join(f"{name}\n" for name in plain))
    rows = "".join(f"{_mode(git, name)} {one}\t{name}\0" for name, one in zip(plain, done.lines, strict=True))
    git("update-index", "-z", "--index-info", given=rows)
    why = f"it is not in the encoding that .gitattributes names for it ({_ENCODING})"
    lost = [f"{name}: {why}, and was not saved" for name in names if "\n" in name]
    return [*(f"{name}: {why}; its bytes were saved as they are" for name in plain), *lost]


def _mode(git: Git, name: str) -> str:
    try:
        return "100755" if os.lstat(os.path.join(git.tree, name)).st_mode & _EXECUTABLE else "100644"
    except OSError:
        return "100644"


def _may_be_read(git: Git, name: str) -> bool:
    """Whether it is no file that is closed."""
    path = os.path.join(git.tree, name)
    try:
        return not stat.S_ISREG(os.lstat(path).st_mode) or os.access(path, os.R_OK)
    except OSError:
        return True  # it is gone, and git takes it out of the index
