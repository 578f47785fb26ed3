"""Trees of which no path is short enough to be named."""

from __future__ import annotations

import os
from pathlib import Path


def deep(folder: Path, levels: int = 1300, name: str = "d") -> None:
    """Make directories in one another, all of one name, below a folder that is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir(name, dir_fd=at)
        below = os.open(name, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
