"""Looks over the files of a workspace before git opens any of them.

Law: nothing is opened, and no link leads out of the tree.

Touches: files.
"""

from __future__ import annotations

import os
import stat

from spoold.system.walking import walk

# A file of more bytes is large.
LARGE = 1 << 20
# Git, or git-lfs, reads these itself, and waits for ever where one is a pipe; of the latter two also at the end of a
# link. So large a one (bytes) fills its memory.
READ_BY_GIT = (".gitattributes", ".gitignore", ".gitmodules", ".lfsconfig")
_FOLLOWED, READ_MAX = READ_BY_GIT[2:], 10 << 20


def looked_over(tree: str) -> tuple[list[str], list[str], dict[str, int]]:
    """Return where git would wait for ever, the folders below that are repositories, and the sizes of large files."""
    blocking, found, large = list[str](), list[str](), dict[str, int]()
    for folder in walk(tree):
        above = f"{folder.path}/" if folder.path else ""
        odd = [
            name for name in READ_BY_GIT if name in folder.files and not _may_be_read(tree, above + name, folder.fd)
        ]
        blocking += [f"{above}{name}" for name in odd]
        large |= {f"{above}{name}": size for name in folder.files if (size := _size(name, folder.fd)) > LARGE}
        if folder.path and ".git" in (*folder.folders, *folder.files):
            found.append(folder.path)
        if ".git" in folder.folders:
            folder.folders.remove(".git")
    return blocking, found, large


def _size(name: str, above: int) -> int:
    """Return the size of a file, in bytes; 0 of what is none."""
    try:
        found = os.stat(name, dir_fd=above, follow_symlinks=False)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _may_be_read(tree: str, path: str, above: int) -> bool:
    """Whether git comes to an end with a file that it reads itself."""
    name = os.path.basename(path)
    found = os.stat(name, dir_fd=above, follow_symlinks=False)
    if stat.S_ISLNK(found.st_mode):
        top, end = os.path.realpath(tree), os.path.realpath(os.path.join(tree, path))
        if name not in _FOLLOWED or not os.path.exists(end):
            return True
        if not end.startswith(f"{top}/"):
            return False  # such as /dev/stdin: what that is, each program sees for itself
        found = os.stat(end)
    return stat.S_ISREG(found.st_mode) and found.st_size <= READ_MAX
