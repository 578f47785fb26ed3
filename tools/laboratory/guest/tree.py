"""What lies in a spool, as the server's own disk has it: `tree.py FOLDER` prints it as JSON.

{"files": [path…], "results": {name: [id, attempt, status]}, "commits": [[id, attempt, writer]…]}

Law: a witness against spoold must not be spoold. Standard library only, no client between it and the disk.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

_COMMIT = ("task", "attempt", "writer")


def look(root: Path) -> dict[str, object]:
    """All of it. Errors: OSError."""
    files = [str((Path(folder) / name).relative_to(root)) for folder, _, names in os.walk(root) for name in names]
    journals = [line for journal in (root / "events").iterdir() for line in journal.read_bytes().splitlines()]
    events = [event for event in map(_parsed, journals) if event is not None]
    commits = [[event.get(field) for field in _COMMIT] for event in events if event.get("event") == "COMPLETED"]
    results = {}
    for path in (root / "results").iterdir():
        told = _parsed(path.read_bytes()) or {}
        results[path.name] = [told.get("task_id"), told.get("attempt"), told.get("status")]
    return {"files": files, "results": results, "commits": commits}


def _parsed(data: bytes) -> dict[str, object] | None:
    """None for what is no object: the torn last line of a journal, the result that a crash left half-written."""
    try:
        found = json.loads(data)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


if __name__ == "__main__":
    json.dump(look(Path(sys.argv[1])), sys.stdout)
