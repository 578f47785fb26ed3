"""What a planner answered, as a file: a person may look at it, correct it, and submit it.

Law: it is kept outside of the spool, for its owner alone, and the answer of the same task replaces it.

Touches: files.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from spoold.agents.places import state_home


def keep(words: str, task_id: str, environ: Mapping[str, str]) -> str:
    """Write the answer of a planner; returns the path. Errors: OSError."""
    folder = os.path.join(state_home(environ), "spoold", "plans")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{task_id}.jsonl")
    made = os.open(f"{path}.new", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(made, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(words if words.endswith("\n") else f"{words}\n")
    os.replace(f"{path}.new", path)
    return path
