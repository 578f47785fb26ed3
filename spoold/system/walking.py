"""A walk over a local tree that others made: any depth, no recursion, no link and no mount on the way.

At most two directories are open at once. The way up is `..`, and it counts only if that is the directory that the
walk came from.

Law: nothing is changed, followed or entered that is not below the top on the top's own mount. A directory that cannot
be opened is left out.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field

from spoold.system.same_mount import LISTED, NAMED, PLACE, open_here

_BLOCK = 512


@dataclass(slots=True)
class Folder:
    """One directory of a walk. fd: its descriptor, open until the next step; folders: its directories, of which the
    walk enters those that the caller leaves in the list; files: its other names."""

    fd: int
    folders: list[str]
    files: list[str]
    _way: tuple[list[str], int]

    @property
    def path(self) -> str:
        """The way to it from the top, '' for the top; it may be longer than any call takes."""
        names, depth = self._way
        return "/".join(names[:depth])


@dataclass(slots=True)
class _Level:
    identity: tuple[int, int]
    folders: list[str] = field(default_factory=list)


def walk(top: str) -> Iterator[Folder]:
    """Yield each directory, the top first; nothing where that is a link, or cannot be opened. Errors: none."""
    try:
        above = os.open(top, PLACE | os.O_NOFOLLOW)
    except OSError:
        return
    try:
        yield from walk_below(".", above)
    finally:
        os.close(above)


def walk_below(name: str, above: int) -> Iterator[Folder]:
    """Yield each directory from a name below the directory `above`, that one first. Errors: none."""
    at = _opened(name, above)
    if at is None:
        return
    names: list[str] = []
    levels: list[_Level] = []
    try:
        while True:
            here = Folder(at, *_listed(at), (names, len(names)))
            yield here
            levels.append(_Level(_identity(at), here.folders[::-1]))
            while (below := _first(levels[-1].folders, at)) is None:
                levels.pop()
                if not levels:
                    return
                names.pop()
                up = os.open("..", LISTED, dir_fd=at)
                os.close(at)
                at = up
                if _identity(at) != levels[-1].identity:
                    return  # somebody moved it meanwhile: what is above now is not ours
            os.close(at)
            name, at = below
            names.append(name)
    except OSError:
        return
    finally:
        os.close(at)


def disk_use(name: str, above: int, most: int | None = None) -> tuple[int, bool]:
    """Return the bytes on disk of a name with all that is below it, and whether that is all: no more than `most`
    entries are counted. A file with several names counts once. Errors: none."""
    top = _looked_at(name, above)
    if top is None:
        return 0, False
    total, count = top.st_blocks * _BLOCK, 0
    seen: set[tuple[int, int]] = set()
    for folder in walk_below(name, above):
        for inner in (*folder.folders, *folder.files):
            if most is not None and count >= most:
                return total, False
            count += 1
            found = _looked_at(inner, folder.fd)
            if found is None:
                continue
            if found.st_nlink == 1 or (found.st_dev, found.st_ino) not in seen:
                total += found.st_blocks * _BLOCK
                seen.add((found.st_dev, found.st_ino))
    return total, True


def _looked_at(name: str, above: int) -> os.stat_result | None:
    """The status of a name; None of a mount, which may not answer, and of one that is gone."""
    try:
        place = open_here(name, NAMED, above)
    except OSError:
        return None
    try:
        return os.fstat(place)
    finally:
        os.close(place)


def _first(folders: list[str], above: int) -> tuple[str, int] | None:
    """Take names off the list until one can be opened; return it with its descriptor."""
    while folders:
        name = folders.pop()
        if (opened := _opened(name, above)) is not None:
            return name, opened
    return None


def _opened(name: str, above: int) -> int | None:
    try:
        return open_here(name, LISTED, above)
    except OSError:
        return None


def _identity(fd: int) -> tuple[int, int]:
    found = os.fstat(fd)
    return found.st_dev, found.st_ino


def _listed(fd: int) -> tuple[list[str], list[str]]:
    """The directories and the other names in a directory, as far as it can be read."""
    folders: list[str] = []
    files: list[str] = []
    try:
        with os.scandir(fd) as entries:
            for entry in entries:
                (folders if entry.is_dir(follow_symlinks=False) else files).append(entry.name)
    except OSError:
        pass
    return folders, files
