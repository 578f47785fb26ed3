"""What stands in a spool's tree: whether all has ended, and whether each task was committed exactly once.

Law: it reads names and asks nobody; it shares the grammar of names with spoold and nothing else.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from spoold.protocol.names import parse_archived, parse_ended

UNDER_WAY = ("pending", "returned")
BRANCHED = ("admitting", "waiting", "ready", "claimed")


def under_way(root: Path) -> bool:
    """Whether any task has not ended yet. In the order of the flow, so that one on the move is not missed."""
    for state in ("pending", "admitting", "waiting", "ready", "claimed", "returned"):
        directory = root / state
        for name in os.listdir(directory):
            if state in UNDER_WAY or _holds(directory / name):
                return True
    return False


def _holds(branch: Path) -> bool:
    try:
        return bool(os.listdir(branch))
    except (FileNotFoundError, NotADirectoryError):
        return False  # a lane or a claim directory that was empty has just been removed


def standing(root: Path, state: str) -> int:
    """How many files stand in a state that has branches."""
    total = 0
    for branch in os.scandir(root / state):
        try:
            total += len(os.listdir(branch.path))
        except (FileNotFoundError, NotADirectoryError):
            continue
    return total


def commits(root: Path) -> tuple[Counter[str], int]:
    """How often each task stands as completed, and how many of those have no result beside them."""
    found: Counter[str] = Counter()
    results, bare = set(os.listdir(root / "results")), 0
    for name in os.listdir(root / "completed"):
        ended = parse_ended(name)
        if ended is not None:
            found[ended.id] += 1
            bare += name not in results
    for bucket in os.scandir(root / "archive"):
        names = set(os.listdir(bucket.path))
        for name in names:
            archived = parse_archived(name)
            if archived is not None and archived[1] == "completed":
                found[archived[0].id] += 1
                # Archiving moves the result first; until it is done, it stands in results/ under its own name.
                bare += name.replace(".completed.json", ".result.json") not in names
    return found, bare
