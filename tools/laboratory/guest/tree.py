"""What lies in a spool, as the server's own disk has it: `tree.py FOLDER` prints it as JSON.

Law: a witness against spoold must not be spoold. Standard library only, no client between it and the disk.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Tree:
    """All files by their path; results by their name: id, attempt, status; every COMPLETED: id, attempt, writer."""

    files: list[str]
    results: dict[str, tuple[str, int, str]]
    commits: list[tuple[str, int, str]]


def look(root: Path) -> Tree:
    """All of it. Errors: OSError."""
    files = [str((Path(folder) / name).relative_to(root)) for folder, _, names in os.walk(root) for name in names]
    results = {}
    for path in (root / "results").iterdir():
        told = _parsed(path.read_bytes())
        results[path.name] = told.get("task_id", ""), told.get("attempt", 0), told.get("status", "")
    # A line that its writer wrote again, told that it had failed, is one.
    lines = {line for journal in (root / "events").iterdir() for line in journal.read_bytes().splitlines()}
    events = [event for event in map(_parsed, lines) if event.get("event") == "COMPLETED"]
    return Tree(files, results, [(event["task"], event["attempt"], event["writer"]) for event in events])


def _parsed(data: bytes) -> dict[str, Any]:
    """Empty for what is no object: the torn last line of a journal, a result that a crash left half-written."""
    try:
        found = json.loads(data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


if __name__ == "__main__":
    json.dump(asdict(look(Path(sys.argv[1]))), sys.stdout)
