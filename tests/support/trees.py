"""Trees of which no path is short enough to be named."""

from __future__ import annotations

import os
from pathlib import Path


def deep(folder: Path, levels: int = 1300) -> None:
    """Make directories in one another, each called `d`, below a folder that is made if it is not there."""
    folder.mkdir(parents=True, exist_ok=True)
    at = os.open(folder, os.O_RDONLY)
    for _ in range(levels):
        os.mkdir("d", dir_fd=at)
        below = os.open("d", os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)
