"""A folder as it is, to see afterwards that nothing in it was touched."""

from __future__ import annotations

from pathlib import Path


def picture(root: Path) -> dict[str, tuple[int, int, bytes]]:
    """Everything below, with modes, times and contents."""
    found = {}
    for path in [root, *sorted(root.rglob("*"))]:
        status = path.lstat()
        found[str(path)] = (status.st_mode, status.st_mtime_ns, path.read_bytes() if path.is_file() else b"")
    return found
